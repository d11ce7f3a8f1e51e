package local_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"io"
	"math/big"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chancery-ca/chancery/ca/bundle"
	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/signer"
	"github.com/chancery-ca/chancery/signer/local"
	"github.com/chancery-ca/chancery/signer/signertest"
)

// failing is a key in a device that can break.
type failing struct {
	crypto.Signer
	breaks bool        // once the backend is open
	broken atomic.Bool // now
	answer []byte      // instead of a signature, if it is not nil
}

var errDevice = errors.New("the device does not answer")

func (f *failing) Sign(random io.Reader, digest []byte, options crypto.SignerOpts) ([]byte, error) {
	switch {
	case !f.broken.Load():
		return f.Signer.Sign(random, digest, options)
	case f.answer != nil:
		return f.answer, nil
	default:
		return nil, errDevice
	}
}

// setup is what a backend is made of, before a test changes one thing.
type setup struct {
	hierarchy *signertest.Hierarchy
	config    local.Config
	now       time.Time
}

func TestNew(t *testing.T) {
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	for _, test := range []struct {
		name   string
		change func(*testing.T, *setup)
		want   []string // parts of the error; none if there is to be none
	}{
		{"a key and a path", func(*testing.T, *setup) {}, nil},
		{"with the root in the path", func(_ *testing.T, s *setup) { s.config.Chain = s.hierarchy.Issuers() }, nil},
		{"a root alone", func(_ *testing.T, s *setup) {
			s.config.Chain, s.config.Key = s.config.Roots.Anchors(), s.hierarchy.Root.Key
		}, nil},
		{"an anchor that is not a root", func(t *testing.T, s *setup) {
			s.config.Chain = s.config.Chain[:1]
			s.config.Roots = roots(t, s.hierarchy.Middle.Certificate)
		}, nil},
		{"the last second", func(_ *testing.T, s *setup) { s.now = s.hierarchy.Issuer.Certificate.NotAfter }, nil},
		{"no key", func(_ *testing.T, s *setup) { s.config.Key = nil }, []string{"needs a key"}},
		{"no certificate", func(_ *testing.T, s *setup) { s.config.Chain = nil }, []string{"needs a key"}},
		{"a nil certificate", func(_ *testing.T, s *setup) { s.config.Chain = []*x509.Certificate{nil} }, []string{"needs a key"}},
		{"no roots", func(_ *testing.T, s *setup) { s.config.Roots = nil }, []string{"needs a key"}},
		{"another key", func(_ *testing.T, s *setup) { s.config.Key = other }, []string{"not the one of the issuing certificate", "CN=issuer"}},
		{"a key that does not sign", func(_ *testing.T, s *setup) {
			broken := &failing{Signer: s.config.Key}
			broken.broken.Store(true)
			s.config.Key = broken
		}, []string{"trying the key", errDevice.Error()}},
		{"a key that says it is another", func(_ *testing.T, s *setup) {
			s.config.Key = liar{other, s.config.Key.Public()}
		}, []string{"trying the key", "verifying what the key signed"}},
		{"an expired issuer", func(_ *testing.T, s *setup) { s.now = s.hierarchy.Issuer.Certificate.NotAfter.Add(time.Second) },
			[]string{"CN=issuer", "valid from 2026-11-26T12:00:00Z to 2027-03-06T12:00:00Z", "the clock says 2027-03-06T12:00:01Z"}},
		{"an issuer that is not yet valid", func(_ *testing.T, s *setup) { s.now = s.hierarchy.Issuer.Certificate.NotBefore.Add(-time.Second) },
			[]string{"CN=issuer", "valid from 2026-11-26T12:00:00Z", "the clock says 2026-11-26T11:59:59Z"}},
		{"a path that ends nowhere", func(t *testing.T, s *setup) {
			s.config.Roots = roots(t, signertest.NewHierarchy(t, now.Add(time.Hour)).Middle.Certificate)
		},
			[]string{"does not lead to a trust anchor", "CN=root"}},
		{"a missing intermediate", func(_ *testing.T, s *setup) { s.config.Chain = s.config.Chain[:1] }, []string{"does not lead to a trust anchor"}},
		{"a certificate twice", func(_ *testing.T, s *setup) {
			s.config.Chain = []*x509.Certificate{s.config.Chain[0], s.config.Chain[0], s.config.Chain[1]}
		}, []string{"same as certificate"}},
		{"basic constraints that are not critical", func(t *testing.T, s *setup) {
			s.root(t, func(c *x509.Certificate) {
				c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Value: []byte{0x30, 0x03, 0x01, 0x01, 0xff}}}
			})
		}, []string{"basic constraints are not critical", "RFC 5280 §4.2.1.9"}},
		{"an issuer that may not sign certificates", func(t *testing.T, s *setup) {
			s.root(t, func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageCRLSign })
		}, []string{"lacks keyCertSign"}},
		{"an issuer without a key identifier", func(t *testing.T, s *setup) {
			s.root(t, func(c *x509.Certificate) {
				c.KeyUsage = x509.KeyUsageCertSign
				c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 14}, Value: []byte{4, 0}}}
			})
		}, []string{"no subject key identifier"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := signertest.NewHierarchy(t, now)
			s := &setup{h, local.Config{Key: h.Issuer.Key, Chain: h.Issuers()[:2], Roots: h.Bundle(t)}, now}
			test.change(t, s)
			_, err := local.New(s.config, s.now)
			wantError(t, err, test.want...)
		})
	}
}

// liar signs with a key other than the one that it shows.
type liar struct {
	crypto.Signer
	public crypto.PublicKey
}

func (l liar) Public() crypto.PublicKey { return l.public }

// root makes the setup one of a root alone, after one thing in the root was changed.
func (s *setup) root(t testing.TB, change func(*x509.Certificate)) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	s.config.Key, s.config.Chain = key, []*x509.Certificate{selfSigned(t, key, change)}
	s.config.Roots = roots(t, s.config.Chain...)
}

func selfSigned(t testing.TB, key crypto.Signer, change func(*x509.Certificate)) *x509.Certificate {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "alone"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, MaxPathLen: -1, KeyUsage: x509.KeyUsageCertSign, SubjectKeyId: []byte("alone"),
	}
	change(template)
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	certificate, err := x509.ParseCertificate(der)
	must(t, err)
	return certificate
}

func roots(t testing.TB, anchors ...*x509.Certificate) *bundle.Bundle {
	t.Helper()
	b, err := bundle.New(signertest.TrustDomain, anchors)
	must(t, err)
	return b
}

// TestSignWithEveryKind signs under a root alone of each kind of issuing key.
func TestSignWithEveryKind(t *testing.T) {
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
	for kind, key := range keys {
		t.Run(kind, func(t *testing.T) {
			root := selfSigned(t, key, func(*x509.Certificate) {})
			s, err := local.New(local.Config{Key: key, Chain: []*x509.Certificate{root}, Roots: roots(t, root)}, now)
			must(t, err)
			order := signertest.NewOrder(t, 1, keys["P-256"], now)
			order.Leaf.NotAfter = root.NotAfter
			signed, err := s.Sign(t.Context(), order)
			must(t, err)
			checker, err := chain.NewChecker([]*x509.Certificate{root})
			must(t, err)
			must(t, checker.Check(signed, order.Leaf, now))
			if n := len(signed.Intermediates()); n != 0 {
				t.Errorf("the chain has %d intermediates; the root is no part of it", n)
			}
			must(t, s.Probe(t.Context(), now))
		})
	}
}

func TestSignFails(t *testing.T) {
	for _, test := range []struct {
		name      string
		answer    []byte
		change    func(*signer.Order)
		permanent bool
		want      string
	}{
		{"a device that is gone", nil, func(*signer.Order) {}, false, errDevice.Error()},
		{"content without an encoding", []byte{}, func(o *signer.Order) { o.Leaf.Serial = new(big.Int) }, true, "serial number"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := signertest.NewHierarchy(t, now)
			key := &failing{Signer: h.Issuer.Key, answer: test.answer}
			s, err := local.New(local.Config{Key: key, Chain: h.Issuers()[:2], Roots: h.Bundle(t)}, now)
			must(t, err)
			key.broken.Store(true)
			order := signertest.NewOrder(t, 1, h.Root.Key, now)
			test.change(&order)
			_, err = s.Sign(t.Context(), order)
			wantError(t, err, test.want)
			if errors.Is(err, signer.ErrPermanent) != test.permanent {
				t.Errorf("permanent is %t, want %t: %v", !test.permanent, test.permanent, err)
			}
		})
	}
}

// TestAGarbledSignature shows that a device's garbage is not the requester's fault, and does not pass the checker.
func TestAGarbledSignature(t *testing.T) {
	h := signertest.NewHierarchy(t, now)
	key := &failing{Signer: h.Issuer.Key, answer: []byte("garbage")}
	s, err := local.New(local.Config{Key: key, Chain: h.Issuers()[:2], Roots: h.Bundle(t)}, now)
	must(t, err)
	key.broken.Store(true)
	order := signertest.NewOrder(t, 1, h.Root.Key, now)
	signed, err := s.Sign(t.Context(), order)
	if err == nil {
		checker, newErr := chain.NewChecker(s.Roots().Anchors())
		must(t, newErr)
		err = checker.Check(signed, order.Leaf, now)
	}
	if err == nil || errors.Is(err, signer.ErrPermanent) {
		t.Errorf("got %v, want an error that is not permanent", err)
	}
}

func TestProbe(t *testing.T) {
	h := signertest.NewHierarchy(t, now)
	key := &failing{Signer: h.Issuer.Key}
	s, err := local.New(local.Config{Key: key, Chain: h.Issuers()[:2], Roots: h.Bundle(t)}, now)
	must(t, err)
	must(t, s.Probe(t.Context(), now))
	must(t, s.Probe(t.Context(), h.Issuer.Certificate.NotAfter))
	wantError(t, s.Probe(t.Context(), h.Issuer.Certificate.NotAfter.Add(time.Second)),
		"CN=issuer", "to 2027-03-06T12:00:00Z", "the clock says 2027-03-06T12:00:01Z")
	wantError(t, s.Probe(t.Context(), h.Issuer.Certificate.NotBefore.Add(-time.Second)),
		"from 2026-11-26T12:00:00Z", "the clock says 2026-11-26T11:59:59Z")
	key.broken.Store(true)
	wantError(t, s.Probe(t.Context(), now), errDevice.Error())
	key.answer = []byte("garbage")
	wantError(t, s.Probe(t.Context(), now), "verifying what the key signed")
}

// wantError wants an error that says everything in say, or none if say is empty.
func wantError(t testing.TB, err error, say ...string) {
	t.Helper()
	if len(say) == 0 {
		must(t, err)
		return
	}
	for _, part := range say {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("got the error %v, want one that says %q", err, part)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
