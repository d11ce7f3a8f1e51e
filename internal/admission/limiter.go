package admission

import (
	"container/heap"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/chancery-ca/chancery/ca/errkind"
)

// Config bounds a Limiter. All fields but Adaptive are needed.
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

// Limiter bounds how much work is under way. Work above the limit waits in a queue in the order of its urgency.
//
// The limit is found as TCP Vegas finds its window: by Little's law, of n pieces of work that take the time t each, where alone each takes the time
// t0, about n(1-t0/t) wait inside for something. The limit grows while few wait there and shrinks while many do. t0 is the least time seen lately;
// so that it is not the least time under load, the limit is halved for a moment whenever t0 is forgotten. Safe for concurrent use.
type Limiter struct {
	config Config

	mu       sync.Mutex // guards everything below
	limit    float64
	inFlight int
	queue    queue
	sequence uint64
	least    time.Duration // t0; zero while unknown
	since    time.Time     // when least began to be measured
	usual    time.Duration // smoothed time of a piece of work; zero while unknown
}

const (
	// window is how long the least time is believed.
	window = 15 * time.Second
	// smoothing is the weight of a new time in the usual one.
	smoothing = 0.05
	// firstGuess is the usual time before any is known.
	firstGuess = 5 * time.Millisecond
)

// NewLimiter returns a Limiter.
func NewLimiter(config Config) (*Limiter, error) {
	if config.Min < 1 || config.Max < config.Min || config.Queue < 0 || config.Now == nil {
		return nil, errors.New("admission: a limiter needs 1 <= min <= max, a queue that is not negative and a clock")
	}
	l := &Limiter{config: config, limit: float64(config.Max), since: config.Now()}
	if config.Adaptive {
		l.limit = float64(max(config.Min, min(config.Max, 4*config.Min)))
	}
	return l, nil
}

// State is what a Limiter looks like at a moment.
type State struct {
	Limit, InFlight, Queued int
	// Usual is the smoothed time that a piece of work takes.
	Usual time.Duration
}

// State returns how things are.
func (l *Limiter) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return State{Limit: int(l.limit), InFlight: l.inFlight, Queued: l.queue.Len(), Usual: l.usual}
}

// Acquire returns when the work may begin, or an error that tells when to come back. urgent is when whoever wants the work done will be without
// what it brings; the zero time is the most urgent. done is called when the work has ended, once, with whether it is typical: work that was
// refused halfway says nothing about the time that work takes.
func (l *Limiter) Acquire(ctx context.Context, urgent time.Time) (done func(typical bool), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	if l.queue.Len() == 0 && l.inFlight < int(l.limit) {
		l.inFlight++
		l.mu.Unlock()
		return l.done(), nil
	}
	w := &waiter{urgent: urgent, turn: make(chan error, 1)}
	if err := l.enqueue(ctx, w); err != nil {
		l.mu.Unlock()
		return nil, err
	}
	l.mu.Unlock()

	select {
	case err := <-w.turn:
		if err != nil {
			return nil, err
		}
		return l.done(), nil
	case <-ctx.Done():
		l.mu.Lock()
		defer l.mu.Unlock()
		if w.index >= 0 {
			heap.Remove(&l.queue, w.index)
		} else if <-w.turn == nil { // it was let in at this very moment
			l.inFlight--
			l.admit()
		}
		return nil, ctx.Err()
	}
}

// enqueue puts a waiter into the queue, or says why it is not worth waiting.
func (l *Limiter) enqueue(ctx context.Context, w *waiter) error {
	if deadline, bounded := ctx.Deadline(); bounded {
		before := 0
		for _, other := range l.queue {
			if !w.before(other) {
				before++
			}
		}
		if needed := l.wait(before) + l.usualTime(); l.config.Now().Add(needed).After(deadline) {
			return errkind.New(errkind.Exhausted, "the server has so much to do that this call could not be done before its deadline; try again").
				Because(errkind.DeadlineTooNear).After(l.comeBack())
		}
	}
	l.sequence++
	w.sequence = l.sequence
	if l.queue.Len() >= l.config.Queue {
		last := l.queue.last()
		if last < 0 || !w.before(l.queue[last]) {
			return l.overloaded()
		}
		leaving := l.queue[last]
		heap.Remove(&l.queue, last)
		leaving.turn <- l.overloaded()
	}
	heap.Push(&l.queue, w)
	return nil
}

func (l *Limiter) overloaded() error {
	return errkind.New(errkind.Exhausted, "the server has more to do than it can in time; try again").Because(errkind.Overloaded).After(l.comeBack())
}

// wait estimates how long a caller with so many before it waits.
func (l *Limiter) wait(before int) time.Duration {
	return time.Duration(float64(before+1) / max(1, math.Floor(l.limit)) * float64(l.usualTime()))
}

func (l *Limiter) usualTime() time.Duration {
	if l.usual == 0 {
		return firstGuess
	}
	return l.usual
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

// admit lets in whoever has waited for it.
func (l *Limiter) admit() {
	for l.inFlight < int(l.limit) && l.queue.Len() > 0 {
		w, _ := heap.Pop(&l.queue).(*waiter)
		l.inFlight++
		w.turn <- nil
	}
}

func (l *Limiter) done() func(typical bool) {
	began := l.config.Now()
	var once sync.Once
	return func(typical bool) {
		once.Do(func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			now := l.config.Now()
			if took := now.Sub(began); typical && took > 0 {
				l.learn(took, now)
			}
			l.inFlight--
			l.admit()
		})
	}
}

// learn adapts the limit to a time that work took. The work itself still counts as under way.
func (l *Limiter) learn(took time.Duration, now time.Time) {
	if l.usual == 0 {
		l.usual = took
	}
	l.usual += time.Duration(smoothing * float64(took-l.usual))
	if !l.config.Adaptive {
		return
	}
	if age := now.Sub(l.since); age >= window || age < 0 {
		l.least, l.since = 0, now
		l.limit = max(float64(l.config.Min), l.limit/2)
	}
	if l.least == 0 || took < l.least {
		l.least = took
	}
	// how many of the limit wait inside; the bounds of what is wanted there grow slowly with the limit
	inside := l.limit * (1 - float64(l.least)/float64(l.usual))
	few, many := 3*math.Log10(l.limit)+2, 6*math.Log10(l.limit)+4
	switch {
	case inside > many:
		l.limit--
	case inside < few && float64(l.inFlight) >= l.limit-1: // what is not used says nothing about more
		l.limit++
	}
	l.limit = min(max(l.limit, float64(l.config.Min)), float64(l.config.Max))
}

// waiter is a caller in the queue.
type waiter struct {
	urgent   time.Time
	sequence uint64
	turn     chan error // gets nil when the work may begin; never blocks
	index    int        // in the queue; negative outside of it
}

// before tells whether w's turn comes first.
func (w *waiter) before(other *waiter) bool {
	if c := w.urgent.Compare(other.urgent); c != 0 {
		return c < 0
	}
	return w.sequence < other.sequence
}

// queue is a heap (container/heap) of waiters, the most urgent first.
type queue []*waiter

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].before(q[j]) }

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push appends a waiter, for container/heap.
func (q *queue) Push(x any) {
	w, _ := x.(*waiter)
	w.index = len(*q)
	*q = append(*q, w)
}

// Pop takes the last waiter off, for container/heap.
func (q *queue) Pop() any {
	old := *q
	w := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	w.index = -1
	return w
}

// last returns the index of the least urgent waiter, negative if there is none.
func (q queue) last() int {
	last := -1
	for i := len(q) / 2; i < len(q); i++ { // leaves of the heap
		if last < 0 || q[last].before(q[i]) {
			last = i
		}
	}
	return last
}
