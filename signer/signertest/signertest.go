// Package signertest holds the contract of signer.Signer as a test suite, which every backend passes against its real authority, and the forgeries
// that a backend could answer with, for tests of what stands behind it.
//
// It never trusts a backend: what comes back is held against the order by chain.Checker, as the authority does. It sleeps nowhere; the tests of
// deadlines wait as long as a deadline.
package signertest

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/ca/identity"
	"github.com/chancery-ca/chancery/csr"
	"github.com/chancery-ca/chancery/signer"
)

// Backend says how to get the backend under test, in order and out of it. Each function returns a backend of its own and cleans up with t.
type Backend struct {
	// New returns a backend that signs.
	New func(t testing.TB) signer.Signer
	// Now is the time at which the backend's certificates are valid; nil means time.Now.
	Now func() time.Time
	// Exact says that the backend knows its issuers and signs the order's TBSCertificate byte for byte.
	Exact bool

	// Refusing returns a backend whose authority refuses every order for good; nil if there is no such thing.
	Refusing func(t testing.TB) signer.Signer
	// Failing returns a backend whose authority cannot be reached, or fails; nil if there is no such thing.
	Failing func(t testing.TB) signer.Signer
	// Hanging returns a backend whose authority takes orders and does not answer; nil if there is no such thing.
	Hanging func(t testing.TB) signer.Signer

	// Secrets are the texts of keys and passwords, which no error may show.
	Secrets []string
}

// Run runs the suite.
func Run(t *testing.T, b Backend) {
	t.Helper()
	if b.Now == nil {
		b.Now = time.Now
	}
	for name, test := range map[string]func(*testing.T, Backend){
		"an order becomes the chain that was approved": signs,
		"an order's content is signed byte for byte":   signsExactly,
		"many orders at once do not mix":               signsAtOnce,
		"an order is read only":                        leavesOrderAlone,
		"the roots are pinned":                         pinsRoots,
		"the issuers are told":                         tellsIssuers,
		"a context that has ended ends the call":       honoursEnded,
		"a deadline is kept":                           keepsDeadline,
		"cancelling frees the caller":                  freesCaller,
		"a refusal is permanent":                       refusesForGood,
		"a failure is not permanent":                   failsForNow,
		"a probe tells whether it could sign":          probes,
	} {
		t.Run(name, func(t *testing.T) { test(t, b) })
	}
}

// NewOrder returns an order of the suite, which a certificate for SPIFFE ID n of a workload with the given key would answer.
func NewOrder(t testing.TB, n int, key crypto.Signer, now time.Time) signer.Order {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	must(t, err)
	request, err := csr.Parse(der, csr.Rules{})
	must(t, err)
	now = now.UTC().Truncate(time.Second)
	serial := new(big.Int).Lsh(big.NewInt(int64(n)+1), 130)
	return signer.Order{
		Request: request, Profile: "workload",
		Leaf: chain.Leaf{
			Serial: serial.Or(serial, new(big.Int).SetBytes(request.SPKI()[len(request.SPKI())-16:])),
			Names:  identity.Names{URIs: []string{fmt.Sprintf("spiffe://%s/workload/%d", TrustDomain.Name(), n)}},
			SPKI:   request.SPKI(), KeyUsage: x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
			NotBefore:   now.Add(-time.Minute), NotAfter: now.Add(time.Hour),
		},
	}
}

// order returns an order for a workload with a new key.
func (b *Backend) order(t testing.TB, n int) signer.Order {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	return NewOrder(t, n, key, b.Now())
}

// check holds a chain against its order as the authority does.
func (b *Backend) check(t testing.TB, s signer.Signer, order signer.Order, signed chain.Chain) {
	t.Helper()
	checker, err := chain.NewChecker(s.Roots().Anchors())
	must(t, err)
	want := order.Leaf
	if chooser, ok := s.(signer.Chooser); ok {
		want = chooser.Choices().Accept(want)
	}
	must(t, checker.Check(signed, want, b.Now()))
}

// wantFailure wants an error that shows no secret.
func (b *Backend) wantFailure(t testing.TB, err error, permanent bool) {
	t.Helper()
	if err == nil {
		t.Fatal("there is a chain, want an error")
	}
	if errors.Is(err, signer.ErrPermanent) != permanent {
		t.Errorf("permanent is %t, want %t: %v", !permanent, permanent, err)
	}
	for _, text := range []string{err.Error(), fmt.Sprintf("%+v", err), fmt.Sprintf("%#v", err)} {
		for _, secret := range b.Secrets {
			if strings.Contains(text, secret) {
				t.Error("the error shows a secret")
			}
		}
	}
}

func signs(t *testing.T, b Backend) {
	s := b.New(t)
	for kind, key := range workloadKeys(t) {
		t.Run(kind, func(t *testing.T) {
			order := NewOrder(t, 1, key, b.Now())
			signed, err := s.Sign(t.Context(), order)
			must(t, err)
			b.check(t, s, order, signed)
		})
	}
	t.Run("hosts", func(t *testing.T) {
		order := b.order(t, 2)
		order.Profile = "serving"
		order.Leaf.Names = identity.Names{
			DNS: []string{"*.web.example.org", "web.example.org"}, IPs: []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")},
		}
		order.Leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		signed, err := s.Sign(t.Context(), order)
		must(t, err)
		b.check(t, s, order, signed)
	})
}

// workloadKeys are keys of the kinds that workloads have.
func workloadKeys(t testing.TB) map[string]crypto.Signer {
	t.Helper()
	keys := make(map[string]crypto.Signer)
	for kind, curve := range map[string]elliptic.Curve{"P-256": elliptic.P256(), "P-384": elliptic.P384(), "P-521": elliptic.P521()} {
		key, err := ecdsa.GenerateKey(curve, rand.Reader)
		must(t, err)
		keys[kind] = key
	}
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	rivest, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	keys["Ed25519"], keys["RSA-2048"] = edwards, rivest
	return keys
}

func signsExactly(t *testing.T, b Backend) {
	if !b.Exact {
		t.Skip("the backend's authority writes certificates of its own")
	}
	s := b.New(t)
	known, ok := s.(signer.Issuers)
	if !ok {
		t.Fatal("an exact backend knows its issuers")
	}
	issuer := known.Issuers()[0]
	algorithm, err := chain.AlgorithmFor(issuer.PublicKey)
	must(t, err)
	order := b.order(t, 1)
	want, err := order.Leaf.TBS(issuer, algorithm)
	must(t, err)
	signed, err := s.Sign(t.Context(), order)
	must(t, err)
	if got := signed.Leaf().RawTBSCertificate; !bytes.Equal(got, want) {
		t.Errorf("signed was\n%x, want\n%x", got, want)
	}
}

func signsAtOnce(t *testing.T, b Backend) {
	const callers, each = 16, 4
	s := b.New(t)
	orders := make([]signer.Order, callers*each)
	for n := range orders {
		orders[n] = b.order(t, n)
	}
	chains, errs := make([]chain.Chain, len(orders)), make([]error, len(orders))
	var group sync.WaitGroup
	for caller := range callers {
		group.Go(func() {
			for n := caller * each; n < (caller+1)*each; n++ {
				chains[n], errs[n] = s.Sign(t.Context(), orders[n])
			}
		})
	}
	group.Wait()
	for n, order := range orders {
		must(t, errs[n])
		b.check(t, s, order, chains[n])
	}
}

func leavesOrderAlone(t *testing.T, b Backend) {
	s := b.New(t)
	order := b.order(t, 1)
	before := order.Leaf
	before.Serial = new(big.Int).Set(order.Leaf.Serial)
	before.SPKI, before.ExtKeyUsage = bytes.Clone(order.Leaf.SPKI), slices.Clone(order.Leaf.ExtKeyUsage)
	before.Names.URIs = slices.Clone(order.Leaf.Names.URIs)
	_, err := s.Sign(t.Context(), order)
	must(t, err)
	after := order.Leaf
	if after.Serial.Cmp(before.Serial) != 0 || !bytes.Equal(after.SPKI, before.SPKI) || !slices.Equal(after.ExtKeyUsage, before.ExtKeyUsage) ||
		!after.Names.Equal(before.Names) {
		t.Errorf("the order is now %+v, was %+v", after, before)
	}
}

func pinsRoots(t *testing.T, b Backend) {
	s := b.New(t)
	roots := s.Roots()
	if roots == nil || len(roots.Anchors()) == 0 {
		t.Fatal("there are no roots")
	}
	hash := roots.Hash()
	_, err := s.Sign(t.Context(), b.order(t, 1))
	must(t, err)
	if !bytes.Equal(s.Roots().Hash(), hash) {
		t.Error("the roots are others after an order")
	}
}

func tellsIssuers(t *testing.T, b Backend) {
	s := b.New(t)
	known, ok := s.(signer.Issuers)
	if !ok {
		t.Skip("the backend does not know its issuers beforehand")
	}
	issuers := known.Issuers()
	if n := len(issuers); n == 0 || !s.Roots().Contains(issuers[n-1]) {
		t.Fatalf("the issuers are %d certificates, the last of which is no anchor", n)
	}
	want := slices.Clone(issuers)
	clear(issuers) // the slice is ours
	signed, err := s.Sign(t.Context(), b.order(t, 1))
	must(t, err)
	if !slices.EqualFunc(signed.Intermediates(), want[:len(want)-1], (*x509.Certificate).Equal) {
		t.Error("the chain's intermediates are not the issuers below the anchor")
	}
}

func honoursEnded(t *testing.T, b Backend) {
	s := b.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Sign(ctx, b.order(t, 1))
	b.wantFailure(t, err, false)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
}

// patience is how long after its context has ended a call may take to return before the test gives up on it.
const patience = 20 * time.Second

func keepsDeadline(t *testing.T, b Backend) {
	if b.Hanging == nil {
		t.Skip("the backend's authority cannot be made to hang")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	b.wantFailure(t, returned(t, b.sign(ctx, b.Hanging(t), b.order(t, 1))), false)
}

func freesCaller(t *testing.T, b Backend) {
	if b.Hanging == nil {
		t.Skip("the backend's authority cannot be made to hang")
	}
	const callers = 8
	s := b.Hanging(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var calls []<-chan error
	for n := range callers {
		calls = append(calls, b.sign(ctx, s, b.order(t, n)))
	}
	cancel()
	for _, call := range calls {
		b.wantFailure(t, returned(t, call), false)
	}
}

// sign calls Sign beside the test.
func (b *Backend) sign(ctx context.Context, s signer.Signer, order signer.Order) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := s.Sign(ctx, order)
		done <- err
	}()
	return done
}

func returned(t testing.TB, call <-chan error) error {
	t.Helper()
	select {
	case err := <-call:
		return err
	case <-time.After(patience):
		t.Fatal("the call outlives its context")
		return nil
	}
}

func refusesForGood(t *testing.T, b Backend) {
	if b.Refusing == nil {
		t.Skip("the backend refuses no order that it is given")
	}
	_, err := b.Refusing(t).Sign(t.Context(), b.order(t, 1))
	b.wantFailure(t, err, true)
}

func failsForNow(t *testing.T, b Backend) {
	if b.Failing == nil {
		t.Skip("the backend's authority cannot be made to fail")
	}
	s := b.Failing(t)
	_, err := s.Sign(t.Context(), b.order(t, 1))
	b.wantFailure(t, err, false)
	if prober, ok := s.(signer.Prober); ok && prober.Probe(t.Context(), b.Now()) == nil {
		t.Error("a probe says that it could sign")
	}
}

func probes(t *testing.T, b Backend) {
	s := b.New(t)
	prober, ok := s.(signer.Prober)
	if !ok {
		t.Skip("the backend cannot tell")
	}
	must(t, prober.Probe(t.Context(), b.Now()))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b.wantFailure(t, prober.Probe(ctx, b.Now()), false)
	if known, ok := s.(signer.Issuers); ok {
		if prober.Probe(t.Context(), known.Issuers()[0].NotAfter.Add(time.Second)) == nil {
			t.Error("a probe after the issuer's end says that it could sign")
		}
	}
}
