package sqlite

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/chancery-ca/chancery/ca/ledger"
)

// request is one write on its way through the writer. Whoever moves its phase first decides: the caller may leave as long as the
// writer has not answered, and the writer writes only what it has claimed before the caller left.
type request struct {
	// write runs inside the group's transaction. Its answer goes to this caller alone; a broken transaction ends the whole
	// group.
	write  func(*group) (answer, broken error)
	queued time.Time
	phase  atomic.Int32
	done   chan error // has room for the one answer

	// line is set for a reservation.
	line *line
}

// The phases of a request. Left is final, and so is answered.
const (
	waiting int32 = iota
	claimed
	answered
	left
)

func (r *request) claim() bool { return r.phase.CompareAndSwap(waiting, claimed) }

// answer tells the caller what became of the request, or returns false because the caller has left.
func (r *request) answer(err error) bool {
	if !r.phase.CompareAndSwap(claimed, answered) {
		return false
	}
	r.done <- err
	return true
}

// leave is the caller's. It returns false if the answer is already there.
func (r *request) leave() bool {
	return r.phase.CompareAndSwap(waiting, left) || r.phase.CompareAndSwap(claimed, left)
}

// submit queues a request and waits for its answer. Settling may use the half of the queue that nothing else may: a certificate that was
// signed must not be lost because others want to begin.
func (l *Ledger) submit(ctx context.Context, doing string, r *request, settles bool) error {
	if l.queue == nil {
		return fmt.Errorf("%s: the ledger was opened for reading", doing)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if err := l.check(); err != nil {
		return wrap(doing, err)
	}
	r.queued = l.now()
	r.done = make(chan error, 1)
	if !settles && len(l.queue) >= cap(l.queue)/2 {
		return full(doing, cap(l.queue)/2)
	}
	select {
	case l.queue <- r:
	default:
		return full(doing, cap(l.queue))
	}
	select {
	case err := <-r.done:
		return wrap(doing, err)
	case <-ctx.Done():
		if r.leave() {
			return fmt.Errorf("%s: %w", doing, ctx.Err())
		}
	case <-l.stopped:
		if r.leave() {
			return wrap(doing, l.check())
		}
	}
	return wrap(doing, <-r.done)
}

func full(doing string, limit int) error {
	return fmt.Errorf("%s: %w: its queue is full (%d writes are waiting)", doing, ledger.ErrUnavailable, limit)
}

func wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
