package chain

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"
)

// IssuerPath checks the certificates that an authority wants to issue under: the issuing certificate first, then those above it, with or
// without the trust anchor. It returns them up to the first trust anchor. Every one must be fit to issue (RFC 5280 §4.2.1.3, §4.2.1.9), be
// signed by the next, and be valid at now; the path ends at one of the anchors and leaves room for a leaf in a Chain.
func IssuerPath(issuing, anchors []*x509.Certificate, now time.Time) ([]*x509.Certificate, error) {
	if len(issuing) == 0 {
		return nil, errors.New("an issuing path needs an issuing certificate")
	}
	if len(anchors) == 0 {
		return nil, errors.New("an issuing path needs a trust anchor to end at")
	}
	if slices.Contains(issuing, nil) || slices.Contains(anchors, nil) {
		return nil, errors.New("a certificate of the issuing path is nil")
	}
	path, err := anchored(issuing, anchors, now)
	if err != nil {
		return nil, err
	}
	// a chain has the leaf in the place of the anchor
	if len(path) > maxCertificates {
		return nil, fmt.Errorf("an issuing path has at most %d certificates, the trust anchor among them, not %d", maxCertificates, len(path))
	}
	// positions count from the leaf that is not here yet
	if err := checkDistinct(2, path); err != nil {
		return nil, fmt.Errorf("issuing path: %w", err)
	}
	for i, certificate := range path {
		if err := issues(certificate, path, i, now); err != nil {
			return nil, fmt.Errorf("issuing path: %w", err)
		}
	}
	return path, nil
}

// anchored returns the path that ends at an anchor. Of several anchors with the name and the key identifier that the last certificate asks for,
// as a renewed root has both of its old one, it takes the first that fits.
func anchored(issuing, anchors []*x509.Certificate, now time.Time) ([]*x509.Certificate, error) {
	path := slices.Clone(issuing)
	isAnchor := func(certificate *x509.Certificate) bool { return slices.ContainsFunc(anchors, certificate.Equal) }
	if i := slices.IndexFunc(path, isAnchor); i >= 0 {
		return path[:i+1], nil
	}
	last := path[len(path)-1]
	var named []*x509.Certificate
	for _, anchor := range anchors {
		if isNamed(last, anchor) {
			named = append(named, anchor)
		}
	}
	if len(named) == 0 {
		return nil, fmt.Errorf("issuing certificate %s does not lead to a trust anchor: its issuer %s is none of the %d given",
			shownName(last.Subject, last.RawSubject), shownName(last.Issuer, last.RawIssuer), len(anchors))
	}
	fit := slices.IndexFunc(named, func(anchor *x509.Certificate) bool {
		return checkLink(1, last, anchor) == nil && checkDates(2, anchor, now) == nil
	})
	// if none fits, the checks to come say why the first does not
	return append(path, named[max(fit, 0)]), nil
}

// issues checks that the i-th certificate of a path may issue.
func issues(certificate *x509.Certificate, path []*x509.Certificate, i int, now time.Time) error {
	position := i + 2
	if err := checkIssuer(position, certificate, i); err != nil {
		return err
	}
	if !basicConstraintsCritical(certificate) {
		return broken(position, certificate, "RFC 5280 §4.2.1.9", "its basic constraints are not critical")
	}
	if err := checkDates(position, certificate, now); err != nil {
		return err
	}
	if i+1 < len(path) {
		return checkLink(position, certificate, path[i+1])
	}
	return nil
}

func basicConstraintsCritical(certificate *x509.Certificate) bool {
	for _, found := range certificate.Extensions {
		if found.Id.Equal(oidBasicConstraints) {
			return found.Critical
		}
	}
	return false
}

// Window returns the certificate of an issuing path that begins last and the one that ends first: all are valid from begins.NotBefore to
// ends.NotAfter.
func Window(path []*x509.Certificate) (begins, ends *x509.Certificate, err error) {
	if len(path) == 0 {
		return nil, nil, errors.New("an issuing path is not empty")
	}
	begins, ends = path[0], path[0]
	for _, certificate := range path[1:] {
		if certificate.NotBefore.After(begins.NotBefore) {
			begins = certificate
		}
		if certificate.NotAfter.Before(ends.NotAfter) {
			ends = certificate
		}
	}
	return begins, ends, nil
}
