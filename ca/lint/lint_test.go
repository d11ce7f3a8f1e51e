package lint

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/ca/identity"
)

var now = time.Date(2027, 1, 15, 12, 0, 0, 0, time.UTC)

// authority is an issuer of these tests.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

func newAuthority(t testing.TB, key crypto.Signer, change ...func(*x509.Certificate)) *authority {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{Organization: []string{"Example"}, CommonName: "issuer"}, NotBefore: now.Add(-time.Hour),
		NotAfter: now.AddDate(40, 0, 0), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, SubjectKeyId: []byte("issuer"),
	}
	for _, apply := range change {
		apply(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	certificate, err := x509.ParseCertificate(der)
	must(t, err)
	return &authority{certificate, key}
}

// sign answers an order as a backend that signs the leaf, after something in it was changed.
func (a *authority) sign(t testing.TB, leaf chain.Leaf, change ...func(*chain.Leaf)) chain.Chain {
	t.Helper()
	for _, apply := range change {
		apply(&leaf)
	}
	algorithm, err := chain.AlgorithmFor(a.key.Public())
	must(t, err)
	tbs, err := leaf.TBS(a.certificate, algorithm)
	must(t, err)
	return a.signTBS(t, tbs)
}

func (a *authority) signTBS(t testing.TB, tbs []byte) chain.Chain {
	t.Helper()
	algorithm, err := chain.AlgorithmFor(a.key.Public())
	must(t, err)
	der, err := algorithm.Certificate(tbs, a.key, rand.Reader)
	must(t, err)
	certificate, err := x509.ParseCertificate(der)
	must(t, err)
	signed, err := chain.New(certificate)
	must(t, err)
	return signed
}

func p256(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	return key
}

// workload returns content for the n-th workload.
func workload(t testing.TB, n int, key crypto.Signer) chain.Leaf {
	t.Helper()
	spki, err := x509.MarshalPKIXPublicKey(key.Public())
	must(t, err)
	return chain.Leaf{
		Serial: big.NewInt(int64(n) + 1), SPKI: spki, Names: identity.Names{URIs: []string{fmt.Sprintf("spiffe://example.org/workload/%d", n)}},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		NotBefore: now, NotAfter: now.Add(time.Hour),
	}
}

func newLinter(t testing.TB) *Linter {
	t.Helper()
	l, err := New()
	must(t, err)
	return l
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantRefusal wants a Refusal that says something.
func wantRefusal(t testing.TB, err error, say string) {
	t.Helper()
	var refusal *Refusal
	if !errors.As(err, &refusal) || len(refusal.Findings) == 0 || !strings.Contains(err.Error(), say) {
		t.Errorf("got %v, want a refusal that says %q", err, say)
	}
}

// issuingKeys are keys of every kind that issues.
func issuingKeys(t testing.TB) map[string]crypto.Signer {
	t.Helper()
	keys := map[string]crypto.Signer{"P-256": p256(t)}
	for kind, curve := range map[string]elliptic.Curve{"P-384": elliptic.P384(), "P-521": elliptic.P521()} {
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

// TestTemplateAndChainAgree lints good content under every kind of issuer, before and after.
func TestTemplateAndChainAgree(t *testing.T) {
	l := newLinter(t)
	subjects := issuingKeys(t)
	for kind, key := range subjects {
		issuer := newAuthority(t, key)
		must(t, l.Prepare(issuer.certificate, now))
		for subject, workloadKey := range subjects {
			leaf := workload(t, 1, workloadKey)
			for _, fixed := range []bool{true, true, false} {
				passed, err := l.Template(leaf, issuer.certificate, fixed)
				if err != nil {
					t.Fatalf("issuer %s, workload %s: %v", kind, subject, err)
				}
				if signed := issuer.sign(t, leaf); !bytes.Equal(passed.tbs, signed.Leaf().RawTBSCertificate) {
					t.Errorf("issuer %s, workload %s: the twin is not what was signed", kind, subject)
				} else {
					must(t, l.Chain(signed, passed))
				}
			}
		}
	}
	if n := len(l.twins); n != len(subjects) {
		t.Errorf("there are %d throwaway keys for %d kinds", n, len(subjects))
	}
	for kind, twin := range l.twins {
		for _, key := range subjects {
			if public, ok := twin.Public().(interface{ Equal(crypto.PublicKey) bool }); !ok || public.Equal(key.Public()) {
				t.Errorf("the throwaway key for %s is a real one", kind)
			}
		}
	}
}

// TestTemplateRefuses plants what breaks a rule in content whose shape is free.
func TestTemplateRefuses(t *testing.T) {
	key := p256(t)
	hosts := func(names ...string) func(*chain.Leaf) {
		return func(l *chain.Leaf) { l.Names = identity.Names{DNS: names} }
	}
	for name, test := range map[string]struct {
		change func(*chain.Leaf)
		want   string // part of the finding; empty for none
	}{
		"a host":                       {hosts("www.example.org"), ""},
		"a wildcard":                   {hosts("*.example.org"), ""},
		"an address":                   {func(l *chain.Leaf) { l.Names = identity.Names{IPs: []netip.Addr{netip.MustParseAddr("192.0.2.1")}} }, ""},
		"a subject":                    {func(l *chain.Leaf) { l.Subject = []byte("\x30\x0e\x31\x0c\x30\x0a\x06\x03\x55\x04\x03\x0c\x03web") }, ""},
		"an empty DNS name":            {hosts(""), "RFC 5280 §4.2.1.6"},
		"a DNS name with a blank":      {hosts("www example.org"), "RFC 5280 §4.2.1.6"},
		"a DNS name with a NUL":        {hosts("www.example.org\x00.evil.org"), "RFC 5280 §4.2.1.6"},
		"a DNS name with a final dot":  {hosts("www.example.org."), "RFC 5280 §4.2.1.6"},
		"a DNS name beyond ASCII":      {hosts("wéb.example.org"), "RFC 5280"},
		"a label of 64 characters":     {hosts(strings.Repeat("a", 64) + ".example.org"), "RFC 5280 §4.2.1.6"},
		"a star inside a name":         {hosts("www.*.example.org"), "RFC 5280 §4.2.1.6"},
		"an address as DNS name":       {hosts("192.0.2.1"), "RFC 5280 §4.2.1.6"},
		"no address":                   {func(l *chain.Leaf) { l.Names = identity.Names{IPs: []netip.Addr{{}}} }, "RFC 5280 §4.2.1.6"},
		"two SPIFFE IDs":               {func(l *chain.Leaf) { l.Names.URIs = append(l.Names.URIs, "spiffe://example.org/admin") }, "X509-SVID §2"},
		"a trust domain":               {func(l *chain.Leaf) { l.Names.URIs = []string{"spiffe://example.org"} }, "X509-SVID"},
		"a URI without a scheme":       {func(l *chain.Leaf) { l.Names.URIs = []string{"//example.org/a"} }, "RFC 5280 §4.2.1.6"},
		"a usage to sign certificates": {func(l *chain.Leaf) { l.KeyUsage |= x509.KeyUsageCertSign }, "RFC 5280 §4.2.1.3"},
		"an end before the beginning":  {func(l *chain.Leaf) { l.NotAfter = l.NotBefore.Add(-time.Second) }, "before notBefore"},
		"a serial of 160 bits":         {func(l *chain.Leaf) { l.Serial = new(big.Int).Lsh(big.NewInt(1), 159) }, "at most 159 bits"},
		"a usage that is not issued":   {func(l *chain.Leaf) { l.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageAny} }, "not one that Chancery issues"},
		"a subject of another encoding": {func(l *chain.Leaf) {
			l.Subject = []byte("\x30\x0e\x31\x0c\x30\x0a\x06\x03\x55\x04\x03\x0c\x03\xff\xfe\xfd")
		}, "UTF"},
	} {
		for _, fixed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, fixed %t", name, fixed), func(t *testing.T) {
				l, issuer := newLinter(t), newAuthority(t, key)
				// the good shape is known; none of these may pass for it
				good := workload(t, 1, key)
				_, err := l.Template(good, issuer.certificate, true)
				must(t, err)
				leaf := workload(t, 2, key)
				test.change(&leaf)
				for _, above := range []*x509.Certificate{issuer.certificate, nil} {
					passed, err := l.Template(leaf, above, fixed)
					if test.want == "" {
						must(t, err)
						continue
					}
					wantRefusal(t, err, test.want)
					if passed.tbs != nil {
						t.Error("what was refused has passed")
					}
				}
			})
		}
	}
}

// TestShapesAreRememberedOnlyAfterPassing has a lint fail first for an issuer in whom every certificate is bad.
func TestShapesAreRememberedOnlyAfterPassing(t *testing.T) {
	l, key := newLinter(t), p256(t)
	nameless := newAuthority(t, key)
	nameless.certificate.RawSubject = []byte{0x30, 0}
	for range 2 {
		_, err := l.Template(workload(t, 1, key), nameless.certificate, true)
		wantRefusal(t, err, "issuer")
		if len(l.shapes) != 0 {
			t.Fatal("what was refused is remembered")
		}
	}
	wantRefusal(t, l.Prepare(nameless.certificate, now), "issuer")

	issuer := newAuthority(t, key)
	for n := range 3 {
		_, err := l.Template(workload(t, n, p256(t)), issuer.certificate, true)
		must(t, err)
	}
	if len(l.shapes) != 1 {
		t.Errorf("three workloads have %d shapes", len(l.shapes))
	}
	for n := range 3 {
		_, err := l.Template(workload(t, n, p256(t)), issuer.certificate, false)
		must(t, err)
	}
	if len(l.shapes) != 1 {
		t.Errorf("content of a free shape is remembered: %d shapes", len(l.shapes))
	}
}

// TestShapes changes one thing in content whose shape is known. What the lints can tell apart has a shape of its own.
func TestShapes(t *testing.T) {
	key := p256(t)
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	must(t, err)
	issuer := newAuthority(t, key)
	spki := func(key crypto.Signer) func(*chain.Leaf) {
		return func(l *chain.Leaf) { l.SPKI = workload(t, 1, key).SPKI }
	}
	for name, test := range map[string]struct {
		change func(*chain.Leaf)
		same   bool
	}{
		"another serial":         {func(l *chain.Leaf) { l.Serial = big.NewInt(99) }, true},
		"another SPIFFE ID":      {func(l *chain.Leaf) { l.Names.URIs = []string{"spiffe://example.org/" + strings.Repeat("a", 1000)} }, true},
		"another key":            {spki(p256(t)), true},
		"another time":           {func(l *chain.Leaf) { l.NotBefore, l.NotAfter = now.Add(time.Hour), now.Add(24*time.Hour) }, true},
		"a key of another curve": {spki(p384), false},
		"a key of another kind":  {spki(edwards), false},
		"an end after 2049":      {func(l *chain.Leaf) { l.NotAfter = now.AddDate(30, 0, 0) }, false},
		"a life after 2049":      {func(l *chain.Leaf) { l.NotBefore, l.NotAfter = now.AddDate(30, 0, 0), now.AddDate(30, 0, 1) }, false},
		"another key usage":      {func(l *chain.Leaf) { l.KeyUsage |= x509.KeyUsageContentCommitment }, false},
		"usages in another order": {func(l *chain.Leaf) {
			l.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
		}, false},
		"no extended usage":        {func(l *chain.Leaf) { l.ExtKeyUsage = nil }, false},
		"a subject":                {func(l *chain.Leaf) { l.Subject = []byte("\x30\x0e\x31\x0c\x30\x0a\x06\x03\x55\x04\x03\x0c\x03web") }, false},
		"one name more":            {func(l *chain.Leaf) { l.Names.DNS = []string{"a.org"} }, false},
		"a URI that is no SPIFFE":  {func(l *chain.Leaf) { l.Names.URIs = []string{"https://example.org/a"} }, false},
		"a SPIFFE ID without path": {func(l *chain.Leaf) { l.Names.URIs = []string{"spiffe://example.org"} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			leaf := workload(t, 1, key)
			known := shapeOf(leaf, issuer.certificate)
			test.change(&leaf)
			if same := isFixed(leaf) && shapeOf(leaf, issuer.certificate) == known; same != test.same {
				t.Errorf("it has the same shape: %t", same)
			}
		})
	}
	renewed := newAuthority(t, key)
	renewed.certificate.Raw = append(bytes.Clone(renewed.certificate.Raw), 0)
	if shapeOf(workload(t, 1, key), issuer.certificate) == shapeOf(workload(t, 1, key), renewed.certificate) {
		t.Error("two issuers have the same shape")
	}
}

// TestEd25519KeysShareAShape wants the keys' bits to stay out of the shape: with them every workload would have one of its own.
func TestEd25519KeysShareAShape(t *testing.T) {
	l, issuer := newLinter(t), newAuthority(t, p256(t))
	for n := range 20 {
		_, edwards, err := ed25519.GenerateKey(rand.Reader)
		must(t, err)
		_, err = l.Template(workload(t, n, edwards), issuer.certificate, true)
		must(t, err)
	}
	if len(l.shapes) != 1 {
		t.Errorf("twenty keys make %d shapes", len(l.shapes))
	}
	if got := keyAlgorithm([]byte("no key")); string(got) != "no key" {
		t.Errorf("the algorithm of what is no key is %q", got)
	}
}

func TestShapesAreBounded(t *testing.T) {
	l := newLinter(t)
	lints := 0
	for n := range maxShapes + 10 {
		must(t, l.once(sha256.Sum256([]byte{byte(n), byte(n >> 8)}), func() error { lints++; return nil }))
	}
	if len(l.shapes) > maxShapes || lints != maxShapes+10 {
		t.Errorf("%d shapes are remembered after %d lints", len(l.shapes), lints)
	}
}

// TestChainLintsWhatIsNotTheTwin has a backend answer with another certificate than the one whose lint passed.
func TestChainLintsWhatIsNotTheTwin(t *testing.T) {
	key := p256(t)
	issuer := newAuthority(t, key)
	leaf := workload(t, 1, key)
	shorter := func(l *chain.Leaf) { l.NotAfter = l.NotAfter.Add(-time.Minute) }
	bad := func(l *chain.Leaf) { l.Names.URIs = []string{"spiffe://example.org/a b"} }
	for name, test := range map[string]struct {
		issuer *x509.Certificate
		change func(*chain.Leaf)
		want   string
	}{
		"the twin":                              {issuer.certificate, func(*chain.Leaf) {}, ""},
		"another that is good":                  {issuer.certificate, shorter, ""},
		"another that is bad":                   {issuer.certificate, bad, "RFC 5280 §4.2.1.6"},
		"a good one of an issuer not known yet": {nil, shorter, ""},
		"a bad one of an issuer not known yet":  {nil, bad, "RFC 5280 §4.2.1.6"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLinter(t)
			for range 2 { // the second time the shape is known
				passed, err := l.Template(leaf, test.issuer, true)
				must(t, err)
				err = l.Chain(issuer.sign(t, leaf, test.change), passed)
				if test.want == "" {
					must(t, err)
					continue
				}
				wantRefusal(t, err, test.want)
			}
		})
	}
}

// TestZlintIsAsked plants a postal code beyond its upper bound, which our own parser does not look at.
func TestZlintIsAsked(t *testing.T) {
	l, key := newLinter(t), p256(t)
	issuer := newAuthority(t, key)
	subject, err := asn1.Marshal(pkix.Name{PostalCode: []string{strings.Repeat("1", 41)}}.ToRDNSequence())
	must(t, err)
	leaf := workload(t, 1, key)
	leaf.Subject = subject
	_, err = chain.ParseIssued(issuer.sign(t, leaf).Leaf().Raw)
	must(t, err)
	_, err = l.Template(leaf, issuer.certificate, true)
	wantRefusal(t, err, "lint e_subject_postal_code_max_length")
	if len(l.shapes) != 0 {
		t.Error("what was refused is remembered")
	}
}

func TestTwinsOfUnknownKinds(t *testing.T) {
	l := newLinter(t)
	issuer := newAuthority(t, p256(t))
	issuer.certificate.PublicKey = "a key"
	_, err := l.Template(workload(t, 1, issuer.key), issuer.certificate, false)
	if err == nil || errors.As(err, new(*Refusal)) {
		t.Errorf("an issuer of an unknown kind: %v, want a failure and no refusal", err)
	}
	if _, err := l.twinKey("a key"); err == nil || !strings.Contains(err.Error(), "making a throwaway key") {
		t.Errorf("got %v", err)
	}
}

func TestManyAtOnce(t *testing.T) {
	l, key := newLinter(t), p256(t)
	issuers := []*authority{newAuthority(t, key), newAuthority(t, issuingKeys(t)["RSA-2048"])}
	var group sync.WaitGroup
	for caller := range 8 {
		group.Go(func() {
			for n := range 4 {
				issuer := issuers[n%2]
				leaf := workload(t, caller*4+n, key)
				passed, err := l.Template(leaf, issuer.certificate, n < 2)
				if err == nil {
					err = l.Chain(issuer.sign(t, leaf), passed)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if len(l.twins) != 2 || len(l.shapes) != 2 {
		t.Errorf("there are %d throwaway keys and %d shapes for 2 issuers", len(l.twins), len(l.shapes))
	}
}

func BenchmarkTemplate(b *testing.B) {
	l, key := newLinter(b), p256(b)
	issuer := newAuthority(b, key)
	for name, leaf := range map[string]chain.Leaf{"known shape": workload(b, 1, key), "free names": workload(b, 1, key)} {
		fixed := name == "known shape"
		if !fixed {
			leaf.Names = identity.Names{DNS: []string{"www.example.org"}}
		}
		signed := issuer.sign(b, leaf)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				passed, err := l.Template(leaf, issuer.certificate, fixed)
				if err == nil {
					err = l.Chain(signed, passed)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
