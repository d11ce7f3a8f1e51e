package chain

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"
)

// IssuerPath checks the certificates that an authority wants to issue under: the issuing certificate first, then those above it. It returns them
// with the trust anchor last. Every one must be fit to issue (RFC 5280 §4.2.1.3, §4.2.1.9), be signed by the next, end at one of the
// anchors and be valid at now.
func IssuerPath(issuing, anchors []*x509.Certificate, now time.Time) ([]*x509.Certificate, error) {
	if len(issuing) == 0 || len(issuing) > maxCertificates {
		return nil, fmt.Errorf("an issuing path has 1 to %d certificates, not %d", maxCertificates, len(issuing))
	}
	checker, err := NewChecker(anchors)
	if err != nil {
		return nil, err
	}
	path := slices.Clone(issuing)
	last := path[len(path)-1]
	if !slices.ContainsFunc(anchors, last.Equal) {
		anchor := checker.anchorOf(last)
		if anchor == nil {
			return nil, fmt.Errorf("issuing certificate %s does not lead to a trust anchor: its issuer %s is none of the %d given", last.Subject, last.Issuer,
				len(anchors))
		}
		path = append(path, anchor)
	}
	for i, certificate := range path {
		if err := issues(certificate, path, i, now); err != nil {
			return nil, fmt.Errorf("issuing path: %w", err)
		}
	}
	return path, nil
}

func issues(certificate *x509.Certificate, path []*x509.Certificate, i int, now time.Time) error {
	// positions count from the leaf that is not here yet
	position := i + 2
	if err := checkIssuer(position, certificate, i); err != nil {
		return err
	}
	if !basicConstraintsCritical(certificate) {
		return broken(position, certificate, "RFC 5280 §4.2.1.9", "its basic constraints are not critical")
	}
	if now.Before(certificate.NotBefore) || now.After(certificate.NotAfter) {
		return broken(position, certificate, "RFC 5280 §6.1.3 (a)(2)", "it is valid from %s to %s; the clock says %s", stamp(certificate.NotBefore),
			stamp(certificate.NotAfter), stamp(now))
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

// Window returns the time in which every certificate of an issuing path is valid, and the one that ends first.
func Window(path []*x509.Certificate) (notBefore, notAfter time.Time, ends *x509.Certificate, err error) {
	if len(path) == 0 {
		return time.Time{}, time.Time{}, nil, errors.New("an issuing path is not empty")
	}
	ends = path[0]
	notBefore = ends.NotBefore
	for _, certificate := range path[1:] {
		if certificate.NotBefore.After(notBefore) {
			notBefore = certificate.NotBefore
		}
		if certificate.NotAfter.Before(ends.NotAfter) {
			ends = certificate
		}
	}
	return notBefore, ends.NotAfter, ends, nil
}
