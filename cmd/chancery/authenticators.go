package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/chancery-ca/chancery/ca/identity"
	"github.com/chancery-ca/chancery/ca/ledger"
	"github.com/chancery-ca/chancery/internal/config"
	"github.com/chancery-ca/chancery/internal/telemetry"
	"github.com/chancery-ca/chancery/tokenreview"
)

// doors are the authenticators of the two gRPC services, and the checks that say how they are.
type doors struct {
	chancery, istio identity.Authenticator
	checks          []telemetry.Check
	// tasks run for as long as the server does.
	tasks []func(context.Context) error
}

// authenticators are the kinds of credentials, in the order in which they are asked. Each returns no entry if it is switched off.
var authenticators = []func(*authentication) (*tokenreview.Entry, error){
	joinTokens,
	serviceAccountTokens,
}

// authentication is what the authenticators of one door are made from.
type authentication struct {
	cfg        *config.Config
	door       string
	audiences  []string
	tokens     ledger.Ledger
	reviewer   tokenreview.Reviewer
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
	reviewer, err := newReviewer(cfg)
	if err != nil {
		return nil, err
	}
	d := &doors{}
	build := func(door string, audiences []string) (identity.Authenticator, error) {
		with := &authentication{
			cfg: cfg, door: door, audiences: audiences, tokens: tokens, reviewer: reviewer, metrics: metrics, logger: logger,
			addToReady: func(check telemetry.Check) { d.checks = append(d.checks, check) },
			addTask:    func(task func(context.Context) error) { d.tasks = append(d.tasks, task) },
		}
		var entries []tokenreview.Entry
		for _, build := range authenticators {
			entry, err := build(with)
			if err != nil {
				return nil, err
			}
			if entry != nil {
				entries = append(entries, *entry)
			}
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

func joinTokens(with *authentication) (*tokenreview.Entry, error) {
	if !with.cfg.Authentication.JoinTokens.Enabled {
		return nil, nil //nolint:nilnil // switched off
	}
	join, err := tokenreview.NewJoin(with.tokens, with.cfg.TrustDomain, time.Now)
	if err != nil {
		return nil, err
	}
	return &tokenreview.Entry{Accepts: "a join token", Authenticator: join}, nil
}

func serviceAccountTokens(with *authentication) (*tokenreview.Entry, error) {
	settings := with.cfg.Authentication.Kubernetes
	if !settings.Enabled {
		return nil, nil //nolint:nilnil // switched off
	}
	online, err := tokenreview.NewOnline(with.reviewer, tokenreview.Config{
		Cluster:         settings.Cluster,
		ClusterIDs:      settings.ClusterIDs,
		TrustDomain:     with.cfg.TrustDomain,
		Audiences:       with.audiences,
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
	with.addToReady(telemetry.Check{Name: "kubernetes-" + with.door, Severity: telemetry.Degraded, Run: reachable(online)})
	with.addTask(func(ctx context.Context) error { return keepProbing(ctx, online) })
	return &tokenreview.Entry{Accepts: "a Kubernetes service-account token for " + fmt.Sprint(with.audiences), Authenticator: online}, nil
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

// newReviewer returns the client for token reviews, or nil without a cluster.
func newReviewer(cfg *config.Config) (tokenreview.Reviewer, error) {
	settings := cfg.Authentication.Kubernetes
	if !settings.Enabled {
		return nil, nil //nolint:nilnil // switched off
	}
	var access *rest.Config
	var err error
	if settings.Kubeconfig == "" {
		access, err = rest.InClusterConfig()
	} else {
		access, err = clientcmd.BuildConfigFromFlags("", settings.Kubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("authentication.kubernetes.kubeconfig: %w; name a kubeconfig file, or run in a cluster", err)
	}
	return tokenreview.NewReviewer(access, tokenreview.ReviewerConfig{
		QPS: float32(settings.QPS), Burst: settings.Burst, Timeout: settings.Timeout,
	})
}
