package ledgertest

import (
	"slices"
	"testing"
	"time"

	"github.com/chancery-ca/chancery/ca/ledger"
)

func wantFound(t testing.TB, l ledger.Ledger, q ledger.Query, wanted ...int) {
	t.Helper()
	if got := find(t, l, q); !slices.Equal(got, wanted) {
		t.Errorf("%+v found %v, want %v", q, got, wanted)
	}
}

func findsNewestFirst(t *testing.T, s Store) {
	l := open(t, s)
	wantFound(t, l, ledger.Query{})
	// Made in another order than they are reserved and settled, and one still open.
	for _, n := range []int{3, 1, 4, 0, 2} {
		do(t, l.Reserve(t.Context(), intent(n)))
	}
	for _, n := range []int{0, 4, 1} {
		do(t, l.Commit(t.Context(), certified(n)))
	}
	do(t, l.Fail(t.Context(), refused(3)))
	wantFound(t, l, ledger.Query{}, 4, 3, 2, 1, 0)
}

// mixed fills a ledger: even numbers are of web and odd ones of db; of each six, one failed, one is open and the rest are issued.
func mixed(t testing.TB, l ledger.Ledger, entries int) {
	t.Helper()
	for n := range entries {
		in := intent(n)
		in.Identity = identities[n%2]
		do(t, l.Reserve(t.Context(), in))
		switch n % 6 {
		case 1:
			do(t, l.Fail(t.Context(), refused(n)))
		case 2:
		default:
			do(t, l.Commit(t.Context(), certified(n)))
		}
	}
}

var identities = [...]string{"spiffe://example.org/web", "spiffe://example.org/db"}

func findsSelected(t *testing.T, s Store) {
	l := open(t, s)
	mixed(t, l, 9)
	at := func(n int) time.Time { return intent(n).Created }
	wantFound(t, l, ledger.Query{State: ledger.Failed}, 7, 1)
	wantFound(t, l, ledger.Query{State: ledger.Reserved}, 8, 2)
	wantFound(t, l, ledger.Query{State: ledger.Issued}, 6, 5, 4, 3, 0)
	wantFound(t, l, ledger.Query{Identity: identities[0]}, 8, 6, 4, 2, 0)
	wantFound(t, l, ledger.Query{Identity: identities[1], State: ledger.Issued}, 5, 3)
	wantFound(t, l, ledger.Query{Identity: identities[0], State: ledger.Reserved}, 8, 2)
	wantFound(t, l, ledger.Query{Identity: identities[1], State: ledger.Reserved})
	wantFound(t, l, ledger.Query{Identity: "spiffe://example.org/unknown"})
	wantFound(t, l, ledger.Query{Since: at(6)}, 8, 7, 6)
	wantFound(t, l, ledger.Query{Until: at(2)}, 1, 0)
	wantFound(t, l, ledger.Query{Since: at(2), Until: at(5)}, 4, 3, 2)
	wantFound(t, l, ledger.Query{Since: at(5), Until: at(5)})
	wantFound(t, l, ledger.Query{Since: at(2), Until: at(8), State: ledger.Reserved}, 2)
	wantFound(t, l, ledger.Query{Identity: identities[0], Since: at(2), Until: at(5)}, 4, 2)
	if _, err := l.Find(t.Context(), ledger.Query{State: "unheard-of"}); err == nil {
		t.Error("an unknown state was accepted")
	}
}

func findsPages(t *testing.T, s Store) {
	l := open(t, s)
	const entries = 25
	mixed(t, l, entries)
	for _, q := range []ledger.Query{
		{}, {Identity: identities[0]}, {State: ledger.Issued}, {State: ledger.Reserved}, {Since: intent(3).Created, Until: intent(20).Created},
		{ValidAt: intent(24).Created}, {ValidAt: intent(24).Created, Identity: identities[1]},
	} {
		all := find(t, l, q)
		for _, limit := range []int{1, 2, 7} {
			if got := pages(t, l, q, limit, nil); !slices.Equal(got, all) {
				t.Errorf("%+v in pages of %d found %v, want %v", q, limit, got, all)
			}
		}
	}
	_, err := l.Find(t.Context(), ledger.Query{After: serial(1999)})
	want(t, err, ledger.ErrNotFound)
}

// pages reads all pages of a query, and calls between after each.
func pages(t testing.TB, l ledger.Ledger, q ledger.Query, limit int, between func()) (found []int) {
	t.Helper()
	q.Limit = limit
	for {
		page := find(t, l, q)
		if len(page) > limit {
			t.Fatalf("a page has %d entries, over the limit of %d", len(page), limit)
		}
		if len(page) == 0 {
			return found
		}
		found = append(found, page...)
		q.After = serial(page[len(page)-1])
		if between != nil {
			between()
		}
	}
}

func findsStablePages(t *testing.T, s Store) {
	l := open(t, s)
	const entries = 20
	wanted := []int{}
	for n := range entries {
		in := intent(n)
		in.Created = start // all in one instant, so that nothing but the ledger's own order tells them apart
		do(t, l.Reserve(t.Context(), in))
		if n%3 == 0 {
			do(t, l.Commit(t.Context(), certified(n)))
		}
		wanted = append(wanted, n)
	}
	next := 0
	got := pages(t, l, ledger.Query{}, 3, func() {
		if n := next; n < entries && n%3 != 0 {
			do(t, l.Commit(t.Context(), certified(n)))
		}
		next++
		newer := intent(1000 + next)
		newer.Created = start.Add(time.Minute)
		do(t, l.Reserve(t.Context(), newer))
	})
	slices.Sort(got)
	if !slices.Equal(got, wanted) {
		t.Fatalf("the pages held %v, want each of %v once", got, wanted)
	}
}

func findsValid(t *testing.T, s Store) {
	l := open(t, s)
	lifetimes := []time.Duration{time.Second, time.Hour, 24 * time.Hour, 90 * 24 * time.Hour, 3650 * 24 * time.Hour, 2 * time.Second, 0}
	born, dies := map[int]time.Time{}, map[int]time.Time{}
	for n := range 49 {
		in, out := intent(n), certified(n)
		in.Created = start.Add(time.Duration(n*n) * time.Hour)
		// A certificate begins a little before it is made.
		out.NotBefore = in.Created.Add(-time.Minute).Truncate(time.Second)
		out.NotAfter = in.Created.Add(lifetimes[n%len(lifetimes)]).Truncate(time.Second)
		in.Identity = identities[n%2]
		do(t, l.Reserve(t.Context(), in))
		switch n % 11 {
		case 5:
			do(t, l.Fail(t.Context(), refused(n)))
		case 6:
		default:
			do(t, l.Commit(t.Context(), out))
			born[n], dies[n] = out.NotBefore, out.NotAfter
		}
	}
	var instants []time.Time
	for n := range born {
		instants = append(instants, [][]time.Time{{born[n].Add(-time.Second), born[n]}, {dies[n], dies[n].Add(time.Second)}}[n%2]...)
	}
	for _, at := range instants {
		var both []int
		var each [2][]int
		for n := 48; n >= 0; n-- {
			if _, ok := born[n]; ok && !at.Before(born[n]) && !at.After(dies[n]) {
				both = append(both, n)
				each[n%2] = append(each[n%2], n)
			}
		}
		wantFound(t, l, ledger.Query{ValidAt: at}, both...)
		wantFound(t, l, ledger.Query{ValidAt: at, State: ledger.Issued, Identity: identities[1]}, each[1]...)
		wantFound(t, l, ledger.Query{ValidAt: at, State: ledger.Failed})
		wantFound(t, l, ledger.Query{ValidAt: at, State: ledger.Reserved})
	}
}

func findsLimited(t *testing.T, s Store) {
	l := open(t, s)
	for n, err := range race(1005, func(n int) error { return l.Reserve(t.Context(), intent(n)) }) {
		if err != nil {
			t.Fatal(n, err)
		}
	}
	for limit, wanted := range map[int]int{0: 100, 1: 1, 1000: 1000} {
		entries, err := l.Find(t.Context(), ledger.Query{Limit: limit})
		do(t, err)
		if len(entries) != wanted {
			t.Errorf("a limit of %d found %d entries, want %d", limit, len(entries), wanted)
		}
	}
	for _, limit := range []int{-1, 1001} {
		if entries, err := l.Find(t.Context(), ledger.Query{Limit: limit}); err == nil {
			t.Errorf("a limit of %d was accepted and found %d entries", limit, len(entries))
		}
	}
}
