package local

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"math/big"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/ca/profile"
)

// The lives of a new hierarchy's certificates, from the time of their making: ten years and one year of 365 days.
const (
	RootLifetime   = 10 * 365 * 24 * time.Hour
	IssuerLifetime = 365 * 24 * time.Hour
)

// Hierarchy is a new root and the issuing intermediate under it.
type Hierarchy struct {
	Root, Issuer       *x509.Certificate
	RootKey, IssuerKey crypto.Signer
}

// Create makes a root and an issuing intermediate with P-256 keys, valid from a little before now. Subjects hold part of the key identifier, so
// that no two generations of a trust domain ever share one; verifiers that go by the name alone then never try the wrong key.
func Create(trustDomain spiffeid.TrustDomain, now time.Time) (*Hierarchy, error) {
	if trustDomain.IsZero() {
		return nil, errors.New("a hierarchy needs a trust domain")
	}
	root, err := (&newAuthority{role: "root", lifetime: RootLifetime}).create(trustDomain, now)
	if err != nil {
		return nil, err
	}
	issuer, err := (&newAuthority{role: "issuer", lifetime: IssuerLifetime, parent: root}).create(trustDomain, now)
	if err != nil {
		return nil, err
	}
	return &Hierarchy{Root: root.certificate, RootKey: root.key, Issuer: issuer.certificate, IssuerKey: issuer.key}, nil
}

// authority is a CA certificate with its key.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// newAuthority is a CA certificate to be made: self-signed without a parent, otherwise one that issues leaves only.
type newAuthority struct {
	role     string
	lifetime time.Duration
	parent   *authority
}

func (n *newAuthority) create(trustDomain spiffeid.TrustDomain, now time.Time) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the %s key: %w", n.role, err)
	}
	template, err := n.template(trustDomain, now, key.Public())
	if err != nil {
		return nil, err
	}
	signedBy := &authority{template, key}
	if n.parent != nil {
		signedBy = n.parent
		template.MaxPathLenZero = true
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signedBy.certificate, key.Public(), signedBy.key)
	if err != nil {
		return nil, fmt.Errorf("signing the %s certificate: %w", n.role, err)
	}
	certificate, err := chain.ParseIssued(der)
	if err != nil {
		return nil, fmt.Errorf("the new %s certificate: %w", n.role, err)
	}
	return &authority{certificate, key}, nil
}

func (n *newAuthority) template(trustDomain spiffeid.TrustDomain, now time.Time, public crypto.PublicKey) (*x509.Certificate, error) {
	spki, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return nil, fmt.Errorf("encoding the %s key: %w", n.role, err)
	}
	keyID, err := chain.KeyID(spki)
	if err != nil {
		return nil, err
	}
	var serial [20]byte
	if _, err := io.ReadFull(rand.Reader, serial[:]); err != nil {
		return nil, fmt.Errorf("drawing a serial number: %w", err)
	}
	serial[0] &= 0x7f
	now = now.UTC().Truncate(time.Second)
	return &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(serial[:]),
		Subject: pkix.Name{
			Organization: []string{organization(trustDomain)},
			CommonName:   fmt.Sprintf("Chancery %s %X", n.role, keyID[:6]),
		},
		NotBefore:             now.Add(-profile.Backdate),
		NotAfter:              now.Add(n.lifetime),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		SubjectKeyId:          keyID,
	}, nil
}

// organization is the trust domain's name, cut to what an organizationName may hold (RFC 5280 Appendix A: 64 characters).
func organization(trustDomain spiffeid.TrustDomain) string {
	const upperBound = 64
	name := trustDomain.Name()
	return name[:min(len(name), upperBound)]
}
