package cfssl_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"testing"
	"time"

	"github.com/chancery-ca/chancery/ca/bundle"
	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/signer"
	"github.com/chancery-ca/chancery/signer/cfssl"
	"github.com/chancery-ca/chancery/signer/cfssl/cfssltest"
	"github.com/chancery-ca/chancery/signer/signertest"
)

var now = time.Date(2027, 1, 15, 12, 0, 0, 0, time.UTC)

const secret = "7d3c5a0be1f2849066d1c8a94e5b77f03a2c916de48b05f7c3190b8e6fd2a745"

// bed is a server and a backend that asks it.
type bed struct {
	hierarchy *signertest.Hierarchy
	server    *cfssltest.Server
	config    cfssl.Config
}

// profiles are those of the suite's orders, whose certificates live an hour and begin a minute early.
func profiles() map[string]cfssltest.Profile {
	both, server := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	profile := func(usages []x509.ExtKeyUsage) cfssltest.Profile {
		return cfssltest.Profile{ExtKeyUsage: usages, Expiry: time.Hour + time.Minute, Backdate: time.Minute, ClientSerials: true}
	}
	return map[string]cfssltest.Profile{"workload": profile(both), "serving": profile(server)}
}

func newBed(t testing.TB, change func(*cfssltest.Config)) *bed {
	t.Helper()
	b := &bed{hierarchy: signertest.NewHierarchy(t, now)}
	issuer := b.hierarchy.Issuer
	config := cfssltest.Config{
		Authority: cfssltest.Authority{Certificate: issuer.Certificate, Key: issuer.Key}, Profiles: profiles(),
		Default: cfssltest.Profile{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, Expiry: 8760 * time.Hour},
		Now:     func() time.Time { return now }, Key: secret,
	}
	if change != nil {
		change(&config)
	}
	b.server = cfssltest.New(t, config)
	t.Setenv("CFSSL_KEY", b.server.Key)
	key, err := cfssl.LoadKey("env:CFSSL_KEY")
	must(t, err)
	b.config = cfssl.Config{
		Server: b.server.Address, Key: key, Roots: b.hierarchy.Bundle(t), Chain: b.hierarchy.Issuers()[:2], Timeout: 5 * time.Second, Connections: 8,
		Now: func() time.Time { return now },
	}
	if b.server.CA != nil {
		b.config.ServerCAs = []*x509.Certificate{b.server.CA}
	}
	return b
}

func (b *bed) open(t testing.TB) signer.Signer {
	t.Helper()
	s, err := cfssl.New(b.config)
	must(t, err)
	return s
}

// asksForIssuer has the backend ask the server who signs. One certificate is told, so what stands above it is pinned.
func (b *bed) asksForIssuer(t testing.TB) {
	t.Helper()
	roots, err := bundle.New(signertest.TrustDomain, []*x509.Certificate{b.hierarchy.Middle.Certificate})
	must(t, err)
	b.config.Roots, b.config.Chain = roots, nil
}

func order(t testing.TB, n int) signer.Order {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	return signertest.NewOrder(t, n, key, now)
}

// signAndCheck does with an order what the authority does.
func signAndCheck(t testing.TB, s signer.Signer, order signer.Order) error {
	t.Helper()
	signed, err := s.Sign(t.Context(), order)
	if err != nil {
		return err
	}
	checker, err := chain.NewChecker(s.Roots().Anchors())
	must(t, err)
	chooser, ok := s.(signer.Chooser)
	if !ok {
		t.Fatal("the backend does not tell what its server may choose")
	}
	return checker.Check(signed, chooser.Choices().Accept(order.Leaf), now)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
