package tokenreview

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"github.com/chancery-ca/chancery/ca/errkind"
)

const (
	// refetchEvery and refetchBurst bound the looks at a source that callers cause: by tokens that name keys which are not in the set.
	refetchEvery = 5 * time.Second
	refetchBurst = 2
	// retryFetch is how long a failed look waits when no caller asks for another.
	retryFetch = 15 * time.Second
)

// KeySetConfig says whose keys a KeySet holds.
type KeySetConfig struct {
	// Name is the issuer's name in logs and metrics: that of the cluster or of the OpenID Connect issuer. Required.
	Name string
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// KeySet is the set of an issuer's public keys, kept up to date. The last good set stays in use while its source fails. A key that is taken out of the
// source is refused after the next look. Safe for concurrent use.
type KeySet struct {
	config  KeySetConfig
	source  KeySource
	logger  *slog.Logger
	metrics *KeyMetrics
	health  health
	flights singleflight.Group
	refetch *rate.Limiter
	current atomic.Pointer[fetched]
}

// fetched is what a look at the source brought.
type fetched struct {
	keys keySet
	hash [sha256.Size]byte
	at   time.Time // when the look began
}

// NewKeySet returns a KeySet that has not looked at its source yet. logger and metrics may be nil.
func NewKeySet(source KeySource, config KeySetConfig, logger *slog.Logger, metrics *KeyMetrics) (*KeySet, error) {
	switch {
	case source.fetch == nil:
		return nil, errors.New("tokenreview: the keys of an issuer need a source")
	case config.Name == "":
		return nil, errors.New("tokenreview: the issuer of the keys needs a name for logs and metrics")
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	if metrics == nil {
		var err error
		if metrics, err = NewKeyMetrics(nil); err != nil {
			return nil, err
		}
	}
	metrics.known(config.Name)
	return &KeySet{
		config: config, source: source, logger: logger, metrics: metrics, health: health{ok: true, since: config.Now()},
		refetch: rate.NewLimiter(rate.Every(refetchEvery), refetchBurst),
	}, nil
}

// Run looks at the source until ctx ends, and returns nil then.
func (k *KeySet) Run(ctx context.Context) error {
	for {
		wait := k.source.refresh
		if err := k.fetch(ctx); err != nil {
			wait = min(wait, retryFetch)
		}
		//nolint:gosec // G404: spreads the looks of several servers, secures nothing
		wait += time.Duration(rand.Float64() * float64(wait) / 10)
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// Health tells whether the last look at the source brought keys, since when that is so, and why not. Before the first look it is well.
func (k *KeySet) Health() (ok bool, since time.Time, reason string) {
	k.health.mu.Lock()
	defer k.health.mu.Unlock()
	return k.health.ok, k.health.since, k.health.reason
}

// fetch looks at the source, once for all who want it at the same time. It does not end with whoever began it.
func (k *KeySet) fetch(ctx context.Context) error {
	done := k.flights.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
		defer cancel()
		return nil, k.look(ctx)
	})
	select {
	case <-ctx.Done():
		return ctx.Err()
	case result := <-done:
		return result.Err
	}
}

func (k *KeySet) look(ctx context.Context) error {
	began := k.config.Now()
	text, err := k.source.fetch(ctx)
	if err != nil {
		k.failed(ctx, "unreachable", "the issuer's keys cannot be read", err)
		return err
	}
	hash := sha256.Sum256(text)
	if old := k.current.Load(); old != nil && old.hash == hash {
		k.current.Store(&fetched{keys: old.keys, hash: hash, at: began})
	} else {
		keys, err := parseKeySet(text)
		if err != nil {
			k.failed(ctx, "malformed", "the issuer's keys are no usable key set", err)
			return err
		}
		k.current.Store(&fetched{keys: keys, hash: hash, at: began})
		k.logger.InfoContext(ctx, "issuer's keys loaded", slog.String("issuer", k.config.Name), slog.Any("key_ids", keys.ids()))
		k.metrics.keys.WithLabelValues(k.config.Name).Set(float64(len(keys)))
	}
	k.metrics.fetches.WithLabelValues(k.config.Name, "ok").Inc()
	if k.health.set("", k.config.Now()) {
		k.logger.InfoContext(ctx, "issuer's keys can be read", slog.String("issuer", k.config.Name))
	}
	return nil
}

func (k *KeySet) failed(ctx context.Context, result, reason string, cause error) {
	k.metrics.fetches.WithLabelValues(k.config.Name, result).Inc()
	text := redact(cause.Error(), "")
	if k.health.set(reason+": "+text, k.config.Now()) {
		k.logger.ErrorContext(ctx, reason, slog.String("issuer", k.config.Name), slog.String("cause", text))
	}
}

// ids returns the names of the keys, fit for the log.
func (s keySet) ids() []string {
	ids := make([]string, 0, len(s))
	for _, key := range s {
		ids = append(ids, redact(key.id, ""))
	}
	return ids
}

// find returns the keys that may have made a token's signature. A key that is not in the set is looked for in the source, but not more often than
// refetchEvery allows, so that tokens with made-up keys cost nothing.
func (k *KeySet) find(ctx context.Context, id, algorithm string) ([]signatureKey, error) {
	set := k.current.Load()
	if set != nil {
		if keys := set.keys.find(id, algorithm); len(keys) > 0 {
			return keys, nil
		}
		if id == "" || set.keys.has(id) {
			return nil, noKey()
		}
		k.metrics.unknown.WithLabelValues(k.config.Name).Inc()
	}
	fresh := set != nil && k.config.Now().Sub(set.at) < refetchEvery
	if k.refetch.AllowN(k.config.Now(), 1) {
		if err := k.fetch(ctx); err != nil {
			return nil, k.unavailable(err)
		}
	} else if !fresh {
		return nil, k.unavailable(errors.New("they were asked for a moment ago"))
	}
	if set = k.current.Load(); set == nil {
		return nil, k.unavailable(errors.New("they have not been read yet"))
	}
	if keys := set.keys.find(id, algorithm); len(keys) > 0 {
		return keys, nil
	}
	return nil, noKey()
}

// verify returns nil if a key of the set made the token's signature. The token has passed parseShape.
func (k *KeySet) verify(ctx context.Context, token string, header object) error {
	id, _ := header.text("kid")
	algorithm, _ := header.text("alg")
	keys, err := k.find(ctx, id, algorithm)
	if err != nil {
		return err
	}
	if !signedBy(token, algorithm, keys) {
		return errkind.New(errkind.Unauthenticated, "token's signature is not by its issuer's key: %s", wayOut).Because(errkind.BadSignature)
	}
	return nil
}

func noKey() error {
	return errkind.New(errkind.Unauthenticated, "token is signed with a key that its issuer does not publish for that algorithm: %s", wayOut).
		Because(errkind.BadSignature)
}

func (k *KeySet) unavailable(cause error) error {
	return errkind.Wrap(errkind.Unavailable, fmt.Errorf("keys of %s: %s", k.config.Name, redact(cause.Error(), "")),
		"the keys of the token's issuer could not be read; try again").Because(errkind.IssuerUnavailable).After(retryAfter)
}

// KeyMetrics counts what KeySets do. One KeyMetrics serves any number of issuers.
type KeyMetrics struct {
	fetches *prometheus.CounterVec
	keys    *prometheus.GaugeVec
	unknown *prometheus.CounterVec
}

// NewKeyMetrics makes the metrics and registers them. A nil registerer makes metrics that nobody reads.
func NewKeyMetrics(registerer prometheus.Registerer) (*KeyMetrics, error) {
	m := &KeyMetrics{
		fetches: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: metricPrefix + "key_fetches_total", Help: "Looks at the keys of a token issuer, by issuer and result (ok, unreachable, malformed).",
		}, []string{"issuer", "result"}),
		keys: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: metricPrefix + "issuer_keys", Help: "Usable public keys of a token issuer.",
		}, []string{"issuer"}),
		unknown: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: metricPrefix + "unknown_keys_total", Help: "Tokens that named a key which was not in their issuer's set, by issuer.",
		}, []string{"issuer"}),
	}
	if registerer == nil {
		return m, nil
	}
	for _, collector := range []prometheus.Collector{m.fetches, m.keys, m.unknown} {
		if err := registerer.Register(collector); err != nil {
			return nil, fmt.Errorf("registering the metrics of token issuers: %w", err)
		}
	}
	return m, nil
}

// known makes the series of an issuer, so that what never happened is seen as zero.
func (m *KeyMetrics) known(issuer string) {
	for _, result := range []string{"ok", "unreachable", "malformed"} {
		m.fetches.WithLabelValues(issuer, result)
	}
	m.keys.WithLabelValues(issuer)
	m.unknown.WithLabelValues(issuer)
}
