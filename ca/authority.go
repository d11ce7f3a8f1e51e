// Package ca is the authority: it issues a certificate for an authenticated principal, records it, and knows the trust bundle.
//
// Issue is the whole pipeline, on one screen, for every door: parse, authorise, build from the profile, lint, reserve in the ledger, sign, check, commit.
// The package never authenticates, never speaks a wire protocol and holds no key: backends do.
package ca

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/chancery-ca/chancery/ca/bundle"
	"github.com/chancery-ca/chancery/ca/ledger"
	"github.com/chancery-ca/chancery/ca/lint"
	"github.com/chancery-ca/chancery/signer"
)

// Dependencies are what an Authority works with for as long as it lives.
type Dependencies struct {
	Ledger     ledger.Ledger
	Logger     *slog.Logger
	Registerer prometheus.Registerer
	Now        func() time.Time
	// Random is the source of serial numbers; nil means crypto/rand.
	Random io.Reader
}

// Authority issues certificates. It is safe for concurrent use.
type Authority struct {
	ledger  ledger.Ledger
	linter  *lint.Linter
	logger  *slog.Logger
	metrics *metrics
	now     func() time.Time
	random  io.Reader

	current atomic.Pointer[snapshot]

	mu sync.Mutex // serialises Replace
}

// New returns an Authority that issues by config.
func New(ctx context.Context, with Dependencies, config Config) (*Authority, error) {
	linter, err := lint.New()
	if err != nil {
		return nil, err
	}
	a := &Authority{ledger: with.Ledger, linter: linter, logger: with.Logger, metrics: newMetrics(with.Registerer), now: with.Now, random: with.Random}
	if a.random == nil {
		a.random = rand.Reader
	}
	if err := a.Replace(ctx, config); err != nil {
		return nil, err
	}
	return a, nil
}

// Replace lets the authority issue by another config from now on. Requests under way end by the one they began with. On an error nothing changes.
func (a *Authority) Replace(ctx context.Context, config Config) error {
	if config.Signer == nil {
		return errors.New("an authority needs a signer")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	roots := config.Signer.Roots()
	sequence, err := a.ledger.BundleSequence(ctx, roots.Hash())
	if err != nil {
		return fmt.Errorf("numbering the trust bundle: %w", err)
	}
	next, err := newSnapshot(config, roots.WithSequence(sequence))
	if err != nil {
		return err
	}
	a.metrics.snapshot(next)
	if old := a.current.Swap(next); old != nil {
		close(old.replaced)
	}
	return nil
}

// Bundle returns the current trust bundle, and a channel that is closed when it may have changed.
func (a *Authority) Bundle() (*bundle.Bundle, <-chan struct{}) {
	s := a.current.Load()
	return s.bundle, s.replaced
}

// Probe returns nil if the backend could sign now, or if it cannot tell.
func (a *Authority) Probe(ctx context.Context) error {
	if prober, ok := a.current.Load().signer.(signer.Prober); ok {
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
