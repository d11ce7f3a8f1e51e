package sqlite

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/chancery-ca/chancery/ca/ledger"
)

const (
	// maxGroup bounds a transaction, and so the memory and the time that one flush takes.
	maxGroup = 1024
	// A lock that another process holds is asked for every millisecond or so. SQLite's own busy handler waits up to 100 ms
	// between two looks: beside a busy server, whose gaps are short, it would starve.
	busyPause = time.Millisecond
	// So many looks are about five seconds: no tool keeps the lock for longer than a flush. A tool is more patient with its server.
	serverPatience = 5000
	toolPatience   = 4 * serverPatience
)

// writer owns the connection that writes and everything that it remembers of the file. One goroutine runs it.
type writer struct {
	conn       *conn
	statements statements
	queue      chan *request
	closing    chan struct{}
	now        func() time.Time
	log        *slog.Logger
	guard      *guard
	lost       bool  // the last transaction found a file removed or replaced
	damaged    error // set by the first write that found the file damaged
	flushed    func(Flush)
	patience   int // how often the write lock is asked for
	// oldest is when the oldest write that waits was queued, in Unix nanoseconds; zero while none does.
	oldest atomic.Int64

	roll
	// deserted are reservations that were made although their callers had left: the next group settles them.
	deserted []ledger.Serial
	members  []*request // kept to save the allocation
	answers  []error

	timer        *time.Timer   // what the writer pauses with
	took         time.Duration // by the last group
	last, before int           // the writes of the last two groups
}

// Flush says what one transaction cost.
type Flush struct {
	Writes int           // the writes that it held
	Took   time.Duration // from its begin until it was durable
	Err    error         // why nothing of it was written; nil if it was
}

// run writes groups until the ledger is closing and nothing waits any more.
func (w *writer) run() {
	retry := true // deserted reservations wait for other traffic once settling them has failed
	for {
		first, more := w.next(retry && len(w.deserted) > 0)
		if first == nil && !more {
			return
		}
		retry = w.turn(first)
	}
}

// next waits for a request. It returns nil and true if there is other work, nil and false if there will be none.
func (w *writer) next(other bool) (*request, bool) {
	select {
	case r := <-w.queue:
		return r, true
	default:
	}
	if other {
		return nil, true
	}
	select {
	case r := <-w.queue:
		return r, true
	case <-w.closing:
	}
	select {
	case r := <-w.queue:
		return r, true
	default:
		return nil, false
	}
}

// turn writes one group: first, if there is one, and everything else that waits. It tells whether the group was written.
func (w *writer) turn(first *request) bool {
	began := w.now()
	oldest := began
	if first != nil {
		oldest = first.queued
	}
	w.oldest.Store(oldest.UnixNano())
	defer w.oldest.Store(0)

	w.linger()
	// The lock comes first and the requests after: while another process holds it, callers can still leave without a trace,
	// and the group grows.
	locked := w.now()
	broken := w.begin()
	requests := w.collect(first)
	w.answers = append(w.answers[:0], make([]error, len(requests))...)
	answers := w.answers
	if broken == nil {
		broken = w.transact(requests, answers)
	}
	w.took = w.now().Sub(locked)
	w.before, w.last = w.last, len(requests)
	w.flushed(Flush{Writes: len(requests), Took: w.took, Err: broken})
	if broken != nil && !passes(broken) && len(requests)+len(w.deserted) > 1 {
		// One of them breaks the transaction, and would do so again. The others must not suffer. The next Open reads the
		// deserted ones back.
		if len(w.deserted) > 0 {
			w.log.Error("settling reservations whose callers have left", "error", broken, "count", len(w.deserted))
			w.deserted = w.deserted[:0]
		}
		written := true
		for i, r := range requests {
			answers[i] = w.alone(r)
			written = written && answers[i] == nil
		}
		w.answer(requests, answers)
		return written
	}
	if broken != nil {
		for i := range answers {
			answers[i] = fault("writing", broken)
		}
	}
	w.answer(requests, answers)
	return broken == nil
}

// linger gives those who were just answered the time to come back. Without it, the callers of a busy server split into two
// halves that wait for each other's flushes, and every flush carries half of what it could. A few callers do not wait for more.
func (w *writer) linger() {
	expected := w.last + w.before
	if expected > 8 && len(w.queue) < min(expected, maxGroup)-1 {
		w.pause(min(w.took/8, time.Millisecond))
	}
}

// alone writes a single request in a transaction of its own.
func (w *writer) alone(r *request) error {
	broken := w.begin()
	answers := make([]error, 1)
	if broken == nil {
		broken = w.transact([]*request{r}, answers)
	}
	if broken != nil {
		return fault("writing", broken)
	}
	return answers[0]
}

func (w *writer) pause(d time.Duration) {
	w.timer.Reset(d)
	<-w.timer.C
}

// begin starts a transaction that holds the write lock, on files that are still in their places.
func (w *writer) begin() error {
	for attempt := 1; ; attempt++ {
		_, err := w.statements.begin.exec()
		if !busy(err) || attempt == w.patience {
			return w.inPlace(err)
		}
		w.pause(busyPause)
	}
}

// inPlace ends the transaction that began with err if the guard objects. It logs when that changes.
func (w *writer) inPlace(err error) error {
	lost := w.guard.check()
	if was := w.lost; was != (lost != nil) {
		w.lost = !was
		if lost != nil {
			w.log.Error("nothing is written any more", "error", lost)
		} else {
			w.log.Warn("the ledger file is back in its place")
		}
	}
	if lost == nil {
		w.note(err)
		return err
	}
	if err == nil {
		w.rollBack()
	}
	return lost
}

// note remembers that the file is damaged.
func (w *writer) note(err error) {
	if damage(err) && w.damaged == nil {
		w.damaged = fault("an earlier write", err)
		w.log.Error("a write failed", "error", fault("writing", err))
	}
}

func (w *writer) rollBack() {
	if _, err := w.statements.rollback.exec(); ignoreRolledBack(err) != nil {
		w.log.Warn("rolling a transaction back", "error", err)
	}
}

// collect claims first and what else waits.
func (w *writer) collect(first *request) []*request {
	requests := w.members[:0]
	if first != nil && first.claim() {
		requests = append(requests, first)
	}
	for len(requests) < maxGroup {
		select {
		case r := <-w.queue:
			if r.claim() {
				requests = append(requests, r)
			}
			continue
		default:
		}
		break
	}
	w.members = requests
	return requests
}

// transact runs the requests in the transaction that begin has started, and commits it. An error means that nothing was written.
func (w *writer) transact(requests []*request, answers []error) error {
	g := &group{writer: w}
	err := g.run(requests, answers)
	if err == nil {
		_, err = w.statements.commit.exec()
	}
	if err != nil {
		g.undo()
		w.rollBack()
		w.note(err)
		return err
	}
	g.keep()
	return nil
}

// answer tells the callers. A reservation whose caller has left meanwhile is deserted.
func (w *writer) answer(requests []*request, answers []error) {
	for i, r := range requests {
		there := r.answer(answers[i])
		if !there && r.line != nil && answers[i] == nil {
			w.deserted = append(w.deserted, r.line.serial)
		}
	}
	clear(requests) // they are kept for their memory alone
}
