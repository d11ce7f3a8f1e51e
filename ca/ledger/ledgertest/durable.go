package ledgertest

import (
	"slices"
	"testing"

	"github.com/chancery-ca/chancery/ca/ledger"
)

func wantSequence(t testing.TB, l ledger.Ledger, hash string, wanted uint64) {
	t.Helper()
	got, err := l.BundleSequence(t.Context(), []byte(hash))
	do(t, err)
	if got != wanted {
		t.Fatalf("bundle %q has sequence %d, want %d", hash, got, wanted)
	}
}

func countsBundles(t *testing.T, s Store) {
	l := open(t, s)
	wantSequence(t, l, "first", 1)
	wantSequence(t, l, "first", 1)
	wantSequence(t, l, "second", 2)
	wantSequence(t, l, "first", 3)
	do(t, l.Close())
	l = open(t, s)
	wantSequence(t, l, "first", 3)
	s.Abandon(t, l)
	l = open(t, s)
	wantSequence(t, l, "first", 3)
	wantSequence(t, l, "second", 4)
}

func countsBundlesAtOnce(t *testing.T, s Store) {
	l := open(t, s)
	const callers = 64
	numbers := make([]uint64, callers)
	for _, err := range race(callers, func(n int) (err error) {
		numbers[n], err = l.BundleSequence(t.Context(), []byte(serial(n)))
		return err
	}) {
		do(t, err)
	}
	slices.Sort(numbers)
	for i, number := range numbers {
		if number != uint64(i+1) {
			t.Fatalf("the numbers are %v", numbers)
		}
	}
	for _, err := range race(callers, func(n int) (err error) {
		numbers[n], err = l.BundleSequence(t.Context(), []byte("all the same"))
		return err
	}) {
		do(t, err)
	}
	for _, number := range numbers {
		if number != callers+1 {
			t.Fatalf("one bundle has the numbers %v", numbers)
		}
	}
}

// acknowledged writes one of everything, and returns a check that it is there.
func acknowledged(t testing.TB, l ledger.Ledger) (check func(ledger.Ledger)) {
	t.Helper()
	do(t, l.AddToken(t.Context(), token("spent")))
	do(t, l.AddToken(t.Context(), token("unspent")))
	issue(t, l, paying(1, token("spent")), certified(1))
	do(t, l.Reserve(t.Context(), intent(2)))
	do(t, l.Fail(t.Context(), refused(2)))
	return func(l ledger.Ledger) {
		t.Helper()
		wantOutcome(t, get(t, l, 1).Outcome, certified(1))
		wantOutcome(t, get(t, l, 2).Outcome, refused(2))
		wantTokenErr(t, l, "spent", ledger.ErrTokenUsed)
		wantToken(t, l, token("unspent"))
		wantFound(t, l, ledger.Query{}, 2, 1)
	}
}

func survivesClose(t *testing.T, s Store) {
	l := open(t, s)
	check := acknowledged(t, l)
	for range 2 {
		check(l)
		do(t, l.Close())
		do(t, l.Close())
		l = open(t, s)
	}
	check(l)
}

func survivesCrash(t *testing.T, s Store) {
	l := open(t, s)
	check := acknowledged(t, l)
	for range 2 {
		s.Abandon(t, l)
		l = open(t, s)
		check(l)
	}
}

func recovers(t *testing.T, s Store) {
	l := open(t, s)
	for n := range 6 {
		name := serial(n).String()
		do(t, l.AddToken(t.Context(), token(name)))
		do(t, l.Reserve(t.Context(), paying(n, token(name))))
	}
	do(t, l.Commit(t.Context(), certified(0)))
	do(t, l.Fail(t.Context(), refused(1)))
	wantFound(t, l, ledger.Query{State: ledger.Reserved}, 5, 4, 3, 2)

	for range 2 { // what was read back once is not read back again
		s.Abandon(t, l)
		l = open(t, s)
		wantState(t, l, 0, ledger.Issued)
		wantState(t, l, 1, ledger.Failed)
		wantFound(t, l, ledger.Query{}, 5, 4, 3, 2, 1, 0)
		wantFound(t, l, ledger.Query{State: ledger.Reserved}, 5, 4, 3, 2)
		for n := range 6 {
			name := serial(n).String()
			wantIntent(t, get(t, l, n).Intent, paying(n, token(name)))
			want(t, l.Reserve(t.Context(), intent(n)), ledger.ErrDuplicate)
			want(t, l.Commit(t.Context(), certified(n)), ledger.ErrSettled)
			want(t, l.Fail(t.Context(), refused(n)), ledger.ErrSettled)
			if n == 0 {
				wantTokenErr(t, l, name, ledger.ErrTokenUsed)
				continue
			}
			wantToken(t, l, token(name))
			if e := get(t, l, n); e.State == ledger.Reserved && (e.Outcome.Reason == "" || !e.Settled.IsZero()) {
				t.Errorf("entry %d was left open and has the reason %q, settled at %v", n, e.Outcome.Reason, e.Settled)
			}
		}
	}
	// A token that was given back can be spent again.
	issue(t, l, paying(7, token(serial(2).String())), certified(7))
}

func sharesWithOthers(t *testing.T, s Store) {
	l := open(t, s)
	do(t, l.Reserve(t.Context(), intent(1)))
	issue(t, l, intent(2), certified(2))
	other := s.Beside(t)
	t.Cleanup(func() { _ = other.Close() })
	wantState(t, other, 1, ledger.Reserved)
	wantFound(t, other, ledger.Query{}, 2, 1)

	do(t, other.AddToken(t.Context(), token("vm")))
	wantToken(t, l, token("vm"))
	do(t, l.Reserve(t.Context(), paying(3, token("vm"))))
	wantTokenErr(t, other, "vm", ledger.ErrTokenUsed)
	wantFound(t, other, ledger.Query{State: ledger.Reserved}, 3, 1)
	do(t, l.Commit(t.Context(), certified(1)))
	wantState(t, other, 1, ledger.Issued)
	wantFound(t, other, ledger.Query{}, 3, 2, 1)

	// The other's coming and going leaves what is open alone.
	do(t, other.Close())
	do(t, l.Commit(t.Context(), certified(3)))
	wantState(t, l, 3, ledger.Issued)
}

func refusesWhenClosed(t *testing.T, s Store) {
	l := open(t, s)
	do(t, l.Reserve(t.Context(), intent(1)))
	do(t, l.Close())
	want(t, l.Reserve(t.Context(), intent(2)), ledger.ErrUnavailable)
	want(t, l.Commit(t.Context(), certified(1)), ledger.ErrUnavailable)
	want(t, l.Fail(t.Context(), refused(1)), ledger.ErrUnavailable)
	want(t, l.Probe(t.Context()), ledger.ErrUnavailable)
	want(t, l.AddToken(t.Context(), token("vm")), ledger.ErrUnavailable)
	_, err := l.Get(t.Context(), serial(1))
	want(t, err, ledger.ErrUnavailable)
	_, err = l.Find(t.Context(), ledger.Query{})
	want(t, err, ledger.ErrUnavailable)
	_, err = l.Token(t.Context(), token("vm").Hash, start)
	want(t, err, ledger.ErrUnavailable)
}

func probes(t *testing.T, s Store) {
	l := open(t, s)
	for range 3 {
		do(t, l.Probe(t.Context()))
	}
}
