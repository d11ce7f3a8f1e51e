package inspect

import (
	"bytes"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/ca/der"
	"github.com/chancery-ca/chancery/ca/keypolicy"
)

// Role says what a certificate is by what it says of itself.
type Role string

// The roles.
const (
	Leaf           Role = "leaf"
	SelfSignedLeaf Role = "self_signed_leaf"
	IntermediateCA Role = "intermediate_ca"
	RootCA         Role = "root_ca" // a CA certificate that is signed with its own key
)

// Certificate is what a certificate says.
type Certificate struct {
	Role     Role     `json:"role"`
	Subject  string   `json:"subject"` // in the form of RFC 4514; empty for an empty one
	Issuer   string   `json:"issuer"`
	Serial   string   `json:"serial"` // in hexadecimal
	Names    []string `json:"names"`  // subject alternative names with their kind, "URI:spiffe://example.org/web"
	Validity Validity `json:"validity"`
	// SignedBy is the position of the certificate of the same list that signed this one; zero if none did.
	SignedBy           int         `json:"signed_by,omitempty"`
	Version            int         `json:"version"`
	Key                Key         `json:"key"`
	SignatureAlgorithm string      `json:"signature_algorithm"`
	CA                 bool        `json:"ca"`
	PathLength         *int        `json:"path_length,omitempty"`
	KeyUsage           []string    `json:"key_usage"`
	ExtendedKeyUsage   []string    `json:"extended_key_usage"`
	SubjectKeyID       string      `json:"subject_key_id,omitempty"`
	AuthorityKeyID     string      `json:"authority_key_id,omitempty"`
	CRLs               []string    `json:"crl_distribution_points,omitempty"`
	OCSP               []string    `json:"ocsp_servers,omitempty"`
	Issuers            []string    `json:"issuing_certificate_urls,omitempty"`
	Extensions         []Extension `json:"extensions"`
	SHA256             string      `json:"sha256"` // of the DER, in hexadecimal

	parsed *x509.Certificate
}

// Extension is the presence of an extension.
type Extension struct {
	ID       string `json:"id"`
	Name     string `json:"name,omitempty"`
	Critical bool   `json:"critical"`
}

// certificate reads one certificate.
func (in *reader) certificate(encoding []byte) *Item {
	out := item(KindCertificate)
	if in.options.AllowBER {
		normal, normalised, err := der.Normalize(encoding, der.Limits{})
		if err != nil {
			out.add(Refused, "ber", "RFC 5280 §4.1", "it is not BER that is tolerated around a certificate: %v", err)
			return out
		}
		if normalised {
			out.add(Note, "ber", "X.690 §10", "it was written in BER and is shown as the DER that it stands for")
		}
		encoding = normal
	}
	certificate, findings := chain.Inspect(encoding)
	out.found(findings, certificate != nil)
	if certificate == nil {
		if _, normalised, err := der.Normalize(encoding, der.Limits{}); err == nil && normalised {
			out.add(Note, "ber", "X.690 §10", "it is BER of a kind that is tolerated on request: --allow-ber")
		}
		return out
	}
	out.Certificate = Describe(certificate, in.options.At)
	out.certificateNotes(certificate)
	return out
}

// Describe says what a certificate says, as seen from a moment.
func Describe(c *x509.Certificate, at time.Time) *Certificate {
	sum := sha256.Sum256(c.Raw)
	out := &Certificate{
		Role: role(c), Subject: distinguished(c.RawSubject), Issuer: distinguished(c.RawIssuer), Serial: fmt.Sprintf("%x", c.SerialNumber),
		Names: names(c), Validity: validity(c.NotBefore, c.NotAfter, at), Version: c.Version, Key: keyOf(c.PublicKey, c.RawSubjectPublicKeyInfo),
		SignatureAlgorithm: c.SignatureAlgorithm.String(), CA: c.BasicConstraintsValid && c.IsCA, KeyUsage: keyUsageNames(c.KeyUsage),
		ExtendedKeyUsage: extendedNames(extendedOf(c)), SubjectKeyID: hex.EncodeToString(c.SubjectKeyId), AuthorityKeyID: hex.EncodeToString(c.AuthorityKeyId),
		CRLs: c.CRLDistributionPoints, OCSP: c.OCSPServer, Issuers: c.IssuingCertificateURL, Extensions: []Extension{}, SHA256: hex.EncodeToString(sum[:]),
		parsed: c,
	}
	if c.BasicConstraintsValid && (c.MaxPathLen > 0 || c.MaxPathLenZero) {
		out.PathLength = &c.MaxPathLen
	}
	for _, extension := range c.Extensions {
		id := extension.Id.String()
		out.Extensions = append(out.Extensions, Extension{id, extensionNames[id], extension.Critical})
	}
	return out
}

// For says in a few words for whom a certificate is: its first name, or its subject.
func (c *Certificate) For() string {
	switch {
	case (c.CA || len(c.Names) == 0) && c.Subject != "":
		return c.Subject
	case len(c.Names) > 1:
		return fmt.Sprintf("%s and %d more", c.Names[0], len(c.Names)-1)
	case len(c.Names) == 1:
		return c.Names[0]
	}
	return "nobody"
}

// String says what a role is.
func (r Role) String() string {
	switch r {
	case RootCA:
		return "root CA"
	case IntermediateCA:
		return "intermediate CA"
	case SelfSignedLeaf:
		return "self-signed leaf"
	case Leaf:
	}
	return "leaf"
}

func role(c *x509.Certificate) Role {
	ca, self := c.BasicConstraintsValid && c.IsCA, signedWith(c, c)
	switch {
	case ca && self:
		return RootCA
	case ca:
		return IntermediateCA
	case self:
		return SelfSignedLeaf
	}
	return Leaf
}

// maxRSABits bounds what checking one signature may cost.
const maxRSABits = 8192

// signedWith tells whether issuer's name and key are those that a certificate is signed under.
func signedWith(c, issuer *x509.Certificate) bool {
	if key, ok := issuer.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() > maxRSABits {
		return false
	}
	return bytes.Equal(c.RawIssuer, issuer.RawSubject) && issuer.CheckSignature(c.SignatureAlgorithm, c.RawTBSCertificate, c.Signature) == nil
}

const idSubjectAltName = "2.5.29.17"

func names(c *x509.Certificate) []string {
	for _, extension := range c.Extensions {
		if extension.Id.String() == idSubjectAltName {
			return append([]string{}, alternativeNames(extension.Value)...)
		}
	}
	return []string{}
}

const idExtKeyUsage = "2.5.29.37"

// extendedOf returns the extended key usages in the certificate's order.
func extendedOf(c *x509.Certificate) []asn1.ObjectIdentifier {
	var ids []asn1.ObjectIdentifier
	for _, extension := range c.Extensions {
		if extension.Id.String() == idExtKeyUsage {
			_, _ = asn1.Unmarshal(extension.Value, &ids) // what is wrong with it is among the findings
		}
	}
	return ids
}

// longLife is a lifetime that only a leaf of a person's making has.
const longLife = 398 * 24 * time.Hour

// certificateNotes adds what no standard forbids and a person should know.
func (i *Item) certificateNotes(c *x509.Certificate) {
	switch c.SignatureAlgorithm {
	case x509.MD2WithRSA, x509.MD5WithRSA, x509.SHA1WithRSA, x509.DSAWithSHA1, x509.ECDSAWithSHA1:
		i.add(Note, "signature-weak", "RFC 9155", "it is signed with %s, which can be forged", c.SignatureAlgorithm)
	default:
	}
	if err := keypolicy.Default().Check(c.PublicKey); err != nil {
		i.add(Note, "key-policy", "", "its key is not one that Chancery certifies: %v", err)
	}
	for _, id := range c.UnhandledCriticalExtensions {
		i.add(Note, "critical-unknown", "RFC 5280 §4.2", "its critical extension %s is not understood here, so that it cannot be verified", id)
	}
	if i.Certificate.CA {
		return
	}
	if i.Certificate.Role == SelfSignedLeaf {
		i.add(Note, "self-signed", "", "it is signed with its own key: only who has been given this very certificate can trust it")
	}
	if len(i.Certificate.Names) == 0 {
		i.add(Note, "no-names", "RFC 9525 §2", "it has no subject alternative name, and clients do not look for names anywhere else")
	}
	for _, name := range i.Certificate.Names {
		if wildcard, ok := strings.CutPrefix(name, "DNS:*"); ok {
			i.add(Note, "wildcard", "RFC 9525 §6.3", "*%s stands for every host right below its domain", wildcard)
			break // one tells enough
		}
	}
	if life := c.NotAfter.Sub(c.NotBefore); life > longLife {
		i.add(Note, "long-life", "", "a leaf that lives that long has to be revoked when its key leaks")
	}
}
