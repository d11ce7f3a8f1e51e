package local_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"strings"
	"testing"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/chancery-ca/chancery/signer/local"
	"github.com/chancery-ca/chancery/signer/signertest"
)

func TestCreate(t *testing.T) {
	at := time.Date(2027, 1, 15, 13, 0, 0, 999, time.FixedZone("somewhere", 3600)) // now, and a fraction
	h, err := local.Create(signertest.TrustDomain, at)
	must(t, err)
	for _, test := range []struct {
		name         string
		certificate  *x509.Certificate
		lifetime     time.Duration
		pathLength   int
		commonPrefix string
	}{
		{"root", h.Root, 10 * 365 * 24 * time.Hour, -1, "Chancery root "},
		{"issuer", h.Issuer, 365 * 24 * time.Hour, 0, "Chancery issuer "},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := test.certificate
			if !c.NotAfter.Equal(now.Add(test.lifetime)) || !c.NotBefore.Equal(now.Add(-time.Minute)) {
				t.Errorf("it is valid from %s to %s", c.NotBefore, c.NotAfter)
			}
			if c.MaxPathLen != test.pathLength || c.MaxPathLenZero != (test.pathLength == 0) {
				t.Errorf("its path length is %d (%t), want %d", c.MaxPathLen, c.MaxPathLenZero, test.pathLength)
			}
			if !c.IsCA || c.KeyUsage != x509.KeyUsageCertSign|x509.KeyUsageCRLSign || len(c.ExtKeyUsage) != 0 {
				t.Errorf("its usages are CA %t, %#x, %v", c.IsCA, int(c.KeyUsage), c.ExtKeyUsage)
			}
			if !strings.HasPrefix(c.Subject.CommonName, test.commonPrefix) || c.Subject.Organization[0] != "example.org" {
				t.Errorf("its subject is %s", c.Subject)
			}
			if key, ok := c.PublicKey.(*ecdsa.PublicKey); !ok || key.Curve != elliptic.P256() {
				t.Errorf("its key is a %T", c.PublicKey)
			}
			if n := c.SerialNumber.BitLen(); c.SerialNumber.Sign() <= 0 || n > 159 {
				t.Errorf("its serial %x has %d bits", c.SerialNumber, n)
			}
		})
	}
	if err := h.Issuer.CheckSignatureFrom(h.Root); err != nil || !bytes.Equal(h.Issuer.AuthorityKeyId, h.Root.SubjectKeyId) {
		t.Errorf("the issuer is not under the root: %v", err)
	}
	if _, err := local.New(local.Config{Key: h.IssuerKey, Chain: []*x509.Certificate{h.Issuer}, Roots: roots(t, h.Root)}, now); err != nil {
		t.Error(err)
	}
	if _, err := local.New(local.Config{Key: h.RootKey, Chain: []*x509.Certificate{h.Root}, Roots: roots(t, h.Root)}, now); err != nil {
		t.Error(err)
	}
}

// TestCreateIsUnique wants nothing of a generation to come again in another: not even a verifier that goes by names tries the wrong key.
func TestCreateIsUnique(t *testing.T) {
	const generations = 50
	seen := make(map[string]bool)
	once := func(what, value string) {
		if seen[what+value] {
			t.Errorf("two certificates have the %s %x", what, value)
		}
		seen[what+value] = true
	}
	for range generations {
		h, err := local.Create(signertest.TrustDomain, now)
		must(t, err)
		for _, c := range []*x509.Certificate{h.Root, h.Issuer} {
			once("subject", string(c.RawSubject))
			once("key identifier", string(c.SubjectKeyId))
			once("serial", c.SerialNumber.String())
		}
	}
}

func TestCreateForEveryTrustDomain(t *testing.T) {
	if _, err := local.Create(spiffeid.TrustDomain{}, now); err == nil {
		t.Error("there is a hierarchy without a trust domain")
	}
	// an organization has at most 64 characters, a trust domain up to 255
	long := spiffeid.RequireTrustDomainFromString(strings.Repeat("a", 255))
	h, err := local.Create(long, now)
	must(t, err)
	if got := h.Root.Subject.Organization[0]; got != strings.Repeat("a", 64) {
		t.Errorf("the organization is %q", got)
	}
}
