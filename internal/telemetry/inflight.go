package telemetry

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// InFlight knows the operations under way and how old the oldest is: one that is much older than any deadline means that the server
// hangs. It costs two pointer changes under a lock at the begin and at the end of an operation. It is safe for concurrent use.
type InFlight struct {
	now func() time.Time

	mu    sync.Mutex
	count int
	// ends is a ring, in order of their begin: ends.next is the oldest operation, ends.previous the newest.
	ends operation
}

type operation struct {
	began          time.Time
	next, previous *operation // nil once the operation has ended
}

// NewInFlight returns a tracker without operations. A nil clock is time.Now.
func NewInFlight(now func() time.Time) *InFlight {
	if now == nil {
		now = time.Now
	}
	f := &InFlight{now: now}
	f.ends.next, f.ends.previous = &f.ends, &f.ends
	return f
}

// Begin notes that an operation begins and returns what ends it. Ending it twice does nothing.
func (f *InFlight) Begin() (end func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	op := &operation{began: f.now(), next: &f.ends, previous: f.ends.previous} // the clock is read under the lock: the ring stays in order
	op.previous.next, f.ends.previous = op, op
	f.count++
	return func() { f.end(op) }
}

func (f *InFlight) end(op *operation) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if op.next == nil {
		return
	}
	op.previous.next, op.next.previous = op.next, op.previous
	op.next, op.previous = nil, nil
	f.count--
}

// Len returns the number of operations under way.
func (f *InFlight) Len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count
}

// Oldest returns the age of the oldest operation under way, or zero without one.
func (f *InFlight) Oldest() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ends.next == &f.ends {
		return 0
	}
	return f.now().Sub(f.ends.next.began)
}

// Check returns a liveness check that fails while an operation is older than limit.
func (f *InFlight) Check(name string, limit time.Duration) Check {
	return Check{Name: name, Severity: Required, Run: func(context.Context) error {
		if age := f.Oldest(); age > limit {
			return fmt.Errorf("the oldest of %d operations under way began %s ago; none should take longer than %s",
				f.Len(), age.Round(time.Second), limit)
		}
		return nil
	}}
}
