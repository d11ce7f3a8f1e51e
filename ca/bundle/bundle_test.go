package bundle_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/chancery-ca/chancery/ca/bundle"
	"github.com/chancery-ca/chancery/ca/chain"
)

var trustDomain = spiffeid.RequireTrustDomainFromString("example.org")

func authority(t testing.TB, name string, isCA bool) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<32, 0), IsCA: isCA,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, SubjectKeyId: []byte(name),
	}
	if !isCA {
		template.KeyUsage = x509.KeyUsageDigitalSignature
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	certificate, err := x509.ParseCertificate(der)
	must(t, err)
	return certificate
}

func TestNewRefuses(t *testing.T) {
	a := authority(t, "a", true)
	for name, test := range map[string]struct {
		trustDomain spiffeid.TrustDomain
		anchors     []*x509.Certificate
		want        string
	}{
		"no trust domain":  {spiffeid.TrustDomain{}, []*x509.Certificate{a}, "needs a trust domain"},
		"no anchor":        {trustDomain, nil, "at least one trust anchor"},
		"a nil anchor":     {trustDomain, []*x509.Certificate{a, nil}, "trust anchor 2 is nil"},
		"an anchor twice":  {trustDomain, []*x509.Certificate{a, authority(t, "b", true), a}, "trust anchor 3 (CN=a) stands twice"},
		"what is no CA":    {trustDomain, []*x509.Certificate{a, authority(t, "leaf", false)}, "trust anchor 2 (CN=leaf) is not a CA certificate"},
		"no constraints":   {trustDomain, []*x509.Certificate{{}}, "trust anchor 1 () is not a CA certificate"},
		"unread basic use": {trustDomain, []*x509.Certificate{{IsCA: true}}, "is not a CA certificate (RFC 5280 §4.2.1.9)"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := bundle.New(test.trustDomain, test.anchors); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error that says %q", err, test.want)
			}
		})
	}
}

func TestBundle(t *testing.T) {
	a, b, c := authority(t, "a", true), authority(t, "b", true), authority(t, "c", true)
	given := []*x509.Certificate{b, a}
	built, err := bundle.New(trustDomain, given)
	must(t, err)
	given[0] = c // the bundle is immutable
	built.Anchors()[0] = c
	built.Hash()[0]++
	if got := built.Anchors(); len(got) != 2 || got[0] != b || got[1] != a {
		t.Errorf("its anchors are %v", got)
	}
	if !built.Contains(a) || !built.Contains(b) || built.Contains(c) || built.TrustDomain() != trustDomain {
		t.Error("it contains other anchors")
	}
	read, err := chain.ParsePEM(built.PEM())
	if err != nil || len(read) != 2 || !read[0].Equal(b) || !read[1].Equal(a) {
		t.Errorf("its PEM reads as %v, %v", read, err)
	}

	numbered := built.WithSequence(7)
	if built.Sequence() != 0 || numbered.Sequence() != 7 || !bytes.Equal(numbered.Hash(), built.Hash()) || !bytes.Equal(numbered.PEM(), built.PEM()) {
		t.Error("numbering changes more than the number of the copy")
	}
}

// TestHash wants equal hashes of equal content and no others: the ledger numbers bundles by them.
func TestHash(t *testing.T) {
	a, b := authority(t, "a", true), authority(t, "b", true)
	hash := func(anchors ...*x509.Certificate) string {
		built, err := bundle.New(trustDomain, anchors)
		must(t, err)
		return string(built.Hash())
	}
	again, err := x509.ParseCertificate(a.Raw)
	must(t, err)
	if hash(a, b) != hash(again, b) {
		t.Error("the same anchors have two hashes")
	}
	seen := map[string]string{}
	for name, h := range map[string]string{"a": hash(a), "b": hash(b), "a, b": hash(a, b), "b, a": hash(b, a)} {
		if other, ok := seen[h]; ok {
			t.Errorf("%s and %s have one hash", name, other)
		}
		seen[h] = name
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
