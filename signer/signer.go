// Package signer defines what a signing backend is: whatever holds the issuing key, in this process or elsewhere.
//
// Backends are in its folders, one each; signertest holds the contract that each of them passes. The package never decides what may be
// signed, and never trusts what comes back: the authority checks every chain.
package signer

import (
	"context"
	"crypto/x509"
	"errors"
	"time"

	"github.com/chancery-ca/chancery/ca/bundle"
	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/csr"
)

// Order is what a backend is asked to sign. It was authorised and linted, and its serial is reserved. It is read only, down to the contents of its
// slices.
type Order struct {
	// Request is the parsed and verified PKCS #10 request.
	Request *csr.Request
	// Leaf is the content that was approved. A backend that cannot sign exactly this returns a Permanent error or a certificate that says
	// less (a shorter life), never one that says more.
	Leaf chain.Leaf
	// Profile is the name of the profile, for backends that map it to one of their own.
	Profile string
}

// Signer is a signing backend.
type Signer interface {
	// Sign returns the chain for an order, leaf first, without the trust anchor. The caller reads the certificates' bytes again, strictly, and
	// trusts nothing in them. It returns within ctx's deadline, releases everything when ctx ends, and is safe for concurrent use. It is not
	// idempotent: a caller never repeats a call whose outcome it does not know. Errors: ErrPermanent when the order can never be
	// signed; ErrWrong when the authority answered with something else than what was ordered; every other error means that the backend is
	// unavailable and that nothing is known to have been issued. No error holds a secret.
	Sign(ctx context.Context, order Order) (chain.Chain, error)
	// Roots returns the pinned anchors that chains from this backend end at, always the same.
	Roots() *bundle.Bundle
}

// ErrPermanent marks an order that this backend will never sign; wrap it with the reason.
var ErrPermanent = errors.New("the signing backend refused the order")

// ErrWrong marks an answer that is not what was ordered, found by a backend that can say more of it than the authority's checker: how the operator
// mends it, for example. A certificate may exist that nobody gets. It is not the requester's fault.
var ErrWrong = errors.New("the signing backend answered with something that was not ordered")

// Choices are the parts of a certificate that an authority elsewhere chooses itself, whatever it is asked, and that its operator has allowed it to.
// The zero value is none.
type Choices struct {
	// Serial means that the authority draws the serial number: the reserved one stays the ledger's name for the issuance.
	Serial bool
	// Earlier is how much earlier than ordered a certificate may begin, Later how much later it may end. Neither is negative.
	Earlier, Later time.Duration
}

// Accept returns what an answer to an order for leaf is held against. Serial is nil if the authority draws it.
func (c Choices) Accept(leaf chain.Leaf) chain.Leaf {
	if c.Serial {
		leaf.Serial = nil
	}
	leaf.NotBefore, leaf.NotAfter = leaf.NotBefore.Add(-max(c.Earlier, 0)), leaf.NotAfter.Add(max(c.Later, 0))
	return leaf
}

// Chooser is an optional capability: a backend whose authority makes choices. Whoever holds answers against orders applies them first; what policy
// bounds, such as the longest lifetime, stays bounded.
type Chooser interface {
	// Choices returns what the authority may choose, always the same.
	Choices() Choices
}

// Issuers is an optional capability: a backend that knows before it signs which certificates will stand above the leaf, so that a lifetime
// can be fitted into theirs.
type Issuers interface {
	// Issuers returns at least one certificate, the leaf's issuer first and the anchor last, always the same. The slice is the caller's.
	Issuers() []*x509.Certificate
}

// Prober is an optional capability: a backend that can tell, without issuing anything, whether it would be able to sign.
type Prober interface {
	// Probe returns nil if a signature can be made now.
	Probe(ctx context.Context, now time.Time) error
}
