// Package ledgertest holds the contract of ledger.Ledger as a test suite. Every implementation passes it against its real storage.
//
// It never looks at how an implementation stores anything, and never sleeps.
package ledgertest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/chancery-ca/chancery/ca/ledger"
)

// Store is the storage of one ledger under test, which is empty at first.
type Store struct {
	// Open opens the storage as the server does, again and again: what was durable is still there. The suite closes what it opens.
	Open func(t testing.TB) ledger.Ledger
	// Abandon ends a ledger as a crash of its process does: it is not closed in order, and the next Open finds what was durable.
	Abandon func(t testing.TB, l ledger.Ledger)
	// Beside opens the storage once more while it is open, as an operator's command in another process does, to read it and
	// to add tokens. The suite closes it.
	Beside func(t testing.TB) ledger.Ledger
}

// Run runs the suite. Each of its tests calls fresh for a store of its own.
func Run(t *testing.T, fresh func(t testing.TB) Store) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Store){
		"a reservation is visible and becomes what it is settled as":     settles,
		"a serial is reserved once":                                      reservesOnce,
		"a reservation is settled once":                                  settlesOnce,
		"what was not reserved is not found":                             needsReservation,
		"every field of an entry comes back":                             keepsFields,
		"a context that has ended ends the call":                         honoursContext,
		"a reservation whose caller left is settled or was never made":   settlesDeserted,
		"one of many reservations with one serial wins":                  racesForSerial,
		"one of many settlements of one reservation wins":                racesToSettle,
		"a thousand issuances at once are all there":                     issuesAtOnce,
		"a join token pays for one issuance":                             spendsToken,
		"a join token is given back by a failure":                        returnsToken,
		"a join token expires":                                           expiresToken,
		"a join token is added once":                                     addsTokenOnce,
		"one of many reservations with one token wins":                   racesForToken,
		"a refused reservation keeps no token":                           keepsNoToken,
		"find returns the newest first":                                  findsNewestFirst,
		"find selects":                                                   findsSelected,
		"find pages":                                                     findsPages,
		"find pages stay put while entries are settled and added":        findsStablePages,
		"find selects what is valid at a time":                           findsValid,
		"find limits":                                                    findsLimited,
		"the bundle's sequence counts changes":                           countsBundles,
		"the bundle's sequence counts changes made at once":              countsBundlesAtOnce,
		"what was acknowledged is there after a close":                   survivesClose,
		"what was acknowledged is there after a crash":                   survivesCrash,
		"what a crash left open stays reserved and gives its token back": recovers,
		"another process sees what is open and adds tokens":              sharesWithOthers,
		"a closed ledger is unavailable":                                 refusesWhenClosed,
		"a certificate is found by itself":                               findsCertificate,
		"a revocation is durable and stays as it was":                    revokes,
		"only what was issued is revoked":                                revokesIssued,
		"find selects what is revoked":                                   findsRevoked,
		"find selects what an issuer signed":                             findsOfIssuer,
		"a probe writes":                                                 probes,
	} {
		t.Run(name, func(t *testing.T) { test(t, fresh(t)) })
	}
}

// start is when the suite's first entry is made. Times are whole milliseconds, which every ledger keeps.
var start = time.Date(2030, 6, 1, 12, 0, 0, 123e6, time.UTC)

// serial returns the n-th serial of the suite. Serials are spread as random ones are, and of several lengths.
func serial(n int) ledger.Serial {
	sum := sha256.Sum256(strconv.AppendInt(nil, int64(n), 10))
	raw := sum[:20-n%3]
	raw[0] = raw[0]&0x7f | 0x01
	return ledger.Serial(raw)
}

// intent returns a valid intent, made n seconds after start.
func intent(n int) ledger.Intent {
	key := sha256.Sum256([]byte(serial(n)))
	return ledger.Intent{
		Serial:   serial(n),
		Created:  start.Add(time.Duration(n) * time.Second),
		Identity: "spiffe://example.org/ns/default/sa/web",
		Profile:  "workload",
		Rule:     "self",
		Names:    []string{"URI:spiffe://example.org/ns/default/sa/web", "DNS:web.default.svc"},
		Origin:   ledger.Origin{Method: "kubernetes", Namespace: "default", Account: "web", PodUID: "0b9d"},
		KeyID:    key[:],
	}
}

// certified returns the outcome of intent n, valid for an hour from when it was made.
func certified(n int) ledger.Outcome {
	in := intent(n)
	return ledger.Outcome{
		Serial:      in.Serial,
		Certificate: slices.Concat([]byte("certificate "), []byte(in.Serial)),
		IssuerKeyID: []byte("issuer"),
		NotBefore:   in.Created.Truncate(time.Second),
		NotAfter:    in.Created.Truncate(time.Second).Add(time.Hour),
	}
}

func refused(n int) ledger.Outcome {
	return ledger.Outcome{Serial: serial(n), Reason: "the signer said no"}
}

// token returns a join token that is good for a day from start.
func token(name string) ledger.JoinToken {
	sum := sha256.Sum256([]byte(name))
	return ledger.JoinToken{
		Hash: sum[:], ID: name, Identity: "spiffe://example.org/vm/" + name, Created: start, Expires: start.Add(24 * time.Hour),
	}
}

func open(t testing.TB, s Store) ledger.Ledger {
	t.Helper()
	l := s.Open(t)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func do(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want(t testing.TB, err, wanted error) {
	t.Helper()
	if !errors.Is(err, wanted) {
		t.Fatalf("got error %v, want %v", err, wanted)
	}
}

func get(t testing.TB, l ledger.Ledger, n int) ledger.Entry {
	t.Helper()
	e, err := l.Get(t.Context(), serial(n))
	if err != nil {
		t.Fatalf("entry %d: %v", n, err)
	}
	return e
}

func wantState(t testing.TB, l ledger.Ledger, n int, state ledger.State) {
	t.Helper()
	if e := get(t, l, n); e.State != state {
		t.Fatalf("entry %d is %s, want %s", n, e.State, state)
	}
}

// issue reserves and commits.
func issue(t testing.TB, l ledger.Ledger, in ledger.Intent, out ledger.Outcome) {
	t.Helper()
	do(t, l.Reserve(t.Context(), in))
	do(t, l.Commit(t.Context(), out))
}

// find returns the numbers of the entries that a query finds, among the first 2000.
func find(t testing.TB, l ledger.Ledger, q ledger.Query) []int {
	t.Helper()
	entries, err := l.Find(t.Context(), q)
	do(t, err)
	numbers := make([]int, len(entries))
	for i, e := range entries {
		numbers[i] = number(t, e.Serial)
	}
	return numbers
}

func number(t testing.TB, s ledger.Serial) int {
	t.Helper()
	n, ok := numbers()[s]
	if !ok {
		t.Fatalf("serial %s is not of this test", s)
	}
	return n
}

// numbers finds the n of a serial.
var numbers = sync.OnceValue(func() map[ledger.Serial]int {
	of := map[ledger.Serial]int{}
	for n := range 2000 {
		of[serial(n)] = n
	}
	return of
})

func wantIntent(t testing.TB, got, wanted ledger.Intent) {
	t.Helper()
	if !got.Created.Equal(wanted.Created) || !slices.Equal(got.Names, wanted.Names) || !bytes.Equal(got.KeyID, wanted.KeyID) ||
		!bytes.Equal(got.JoinToken, wanted.JoinToken) {
		t.Fatalf("got intent\n%+v, want\n%+v", got, wanted)
	}
	got.Created, got.Names, got.KeyID, got.JoinToken = wanted.Created, wanted.Names, wanted.KeyID, wanted.JoinToken
	if !reflect.DeepEqual(got, wanted) {
		t.Fatalf("got intent\n%+v, want\n%+v", got, wanted)
	}
}

func wantOutcome(t testing.TB, got, wanted ledger.Outcome) {
	t.Helper()
	if got.Serial != wanted.Serial || !bytes.Equal(got.Certificate, wanted.Certificate) || !bytes.Equal(got.IssuerKeyID, wanted.IssuerKeyID) ||
		!got.NotBefore.Equal(wanted.NotBefore) || !got.NotAfter.Equal(wanted.NotAfter) || got.Reason != wanted.Reason {
		t.Fatalf("got outcome\n%+v, want\n%+v", got, wanted)
	}
}
