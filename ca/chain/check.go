package chain

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Error says which certificate of a chain broke which rule.
type Error struct {
	Position int    // 1 is the leaf
	Subject  string // empty for an empty subject
	Rule     string // the section, as "RFC 5280 §4.1.2.5", or the invariant's name
	Detail   string // what was found and what was expected
}

// Error returns a sentence that names the certificate, the finding and the rule.
func (e *Error) Error() string {
	who := "certificate"
	if e.Position == 1 {
		who = "leaf"
	}
	if e.Subject != "" {
		who += " (" + e.Subject + ")"
	}
	return fmt.Sprintf("certificate %d of the chain, %s: %s (%s)", e.Position, who, e.Detail, e.Rule)
}

func broken(position int, certificate *x509.Certificate, rule, format string, args ...any) *Error {
	return &Error{Position: position, Subject: certificate.Subject.String(), Rule: rule, Detail: fmt.Sprintf(format, args...)}
}

// Checker checks chains against pinned trust anchors. It is safe for concurrent use. Paths above the leaf that it has verified once are
// remembered, within the time in which all of their certificates are valid: so a new leaf costs one signature verification.
type Checker struct {
	anchors []*x509.Certificate

	mu    sync.Mutex
	paths map[[sha256.Size]byte]path
}

// path is a verified sequence of issuers, from the one that signs leaves to a pinned anchor.
type path struct {
	notBefore, notAfter time.Time
	constrained         bool // something in it limits the leaf's names or policies: Verify has to see the leaf too
}

// maxPaths bounds what a Checker remembers; an authority has a handful.
const maxPaths = 64

// NewChecker returns a Checker that accepts only chains that end at one of the anchors.
func NewChecker(anchors []*x509.Certificate) (*Checker, error) {
	if len(anchors) == 0 {
		return nil, errors.New("a chain checker needs at least one pinned trust anchor")
	}
	return &Checker{anchors: anchors, paths: make(map[[sha256.Size]byte]path)}, nil
}

// Check returns nil if the chain is what was approved: its leaf says exactly what want says and nothing more, every signature and
// link is good, it ends at a pinned anchor, nothing in it has expired or is not yet valid at now, and the leaf outlives nothing above it.
// Errors are of type *Error.
func (c *Checker) Check(chain Chain, want Leaf, now time.Time) error {
	if len(chain.certificates) == 0 {
		return &Error{Position: 1, Rule: "a chain is not empty", Detail: "there is no certificate"}
	}
	leaf := chain.Leaf()
	if err := checkLeaf(leaf, want, now); err != nil {
		return err
	}
	above, issuer, err := c.path(chain, now)
	if err != nil {
		return err
	}
	if err := checkLink(1, leaf, issuer); err != nil {
		return err
	}
	switch {
	case leaf.NotAfter.After(above.notAfter):
		return broken(1, leaf, "a leaf outlives no issuer", "notAfter %s is later than %s, the earliest notAfter above it",
			stamp(leaf.NotAfter), stamp(above.notAfter))
	case leaf.NotBefore.Before(above.notBefore):
		return broken(1, leaf, "a leaf is not older than its issuers", "notBefore %s is earlier than %s, the latest notBefore above it",
			stamp(leaf.NotBefore), stamp(above.notBefore))
	}
	if above.constrained {
		return c.verify(chain, want.ExtKeyUsage, now)
	}
	return nil
}

// path verifies what stands above the leaf and returns it with the leaf's issuer.
func (c *Checker) path(chain Chain, now time.Time) (path, *x509.Certificate, error) {
	last := chain.certificates[len(chain.certificates)-1]
	anchor := c.anchorOf(last)
	if anchor == nil {
		return path{}, nil, broken(len(chain.certificates), last, "a chain ends at a pinned trust anchor",
			"its issuer (%s, key %X) is none of the %d pinned trust anchors", last.Issuer, last.AuthorityKeyId, len(c.anchors))
	}
	issuers := append(chain.certificates[1:len(chain.certificates):len(chain.certificates)], anchor)
	digest := sha256.New()
	for _, certificate := range issuers {
		digest.Write(certificate.Raw)
	}
	var key [sha256.Size]byte
	digest.Sum(key[:0])

	c.mu.Lock()
	known, ok := c.paths[key]
	c.mu.Unlock()
	if !ok {
		var err error
		if known, err = c.verifyPath(chain, issuers); err != nil {
			return path{}, nil, err
		}
		c.mu.Lock()
		if len(c.paths) >= maxPaths {
			clear(c.paths)
		}
		c.paths[key] = known
		c.mu.Unlock()
	}
	for i, certificate := range issuers {
		if now.Before(certificate.NotBefore) || now.After(certificate.NotAfter) {
			return path{}, nil, broken(i+2, certificate, "RFC 5280 §6.1.3 (a)(2)", "it is valid from %s to %s; the clock says %s",
				stamp(certificate.NotBefore), stamp(certificate.NotAfter), stamp(now))
		}
	}
	return known, issuers[0], nil
}

// verifyPath checks the issuers among themselves; it does not look at a clock, since its answer is remembered.
func (c *Checker) verifyPath(chain Chain, issuers []*x509.Certificate) (path, error) {
	result := path{notBefore: issuers[0].NotBefore, notAfter: issuers[0].NotAfter}
	for i, certificate := range issuers {
		position := i + 2
		for j, other := range chain.certificates[:min(i+1, len(chain.certificates))] {
			if other.Equal(certificate) {
				return path{}, broken(position, certificate, "no certificate stands twice", "it is the same as certificate %d", j+1)
			}
		}
		if err := checkIssuer(position, certificate, i); err != nil {
			return path{}, err
		}
		if i+1 < len(issuers) {
			if err := checkLink(position, certificate, issuers[i+1]); err != nil {
				return path{}, err
			}
		}
		if certificate.NotBefore.After(result.notBefore) {
			result.notBefore = certificate.NotBefore
		}
		if certificate.NotAfter.Before(result.notAfter) {
			result.notAfter = certificate.NotAfter
		}
		result.constrained = result.constrained || constrains(certificate)
	}
	return result, nil
}

// checkIssuer checks that a certificate may sign certificates with `below` issuers between itself and the leaf.
func checkIssuer(position int, certificate *x509.Certificate, below int) error {
	switch {
	case certificate.Version != 3:
		return broken(position, certificate, "RFC 5280 §4.1.2.1", "its version is %d; a CA certificate is version 3", certificate.Version)
	case !certificate.BasicConstraintsValid || !certificate.IsCA:
		return broken(position, certificate, "RFC 5280 §4.2.1.9", "it signs certificates but is not a CA certificate")
	case certificate.KeyUsage&x509.KeyUsageCertSign == 0:
		return broken(position, certificate, "RFC 5280 §4.2.1.3", "its key usage lacks keyCertSign")
	case len(certificate.SubjectKeyId) == 0:
		return broken(position, certificate, "RFC 5280 §4.2.1.2", "it has no subject key identifier")
	case (certificate.MaxPathLen > 0 || certificate.MaxPathLenZero) && below > certificate.MaxPathLen:
		return broken(position, certificate, "RFC 5280 §4.2.1.9", "its path length of %d does not allow %d intermediates below it",
			certificate.MaxPathLen, below)
	case len(certificate.UnhandledCriticalExtensions) > 0:
		return broken(position, certificate, "RFC 5280 §4.2", "it has the critical extension %s, which is not understood here",
			certificate.UnhandledCriticalExtensions[0])
	}
	return nil
}

// checkLink checks that issuer signed certificate and that both name each other alike.
func checkLink(position int, certificate, issuer *x509.Certificate) error {
	switch {
	case !bytes.Equal(certificate.RawIssuer, issuer.RawSubject):
		return broken(position, certificate, "RFC 5280 §4.1.2.4", "its issuer is %s, the next certificate's subject is %s, byte for byte",
			certificate.Issuer, issuer.Subject)
	case !bytes.Equal(certificate.AuthorityKeyId, issuer.SubjectKeyId):
		return broken(position, certificate, "RFC 5280 §4.2.1.1", "its authority key identifier %X is not the issuer's subject key identifier %X",
			certificate.AuthorityKeyId, issuer.SubjectKeyId)
	case certificate.SignatureAlgorithm == x509.SHA1WithRSA, certificate.SignatureAlgorithm == x509.ECDSAWithSHA1,
		certificate.SignatureAlgorithm == x509.UnknownSignatureAlgorithm:
		return broken(position, certificate, "RFC 5280 §4.1.1.2", "its signature algorithm %s is not accepted", certificate.SignatureAlgorithm)
	}
	if err := issuer.CheckSignature(certificate.SignatureAlgorithm, certificate.RawTBSCertificate, certificate.Signature); err != nil {
		return broken(position, certificate, "RFC 5280 §6.1.3 (a)(1)", "its signature is not by %s: %v", issuer.Subject, err)
	}
	return nil
}

// constrains tells whether an issuer has anything that only a full path validation with the leaf can judge.
func constrains(certificate *x509.Certificate) bool {
	return len(certificate.PermittedDNSDomains)+len(certificate.ExcludedDNSDomains)+len(certificate.PermittedIPRanges)+
		len(certificate.ExcludedIPRanges)+len(certificate.PermittedEmailAddresses)+len(certificate.ExcludedEmailAddresses)+
		len(certificate.PermittedURIDomains)+len(certificate.ExcludedURIDomains) > 0 ||
		len(certificate.ExtKeyUsage)+len(certificate.UnknownExtKeyUsage) > 0
}

// verify runs the whole path validation of RFC 5280 §6.1 over leaf, intermediates and anchors, with explicit usages.
func (c *Checker) verify(chain Chain, usages []x509.ExtKeyUsage, now time.Time) error {
	roots, intermediates := x509.NewCertPool(), x509.NewCertPool()
	for _, anchor := range c.anchors {
		roots.AddCert(anchor)
	}
	for _, certificate := range chain.Intermediates() {
		intermediates.AddCert(certificate)
	}
	for _, usage := range usages {
		_, err := chain.Leaf().Verify(x509.VerifyOptions{Roots: roots, Intermediates: intermediates, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage}})
		if err != nil {
			return broken(1, chain.Leaf(), "RFC 5280 §6.1", "the path does not validate: %v", err)
		}
	}
	return nil
}

func (c *Checker) anchorOf(certificate *x509.Certificate) *x509.Certificate {
	for _, anchor := range c.anchors {
		if bytes.Equal(anchor.RawSubject, certificate.RawIssuer) && bytes.Equal(anchor.SubjectKeyId, certificate.AuthorityKeyId) {
			return anchor
		}
	}
	return nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
