package main

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/chancery-ca/chancery/ca"
	"github.com/chancery-ca/chancery/ca/identity"
	"github.com/chancery-ca/chancery/ca/ledger"
	"github.com/chancery-ca/chancery/internal/config"
	"github.com/chancery-ca/chancery/internal/telemetry"
	"github.com/chancery-ca/chancery/tokenreview"
)

// doors are the authenticators of the two gRPC services, and the checks that say how they are.
type doors struct {
	chancery, istio identity.Authenticator
	clusters        clusters
	authority       *ca.Authority // set once it is made, before anybody calls
	checks          []telemetry.Check
	// tasks run for as long as the server does.
	tasks []func(context.Context) error
}

// authenticators are the kinds of credentials, in the order in which they are asked. Each returns no entry if it is switched off.
var authenticators = []func(*authentication) ([]tokenreview.Entry, error){
	joinTokens,
	idTokens,
	serviceAccountTokens,
	ownCertificates,
}

// authentication is what the authenticators of one door are made from.
type authentication struct {
	cfg        *config.Config
	door       string
	audiences  []string // that service-account tokens for this door have
	tokens     ledger.Ledger
	clusters   clusters
	issuers    []issuer
	authority  func() *ca.Authority
	metrics    *tokenreview.Metrics
	logger     *slog.Logger
	addToReady func(telemetry.Check)
	addTask    func(func(context.Context) error)
}

func newDoors(cfg *config.Config, tokens ledger.Ledger, registerer prometheus.Registerer, logger *slog.Logger) (*doors, error) {
	metrics, err := tokenreview.NewMetrics(registerer)
	if err != nil {
		return nil, err
	}
	keyMetrics, err := tokenreview.NewKeyMetrics(registerer)
	if err != nil {
		return nil, err
	}
	d := &doors{}
	if d.clusters, err = newClusters(cfg, keyMetrics, logger); err != nil {
		return nil, err
	}
	issuers, err := newIssuers(cfg, keyMetrics, logger)
	if err != nil {
		return nil, err
	}
	for _, c := range d.clusters {
		if c.view != nil {
			if err := registerer.Register(c.view); err != nil {
				return nil, err
			}
		}
	}
	d.follow(issuers)
	build := func(door string, audiences []string) (identity.Authenticator, error) {
		with := &authentication{
			cfg: cfg, door: door, audiences: audiences, tokens: tokens, clusters: d.clusters, issuers: issuers, metrics: metrics, logger: logger,
			authority:  func() *ca.Authority { return d.authority },
			addToReady: func(check telemetry.Check) { d.checks = append(d.checks, check) },
			addTask:    func(task func(context.Context) error) { d.tasks = append(d.tasks, task) },
		}
		var entries []tokenreview.Entry
		for _, build := range authenticators {
			built, err := build(with)
			if err != nil {
				return nil, err
			}
			entries = append(entries, built...)
		}
		return tokenreview.NewChain(entries...)
	}
	if d.chancery, err = build("chancery", cfg.Authentication.Kubernetes.Audiences); err != nil {
		return nil, err
	}
	if cfg.Istio.Enabled {
		if d.istio, err = build("istio", cfg.Istio.Audiences); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// follow has the issuers' keys and the views of the clusters kept up to date, and their state shown.
func (d *doors) follow(issuers []issuer) {
	add := func(name string, source interface {
		Run(ctx context.Context) error
		Health() (ok bool, since time.Time, reason string)
	},
	) {
		d.tasks = append(d.tasks, source.Run)
		d.checks = append(d.checks, telemetry.Check{Name: name, Severity: telemetry.Degraded, Run: func(context.Context) error {
			if ok, since, reason := source.Health(); !ok {
				return fmt.Errorf("since %s: %s", since.UTC().Format(time.RFC3339), reason)
			}
			return nil
		}})
	}
	for _, c := range d.clusters {
		if c.keys != nil {
			add("kubernetes-"+c.settings.Name+"-keys", c.keys)
		}
		if c.view != nil {
			add("kubernetes-"+c.settings.Name+"-view", c.view)
		}
	}
	for _, i := range issuers {
		add("oidc-"+i.settings.Name+"-keys", i.keys)
	}
}

func joinTokens(with *authentication) ([]tokenreview.Entry, error) {
	if !with.cfg.Authentication.JoinTokens.Enabled {
		return nil, nil
	}
	join, err := tokenreview.NewJoin(with.tokens, with.cfg.TrustDomain, time.Now)
	if err != nil {
		return nil, err
	}
	return []tokenreview.Entry{{Accepts: "a join token", Authenticator: join}}, nil
}

// ownCertificates accepts certificates of this authority from callers who send no token.
func ownCertificates(with *authentication) ([]tokenreview.Entry, error) {
	settings := with.cfg.Authentication.Certificates
	if !settings.Enabled {
		return nil, nil
	}
	origins := make([]identity.Method, 0, len(settings.Origins))
	for _, origin := range settings.Origins {
		origins = append(origins, identity.Method(origin))
	}
	peer, err := tokenreview.NewPeer(with.tokens, tokenreview.PeerConfig{
		TrustDomain: with.cfg.TrustDomain, Origins: origins, Grace: settings.Grace,
		Authority: func() (anchors, issuers []*x509.Certificate) { return with.authority().Certificates() },
	})
	if err != nil {
		return nil, err
	}
	return []tokenreview.Entry{{Accepts: "in the TLS handshake a certificate of this authority", Authenticator: peer}}, nil
}

// serviceAccountTokens sends each token to its cluster.
func serviceAccountTokens(with *authentication) ([]tokenreview.Entry, error) {
	var entries []tokenreview.ClusterEntry
	for _, c := range with.clusters {
		audiences := with.audiences
		if len(c.settings.Audiences) > 0 {
			audiences = c.settings.Audiences
		}
		authenticator, err := c.authenticator(with, audiences)
		if err != nil {
			return nil, fmt.Errorf("cluster %s: %w", c.settings.Name, err)
		}
		entries = append(entries, tokenreview.ClusterEntry{
			Name: c.settings.Name, IDs: c.settings.ClusterIDs, Issuer: c.settings.Issuer, Authenticator: authenticator,
		})
	}
	if len(entries) == 0 {
		return nil, nil
	}
	all, err := tokenreview.NewClusters(entries[0], entries[1:]...)
	if err != nil {
		return nil, err
	}
	return []tokenreview.Entry{{Accepts: "a Kubernetes service-account token for " + fmt.Sprint(with.audiences), Authenticator: all}}, nil
}

// authenticator returns what decides about the cluster's tokens at one door.
func (c *cluster) authenticator(with *authentication, audiences []string) (identity.Authenticator, error) {
	settings := with.cfg.Authentication.Kubernetes
	var online *tokenreview.Online
	if c.reviewer != nil {
		var err error
		online, err = tokenreview.NewOnline(c.reviewer, tokenreview.Config{
			Cluster:         c.settings.Name,
			ClusterIDs:      c.settings.ClusterIDs,
			TrustDomain:     with.cfg.TrustDomain,
			Identity:        c.identity,
			Issuer:          c.settings.Issuer,
			Audiences:       audiences,
			AcceptNodeBound: settings.NodeBoundTokens,
			Timeout:         settings.Timeout,
			MaxInFlight:     settings.MaxInFlight,
			CacheSize:       settings.CacheSize,
			CacheTTL:        settings.CacheTTL,
			NegativeSize:    settings.NegativeCacheSize,
			NegativeTTL:     settings.NegativeCacheTTL,
		}, with.logger, with.metrics)
		if err != nil {
			return nil, err
		}
	}
	if c.settings.Mode == config.ModeReview {
		with.addToReady(telemetry.Check{Name: "kubernetes-" + c.settings.Name + "-" + with.door, Severity: telemetry.Degraded, Run: reachable(online)})
		with.addTask(func(ctx context.Context) error { return keepProbing(ctx, online) })
		return online, nil
	}
	offline := tokenreview.OfflineConfig{
		Cluster:          c.settings.Name,
		Identity:         c.identity,
		Issuer:           c.settings.Issuer,
		Audiences:        audiences,
		Algorithms:       settings.Algorithms,
		AcceptNodeBound:  settings.NodeBoundTokens,
		EnforceWarnAfter: settings.EnforceWarnAfter,
	}
	if c.settings.Mode == config.ModeOffline {
		return tokenreview.NewOffline(offline, c.keys, nil, nil, with.logger)
	}
	// the cluster is asked only about what its view cannot answer, so it is not probed either
	return tokenreview.NewOffline(offline, c.keys, c.view, online, with.logger)
}

// How often a cluster is asked without a caller's need: one that answers, and one that does not.
const (
	probeWell = 15 * time.Second
	probeIll  = 2 * time.Second
)

// keepProbing asks the cluster now and then until ctx ends. Without callers only a probe finds out that the cluster is gone, or back; readiness
// then reads what is known and never waits for a cluster that hangs.
func keepProbing(ctx context.Context, online *tokenreview.Online) error {
	for {
		_ = online.Probe(ctx) // what came of it is in Health, and in its log
		wait := probeWell
		if ok, _, _ := online.Health(); !ok {
			wait = probeIll
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// reachable returns a check of whether token reviews could be made the last time.
func reachable(online *tokenreview.Online) func(context.Context) error {
	return func(context.Context) error {
		if ok, since, reason := online.Health(); !ok {
			return fmt.Errorf("token reviews fail since %s: %s", since.UTC().Format(time.RFC3339), reason)
		}
		return nil
	}
}
