package ledgertest

import (
	"bytes"
	"testing"
	"time"

	"github.com/chancery-ca/chancery/ca/ledger"
)

// paying returns intent n, paid for with a token.
func paying(n int, paid ledger.JoinToken) ledger.Intent {
	in := intent(n)
	in.Identity, in.JoinToken = paid.Identity, paid.Hash
	return in
}

func wantToken(t testing.TB, l ledger.Ledger, wanted ledger.JoinToken) {
	t.Helper()
	got, err := l.Token(t.Context(), wanted.Hash, wanted.Created)
	do(t, err)
	if !bytes.Equal(got.Hash, wanted.Hash) || got.ID != wanted.ID || got.Identity != wanted.Identity || !got.Created.Equal(wanted.Created) ||
		!got.Expires.Equal(wanted.Expires) || got.UsedBy != "" {
		t.Fatalf("got token %+v, want %+v", got, wanted)
	}
}

func wantTokenErr(t testing.TB, l ledger.Ledger, name string, wanted error) {
	t.Helper()
	_, err := l.Token(t.Context(), token(name).Hash, start)
	want(t, err, wanted)
}

func spendsToken(t *testing.T, s Store) {
	l := open(t, s)
	wantTokenErr(t, l, "vm", ledger.ErrTokenGone)
	want(t, l.Reserve(t.Context(), paying(1, token("vm"))), ledger.ErrTokenGone)
	do(t, l.AddToken(t.Context(), token("vm")))
	do(t, l.AddToken(t.Context(), token("other")))
	wantToken(t, l, token("vm"))

	do(t, l.Reserve(t.Context(), paying(1, token("vm"))))
	wantTokenErr(t, l, "vm", ledger.ErrTokenUsed)
	want(t, l.Reserve(t.Context(), paying(2, token("vm"))), ledger.ErrTokenUsed)
	do(t, l.Commit(t.Context(), certified(1)))
	want(t, l.Reserve(t.Context(), paying(2, token("vm"))), ledger.ErrTokenUsed)
	wantToken(t, l, token("other"))
	_, err := l.Get(t.Context(), serial(2))
	want(t, err, ledger.ErrNotFound)

	do(t, l.Close())
	l = open(t, s)
	wantTokenErr(t, l, "vm", ledger.ErrTokenUsed)
	wantToken(t, l, token("other"))
	wantIntent(t, get(t, l, 1).Intent, paying(1, token("vm")))
}

func returnsToken(t *testing.T, s Store) {
	l := open(t, s)
	do(t, l.AddToken(t.Context(), token("vm")))
	for n := range 3 {
		do(t, l.Reserve(t.Context(), paying(n, token("vm"))))
		wantTokenErr(t, l, "vm", ledger.ErrTokenUsed)
		do(t, l.Fail(t.Context(), refused(n)))
		wantToken(t, l, token("vm"))
	}
	do(t, l.Reserve(t.Context(), paying(3, token("vm"))))
	// A failure that comes again must not give back what another has spent since.
	want(t, l.Fail(t.Context(), refused(0)), ledger.ErrSettled)
	do(t, l.Commit(t.Context(), certified(3)))
	want(t, l.Fail(t.Context(), refused(3)), ledger.ErrSettled)
	wantTokenErr(t, l, "vm", ledger.ErrTokenUsed)
}

func expiresToken(t *testing.T, s Store) {
	l := open(t, s)
	vm := token("vm")
	do(t, l.AddToken(t.Context(), vm))
	_, err := l.Token(t.Context(), vm.Hash, vm.Expires.Add(-time.Millisecond))
	do(t, err)
	_, err = l.Token(t.Context(), vm.Hash, vm.Expires)
	want(t, err, ledger.ErrTokenGone)

	late := paying(1, vm)
	late.Created = vm.Expires
	want(t, l.Reserve(t.Context(), late), ledger.ErrTokenGone)
	late.Created = vm.Expires.Add(-time.Millisecond)
	do(t, l.Reserve(t.Context(), late))
}

func addsTokenOnce(t *testing.T, s Store) {
	l := open(t, s)
	do(t, l.AddToken(t.Context(), token("vm")))
	again := token("vm")
	again.Identity = "spiffe://example.org/vm/another"
	want(t, l.AddToken(t.Context(), again), ledger.ErrDuplicate)
	wantToken(t, l, token("vm"))
	do(t, l.Reserve(t.Context(), paying(1, token("vm"))))
	want(t, l.AddToken(t.Context(), token("vm")), ledger.ErrDuplicate)
	wantTokenErr(t, l, "vm", ledger.ErrTokenUsed)
}

func racesForToken(t *testing.T, s Store) {
	l := open(t, s)
	for round, name := range []string{"a", "b", "c", "d"} {
		do(t, l.AddToken(t.Context(), token(name)))
		answers := race(64, func(n int) error { return l.Reserve(t.Context(), paying(64*round+n, token(name))) })
		winner := 64*round + wantOneWinner(t, answers, ledger.ErrTokenUsed)
		wantTokenErr(t, l, name, ledger.ErrTokenUsed)
		for n := 64 * round; n < 64*(round+1); n++ {
			if n == winner {
				wantState(t, l, n, ledger.Reserved)
				continue
			}
			_, err := l.Get(t.Context(), serial(n))
			want(t, err, ledger.ErrNotFound)
		}
	}
}

func keepsNoToken(t *testing.T, s Store) {
	l := open(t, s)
	do(t, l.AddToken(t.Context(), token("vm")))
	do(t, l.Reserve(t.Context(), intent(1)))
	want(t, l.Reserve(t.Context(), paying(1, token("vm"))), ledger.ErrDuplicate)
	wantToken(t, l, token("vm"))
}
