package main

import (
	"cmp"
	"fmt"
	"log/slog"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/chancery-ca/chancery/ca/authorize"
	"github.com/chancery-ca/chancery/ca/identity"
	"github.com/chancery-ca/chancery/internal/config"
	"github.com/chancery-ca/chancery/tokenreview"
)

// cluster is a cluster whose service-account tokens are accepted. Nothing in it is shared with another cluster.
type cluster struct {
	settings config.Cluster
	identity identity.Path
	reviewer tokenreview.Reviewer // nil in mode offline
	keys     *tokenreview.KeySet  // nil in mode tokenreview
	view     *tokenreview.View    // nil unless tokens or node proxies need it
}

// clusters are all of them; the first is the one that callers of whom nothing else is known belong to.
type clusters []*cluster

// clusterSettings returns the settings of each cluster, those of the first in the form of the others. Empty audiences mean those of the door.
func clusterSettings(cfg *config.Config) []config.Cluster {
	k := cfg.Authentication.Kubernetes
	if !k.Enabled {
		return nil
	}
	first := config.Cluster{
		Name: k.Cluster, Mode: k.Mode, Kubeconfig: k.Kubeconfig, Issuer: k.Issuer, JWKSURL: k.JWKSURL, JWKSFile: k.JWKSFile, CAFile: k.CAFile,
		ClusterIDs: k.ClusterIDs, NodeProxies: k.NodeProxies, SPIFFEID: k.SPIFFEID,
	}
	return append([]config.Cluster{first}, k.Clusters...)
}

// newClusters makes what the doors share. metrics may be nil, for a configuration that is only looked at.
func newClusters(cfg *config.Config, keyMetrics *tokenreview.KeyMetrics, logger *slog.Logger) (clusters, error) {
	var all clusters
	for i, settings := range clusterSettings(cfg) {
		c, err := newCluster(cfg, settings, keyMetrics, logger)
		if err != nil {
			path := "authentication.kubernetes"
			if i > 0 {
				path = fmt.Sprintf("authentication.kubernetes.clusters[%d]", i-1)
			}
			return nil, fmt.Errorf("%s.%w", path, err)
		}
		all = append(all, c)
	}
	return all, nil
}

func newCluster(cfg *config.Config, settings config.Cluster, keyMetrics *tokenreview.KeyMetrics, logger *slog.Logger) (*cluster, error) {
	k := cfg.Authentication.Kubernetes
	c := &cluster{settings: settings}
	var err error
	if c.identity, err = identity.NewPath(cfg.TrustDomain, settings.Name, cmp.Or(settings.SPIFFEID, k.SPIFFEID)); err != nil {
		return nil, fmt.Errorf("spiffe_id: %w", err)
	}
	var access *rest.Config
	if settings.Mode != config.ModeOffline {
		if access, err = clusterAccess(settings.Kubeconfig); err != nil {
			return nil, err
		}
		c.reviewer, err = tokenreview.NewReviewer(access, tokenreview.ReviewerConfig{QPS: float32(k.QPS), Burst: k.Burst, Timeout: k.Timeout})
		if err != nil {
			return nil, fmt.Errorf("kubeconfig: %w", err)
		}
	}
	if settings.Mode != config.ModeReview {
		if c.keys, err = newKeys(settings.Name, settings.JWKSURL, settings.JWKSFile, settings.CAFile, settings.Issuer, access, keyMetrics, logger); err != nil {
			return nil, err
		}
	}
	if settings.Mode == config.ModeLive || len(settings.NodeProxies) > 0 {
		c.view, err = tokenreview.NewView(access, tokenreview.ViewConfig{Cluster: settings.Name, Identity: c.identity, MaxStaleness: k.MaxStaleness}, logger)
		if err != nil {
			return nil, fmt.Errorf("kubeconfig: %w", err)
		}
	}
	return c, nil
}

// clusterAccess returns how a cluster's API server is reached.
func clusterAccess(kubeconfig string) (*rest.Config, error) {
	var access *rest.Config
	var err error
	if kubeconfig == "" {
		access, err = rest.InClusterConfig()
	} else {
		access, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w; name a kubeconfig file, or run in a cluster", err)
	}
	return access, nil
}

// nodeProxies returns the rule for the node proxies of all clusters; nothing if there are none.
func (all clusters) nodeProxies() ([]authorize.Named, error) {
	var proxies []authorize.NodeProxies
	for _, c := range all {
		if len(c.settings.NodeProxies) > 0 {
			proxies = append(proxies, authorize.NodeProxies{Cluster: c.settings.Name, Accounts: c.settings.NodeProxies, Pods: c.view})
		}
	}
	if len(proxies) == 0 {
		return nil, nil
	}
	rule, err := authorize.NodeProxy(proxies...)
	if err != nil {
		return nil, err
	}
	return []authorize.Named{{Name: authorize.NodeProxyRule, Rule: rule}}, nil
}
