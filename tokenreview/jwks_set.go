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

	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"github.com/chancery-ca/chancery/ca/errkind"
)

const (
	// refetchEvery and refetchBurst bound the looks at a source that callers cause: by tokens that name keys which are not in the set.
	refetchEvery = 5 * time.Second
	refetchBurst = 2
	// maxWaiting bounds the callers that wait for such a look, so that an issuer that hangs does not hold everybody's place.
	maxWaiting = 256
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
	waiting chan struct{} // one element a caller that waits for a look
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
		refetch: rate.NewLimiter(rate.Every(refetchEvery), refetchBurst), waiting: make(chan struct{}, maxWaiting),
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
	detached := context.WithoutCancel(ctx)
	return k.share(ctx, "look", func() error {
		ctx, cancel := context.WithTimeout(detached, fetchTimeout)
		defer cancel()
		return k.look(ctx)
	})
}

// share does something once for all who want it at the same time.
func (k *KeySet) share(ctx context.Context, what string, do func() error) error {
	done := k.flights.DoChan(what, func() (any, error) { return nil, do() })
	select {
	case <-ctx.Done():
		return ctx.Err()
	case result := <-done:
		return result.Err
	}
}

// errPacedLook is what ask returns when the source was looked at a moment ago.
var errPacedLook = errors.New("they were asked for a moment ago")

// ask looks at the source because a caller needs it. All who need it at the same time share one look, and one of refetchBurst.
func (k *KeySet) ask(ctx context.Context) error {
	select {
	case k.waiting <- struct{}{}:
		defer func() { <-k.waiting }()
	default:
		return errors.New("too many tokens wait for them")
	}
	detached := context.WithoutCancel(ctx)
	return k.share(ctx, "ask", func() error {
		if !k.refetch.AllowN(k.config.Now(), 1) {
			return errPacedLook
		}
		return k.fetch(detached)
	})
}

func (k *KeySet) look(ctx context.Context) error {
	began := k.config.Now()
	text, err := k.source.fetch(ctx)
	if err != nil {
		k.failed(ctx, fetchUnreachable, "the issuer's keys cannot be read", err)
		return err
	}
	hash := sha256.Sum256(text)
	if old := k.current.Load(); old != nil && old.hash == hash {
		k.current.Store(&fetched{keys: old.keys, hash: hash, at: began})
	} else {
		keys, err := parseKeySet(text)
		if err != nil {
			k.failed(ctx, fetchMalformed, "the issuer's keys are no usable key set", err)
			return err
		}
		k.current.Store(&fetched{keys: keys, hash: hash, at: began})
		k.logger.InfoContext(ctx, "issuer's keys loaded", slog.String("issuer", k.config.Name), slog.Any("key_ids", keys.ids()))
		k.metrics.keys.WithLabelValues(k.config.Name).Set(float64(len(keys)))
	}
	k.metrics.fetches.WithLabelValues(k.config.Name, fetchOK).Inc()
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
// refetchEvery allows, so that tokens with made-up keys cost nothing. A set that is younger than that is taken at its word. No key and no error means
// that the issuer has none.
func (k *KeySet) find(ctx context.Context, id, algorithm string) ([]signatureKey, error) {
	set := k.current.Load()
	if set != nil {
		if keys := set.keys.find(id, algorithm); len(keys) > 0 || id == "" || set.keys.has(id) {
			return keys, nil
		}
		k.metrics.unknown.WithLabelValues(k.config.Name).Inc()
	}
	err := k.ask(ctx)
	set = k.current.Load()
	if err != nil && (!errors.Is(err, errPacedLook) || set == nil || k.config.Now().Sub(set.at) >= refetchEvery) {
		return nil, k.unavailable(err)
	}
	if set == nil {
		return nil, k.unavailable(errors.New("they have not been read yet"))
	}
	return set.keys.find(id, algorithm), nil
}

// verify returns nil if a key of the set made the token's signature. The token has passed parseShape.
func (k *KeySet) verify(ctx context.Context, token string, parsed jwt) error {
	id, _ := parsed.header.text("kid")
	algorithm, _ := parsed.header.text("alg")
	keys, err := k.find(ctx, id, algorithm)
	switch {
	case err != nil:
		return err
	case len(keys) == 0:
		return errkind.New(errkind.Unauthenticated, "token is signed with a key that its issuer does not publish for that algorithm: %s", parsed.wayOut).
			Because(errkind.BadSignature)
	case !signedBy(token, algorithm, keys):
		return errkind.New(errkind.Unauthenticated, "token's signature is not by its issuer's key: %s", parsed.wayOut).Because(errkind.BadSignature)
	}
	return nil
}

func (k *KeySet) unavailable(cause error) error {
	return errkind.Wrap(errkind.Unavailable, fmt.Errorf("keys of %s: %s", k.config.Name, redact(cause.Error(), "")),
		"the keys of the token's issuer could not be read; try again").Because(errkind.IssuerUnavailable).After(retryAfter)
}
