package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chancery-ca/chancery/ca/ledger"
)

// block holds the writer inside a transaction until release is called.
func block(t testing.TB, l *Ledger) (release func()) {
	t.Helper()
	inside, hold, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	var once atomic.Bool
	go func() {
		done <- l.submit(context.Background(), "blocking", &request{write: func(*group) (error, error) {
			if once.CompareAndSwap(false, true) {
				close(inside)
			}
			<-hold
			return nil, nil
		}}, true)
	}()
	<-inside
	return func() {
		t.Helper()
		close(hold)
		must(t, <-done)
	}
}

// queue starts a call and returns when it is in the queue.
func queue(t testing.TB, l *Ledger, call func()) {
	t.Helper()
	before := len(l.queue)
	go call()
	for len(l.queue) == before {
		runtime.Gosched()
	}
}

func TestFullQueue(t *testing.T) {
	l := mustOpen(t, Config{Path: filepath.Join(t.TempDir(), "ledger.db"), Queue: 2})
	first := benchIntent(1)
	must(t, l.Reserve(t.Context(), first))
	release := block(t, l)
	answers := make(chan error, 4)
	for n := range 2 {
		queue(t, l, func() { answers <- l.Reserve(t.Context(), benchIntent(10+n)) })
	}
	wantUnavailable(t, l.Reserve(t.Context(), benchIntent(20)), "queue is full")
	wantUnavailable(t, l.Probe(t.Context()), "queue is full")
	// What was begun can still be settled.
	queue(t, l, func() { answers <- l.Commit(t.Context(), outcomeOf(first)) })
	queue(t, l, func() { answers <- l.Fail(t.Context(), ledger.Outcome{Serial: first.Serial}) })
	wantUnavailable(t, l.Fail(t.Context(), ledger.Outcome{Serial: first.Serial}), "queue is full")
	release()
	settled := 0
	for range 4 {
		if err := <-answers; errors.Is(err, ledger.ErrSettled) {
			settled++
		} else {
			must(t, err)
		}
	}
	if settled != 1 {
		t.Errorf("%d settlements lost, want 1", settled)
	}
	must(t, l.Probe(t.Context()))
}

func TestLeavingTheQueue(t *testing.T) {
	l := mustOpen(t, Config{Path: filepath.Join(t.TempDir(), "ledger.db")})
	token := ledger.JoinToken{Hash: []byte("hash"), ID: "id", Created: time.Now(), Expires: time.Now().Add(time.Hour)}
	must(t, l.AddToken(t.Context(), token))

	t.Run("before the writer takes the reservation it is never made", func(t *testing.T) {
		release := block(t, l)
		in := benchIntent(1)
		ctx, cancel := context.WithCancel(t.Context())
		answer := make(chan error, 1)
		queue(t, l, func() { answer <- l.Reserve(ctx, in) })
		cancel()
		if err := <-answer; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		release()
		must(t, l.Probe(t.Context()))
		if _, err := l.Get(t.Context(), in.Serial); !errors.Is(err, ledger.ErrNotFound) {
			t.Error(err)
		}
	})
	t.Run("after it has taken it, it is settled as failed", func(t *testing.T) {
		in := benchIntent(2)
		in.JoinToken = token.Hash
		ctx, cancel := context.WithCancel(t.Context())
		inside, hold := make(chan struct{}), make(chan struct{})
		answers := make(chan error, 2)
		release := block(t, l)
		queue(t, l, func() { answers <- l.Reserve(ctx, in) })
		queue(t, l, func() {
			answers <- l.submit(context.Background(), "blocking", &request{write: func(*group) (error, error) {
				close(inside)
				<-hold
				return nil, nil
			}}, true)
		})
		release()
		<-inside // the reservation is of the same group, and written before this
		cancel()
		if err := <-answers; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		close(hold)
		must(t, <-answers)
		must(t, l.Probe(t.Context()))
		e, err := l.Get(t.Context(), in.Serial)
		if err != nil || e.State != ledger.Failed || e.Outcome.Reason != reasonLeft {
			t.Errorf("the reservation is %s (%q), %v", e.State, e.Outcome.Reason, err)
		}
		if _, err := l.Token(t.Context(), token.Hash, token.Created); err != nil {
			t.Errorf("its token: %v", err)
		}
	})
}

// TestDesertedThatCannotBeSettled: a deserted reservation whose settling breaks every transaction does not stop the ledger.
func TestDesertedThatCannotBeSettled(t *testing.T) {
	l := mustOpen(t, Config{Path: filepath.Join(t.TempDir(), "ledger.db")})
	in := benchIntent(1)
	ctx, cancel := context.WithCancel(t.Context())
	answers, gone := make(chan error, 2), make(chan struct{})
	release := block(t, l)
	queue(t, l, func() {
		answers <- l.Reserve(ctx, in)
		close(gone)
	})
	queue(t, l, func() {
		answers <- l.submit(context.Background(), "breaking", &request{write: func(g *group) (error, error) {
			cancel()
			<-gone // the caller of the reservation has left
			_, err := g.statements.addIdentity.exec(in.Identity)
			if err == nil {
				_, err = g.statements.addCertificate.exec(int64(1), []byte(in.Serial), int64(1), failed, nil, nil, nil, nil, nil, nil, "{}", nil)
			}
			return nil, err
		}}, true)
	})
	release()
	if err := <-answers; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	must(t, <-answers)
	must(t, l.Probe(t.Context()))
	must(t, l.Reserve(t.Context(), benchIntent(2)))
}

func TestStuck(t *testing.T) {
	clock := atomic.Int64{}
	clock.Store(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())
	now := func() time.Time { return time.Unix(0, clock.Load()) }
	l := mustOpen(t, Config{Path: filepath.Join(t.TempDir(), "ledger.db"), Now: now})
	if stuck := l.Stuck(now()); stuck != 0 {
		t.Errorf("an idle ledger is stuck for %v", stuck)
	}
	release := block(t, l)
	clock.Add(int64(time.Minute))
	answer := make(chan error, 1)
	queue(t, l, func() { answer <- l.Probe(t.Context()) })
	if stuck := l.Stuck(now()); stuck != time.Minute {
		t.Errorf("stuck for %v, want a minute", stuck)
	}
	release()
	must(t, <-answer)
	must(t, l.Close())
	if stuck := l.Stuck(now().Add(time.Hour)); stuck != 0 {
		t.Errorf("a closed ledger is stuck for %v", stuck)
	}
}

func TestCloseWritesWhatWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := mustOpen(t, Config{Path: path})
	release := block(t, l)
	in := benchIntent(1)
	answers := make(chan error, 2)
	queue(t, l, func() { answers <- l.Reserve(t.Context(), in) })
	go func() { answers <- l.Close() }()
	for !l.closed.Load() {
		runtime.Gosched()
	}
	release()
	must(t, <-answers)
	must(t, <-answers)
	l = mustOpen(t, Config{Path: path})
	e, err := l.Get(t.Context(), in.Serial)
	if err != nil || e.State != ledger.Reserved || e.Outcome.Reason != reasonStopped {
		t.Errorf("the reservation is %s (%q), %v", e.State, e.Outcome.Reason, err)
	}
}
