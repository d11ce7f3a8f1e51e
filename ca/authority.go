// Package ca is the authority: it issues a certificate for an authenticated principal, records it, and knows the trust bundle.
//
// Issue is the whole pipeline, on one screen, for every door: parse, authorise, build from the profile, lint, reserve in the ledger, sign, check, commit.
// The package never authenticates, never speaks a wire protocol and holds no key: backends do.
package ca

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/chancery-ca/chancery/ca/bundle"
	"github.com/chancery-ca/chancery/ca/ledger"
	"github.com/chancery-ca/chancery/ca/lint"
	"github.com/chancery-ca/chancery/signer"
)

// Dependencies are what an Authority works with for as long as it lives. All but Audit, RefusalRecords and Random are needed.
type Dependencies struct {
	Ledger ledger.Ledger
	// Logger gets what is not an audit record.
	Logger *slog.Logger
	// Audit gets the audit records, one a decision: an issuance or a refusal at level info, a failure of ours at level error; and the summaries, at
	// level warn. It should drop none, whatever level the Logger has. Nil means the Logger.
	Audit *slog.Logger
	// RefusalRecords bounds the audit records of refusals whose caller is not known. What is above is counted and summed up in one record a second, with
	// the message "audit summary". Refusals of callers who are known always have a record.
	RefusalRecords RecordLimit
	Registerer     prometheus.Registerer
	Now            func() time.Time
	// Random is the source of serial numbers; nil means crypto/rand. It has to be safe for concurrent use.
	Random io.Reader
}

// Authority issues certificates. It is safe for concurrent use.
type Authority struct {
	ledger   ledger.Ledger
	linter   *lint.Linter
	logger   *slog.Logger
	audit    *slog.Logger
	refusals *refusals
	metrics  *metrics
	now      func() time.Time
	random   io.Reader
	pacer    *Pacer

	current atomic.Pointer[snapshot]

	mu sync.Mutex // serialises Replace
}

// New returns an Authority that issues by config. It numbers the trust bundle in the ledger.
func New(ctx context.Context, with Dependencies, config Config) (*Authority, error) {
	if with.Ledger == nil || with.Logger == nil || with.Registerer == nil || with.Now == nil {
		return nil, errors.New("an authority needs a ledger, a logger, a metrics registry and a clock")
	}
	linter, err := lint.New()
	if err != nil {
		return nil, err
	}
	a := &Authority{
		ledger: with.Ledger, linter: linter, logger: with.Logger, audit: with.Audit, metrics: newMetrics(), now: with.Now, random: with.Random, pacer: NewPacer(nil),
	}
	if a.audit == nil {
		a.audit = a.logger
	}
	a.refusals = newRefusals(a.audit, a.now, with.RefusalRecords)
	if a.random == nil {
		a.random = rand.Reader
	}
	if err := a.Replace(ctx, config); err != nil {
		return nil, err
	}
	if err := a.metrics.register(with.Registerer); err != nil {
		return nil, fmt.Errorf("registering the authority's metrics: %w", err)
	}
	return a, nil
}

// Replace lets the authority issue by another config from now on. Requests under way end by the one they began with. On an error nothing
// changes, in the ledger neither.
func (a *Authority) Replace(ctx context.Context, config Config) error {
	next, err := newSnapshot(config)
	if err != nil {
		return err
	}
	if err := next.usable(a.now()); err != nil {
		return err
	}
	if issuer := next.issuer(); issuer != nil {
		if err := a.linter.Prepare(issuer, a.now()); err != nil {
			return fmt.Errorf("certificates under issuer %s: %w", issuer.Subject, err)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	sequence, err := a.ledger.BundleSequence(ctx, next.bundle.Hash())
	if err != nil {
		return fmt.Errorf("numbering the trust bundle: %w", err)
	}
	next.bundle = next.bundle.WithSequence(sequence)
	a.metrics.snapshot(next)
	old := a.current.Swap(next)
	a.recordAnchors(ctx, old, next)
	if old != nil {
		close(old.replaced)
	}
	return nil
}

// recordAnchors lets no change of the trust anchors pass in silence: whoever loses one can verify nothing that was issued under it.
func (a *Authority) recordAnchors(ctx context.Context, old, next *snapshot) {
	if old == nil {
		a.logger.InfoContext(ctx, "trust anchors in use", "sha256", fingerprints(next.bundle.Anchors()), "bundle_sequence", next.bundle.Sequence())
		return
	}
	without := func(anchors []*x509.Certificate, others *bundle.Bundle) []*x509.Certificate {
		return slices.DeleteFunc(anchors, others.Contains)
	}
	added, removed := without(next.bundle.Anchors(), old.bundle), without(old.bundle.Anchors(), next.bundle)
	if len(added)+len(removed) > 0 {
		a.logger.WarnContext(ctx, "trust anchors changed", "added_sha256", fingerprints(added), "removed_sha256", fingerprints(removed),
			"bundle_sequence", next.bundle.Sequence())
	}
}

func fingerprints(certificates []*x509.Certificate) []string {
	out := make([]string, 0, len(certificates))
	for _, certificate := range certificates {
		out = append(out, fingerprint(certificate.Raw))
	}
	return out
}

// Bundle returns the current trust bundle, and a channel that is closed when it may have changed.
func (a *Authority) Bundle() (*bundle.Bundle, <-chan struct{}) {
	s := a.current.Load()
	return s.bundle, s.replaced
}

// Certificates returns the trust anchors in use and the certificates between them and the leaves, as far as the backend says.
func (a *Authority) Certificates() (anchors, issuers []*x509.Certificate) {
	s := a.current.Load()
	return s.bundle.Anchors(), slices.Clone(s.issuers)
}

// Flush writes the summary of refusals that is pending, and returns once it is written. It is for the end, after the last decision.
func (a *Authority) Flush() { a.refusals.flush() }

// Probe returns nil if a certificate could be issued now, as far as the backend can tell.
func (a *Authority) Probe(ctx context.Context) error {
	s := a.current.Load()
	if err := s.usable(a.now()); err != nil {
		return err
	}
	if prober, ok := s.signer.(signer.Prober); ok {
		return prober.Probe(ctx, a.now())
	}
	return nil
}

// newSerial returns a random, positive number of at most 159 bits (RFC 5280 §4.1.2.2: at most 20 octets, sign bit included).
func (a *Authority) newSerial() (ledger.Serial, error) {
	var octets [20]byte
	if _, err := io.ReadFull(a.random, octets[:]); err != nil {
		return "", fmt.Errorf("drawing a serial number: %w", err)
	}
	octets[0] &= 0x7f
	return ledger.SerialFromInt(new(big.Int).SetBytes(octets[:]))
}
