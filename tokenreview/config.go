package tokenreview

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/chancery-ca/chancery/ca/identity"
)

// MaxCacheTTL bounds how long an answer of the cluster is used again: as long as the API server's own cache of good tokens.
const MaxCacheTTL = 10 * time.Second

const maxTimeout = 30 * time.Second

// Config says how one cluster is asked. Zero values of the optional fields mean their defaults.
type Config struct {
	// Cluster is the name of the cluster in principals and audit records. Required.
	Cluster string
	// ClusterIDs are what callers may say they run in, besides Cluster itself; an Istio agent says "Kubernetes" unless told otherwise.
	// A caller who says nothing is taken for a local one.
	ClusterIDs []string
	// TrustDomain is where the identities of the cluster's service accounts live. Required.
	TrustDomain spiffeid.TrustDomain
	// Identity makes the identities of the cluster's service accounts. The zero identity.Path means identity.DefaultPath in TrustDomain.
	Identity identity.Path
	// Issuer is the claim iss that tokens have to have, exactly. Empty: whatever the cluster accepts.
	Issuer string
	// Audiences are ours; a token has to be for one of them. At least one.
	Audiences []string
	// AcceptNodeBound also takes tokens that are bound to a node and to no pod. Off by default.
	AcceptNodeBound bool

	// Timeout bounds one call of the API server. Default 5s, at most 30s.
	Timeout time.Duration
	// MaxInFlight is how many calls run at once. Default 64, at most 4096.
	MaxInFlight int
	// MaxWait is how long a token waits for one of these before the caller is told to come back. Default 250ms, at most Timeout.
	MaxWait time.Duration

	// CacheSize is how many good tokens are remembered. Default 16384, at most 1048576.
	CacheSize int
	// NegativeSize is how many refused tokens are remembered, apart from the good ones. Default 1024, at most 1048576.
	NegativeSize int
	// CacheTTL is how long a good token is remembered, counted from the beginning of the call and never past the token's expiry: for so
	// long a deleted pod can still call. Default and maximum 10s.
	CacheTTL time.Duration
	// NegativeTTL is how long a refused token is remembered. Default 2s, at most 10s: a new pod may be unknown to the API server for a moment.
	NegativeTTL time.Duration

	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// complete returns the config with its defaults filled in, or the rule that it breaks.
func (c Config) complete() (Config, error) {
	c.ClusterIDs, c.Audiences = slices.Clone(c.ClusterIDs), slices.Clone(c.Audiences)
	if c.Now == nil {
		c.Now = time.Now
	}
	switch {
	case c.Cluster == "":
		return c, errors.New("tokenreview: cluster is empty: give the cluster a name for the audit records")
	case slices.Contains(c.ClusterIDs, ""):
		return c, errors.New("tokenreview: an entry of cluster ids is empty: a caller without a cluster id is local already; remove the entry")
	case c.TrustDomain.IsZero():
		return c, errors.New("tokenreview: trust domain is empty: name the one that the service accounts' identities live in")
	case len(c.Audiences) == 0, slices.Contains(c.Audiences, ""):
		return c, errors.New("tokenreview: audiences are empty or have an empty entry: name ours, or any token of the cluster would do")
	}
	if c.Identity.IsZero() {
		var err error
		if c.Identity, err = identity.NewPath(c.TrustDomain, c.Cluster, identity.DefaultPath); err != nil {
			return c, err
		}
	}
	if err := errors.Join(
		complete("timeout", &c.Timeout, 5*time.Second, maxTimeout),
		complete("cache TTL", &c.CacheTTL, MaxCacheTTL, MaxCacheTTL),
		complete("negative TTL", &c.NegativeTTL, 2*time.Second, MaxCacheTTL),
		complete("max in flight", &c.MaxInFlight, 64, 4096),
		complete("cache size", &c.CacheSize, 16384, 1<<20),
		complete("negative cache size", &c.NegativeSize, 1024, 1<<20),
	); err != nil {
		return c, err
	}
	return c, complete("max wait", &c.MaxWait, min(250*time.Millisecond, c.Timeout), c.Timeout)
}

// complete gives *value its default if it is zero, and checks that it is above zero and at most limit.
func complete[T int | time.Duration](name string, value *T, standard, limit T) error {
	if *value == 0 {
		*value = standard
	}
	if *value < 0 || *value > limit {
		return fmt.Errorf("tokenreview: %s is %v: it must be above zero and at most %v", name, *value, limit)
	}
	return nil
}
