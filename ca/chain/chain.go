// Package chain turns untrusted bytes into certificates and certificates into checked chains, by RFC 5280 and RFC 7468.
//
// It holds the strict parser, what an approved leaf says (Leaf), the encoder that writes it, and the Checker that every chain has to
// pass before it leaves, whichever backend signed it. The checker shares nothing with the encoder: it reads the bytes that would leave.
// The package never reads files, never uses a private key of its own and never decides what may be issued.
package chain

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"

	"github.com/chancery-ca/chancery/ca/pem"
)

// maxCertificates bounds a chain without its trust anchor: a leaf and up to five intermediates.
const maxCertificates = 6

// Chain is a leaf and its intermediates, leaf first; the trust anchor is not part of it. It is immutable and not empty unless it is the
// zero Chain. A Chain is only as good as who made it: Checker.Check says whether it may leave.
type Chain struct {
	certificates []*x509.Certificate
}

// New returns the chain of the given certificates, leaf first: one to six, none of them nil.
func New(certificates ...*x509.Certificate) (Chain, error) {
	if len(certificates) == 0 {
		return Chain{}, errors.New("a chain needs at least a leaf")
	}
	if len(certificates) > maxCertificates {
		return Chain{}, fmt.Errorf("the chain has %d certificates; at most %d are accepted", len(certificates), maxCertificates)
	}
	if slices.Contains(certificates, nil) {
		return Chain{}, errors.New("a certificate of the chain is nil")
	}
	return Chain{certificates: slices.Clone(certificates)}, nil
}

// Leaf returns the first certificate. The zero Chain has none.
func (c Chain) Leaf() *x509.Certificate { return c.certificates[0] }

// Intermediates returns every certificate but the first. The caller must not change the slice.
func (c Chain) Intermediates() []*x509.Certificate { return c.certificates[1:] }

// DER returns the certificates' encodings, leaf first.
func (c Chain) DER() [][]byte {
	out := make([][]byte, len(c.certificates))
	for i, certificate := range c.certificates {
		out[i] = certificate.Raw
	}
	return out
}

// PEM returns the chain as canonical PEM (RFC 7468 §5), leaf first.
func (c Chain) PEM() []byte {
	var out []byte
	for _, certificate := range c.certificates {
		out = pem.Append(out, "CERTIFICATE", certificate.Raw)
	}
	return out
}
