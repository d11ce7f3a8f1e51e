package local

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"math/big"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/ca/profile"
)

// The lives of a new hierarchy's certificates.
const (
	RootLifetime   = 10 * 365 * 24 * time.Hour
	IssuerLifetime = 365 * 24 * time.Hour
)

// Hierarchy is a new root and the issuing intermediate under it.
type Hierarchy struct {
	Root, Issuer       *x509.Certificate
	RootKey, IssuerKey crypto.Signer
}

// Create makes a root and an issuing intermediate with P-256 keys. Subjects hold part of the key identifier, so that no two generations of a trust
// domain ever share one; verifiers that go by the name alone then never try the wrong key.
func Create(trustDomain spiffeid.TrustDomain, now time.Time) (*Hierarchy, error) {
	h := &Hierarchy{}
	var err error
	if h.Root, h.RootKey, err = createAuthority("root", trustDomain, now, RootLifetime, nil, nil); err != nil {
		return nil, err
	}
	if h.Issuer, h.IssuerKey, err = createAuthority("issuer", trustDomain, now, IssuerLifetime, h.Root, h.RootKey); err != nil {
		return nil, err
	}
	return h, nil
}

// createAuthority makes one CA certificate: self-signed without a parent, otherwise one that issues leaves only.
func createAuthority(role string, trustDomain spiffeid.TrustDomain, now time.Time, lifetime time.Duration, parent *x509.Certificate, parentKey crypto.Signer) (*x509.Certificate, crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making the %s key: %w", role, err)
	}
	spki, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, nil, fmt.Errorf("encoding the %s key: %w", role, err)
	}
	keyID, err := chain.KeyID(spki)
	if err != nil {
		return nil, nil, err
	}
	var serial [20]byte
	if _, err := io.ReadFull(rand.Reader, serial[:]); err != nil {
		return nil, nil, fmt.Errorf("drawing a serial number: %w", err)
	}
	serial[0] &= 0x7f
	now = now.UTC().Truncate(time.Second)
	template := &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(serial[:]),
		Subject: pkix.Name{
			Organization: []string{organization(trustDomain)},
			CommonName:   fmt.Sprintf("Chancery %s %X", role, keyID[:6]),
		},
		NotBefore:             now.Add(-profile.Backdate),
		NotAfter:              now.Add(lifetime),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		SubjectKeyId:          keyID,
	}
	signingKey := parentKey
	if parent == nil {
		parent, signingKey = template, key
	} else {
		template.MaxPathLenZero = true
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signingKey)
	if err != nil {
		return nil, nil, fmt.Errorf("signing the %s certificate: %w", role, err)
	}
	certificate, err := chain.ParseCertificate(der)
	if err != nil {
		return nil, nil, fmt.Errorf("the new %s certificate: %w", role, err)
	}
	return certificate, key, nil
}

// organization is the trust domain's name, cut to what an organizationName may hold (RFC 5280 Appendix A: 64 characters).
func organization(trustDomain spiffeid.TrustDomain) string {
	const upperBound = 64
	name := trustDomain.Name()
	return name[:min(len(name), upperBound)]
}
