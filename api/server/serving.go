package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/chancery-ca/chancery/ca"
	"github.com/chancery-ca/chancery/ca/identity"
)

// ServingConfig is what a Serving works with.
type ServingConfig struct {
	Authority *ca.Authority
	Principal *identity.Principal
	Profile   string
	// Subject returns the names and the lifetime that are configured at that moment.
	Subject    func() (identity.Names, time.Duration)
	Logger     *slog.Logger
	Registerer prometheus.Registerer
	Now        func() time.Time
}

// Serving is the server's own certificate: issued by its own authority, recorded like any other, kept in memory and renewed before it ends.
type Serving struct {
	config   ServingConfig
	current  atomic.Pointer[served]
	renewing chan struct{} // holds the one renewal at a time, so that the last to finish is the last that looked at Subject
	due      atomic.Bool   // the last renewal failed
	notAfter prometheus.Gauge
	failures prometheus.Counter
}

type served struct {
	certificate *tls.Certificate
	renewAt     time.Time
}

// NewServing returns a Serving without a certificate: call Renew once before the server listens.
func NewServing(config ServingConfig) *Serving {
	s := &Serving{
		config:   config,
		renewing: make(chan struct{}, 1),
		notAfter: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "chancery_serving_certificate_not_after_seconds", Help: "Unix time at which the server's own certificate ends.",
		}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "chancery_serving_certificate_renewal_failures_total", Help: "Failed renewals of the server's own certificate.",
		}),
	}
	config.Registerer.MustRegister(s.notAfter, s.failures)
	return s
}

// Certificate returns the current certificate; it fits tls.Config.GetCertificate.
func (s *Serving) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	current := s.current.Load()
	if current == nil {
		return nil, errors.New("the server has no certificate yet")
	}
	return current.certificate, nil
}

// The times of renewals. When the first one of a certificate fails, at least a third of its life is left.
const (
	renewTimeout = 30 * time.Second
	// renewalTick is how often Run looks whether a renewal is due, and how long a failed one waits.
	renewalTick = 30 * time.Second
)

// Renew issues a certificate for the subject that is configured now, with a new key, and serves it from the next connection on. On an error the
// old one stays, and Run tries again.
func (s *Serving) Renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	select {
	case s.renewing <- struct{}{}:
		defer func() { <-s.renewing }()
	case <-ctx.Done():
		return fmt.Errorf("waiting for another renewal of the serving certificate: %w", ctx.Err())
	}
	err := s.renew(ctx)
	s.due.Store(err != nil)
	if err != nil {
		s.failures.Inc()
	}
	return err
}

func (s *Serving) renew(ctx context.Context) error {
	names, lifetime := s.config.Subject()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making a key for the serving certificate: %w", err)
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		return fmt.Errorf("making a request for the serving certificate: %w", err)
	}
	issuance, err := s.config.Authority.Issue(ctx, ca.Order{
		Principal: s.config.Principal, Door: ca.DoorServer, Remote: "local", CSR: request, Profile: s.config.Profile, Names: names, Lifetime: lifetime,
	})
	if err != nil {
		return fmt.Errorf("issuing the serving certificate: %w", err)
	}
	s.current.Store(&served{
		certificate: &tls.Certificate{Certificate: issuance.Chain.DER(), PrivateKey: key, Leaf: issuance.Chain.Leaf()},
		renewAt:     issuance.RenewAt,
	})
	s.notAfter.Set(float64(issuance.NotAfter.Unix()))
	return nil
}

// Run renews until ctx ends.
func (s *Serving) Run(ctx context.Context) error {
	// a look every so often instead of one long sleep: so a clock that jumps or a machine that was suspended is noticed
	tick := time.NewTicker(renewalTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		current := s.current.Load()
		if current != nil && !s.due.Load() && s.config.Now().Before(current.renewAt) {
			continue
		}
		if err := s.Renew(ctx); err != nil && ctx.Err() == nil {
			var notAfter time.Time
			if current != nil {
				notAfter = current.certificate.Leaf.NotAfter
			}
			s.config.Logger.ErrorContext(ctx, "serving certificate not renewed; the old one stays", "error", err, "not_after", notAfter)
		}
	}
}
