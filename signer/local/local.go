// Package local is the signing backend whose key is in this process's reach: any crypto.Signer, with the certificates that stand above it.
//
// It signs what the order says, byte for byte, and decides nothing. Create makes a new root and issuing intermediate; reading and writing
// keys is signer/keystore's.
package local

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/chancery-ca/chancery/ca/bundle"
	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/signer"
)

// Config names what a Signer needs.
type Config struct {
	Key crypto.Signer
	// Chain is the issuing certificate and the intermediates above it, in order, with or without the root. It may be the self-signed root
	// alone.
	Chain []*x509.Certificate
	// Roots are the pinned anchors; the chain ends at one of them.
	Roots *bundle.Bundle
}

// Signer signs with a key of its own. It is immutable.
type Signer struct {
	key       crypto.Signer
	algorithm chain.Algorithm
	issuers   []*x509.Certificate // the issuing certificate first, the anchor last
	roots     *bundle.Bundle
}

// New checks that key and certificate belong together and that the key signs, that every certificate may issue, that the path ends at an anchor
// of the bundle, and that all of it is valid at now. Its errors are for the operator.
func New(config Config, now time.Time) (*Signer, error) {
	if config.Key == nil || len(config.Chain) == 0 || config.Chain[0] == nil || config.Roots == nil {
		return nil, errors.New("a local signer needs a key, an issuing certificate and trust anchors")
	}
	issuing := config.Chain[0]
	public, ok := issuing.PublicKey.(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(config.Key.Public()) {
		return nil, fmt.Errorf("the key is not the one of the issuing certificate %s", issuing.Subject)
	}
	algorithm, err := chain.AlgorithmFor(config.Key.Public())
	if err != nil {
		return nil, err
	}
	issuers, err := chain.IssuerPath(config.Chain, config.Roots.Anchors(), now)
	if err != nil {
		return nil, err
	}
	s := &Signer{key: config.Key, algorithm: algorithm, issuers: issuers, roots: config.Roots}
	if err := s.probeKey(); err != nil {
		return nil, fmt.Errorf("trying the key of issuing certificate %s: %w", issuing.Subject, err)
	}
	return s, nil
}

// Sign implements signer.Signer. What it made is read back, but neither its signature nor its strict encoding is checked here: the authority's
// checker does both, once. It looks at ctx before it uses the key and cannot interrupt a key that hangs.
func (s *Signer) Sign(ctx context.Context, order signer.Order) (chain.Chain, error) {
	if err := ctx.Err(); err != nil {
		return chain.Chain{}, err
	}
	tbs, err := order.Leaf.TBS(s.issuers[0], s.algorithm)
	if err != nil {
		return chain.Chain{}, fmt.Errorf("%w: %w", signer.ErrPermanent, err)
	}
	der, err := s.algorithm.Certificate(tbs, s.key, rand.Reader)
	if err != nil {
		return chain.Chain{}, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		// the content was linted: this is the key's fault, not the requester's
		return chain.Chain{}, fmt.Errorf("what was signed does not parse: %w", err)
	}
	certificates := make([]*x509.Certificate, 0, len(s.issuers)+1)
	certificates = append(certificates, leaf)
	return chain.New(append(certificates, s.issuers[:len(s.issuers)-1]...)...)
}

// Roots implements signer.Signer.
func (s *Signer) Roots() *bundle.Bundle { return s.roots }

// Issuers implements signer.Issuers.
func (s *Signer) Issuers() []*x509.Certificate { return slices.Clone(s.issuers) }

// Probe implements signer.Prober: it looks at the issuers' dates, signs a fixed text and verifies that.
func (s *Signer) Probe(ctx context.Context, now time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, issuer := range s.issuers {
		if now.Before(issuer.NotBefore) || now.After(issuer.NotAfter) {
			return fmt.Errorf("issuer %s is valid from %s to %s and the clock says %s", issuer.Subject, stamp(issuer.NotBefore), stamp(issuer.NotAfter),
				stamp(now))
		}
	}
	return s.probeKey()
}

// probeKey proves that the key signs. What it signs can never be taken for a certificate: it does not begin as a DER SEQUENCE.
func (s *Signer) probeKey() error {
	text := []byte("chancery: this signature proves that a key can sign")
	signature, err := s.algorithm.Sign(text, s.key, rand.Reader)
	if err != nil {
		return err
	}
	if err := s.algorithm.Verify(s.issuers[0], text, signature); err != nil {
		return fmt.Errorf("verifying what the key signed: %w", err)
	}
	return nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
