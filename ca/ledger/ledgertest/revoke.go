package ledgertest

import (
	"testing"
	"time"

	"github.com/chancery-ca/chancery/ca/ledger"
)

func certify(t testing.TB, l ledger.Ledger, n int, change ...func(*ledger.Outcome)) {
	t.Helper()
	do(t, l.Reserve(t.Context(), intent(n)))
	out := certified(n)
	for _, c := range change {
		c(&out)
	}
	do(t, l.Commit(t.Context(), out))
}

func wantCertificate(t testing.TB, l ledger.Ledger, leaf ledger.Serial, der []byte, n int) {
	t.Helper()
	entry, err := l.Certificate(t.Context(), leaf, der)
	do(t, err)
	if entry.Serial != serial(n) || entry.State != ledger.Issued {
		t.Errorf("the certificate is that of %s (%s), want %s", entry.Serial, entry.State, serial(n))
	}
}

func findsCertificate(t *testing.T, s Store) {
	l := open(t, s)
	certify(t, l, 1)
	wantCertificate(t, l, serial(1), certified(1).Certificate, 1)

	// a remote authority chose the serials of these two, and both times the same
	chosen := serial(100)
	for _, n := range []int{2, 3} {
		certify(t, l, n, func(out *ledger.Outcome) { out.LeafSerial = chosen })
	}
	certify(t, l, 4, func(out *ledger.Outcome) { out.LeafSerial = out.Serial })
	do(t, l.Reserve(t.Context(), intent(5)))
	do(t, l.Reserve(t.Context(), intent(6)))
	do(t, l.Fail(t.Context(), refused(6)))
	do(t, l.Close())
	l = open(t, s)
	wantCertificate(t, l, chosen, certified(2).Certificate, 2)
	wantCertificate(t, l, chosen, certified(3).Certificate, 3)
	wantCertificate(t, l, serial(4), certified(4).Certificate, 4)
	for name, ask := range map[string]struct {
		leaf ledger.Serial
		der  []byte
	}{
		"another certificate of the serial": {serial(1), certified(2).Certificate},
		"one that was cut":                  {serial(1), certified(1).Certificate[:10]},
		"none":                              {serial(1), nil},
		"an unknown serial":                 {serial(7), certified(1).Certificate},
		"an open reservation":               {serial(5), nil},
		"a failed one":                      {serial(6), nil},
		"by another one's serial":           {chosen, certified(4).Certificate},
	} {
		if entry, err := l.Certificate(t.Context(), ask.leaf, ask.der); err == nil {
			t.Errorf("%s: found %s", name, entry.Serial)
		} else {
			want(t, err, ledger.ErrNotFound)
		}
	}
}

func revocation(n int) ledger.Revocation {
	return ledger.Revocation{At: start.Add(time.Duration(n) * time.Hour), Reason: ledger.KeyCompromise, By: "an operator"}
}

func wantRevoked(t testing.TB, l ledger.Ledger, n int, wanted *ledger.Revocation) {
	t.Helper()
	switch got := get(t, l, n).Revoked; {
	case (got == nil) != (wanted == nil):
		t.Errorf("the revocation of %s is %v, want %v", serial(n), got, wanted)
	case got != nil && (!got.At.Equal(wanted.At) || got.Reason != wanted.Reason || got.By != wanted.By):
		t.Errorf("the revocation of %s is %+v, want %+v", serial(n), *got, *wanted)
	}
}

func revokes(t *testing.T, s Store) {
	l := open(t, s)
	certify(t, l, 1)
	certify(t, l, 2)
	wantRevoked(t, l, 1, nil)
	first, second := revocation(1), revocation(2)
	second.Reason = ledger.Superseded
	do(t, l.Revoke(t.Context(), serial(1), first))
	do(t, l.Revoke(t.Context(), serial(1), second))
	s.Abandon(t, l)
	l = open(t, s)
	wantRevoked(t, l, 1, &first)
	wantRevoked(t, l, 2, nil)
	if entry := get(t, l, 1); entry.State != ledger.Issued {
		t.Errorf("a revoked certificate is %s", entry.State)
	}
	entry, err := l.Certificate(t.Context(), serial(1), certified(1).Certificate)
	do(t, err)
	if entry.Revoked == nil {
		t.Error("found by itself, it is not revoked")
	}
	// beside the server, as an operator's command does
	beside := s.Beside(t)
	do(t, beside.Revoke(t.Context(), serial(2), second))
	do(t, beside.Close())
	wantRevoked(t, l, 2, &second)
}

func revokesIssued(t *testing.T, s Store) {
	l := open(t, s)
	do(t, l.Reserve(t.Context(), intent(1)))
	do(t, l.Reserve(t.Context(), intent(2)))
	do(t, l.Fail(t.Context(), refused(2)))
	want(t, l.Revoke(t.Context(), serial(1), revocation(1)), ledger.ErrNotFound)
	want(t, l.Revoke(t.Context(), serial(2), revocation(1)), ledger.ErrNotIssued)
	want(t, l.Revoke(t.Context(), serial(3), revocation(1)), ledger.ErrNotFound)
	certify(t, l, 4)
	for _, reason := range []ledger.RevocationReason{2, 6, 7, 8, 10, 11, 255} { // of authorities, undoing, and none
		bad := revocation(1)
		bad.Reason = reason
		if err := l.Revoke(t.Context(), serial(4), bad); err == nil {
			t.Errorf("it was revoked for reason %d", reason)
		}
	}
	if err := l.Revoke(t.Context(), serial(4), ledger.Revocation{}); err == nil {
		t.Error("it was revoked at no time")
	}
	wantRevoked(t, l, 4, nil)
}

func findsRevoked(t *testing.T, s Store) {
	l := open(t, s)
	for n := range 10 {
		certify(t, l, n)
	}
	do(t, l.Reserve(t.Context(), intent(10)))
	wantFound(t, l, ledger.Query{Revoked: true})
	for _, n := range []int{2, 7, 5} {
		do(t, l.Revoke(t.Context(), serial(n), revocation(n)))
	}
	wantFound(t, l, ledger.Query{Revoked: true}, 7, 5, 2)
	wantFound(t, l, ledger.Query{Revoked: true, Limit: 2}, 7, 5)
	wantFound(t, l, ledger.Query{Revoked: true, Limit: 2, After: serial(5)}, 2)
	wantFound(t, l, ledger.Query{Revoked: true, ValidAt: start.Add(time.Minute)}, 7, 5, 2)
	wantFound(t, l, ledger.Query{Revoked: true, State: ledger.Failed})
	wantFound(t, l, ledger.Query{Revoked: true, State: ledger.Issued}, 7, 5, 2)
	wantFound(t, l, ledger.Query{Revoked: true, State: ledger.Reserved})
	wantFound(t, l, ledger.Query{Revoked: true, Since: intent(3).Created, Until: intent(7).Created}, 5)
	wantFound(t, l, ledger.Query{Revoked: true, Identity: intent(0).Identity}, 7, 5, 2)
	wantFound(t, l, ledger.Query{Revoked: true, Identity: "spiffe://example.org/unknown"})
	wantFound(t, l, ledger.Query{Revoked: true, ValidAt: start.Add(2 * time.Hour)})
}

func findsOfIssuer(t *testing.T, s Store) {
	l := open(t, s)
	issuers := [][]byte{[]byte("first"), []byte("second"), nil} // an authority's certificate need not have a key identifier
	for n := range 12 {
		in := intent(n)
		in.Identity = identities[n%2]
		do(t, l.Reserve(t.Context(), in))
		out := certified(n)
		out.IssuerKeyID = issuers[n%3]
		do(t, l.Commit(t.Context(), out))
	}
	do(t, l.Reserve(t.Context(), intent(12)))
	do(t, l.Reserve(t.Context(), intent(13)))
	do(t, l.Fail(t.Context(), refused(13)))
	do(t, l.Revoke(t.Context(), serial(4), revocation(1)))
	first, second := issuers[0], issuers[1]
	wantFound(t, l, ledger.Query{IssuerKeyID: first}, 9, 6, 3, 0)
	wantFound(t, l, ledger.Query{IssuerKeyID: second}, 10, 7, 4, 1)
	wantFound(t, l, ledger.Query{IssuerKeyID: []byte("firs")})
	wantFound(t, l, ledger.Query{IssuerKeyID: second, State: ledger.Issued}, 10, 7, 4, 1)
	wantFound(t, l, ledger.Query{IssuerKeyID: second, State: ledger.Failed})
	wantFound(t, l, ledger.Query{IssuerKeyID: second, State: ledger.Reserved})
	wantFound(t, l, ledger.Query{IssuerKeyID: second, Identity: identities[0]}, 10, 4)
	wantFound(t, l, ledger.Query{IssuerKeyID: second, Revoked: true}, 4)
	wantFound(t, l, ledger.Query{IssuerKeyID: first, Revoked: true})
	wantFound(t, l, ledger.Query{IssuerKeyID: first, Since: intent(1).Created, Until: intent(9).Created}, 6, 3)
	wantFound(t, l, ledger.Query{IssuerKeyID: second, ValidAt: start.Add(time.Minute)}, 10, 7, 4, 1)
	wantFound(t, l, ledger.Query{IssuerKeyID: second, ValidAt: start.Add(2 * time.Hour)})
	wantFound(t, l, ledger.Query{IssuerKeyID: second, Limit: 3}, 10, 7, 4)
	wantFound(t, l, ledger.Query{IssuerKeyID: second, Limit: 3, After: serial(4)}, 1)
}
