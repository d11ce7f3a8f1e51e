// Package bundle holds a trust domain's trust anchors with the sequence number that tells a newer set from an older one.
//
// A Bundle is immutable. The package never merges trust domains and never reads files.
package bundle

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/chancery-ca/chancery/ca/pem"
)

// Bundle is a set of trust anchors of one trust domain.
type Bundle struct {
	trustDomain spiffeid.TrustDomain
	sequence    uint64
	anchors     []*x509.Certificate
	hash        [sha256.Size]byte
	pem         []byte
}

// New returns a Bundle with sequence 0 (not yet numbered). It refuses an empty set, duplicates and certificates that are not CA
// certificates. Order is kept: an active anchor comes first.
func New(trustDomain spiffeid.TrustDomain, anchors []*x509.Certificate) (*Bundle, error) {
	if trustDomain.IsZero() {
		return nil, errors.New("a bundle needs a trust domain")
	}
	if len(anchors) == 0 {
		return nil, errors.New("a bundle needs at least one trust anchor")
	}
	b := &Bundle{trustDomain: trustDomain, anchors: slices.Clone(anchors)}
	digest := sha256.New()
	for i, anchor := range anchors {
		if anchor == nil {
			return nil, fmt.Errorf("trust anchor %d is nil", i+1)
		}
		if !anchor.BasicConstraintsValid || !anchor.IsCA {
			return nil, fmt.Errorf("trust anchor %d (%s) is not a CA certificate (RFC 5280 §4.2.1.9)", i+1, anchor.Subject)
		}
		for _, other := range anchors[:i] {
			if other.Equal(anchor) {
				return nil, fmt.Errorf("trust anchor %d (%s) stands twice in the bundle", i+1, anchor.Subject)
			}
		}
		sum := sha256.Sum256(anchor.Raw)
		digest.Write(sum[:])
		b.pem = pem.Append(b.pem, "CERTIFICATE", anchor.Raw)
	}
	digest.Sum(b.hash[:0])
	return b, nil
}

// WithSequence returns a copy with the given sequence number.
func (b *Bundle) WithSequence(sequence uint64) *Bundle {
	c := *b
	c.sequence = sequence
	return &c
}

// TrustDomain returns the trust domain whose anchors these are.
func (b *Bundle) TrustDomain() spiffeid.TrustDomain { return b.trustDomain }

// Sequence returns the number of this set; a higher number is newer.
func (b *Bundle) Sequence() uint64 { return b.sequence }

// Anchors returns the trust anchors. The slice is the caller's, the certificates are shared.
func (b *Bundle) Anchors() []*x509.Certificate { return slices.Clone(b.anchors) }

// Hash identifies the content (the anchors and their order) whatever the sequence.
func (b *Bundle) Hash() []byte { return bytes.Clone(b.hash[:]) }

// PEM returns the anchors as canonical PEM (RFC 7468 §5). The caller must not change it.
func (b *Bundle) PEM() []byte { return b.pem }

// Contains tells whether a certificate is one of the anchors.
func (b *Bundle) Contains(certificate *x509.Certificate) bool {
	return slices.ContainsFunc(b.anchors, certificate.Equal)
}
