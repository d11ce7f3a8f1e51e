package signertest

import (
	"context"
	"crypto"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"net"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/chancery-ca/chancery/ca/bundle"
	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/signer"
)

// Forgery is a wrong answer to an order, and what the checker has to say to it. All but one thing in it is right, down to the signatures.
type Forgery struct {
	Name string
	// Position and Rule are those of the chain.Error.
	Position int
	Rule     string

	authorities func(testing.TB, *Hierarchy)                                                 // changes who issues
	template    func(*x509.Certificate)                                                      // changes what the leaf says
	public      crypto.PublicKey                                                             // whose certificate it is, if not the requester's
	octets      func(t testing.TB, leaf *x509.Certificate, h *Hierarchy) []byte              // changes the leaf's encoding
	chain       func(t testing.TB, leaf *x509.Certificate, h *Hierarchy) []*x509.Certificate // changes what is handed over
}

// Rogue is a signing backend that holds real keys and answers every order with one forgery. Like a remote authority it does not say who its
// issuers are.
type Rogue struct {
	t         testing.TB
	hierarchy *Hierarchy
	forgery   Forgery
}

var _ signer.Signer = (*Rogue)(nil)

// NewRogue returns a backend that answers from a hierarchy. The zero Forgery is no forgery: the answers are right.
func NewRogue(t testing.TB, h *Hierarchy, forgery Forgery) *Rogue {
	return &Rogue{t, h, forgery}
}

// Roots implements signer.Signer: the real root is pinned, whatever the answers say.
func (r *Rogue) Roots() *bundle.Bundle { return r.hierarchy.Bundle(r.t) }

// Sign implements signer.Signer.
func (r *Rogue) Sign(_ context.Context, order signer.Order) (chain.Chain, error) {
	return r.forgery.Answer(r.t, *r.hierarchy, order.Leaf), nil
}

// Answer returns the forged chain for approved content.
func (f *Forgery) Answer(t testing.TB, h Hierarchy, approved chain.Leaf) chain.Chain {
	t.Helper()
	if f.authorities != nil {
		f.authorities(t, &h)
	}
	template := templateOf(t, approved)
	if f.template != nil {
		f.template(template)
	}
	public := f.public
	if public == nil {
		var err error
		public, err = x509.ParsePKIXPublicKey(approved.SPKI)
		must(t, err)
	}
	leaf := certify(t, template, h.Issuer, public)
	if f.octets != nil {
		leaf = parsed(t, f.octets(t, leaf, &h))
	}
	certificates := []*x509.Certificate{leaf, h.Issuer.Certificate, h.Middle.Certificate}
	if f.chain != nil {
		certificates = f.chain(t, leaf, &h)
	}
	if len(certificates) == 0 {
		return chain.Chain{}
	}
	forged, err := chain.New(certificates...)
	must(t, err)
	return forged
}

// The rules that are no section of a standard, as the checker names them.
const (
	ruleWiden  = "a backend cannot widen a certificate"
	ruleAnchor = "a chain ends at a pinned trust anchor"
	ruleTwice  = "no certificate stands twice"
)

// Forgeries returns what a backend must not get through, each wrong in one thing. It changes every kind of order with a SPIFFE ID.
func Forgeries() []Forgery {
	return slices.Concat(forgedContent(), forgedNames(), forgedTimes(), forgedEncodings(), forgedLinks(), forgedIssuers(), forgedChains())
}

func forgedContent() []Forgery {
	usage := func(usage x509.ExtKeyUsage) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.ExtKeyUsage = append(slices.Clone(c.ExtKeyUsage), usage) }
	}
	private := func(critical bool) func(*x509.Certificate) {
		return func(c *x509.Certificate) {
			c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 55555, 1}, Critical: critical, Value: asn1.NullBytes}}
		}
	}
	return []Forgery{
		{Name: "another key", Position: 1, Rule: "the key is the request's", public: keys().other.Public()},
		{Name: "another serial", Position: 1, Rule: "the serial is the reserved one", template: func(c *x509.Certificate) {
			c.SerialNumber = new(big.Int).Xor(c.SerialNumber, big.NewInt(1<<20))
		}},
		{Name: "a serial of 21 octets", Position: 1, Rule: "RFC 5280 §4.1.2.2", template: func(c *x509.Certificate) {
			c.SerialNumber = new(big.Int).Lsh(big.NewInt(1), 160)
		}},
		{Name: "a serial of 160 bits, which is 21 octets", Position: 1, Rule: "RFC 5280 §4.1.2.2", template: func(c *x509.Certificate) {
			c.SerialNumber = new(big.Int).Lsh(big.NewInt(1), 159)
		}},
		{Name: "a subject", Position: 1, Rule: ruleWiden, template: func(c *x509.Certificate) { c.Subject.CommonName = "admin" }},
		{Name: "a CA certificate", Position: 1, Rule: "RFC 5280 §4.1.2.6", template: func(c *x509.Certificate) {
			c.IsCA, c.KeyUsage, c.URIs[0] = true, c.KeyUsage|x509.KeyUsageCertSign, &url.URL{Scheme: "https", Host: "example.org"}
		}},
		{Name: "keyCertSign", Position: 1, Rule: "RFC 5280 §4.2.1.3", template: func(c *x509.Certificate) { c.KeyUsage |= x509.KeyUsageCertSign }},
		{Name: "cRLSign", Position: 1, Rule: ruleWiden, template: func(c *x509.Certificate) { c.KeyUsage |= x509.KeyUsageCRLSign }},
		{Name: "a wider key usage", Position: 1, Rule: ruleWiden, template: func(c *x509.Certificate) { c.KeyUsage |= x509.KeyUsageContentCommitment }},
		{Name: "a wider extended usage", Position: 1, Rule: ruleWiden, template: usage(x509.ExtKeyUsageCodeSigning)},
		{Name: "any extended usage", Position: 1, Rule: ruleWiden, template: usage(x509.ExtKeyUsageAny)},
		{Name: "an unknown extended usage", Position: 1, Rule: ruleWiden, template: func(c *x509.Certificate) {
			c.UnknownExtKeyUsage = []asn1.ObjectIdentifier{{1, 3, 6, 1, 4, 1, 55555, 2}}
		}},
		{Name: "no extended usage, which means any", Position: 1, Rule: ruleWiden, template: func(c *x509.Certificate) { c.ExtKeyUsage = nil }},
		{Name: "an unknown extension", Position: 1, Rule: ruleWiden, template: private(false)},
		{Name: "an unknown critical extension", Position: 1, Rule: "RFC 5280 §4.2", template: private(true)},
	}
}

func forgedNames() []Forgery {
	// names replaces the subject alternative names by the approved URI and one other GeneralName
	names := func(other asn1.RawValue) func(*x509.Certificate) {
		return func(c *x509.Certificate) {
			list := []asn1.RawValue{{Class: asn1.ClassContextSpecific, Tag: 6, Bytes: []byte(c.URIs[0].String())}, other}
			value, _ := asn1.Marshal(list) // raw values always encode
			c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Critical: true, Value: value}}
		}
	}
	context := func(tag int, contents string) asn1.RawValue {
		return asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: tag, IsCompound: tag == 0 || tag == 4, Bytes: []byte(contents)}
	}
	// an otherName that holds a user principal name, by which Windows logs people in
	const principal = "\x06\x0a\x2b\x06\x01\x04\x01\x82\x37\x14\x02\x03\xa0\x0d\x0c\x0badmin@a.org"
	const directory = "\x30\x10\x31\x0e\x30\x0c\x06\x03\x55\x04\x03\x0c\x05admin"
	return []Forgery{
		{Name: "another SPIFFE ID", Position: 1, Rule: ruleWiden, template: func(c *x509.Certificate) {
			c.URIs = []*url.URL{{Scheme: "spiffe", Host: "example.org", Path: "/admin"}}
		}},
		{Name: "another trust domain", Position: 1, Rule: ruleWiden, template: func(c *x509.Certificate) {
			c.URIs = []*url.URL{{Scheme: "spiffe", Host: "example.net", Path: c.URIs[0].Path}}
		}},
		{Name: "a second URI", Position: 1, Rule: "X509-SVID §2", template: func(c *x509.Certificate) {
			c.URIs = append(slices.Clone(c.URIs), &url.URL{Scheme: "spiffe", Host: "example.org", Path: "/admin"})
		}},
		{Name: "a DNS name", Position: 1, Rule: ruleWiden, template: func(c *x509.Certificate) { c.DNSNames = []string{"www.example.org"} }},
		{Name: "a wildcard", Position: 1, Rule: ruleWiden, template: func(c *x509.Certificate) { c.DNSNames = []string{"*.example.org"} }},
		{Name: "an IP address", Position: 1, Rule: ruleWiden, template: func(c *x509.Certificate) {
			c.IPAddresses = []net.IP{net.IPv4(192, 0, 2, 1).To4()}
		}},
		{Name: "an e-mail address", Position: 1, Rule: ruleWiden, template: func(c *x509.Certificate) { c.EmailAddresses = []string{"root@example.org"} }},
		{Name: "an otherName", Position: 1, Rule: ruleWiden, template: names(context(0, principal))},
		{Name: "a directoryName", Position: 1, Rule: ruleWiden, template: names(context(4, directory))},
		{Name: "a registeredID", Position: 1, Rule: ruleWiden, template: names(context(8, "\x2a\x03"))},
		{Name: "fewer names", Position: 1, Rule: ruleWiden, template: func(c *x509.Certificate) {
			c.URIs, c.DNSNames = nil, []string{"www.example.org"}
		}},
		{Name: "the SPIFFE ID written otherwise", Position: 1, Rule: "SPIFFE-ID §2", octets: func(t testing.TB, leaf *x509.Certificate, h *Hierarchy) []byte {
			return resign(t, leaf, h.Issuer.Key, replace("spiffe://", "SPIFFE://"))
		}},
	}
}

func forgedTimes() []Forgery {
	return []Forgery{
		{Name: "a longer life", Position: 1, Rule: ruleWiden, template: func(c *x509.Certificate) { c.NotAfter = c.NotAfter.Add(time.Second) }},
		{Name: "an earlier beginning", Position: 1, Rule: ruleWiden, template: func(c *x509.Certificate) { c.NotBefore = c.NotBefore.Add(-time.Second) }},
		{Name: "expired", Position: 1, Rule: "RFC 5280 §6.1.3 (a)(2)", template: func(c *x509.Certificate) { c.NotAfter = c.NotBefore }},
		{Name: "not yet valid", Position: 1, Rule: "RFC 5280 §6.1.3 (a)(2)", template: func(c *x509.Certificate) { c.NotBefore = c.NotAfter }},
		{Name: "an end before the beginning", Position: 1, Rule: "RFC 5280 §4.1.2.5", octets: func(t testing.TB, leaf *x509.Certificate, h *Hierarchy) []byte {
			const form = "060102150405Z"
			return resign(t, leaf, h.Issuer.Key, replace(leaf.NotAfter.UTC().Format(form), leaf.NotBefore.Add(-time.Second).UTC().Format(form)))
		}},
	}
}

func forgedIssuers() []Forgery {
	issuer := func(change func(c *x509.Certificate, h *Hierarchy)) func(testing.TB, *Hierarchy) {
		return func(t testing.TB, h *Hierarchy) {
			h.makeIssuer(t, func(c *x509.Certificate) { change(c, h) })
		}
	}
	return []Forgery{
		{Name: "an issuer that ends before the leaf", Position: 1, Rule: "a leaf outlives no issuer", authorities: issuer(func(c *x509.Certificate, h *Hierarchy) {
			c.NotAfter = h.Now.Add(time.Second)
		})},
		{Name: "an issuer that begins after the leaf", Position: 1, Rule: "a leaf is not older than its issuers",
			authorities: issuer(func(c *x509.Certificate, h *Hierarchy) { c.NotBefore = h.Now })},
		{Name: "an expired issuer", Position: 2, Rule: "RFC 5280 §6.1.3 (a)(2)", authorities: issuer(func(c *x509.Certificate, h *Hierarchy) {
			c.NotAfter = h.Now.Add(-time.Second)
		})},
		{Name: "an issuer that is not yet valid", Position: 2, Rule: "RFC 5280 §6.1.3 (a)(2)", authorities: issuer(func(c *x509.Certificate, h *Hierarchy) {
			c.NotBefore = h.Now.Add(time.Second)
		})},
		{Name: "an issuer that is no CA", Position: 2, Rule: "RFC 5280 §4.2.1.9", authorities: issuer(func(c *x509.Certificate, _ *Hierarchy) {
			c.IsCA, c.KeyUsage = false, x509.KeyUsageDigitalSignature
		})},
		{Name: "an issuer without keyCertSign", Position: 2, Rule: "RFC 5280 §4.2.1.3", authorities: issuer(func(c *x509.Certificate, _ *Hierarchy) {
			c.KeyUsage = x509.KeyUsageCRLSign
		})},
		{Name: "an issuer with an unknown critical extension", Position: 2, Rule: "RFC 5280 §4.2", authorities: issuer(func(c *x509.Certificate, _ *Hierarchy) {
			c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 55555, 1}, Critical: true, Value: asn1.NullBytes}}
		})},
		{Name: "an issuer that may not name this", Position: 1, Rule: "RFC 5280 §4.2.1.10", authorities: issuer(func(c *x509.Certificate, _ *Hierarchy) {
			c.PermittedDNSDomainsCritical, c.PermittedURIDomains = true, []string{"other.example"}
		})},
		{Name: "an issuer without one of the usages", Position: 2, Rule: "RFC 5280 §4.2.1.12", authorities: issuer(func(c *x509.Certificate, _ *Hierarchy) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		})},
		{Name: "an issuer with a weak key", Position: 2, Rule: "an issuer's key is strong", authorities: func(t testing.TB, h *Hierarchy) {
			h.Issuer = h.authority(t, keys().weak, "issuer", &h.Middle, nil)
		}},
		{Name: "more intermediates than the path length", Position: 3, Rule: "RFC 5280 §4.2.1.9", authorities: func(t testing.TB, h *Hierarchy) {
			h.makeMiddle(t, func(c *x509.Certificate) { c.MaxPathLen, c.MaxPathLenZero = 0, true })
			h.makeIssuer(t, nil)
		}},
		{Name: "an issuer signed with SHA-1", Position: 2, Rule: "RFC 5280 §4.1.1.2", authorities: func(t testing.TB, h *Hierarchy) {
			h.Middle = h.authority(t, keys().strong, "intermediate", &h.Root, nil)
			h.makeIssuer(t, nil)
			h.Issuer.Certificate = parsed(t, resignSHA1(t, h.Issuer.Certificate, keys().strong))
		}},
	}
}
