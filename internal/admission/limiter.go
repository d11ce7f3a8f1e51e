package admission

import (
	"container/heap"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/chancery-ca/chancery/ca/errkind"
)

// Config bounds a Limiter. All fields but Adaptive and Queue are needed.
type Config struct {
	// Max is how much work may be under way at once, and Min how low the adaptive limit may fall. 1 <= Min <= Max.
	Min, Max int
	// Adaptive lets the limit follow the time that work takes; otherwise it is Max.
	Adaptive bool
	// Queue is how much work may wait. With 0 what cannot begin at once is refused.
	Queue int
	// Now is the clock.
	Now func() time.Time
}

// Limiter bounds how much work is under way. Work above the limit waits in a queue in the order of its urgency. Safe for concurrent use.
type Limiter struct {
	config Config

	mu       sync.Mutex // guards everything below
	pace     *adaptive  // its limit holds only if Config.Adaptive says so; the usual time is measured anyway
	inFlight int
	queue    queue
	sequence uint64
}

// firstGuess is the usual time before any is known.
const firstGuess = 5 * time.Millisecond

// NewLimiter returns a Limiter.
func NewLimiter(config Config) (*Limiter, error) {
	if config.Min < 1 || config.Max < config.Min || config.Queue < 0 || config.Now == nil {
		return nil, errors.New("admission: a limiter needs 1 <= min <= max, a queue that is not negative and a clock")
	}
	return &Limiter{config: config, pace: newAdaptive(config.Min, config.Max, config.Now())}, nil
}

// State is what a Limiter looks like at a moment.
type State struct {
	Limit, InFlight, Queued int
	// Usual is the smoothed time that a piece of work takes; zero before any has ended.
	Usual time.Duration
}

// State returns how things are.
func (l *Limiter) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return State{Limit: l.limit(), InFlight: l.inFlight, Queued: l.queue.Len(), Usual: l.pace.usual}
}

// Acquire returns when the work may begin, or an error: errkind.Exhausted, which says when to come back, or that of a ctx that has ended. urgent is when
// whoever wants the work done will be without what it brings; the zero time is the most urgent. Work that is equally urgent begins in the order of
// its arrival. Work whose ctx ends before its turn would come is refused at once.
//
// done has to be called when the work has ended, whatever became of it, with whether it was done; only the first call counts. Work that failed says
// little about the time that work takes.
func (l *Limiter) Acquire(ctx context.Context, urgent time.Time) (done func(ok bool), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w, err := l.enter(ctx, urgent)
	if err != nil {
		return nil, err
	}
	if w == nil {
		return l.done(), nil
	}
	select {
	case err := <-w.turn:
		if err != nil {
			return nil, err
		}
		return l.done(), nil
	case <-ctx.Done():
		l.leave(w)
		return nil, ctx.Err()
	}
}

// enter begins work if there is room for it, and otherwise puts it into the queue.
func (l *Limiter) enter(ctx context.Context, urgent time.Time) (*waiter, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.queue.Len() == 0 && l.inFlight < l.limit() {
		l.begin()
		return nil, nil
	}
	l.sequence++
	w := &waiter{urgent: urgent, sequence: l.sequence, turn: make(chan error, 1), index: -1}
	if err := l.inTime(ctx, w); err != nil {
		return nil, err
	}
	if l.queue.Len() >= l.config.Queue {
		last := l.queue.last()
		if last < 0 || !w.before(l.queue[last]) {
			return nil, l.overloaded()
		}
		leaving := l.queue[last]
		heap.Remove(&l.queue, last)
		leaving.turn <- l.overloaded()
	}
	heap.Push(&l.queue, w)
	return w, nil
}

// leave takes a waiter whose context has ended out of the queue.
func (l *Limiter) leave(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.index >= 0 {
		heap.Remove(&l.queue, w.index)
		return
	}
	if err := <-w.turn; err == nil { // it was let in at this very moment
		l.inFlight--
		l.admit()
	}
}

// inTime refuses work that could not be done before its context ends.
func (l *Limiter) inTime(ctx context.Context, w *waiter) error {
	deadline, bounded := ctx.Deadline()
	if !bounded {
		return nil
	}
	left := deadline.Sub(l.config.Now()) - l.usual()
	if l.wait(l.queue.Len()) <= left || l.wait(l.queue.ahead(w)) <= left { // to count comes after what needs no counting
		return nil
	}
	return errkind.New(errkind.Exhausted, "the server has so much to do that this call could not be done before its deadline; try again").
		Because(errkind.DeadlineTooNear).After(l.comeBack())
}

func (l *Limiter) overloaded() error {
	return errkind.New(errkind.Exhausted, "the server has more to do than it can in time; try again").Because(errkind.Overloaded).After(l.comeBack())
}

// wait estimates how long a caller with so many ahead of it waits.
func (l *Limiter) wait(ahead int) time.Duration {
	return time.Duration(float64(ahead+1) / float64(l.limit()) * float64(l.usual()))
}

func (l *Limiter) usual() time.Duration {
	if l.pace.usual == 0 {
		return firstGuess
	}
	return l.pace.usual
}

func (l *Limiter) limit() int {
	if l.config.Adaptive {
		return int(l.pace.limit)
	}
	return l.config.Max
}

// Bounds of what callers are told to wait.
const (
	shortestWait = 500 * time.Millisecond
	longestWait  = 30 * time.Second
)

// comeBack returns when a caller who is sent away may come back: when what is here now will be done, spread so that those who are sent away together
// do not come back together.
func (l *Limiter) comeBack() time.Duration {
	wait := min(max(2*l.wait(l.queue.Len()), shortestWait), longestWait)
	return wait/2 + time.Duration(rand.Int64N(int64(wait))) //nolint:gosec // G404: spreads load, secures nothing
}

// begin counts work that begins.
func (l *Limiter) begin() {
	l.inFlight++
	l.pace.began(l.inFlight)
}

// admit lets in whoever has waited for it.
func (l *Limiter) admit() {
	for l.inFlight < l.limit() && l.queue.Len() > 0 {
		w, _ := heap.Pop(&l.queue).(*waiter)
		l.begin()
		w.turn <- nil
	}
}

func (l *Limiter) done() func(ok bool) {
	began, ended := l.config.Now(), false
	return func(ok bool) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if ended {
			return
		}
		ended = true
		l.pace.ended(began, l.config.Now(), !ok)
		l.inFlight--
		l.admit()
	}
}
