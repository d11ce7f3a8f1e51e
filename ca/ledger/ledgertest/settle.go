package ledgertest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/chancery-ca/chancery/ca/ledger"
)

func settles(t *testing.T, s Store) {
	l := open(t, s)
	_, err := l.Get(t.Context(), serial(1))
	want(t, err, ledger.ErrNotFound)

	for n, settle := range []func(context.Context, ledger.Outcome) error{l.Commit, l.Fail} {
		do(t, l.Reserve(t.Context(), intent(n)))
		e := get(t, l, n)
		if e.State != ledger.Reserved || !e.Settled.IsZero() {
			t.Fatalf("the reservation is %s, settled at %v", e.State, e.Settled)
		}
		wantIntent(t, e.Intent, intent(n))
		wantOutcome(t, e.Outcome, ledger.Outcome{Serial: serial(n)})

		outcome, state := certified(n), ledger.Issued
		if n == 1 {
			outcome, state = refused(n), ledger.Failed
		}
		do(t, settle(t.Context(), outcome))
		e = get(t, l, n)
		if e.State != state || e.Settled.IsZero() {
			t.Fatalf("the settled reservation is %s, settled at %v", e.State, e.Settled)
		}
		wantIntent(t, e.Intent, intent(n))
		wantOutcome(t, e.Outcome, outcome)
	}
}

func reservesOnce(t *testing.T, s Store) {
	l := open(t, s)
	for n := range 3 {
		do(t, l.Reserve(t.Context(), intent(n)))
	}
	do(t, l.Commit(t.Context(), certified(1)))
	do(t, l.Fail(t.Context(), refused(2)))
	for n := range 3 {
		want(t, l.Reserve(t.Context(), intent(n)), ledger.ErrDuplicate)
	}
	do(t, l.Close())
	l = open(t, s)
	for n := range 3 {
		want(t, l.Reserve(t.Context(), intent(n)), ledger.ErrDuplicate)
	}
}

func settlesOnce(t *testing.T, s Store) {
	l := open(t, s)
	issue(t, l, intent(1), certified(1))
	do(t, l.Reserve(t.Context(), intent(2)))
	do(t, l.Fail(t.Context(), refused(2)))
	for n := 1; n <= 2; n++ {
		want(t, l.Commit(t.Context(), certified(n)), ledger.ErrSettled)
		want(t, l.Fail(t.Context(), refused(n)), ledger.ErrSettled)
	}
	wantState(t, l, 1, ledger.Issued)
	wantState(t, l, 2, ledger.Failed)
}

func needsReservation(t *testing.T, s Store) {
	l := open(t, s)
	do(t, l.Reserve(t.Context(), intent(1)))
	want(t, l.Commit(t.Context(), certified(2)), ledger.ErrNotFound)
	want(t, l.Fail(t.Context(), refused(2)), ledger.ErrNotFound)
	_, err := l.Get(t.Context(), serial(2))
	want(t, err, ledger.ErrNotFound)
}

func keepsFields(t *testing.T, s Store) {
	l := open(t, s)
	do(t, l.AddToken(t.Context(), token("vm")))
	in := intent(1)
	in.Identity = "spiffe://example.org/\"quoted\"\\\u2028\n\x7f/ü"
	in.Profile, in.Rule = "profile with spaces", `rule "x" <&>`
	in.Names = []string{"IP:2001:db8::1", "DNS:*.example.org", "URI:spiffe://example.org/a,b|c", ""}
	in.Origin = ledger.Origin{
		Method: "m", CredentialID: "c", Door: "d", Remote: "[::1]:80", Cluster: "l", Namespace: "n", Account: "a", AccountUID: "au",
		Pod: "p", PodUID: "pu", Node: "o", NodeUID: "ou",
	}
	in.KeyID = []byte{0, 1, 0xff, '\n'}
	in.JoinToken = token("vm").Hash
	out := certified(1)
	out.Certificate = []byte{0x30, 0, 0xff, 0}
	issue(t, l, in, out)

	bare := ledger.Intent{Serial: serial(2), Created: start}
	do(t, l.Reserve(t.Context(), bare))
	for _, again := range []bool{false, true} {
		if again {
			do(t, l.Close())
			l = open(t, s)
		}
		wantIntent(t, get(t, l, 1).Intent, in)
		wantOutcome(t, get(t, l, 1).Outcome, out)
		wantIntent(t, get(t, l, 2).Intent, bare)
	}
}

func honoursContext(t *testing.T, s Store) {
	l := open(t, s)
	do(t, l.Reserve(t.Context(), intent(1)))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	want(t, l.Reserve(ended, intent(2)), context.Canceled)
	want(t, l.Commit(ended, certified(1)), context.Canceled)
	want(t, l.Fail(ended, refused(1)), context.Canceled)
	want(t, l.AddToken(ended, token("vm")), context.Canceled)
	want(t, l.Probe(ended), context.Canceled)
	_, err := l.BundleSequence(ended, []byte("hash"))
	want(t, err, context.Canceled)
	_, err = l.Get(ended, serial(1))
	want(t, err, context.Canceled)
	_, err = l.Find(ended, ledger.Query{})
	want(t, err, context.Canceled)
	_, err = l.Token(ended, token("vm").Hash, start)
	want(t, err, context.Canceled)
}

func settlesDeserted(t *testing.T, s Store) {
	l := open(t, s)
	const callers = 200
	for n := range callers {
		in := intent(n)
		do(t, l.AddToken(t.Context(), token(in.Serial.String())))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	answers := make([]error, callers)
	var answered atomic.Int64
	var callersDone sync.WaitGroup
	for n := range callers {
		callersDone.Go(func() {
			in := intent(n)
			in.JoinToken = token(in.Serial.String()).Hash
			answers[n] = l.Reserve(ctx, in)
			if answered.Add(1) == callers/4 {
				cancel()
			}
		})
	}
	callersDone.Wait()
	do(t, l.Close()) // settles what is on its way

	l = open(t, s)
	for n, answer := range answers {
		e, err := l.Get(t.Context(), serial(n))
		_, tokenErr := l.Token(t.Context(), token(serial(n).String()).Hash, start)
		switch {
		case answer == nil:
			if err != nil || e.State != ledger.Reserved {
				t.Errorf("entry %d was acknowledged and is %s, %v", n, e.State, err)
			}
		case !errors.Is(answer, context.Canceled):
			t.Errorf("entry %d: %v", n, answer)
		case errors.Is(err, ledger.ErrNotFound):
		case err != nil || e.State != ledger.Failed || e.Outcome.Reason == "":
			t.Errorf("entry %d was deserted and is %s (%q), %v", n, e.State, e.Outcome.Reason, err)
		}
		if tokenErr != nil {
			t.Errorf("the token of entry %d: %v", n, tokenErr)
		}
	}
}

// race runs so many callers at once and returns their answers.
func race(callers int, call func(n int) error) []error {
	answers := make([]error, callers)
	begin := make(chan struct{})
	var group sync.WaitGroup
	for n := range callers {
		group.Go(func() {
			<-begin
			answers[n] = call(n)
		})
	}
	close(begin)
	group.Wait()
	return answers
}

// wantOneWinner checks that one answer is nil and the others are lost.
func wantOneWinner(t *testing.T, answers []error, lost error) (winner int) {
	t.Helper()
	winner = -1
	for n, err := range answers {
		switch {
		case err == nil && winner < 0:
			winner = n
		case err == nil:
			t.Fatalf("callers %d and %d both won", winner, n)
		case !errors.Is(err, lost):
			t.Fatalf("caller %d got %v, want %v", n, err, lost)
		}
	}
	if winner < 0 {
		t.Fatal("nobody won")
	}
	return winner
}

func racesForSerial(t *testing.T, s Store) {
	l := open(t, s)
	for round := range 5 {
		wantOneWinner(t, race(64, func(int) error { return l.Reserve(t.Context(), intent(round)) }), ledger.ErrDuplicate)
		wantState(t, l, round, ledger.Reserved)
	}
}

func racesToSettle(t *testing.T, s Store) {
	l := open(t, s)
	for round := range 5 {
		do(t, l.Reserve(t.Context(), intent(round)))
		winner := wantOneWinner(t, race(64, func(n int) error {
			if n%2 == 0 {
				return l.Commit(t.Context(), certified(round))
			}
			return l.Fail(t.Context(), refused(round))
		}), ledger.ErrSettled)
		wantState(t, l, round, [...]ledger.State{ledger.Issued, ledger.Failed}[winner%2])
	}
}

func issuesAtOnce(t *testing.T, s Store) {
	l := open(t, s)
	const callers = 1000
	for n, err := range race(callers, func(n int) error {
		if err := l.Reserve(t.Context(), intent(n)); err != nil {
			return err
		}
		if n%10 == 0 {
			return l.Fail(t.Context(), refused(n))
		}
		return l.Commit(t.Context(), certified(n))
	}) {
		if err != nil {
			t.Fatalf("caller %d: %v", n, err)
		}
	}
	do(t, l.Close())
	l = open(t, s)
	entries, err := l.Find(t.Context(), ledger.Query{Limit: 1000})
	do(t, err)
	if len(entries) != callers {
		t.Fatalf("%d entries, want %d", len(entries), callers)
	}
	for i, e := range entries {
		n := callers - 1 - i
		wantIntent(t, e.Intent, intent(n))
		if n%10 == 0 {
			wantOutcome(t, e.Outcome, refused(n))
		} else {
			wantOutcome(t, e.Outcome, certified(n))
		}
	}
}
