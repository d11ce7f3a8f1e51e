package cfssl

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/chancery-ca/chancery/ca/bundle"
	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/signer"
)

// issuers knows what stands above a leaf: as configured, or as the server said and the pinned roots confirm.
type issuers struct {
	configured []*x509.Certificate // with the anchor; nil if the server is asked
	ask        func(ctx context.Context) ([]*x509.Certificate, error)
	roots      *bundle.Bundle
	now        func() time.Time

	known atomic.Pointer[[]*x509.Certificate]
}

// get returns the path from the issuing certificate to the anchor. It asks the server if that is not known, or no longer valid.
func (i *issuers) get(ctx context.Context) ([]*x509.Certificate, error) {
	if i.configured != nil {
		return i.configured, nil
	}
	if known := i.known.Load(); known != nil && validAt(*known, i.now()) == nil {
		return *known, nil
	}
	return i.learn(ctx, i.now())
}

// learn asks the server, and remembers only what leads to a pinned root.
func (i *issuers) learn(ctx context.Context, now time.Time) ([]*x509.Certificate, error) {
	told, err := i.ask(ctx)
	if err != nil {
		return nil, err
	}
	path, err := chain.IssuerPath(told, i.roots.Anchors(), now)
	if err != nil {
		return nil, fmt.Errorf("%w: the issuing certificate that the CFSSL server tells (info) does not lead to a pinned root: %w; "+
			"if certificates stand between them, configure all of them (chain)", signer.ErrWrong, err)
	}
	i.known.Store(&path)
	return path, nil
}

// of returns the path above a leaf. If the leaf is not of the issuer that is known, the server may have a new one, and is asked once more. What is
// returned fits or not: the checker finds out.
func (i *issuers) of(ctx context.Context, leaf *x509.Certificate) ([]*x509.Certificate, error) {
	path, err := i.get(ctx)
	if err != nil || i.configured != nil || fits(path, leaf) {
		return path, err
	}
	return i.learn(ctx, i.now())
}

// fits tells whether a leaf is signed by the first certificate of a path and ends with it. A renewed issuer has name and key of the old one.
func fits(path []*x509.Certificate, leaf *x509.Certificate) bool {
	return leaf.CheckSignatureFrom(path[0]) == nil && validAt(path, leaf.NotAfter) == nil
}

// probe asks the server and holds its issuing certificate against the configured one, if there is one, and against the clock.
func (i *issuers) probe(ctx context.Context, now time.Time) error {
	if i.configured == nil {
		_, err := i.learn(ctx, now)
		return err
	}
	told, err := i.ask(ctx)
	if err != nil {
		return err
	}
	if !told[0].Equal(i.configured[0]) {
		return fmt.Errorf("the CFSSL server signs with %s, serial %x, which is not the configured issuing certificate; replace that (chain) and reload",
			short(told[0].Subject.String()), told[0].SerialNumber)
	}
	return validAt(i.configured, now)
}

func validAt(path []*x509.Certificate, now time.Time) error {
	for _, issuer := range path {
		if now.Before(issuer.NotBefore) || now.After(issuer.NotAfter) {
			return fmt.Errorf("issuer %s is valid from %s to %s and the clock says %s", short(issuer.Subject.String()), stamp(issuer.NotBefore), stamp(issuer.NotAfter),
				stamp(now))
		}
	}
	return nil
}

func short(text string) string {
	if len(text) > maxSentence {
		return text[:maxSentence] + "…"
	}
	return text
}

// info asks the server for the issuing certificate of a label.
func (s *Signer) info(ctx context.Context, label string) ([]*x509.Certificate, error) {
	body, err := json.Marshal(infoRequest{Label: label})
	if err != nil {
		return nil, fmt.Errorf("writing the question: %w", err)
	}
	result, err := s.call(ctx, "info", body)
	if err != nil {
		return nil, err
	}
	told, err := result.certificates()
	if err != nil {
		return nil, fmt.Errorf("%w: %s: info: %w", signer.ErrWrong, s.shown, err)
	}
	return told, nil
}
