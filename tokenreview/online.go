package tokenreview

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sync/singleflight"
	authv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
)

// Reviewer asks a cluster about a token. The client of k8s.io/client-go is one; NewReviewer makes one that is set up for this package.
type Reviewer interface {
	// Create returns the answer to review. It honours ctx, and an error means that there is no answer.
	Create(ctx context.Context, review *authv1.TokenReview, options metav1.CreateOptions) (*authv1.TokenReview, error)
}

// Online authenticates service-account tokens by asking their cluster. It is safe for concurrent use.
type Online struct {
	config   Config
	reviewer Reviewer
	logger   *slog.Logger
	metrics  *Metrics
	cache    *cache
	health   health
	slots    chan struct{} // one element a call on its way
	flights  singleflight.Group
}

// NewOnline returns an Online for one cluster. logger and metrics may be nil.
func NewOnline(reviewer Reviewer, config Config, logger *slog.Logger, metrics *Metrics) (*Online, error) {
	if reviewer == nil {
		return nil, errors.New("tokenreview: there is no reviewer: make one with NewReviewer")
	}
	config, err := config.complete()
	if err != nil {
		return nil, err
	}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	if metrics == nil {
		if metrics, err = NewMetrics(nil); err != nil {
			return nil, err
		}
	}
	cache, err := newCache(config.CacheSize, config.NegativeSize)
	if err != nil {
		return nil, err
	}
	return &Online{
		config:   config,
		reviewer: reviewer,
		logger:   logger,
		metrics:  metrics,
		cache:    cache,
		health:   health{ok: true, since: config.Now()},
		slots:    make(chan struct{}, config.MaxInFlight),
	}, nil
}

// Authenticate handles every bearer token that is meant to be a JWT.
func (o *Online) Authenticate(ctx context.Context, credential identity.Credential) (*identity.Principal, bool, error) {
	token := credential.Bearer.Reveal()
	if !looksLikeJWT(token) {
		return nil, false, nil
	}
	v, err := o.decide(ctx, token, credential.ClusterID)
	if err == nil {
		err = v.err
	}
	if err != nil {
		return nil, true, err
	}
	return clone(v.principal), true, nil
}

// decide returns the verdict about a token, or an error if there is none.
func (o *Online) decide(ctx context.Context, token, clusterID string) (verdict, error) {
	if err := o.checkCluster(clusterID); err != nil {
		o.metrics.unasked.Inc()
		return verdict{}, err
	}
	// the cache comes before the claims: what is in it has passed them, and reading them costs more than the look-up
	now := o.config.Now()
	var key cacheKey
	if len(token) <= MaxTokenBytes {
		key = o.cache.key(o.config.Audiences, token)
		if v, ok := o.cache.get(key, now); ok {
			if v.err != nil {
				o.metrics.lookedUp(lookupNegativeHit)
			} else {
				o.metrics.lookedUp(lookupHit)
			}
			return v, nil
		}
	}
	claimed, err := peek(token, o.config.Audiences, now)
	if err != nil {
		o.metrics.unasked.Inc()
		return verdict{}, err
	}
	if o.config.Issuer != "" && claimed.issuer != o.config.Issuer {
		o.metrics.unasked.Inc()
		return verdict{}, wrongIssuer(o.config.Issuer)
	}
	o.metrics.lookedUp(lookupMiss)
	return o.share(ctx, key, token, claimed)
}

// share reviews a token once for all who send it at the same time. The review is nobody's own: a caller who leaves early does not end it
// for the others, and when all have left it still ends within MaxWait and Timeout.
func (o *Online) share(ctx context.Context, key cacheKey, token string, claimed claims) (verdict, error) {
	if err := ctx.Err(); err != nil {
		return verdict{}, gaveUp(err)
	}
	detached := context.WithoutCancel(ctx)
	answer := o.flights.DoChan(string(key[:]), func() (any, error) {
		if v, ok := o.cache.get(key, o.config.Now()); ok { // a flight that ended between our lookup and this one
			return v, nil
		}
		return o.review(detached, key, token, claimed)
	})
	select {
	case <-ctx.Done():
		return verdict{}, gaveUp(ctx.Err())
	case result := <-answer:
		v, ok := result.Val.(verdict)
		if result.Err == nil && !ok {
			return verdict{}, errkind.New(errkind.Internal, "the review returned no verdict")
		}
		return v, result.Err
	}
}

func gaveUp(cause error) error {
	return errkind.Wrap(errkind.Unavailable, cause, "the request ended before the cluster had answered about its token; try again").
		Because(errkind.ClusterUnavailable).After(retryAfter)
}

// checkCluster refuses a caller of a cluster that this Online does not ask.
func (o *Online) checkCluster(id string) error {
	if id == "" || id == o.config.Cluster || slices.Contains(o.config.ClusterIDs, id) {
		return nil
	}
	return unknownCluster(id)
}

// clone keeps a caller who changes its principal from changing the cached one.
func clone(p *identity.Principal) *identity.Principal {
	copied := *p
	if p.Kubernetes != nil {
		kubernetes := *p.Kubernetes
		copied.Kubernetes = &kubernetes
	}
	return &copied
}

// deadline returns until when a verdict of a review that began at from may be used.
func (o *Online) deadline(refused bool, from, expires time.Time) time.Time {
	ttl := o.config.CacheTTL
	if refused {
		ttl = o.config.NegativeTTL
	}
	until := from.Add(ttl)
	if expires.Before(until) {
		return expires
	}
	return until
}
