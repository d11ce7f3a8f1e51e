package chain

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"slices"
	"time"

	"github.com/chancery-ca/chancery/ca/keypolicy"
)

// path is a verified sequence of issuers, from the one that signs leaves to a pinned anchor.
type path struct {
	issuers             []*x509.Certificate
	notBefore, notAfter time.Time // within which all of them are valid
	constrained         bool      // something in it limits the leaf's names, usages or policies, so that a whole path has to be validated
}

// maxKnownPaths bounds what a Checker remembers; an authority has a handful.
const maxKnownPaths = 64

// path returns what stands above a leaf and signed it, verified and valid at now. Of several anchors with the name and the key identifier that the last
// certificate asks for, as a renewed root has both of its old one, the first that fits is taken.
func (c *Checker) path(leaf *x509.Certificate, intermediates []*x509.Certificate, now time.Time) (*path, error) {
	last, position := leaf, 1
	for i, certificate := range intermediates {
		last, position = certificate, i+2
		if slices.ContainsFunc(c.anchors, last.Equal) {
			return nil, broken(position, last, "a chain ends below its trust anchor", "it is a trust anchor itself, which every verifier has already")
		}
	}
	var refused error
	for _, anchor := range c.anchors {
		if !isNamed(last, anchor) {
			continue
		}
		found, err := c.pathTo(anchor, intermediates, now)
		if err == nil {
			err = checkLink(1, leaf, found.issuers[0])
		}
		if err == nil {
			return found, nil
		}
		if refused == nil {
			refused = err
		}
	}
	if refused != nil {
		return nil, refused
	}
	return nil, broken(position, last, "a chain ends at a pinned trust anchor", "its issuer (%s, key %X) is none of the %d pinned trust anchors",
		shownName(last.Issuer, last.RawIssuer), last.AuthorityKeyId, len(c.anchors))
}

// isNamed tells whether a certificate names an anchor as its issuer.
func isNamed(certificate, anchor *x509.Certificate) bool {
	return bytes.Equal(anchor.RawSubject, certificate.RawIssuer) && bytes.Equal(anchor.SubjectKeyId, certificate.AuthorityKeyId)
}

func (c *Checker) pathTo(anchor *x509.Certificate, intermediates []*x509.Certificate, now time.Time) (*path, error) {
	digest := sha256.New()
	for _, certificate := range intermediates {
		digest.Write(certificate.Raw)
	}
	digest.Write(anchor.Raw)
	key := [sha256.Size]byte(digest.Sum(nil))

	c.mu.Lock()
	found, ok := c.paths[key]
	c.mu.Unlock()
	if !ok {
		var err error
		if found, err = newPath(intermediates, anchor); err != nil {
			return nil, err
		}
		c.mu.Lock()
		if len(c.paths) >= maxKnownPaths {
			clear(c.paths)
		}
		c.paths[key] = found
		c.mu.Unlock()
	}
	for i, certificate := range found.issuers {
		if err := checkDates(i+2, certificate, now); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// newPath reads the issuers' encodings and checks the issuers among themselves; it does not look at a clock, since its answer is remembered.
func newPath(intermediates []*x509.Certificate, anchor *x509.Certificate) (*path, error) {
	p := &path{notAfter: anchor.NotAfter, notBefore: anchor.NotBefore}
	for i, certificate := range intermediates {
		parsed, err := ParseCertificate(certificate.Raw)
		if err != nil {
			return nil, unreadable(i+2, certificate, err)
		}
		p.issuers = append(p.issuers, parsed)
	}
	p.issuers = append(p.issuers, anchor)
	for i, certificate := range p.issuers {
		if err := checkIssuer(i+2, certificate, i); err != nil {
			return nil, err
		}
		if i+1 < len(p.issuers) {
			if err := checkLink(i+2, certificate, p.issuers[i+1]); err != nil {
				return nil, err
			}
		}
		if certificate.NotBefore.After(p.notBefore) {
			p.notBefore = certificate.NotBefore
		}
		if certificate.NotAfter.Before(p.notAfter) {
			p.notAfter = certificate.NotAfter
		}
		p.constrained = p.constrained || constrains(certificate)
	}
	return p, nil
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
	if err := keypolicy.Default().Check(certificate.PublicKey); err != nil {
		return broken(position, certificate, "an issuer's key is strong", "%v", err)
	}
	return nil
}

// checkLink checks that issuer signed certificate and that both name each other alike.
func checkLink(position int, certificate, issuer *x509.Certificate) error {
	switch {
	case !bytes.Equal(certificate.RawIssuer, issuer.RawSubject):
		return broken(position, certificate, "RFC 5280 §4.1.2.4", "its issuer is %s, the next certificate's subject is %s, and these are not the same octets",
			shownName(certificate.Issuer, certificate.RawIssuer), shownName(issuer.Subject, issuer.RawSubject))
	case !bytes.Equal(certificate.AuthorityKeyId, issuer.SubjectKeyId):
		return broken(position, certificate, "RFC 5280 §4.2.1.1", "its authority key identifier %X is not the issuer's subject key identifier %X",
			certificate.AuthorityKeyId, issuer.SubjectKeyId)
	case !slices.Contains(signatureAlgorithms, certificate.SignatureAlgorithm):
		return broken(position, certificate, "RFC 5280 §4.1.1.2", "its signature algorithm %s is not accepted", certificate.SignatureAlgorithm)
	}
	if err := issuer.CheckSignature(certificate.SignatureAlgorithm, certificate.RawTBSCertificate, certificate.Signature); err != nil {
		return broken(position, certificate, "RFC 5280 §6.1.3 (a)(1)", "its signature is not by %s: %v", shownName(issuer.Subject, issuer.RawSubject), err)
	}
	return nil
}

// signatureAlgorithms are those that a certificate may be signed with: no MD5, no SHA-1, no DSA.
var signatureAlgorithms = []x509.SignatureAlgorithm{
	x509.ECDSAWithSHA256, x509.ECDSAWithSHA384, x509.ECDSAWithSHA512, x509.PureEd25519,
	x509.SHA256WithRSA, x509.SHA384WithRSA, x509.SHA512WithRSA, x509.SHA256WithRSAPSS, x509.SHA384WithRSAPSS, x509.SHA512WithRSAPSS,
}

func checkDates(position int, certificate *x509.Certificate, now time.Time) error {
	if now.Before(certificate.NotBefore) || now.After(certificate.NotAfter) {
		return broken(position, certificate, "RFC 5280 §6.1.3 (a)(2)", "it is valid from %s to %s; the clock says %s",
			stamp(certificate.NotBefore), stamp(certificate.NotAfter), stamp(now))
	}
	return nil
}

// constrains tells whether an issuer has anything that only a full path validation with the leaf can judge.
func constrains(certificate *x509.Certificate) bool {
	return len(certificate.PermittedDNSDomains)+len(certificate.ExcludedDNSDomains)+len(certificate.PermittedIPRanges)+
		len(certificate.ExcludedIPRanges)+len(certificate.PermittedEmailAddresses)+len(certificate.ExcludedEmailAddresses)+
		len(certificate.PermittedURIDomains)+len(certificate.ExcludedURIDomains) > 0 ||
		len(certificate.ExtKeyUsage)+len(certificate.UnknownExtKeyUsage) > 0 ||
		slices.ContainsFunc(certificate.Extensions, func(found pkix.Extension) bool { return found.Id.Equal(oidPolicyConstraints) })
}

// verify runs the whole path validation of RFC 5280 §6.1 over leaf, intermediates and anchor.
func (p *path) verify(leaf *x509.Certificate, usages []x509.ExtKeyUsage, now time.Time) error {
	anchor := len(p.issuers) - 1
	_, err := Verify(leaf, VerifyOptions{Roots: p.issuers[anchor:], Intermediates: p.issuers[:anchor], At: now, Usages: usages})
	if err == nil {
		return nil
	}
	var refused *Error
	if errors.As(err, &refused) {
		return refused
	}
	return broken(1, leaf, "RFC 5280 §6.1", "the path does not validate: %v", err)
}
