package config

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/chancery-ca/chancery/ca/identity"
)

// The modes in which the tokens of a cluster are verified.
const (
	ModeReview  = "tokenreview"
	ModeLive    = "offline+liveness"
	ModeOffline = "offline"
)

func (v *checker) authentication() {
	a := v.config.Authentication
	if !a.JoinTokens.Enabled && !a.Kubernetes.Enabled && len(a.OIDC) == 0 {
		v.bad("authentication", "enable join_tokens, oidc or kubernetes; otherwise nobody can get a first certificate")
	}
	v.certificates()
	v.issuers()
	v.kubernetes()
	v.clusters()
}

func (v *checker) certificates() {
	const path = "authentication.certificates."
	c := v.config.Authentication.Certificates
	v.count(path+"origins", len(c.Origins), 1, 3)
	unique(v, path+"origins", c.Origins, func(at, origin string) { v.oneOf(at, origin, "join_token", "oidc", "kubernetes") })
	v.duration(path+"grace", c.Grace, 0, 30*day)
}

func (v *checker) issuers() {
	names, issuers := make(map[string]int), make(map[string]int)
	v.count("authentication.oidc", len(v.config.Authentication.OIDC), 0, 32)
	for i, o := range v.config.Authentication.OIDC {
		path := fmt.Sprintf("authentication.oidc[%d]", i)
		v.name(path+".name", o.Name)
		v.once(path+".name", o.Name, "authentication.oidc", names, i)
		v.https(path+".issuer", o.Issuer)
		v.once(path+".issuer", o.Issuer, "authentication.oidc", issuers, i)
		v.words(path+".audiences", o.Audiences, 1, 16)
		v.filled(path+".identity", strings.TrimSpace(o.Identity))
		v.keySource(path, o.JWKSURL, o.JWKSFile)
		if len(o.Algorithms) > 0 {
			v.algorithms(path+".algorithms", o.Algorithms)
		}
	}
}

func (v *checker) kubernetes() {
	const path = "authentication.kubernetes."
	k := v.config.Authentication.Kubernetes
	v.name(path+"cluster", k.Cluster)
	v.mode(strings.TrimSuffix(path, "."), k.Mode, k.Issuer, k.NodeProxies)
	v.keySource(strings.TrimSuffix(path, "."), k.JWKSURL, k.JWKSFile)
	v.words(path+"audiences", k.Audiences, 1, 16)
	v.words(path+"cluster_ids", k.ClusterIDs, 0, 64)
	v.identityPath(path+"spiffe_id", k.SPIFFEID)
	v.algorithms(path+"algorithms", k.Algorithms)
	v.duration(path+"max_staleness", k.MaxStaleness, 10*time.Second, time.Hour)
	v.duration(path+"timeout", k.Timeout, 100*time.Millisecond, 30*time.Second)
	v.number(path+"qps", k.QPS, 100_000)
	v.number(path+"burst", k.Burst, 100_000)
	if k.Burst < k.QPS && v.trusted(path+"qps", path+"burst") {
		v.bad(v.latest(path+"burst", path+"qps"), "burst (%d) must be at least qps (%d)", k.Burst, k.QPS)
	}
	v.number(path+"max_in_flight", k.MaxInFlight, 4096)
	v.number(path+"cache_size", k.CacheSize, 1_000_000)
	v.duration(path+"cache_ttl", k.CacheTTL, time.Millisecond, 10*time.Second)
	v.number(path+"negative_cache_size", k.NegativeCacheSize, 1_000_000)
	v.duration(path+"negative_cache_ttl", k.NegativeCacheTTL, time.Millisecond, 10*time.Second)
}

func (v *checker) clusters() {
	k := v.config.Authentication.Kubernetes
	const all = "authentication.kubernetes.clusters"
	v.count(all, len(k.Clusters), 0, 32)
	// -1 stands for the first cluster
	ids := map[string]int{k.Cluster: -1}
	for _, id := range k.ClusterIDs {
		ids[id] = -1
	}
	issuers := make(map[string]int)
	if k.Issuer != "" {
		issuers[k.Issuer] = -1
	}
	if len(k.Clusters) > 0 && !k.Enabled {
		v.bad(all, "needs kubernetes.enabled: true; otherwise no service-account token is accepted")
	}
	for i, c := range k.Clusters {
		path := fmt.Sprintf("%s[%d]", all, i)
		v.name(path+".name", c.Name)
		v.once(path+".name", c.Name, all, ids, i)
		v.mode(path, c.Mode, c.Issuer, c.NodeProxies)
		if c.Issuer == "" {
			v.bad(path+".issuer", "is empty; it tells this cluster's tokens from those of the others")
		} else {
			v.once(path+".issuer", c.Issuer, all, issuers, i)
		}
		if c.Kubeconfig == "" && c.Mode != ModeOffline {
			v.bad(path+".kubeconfig", "is empty; only mode offline can do without")
		}
		v.keySource(path, c.JWKSURL, c.JWKSFile)
		v.words(path+".audiences", c.Audiences, 0, 16)
		v.words(path+".cluster_ids", c.ClusterIDs, 0, 64)
		for j, id := range c.ClusterIDs {
			if id != c.Name {
				v.once(fmt.Sprintf("%s.cluster_ids[%d]", path, j), id, all, ids, i)
			}
		}
		if c.SPIFFEID != "" {
			v.identityPath(path+".spiffe_id", c.SPIFFEID)
		}
	}
	for i, o := range v.config.Authentication.OIDC {
		path := fmt.Sprintf("authentication.oidc[%d].issuer", i)
		if _, cluster := issuers[o.Issuer]; cluster {
			v.bad(path, "%q is the issuer of a cluster already, and a token is taken as one kind of credential only", o.Issuer)
		}
	}
}

// once checks that a value is not that of another entry. Entry -1 is the section above the list.
func (v *checker) once(path, value, list string, seen map[string]int, i int) {
	j, twice := seen[value]
	switch {
	case twice && j < 0:
		v.bad(path, "%q is that of the first cluster already", value)
	case twice:
		v.bad(path, "%q is that of %s[%d] already", value, list, j)
	default:
		seen[value] = i
	}
}

// mode checks what a way of verifying tokens needs.
func (v *checker) mode(path, mode, issuer string, proxies []string) {
	v.oneOf(path+".mode", mode, ModeReview, ModeLive, ModeOffline)
	if mode != ModeReview && issuer == "" && v.trusted(path+".mode", path+".issuer") {
		v.bad(v.latest(path+".issuer", path+".mode"), "mode %s needs issuer, exactly as the cluster's tokens have it in iss, and it is empty", mode)
	}
	v.count(path+".node_proxies", len(proxies), 0, 64)
	unique(v, path+".node_proxies", proxies, func(at, account string) {
		namespace, name, found := strings.Cut(account, "/")
		if !found || !isName(namespace) || !isDNSName(name) && !isName(name) {
			v.bad(at, "%q is not NAMESPACE/NAME of a service account", account)
		}
	})
	if len(proxies) > 0 && mode == ModeOffline {
		v.bad(path+".node_proxies", "needs a view of the cluster's pods, which mode offline does not have")
	}
}

func (v *checker) keySource(path, address, file string) {
	if address != "" {
		v.https(path+".jwks_url", address)
	}
	if address != "" && file != "" {
		v.bad(v.latest(path+".jwks_file", path+".jwks_url"), "set jwks_url or jwks_file, not both")
	}
}

// https checks an https URL without what a fetch would ignore or leak.
func (v *checker) https(path, value string) {
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		v.bad(path, "%q is not an https URL without user, query and fragment", value)
	}
}

func (v *checker) algorithms(path string, list []string) {
	v.count(path, len(list), 1, 4)
	unique(v, path, list, func(at, name string) { v.oneOf(at, name, "RS256", "ES256", "ES384", "ES512") })
}

// identityPath checks the template of a SPIFFE ID's path.
func (v *checker) identityPath(path, template string) {
	if v.config.TrustDomain.IsZero() {
		return // told already
	}
	if _, err := identity.NewPath(v.config.TrustDomain, "any", template); err != nil {
		v.bad(path, "%s", err)
	}
}
