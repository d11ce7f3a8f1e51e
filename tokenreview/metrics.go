package tokenreview

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const metricPrefix = "chancery_tokenreview_"

// What can become of a review.
const (
	resultAuthenticated   = "authenticated"   // the cluster knows the token and our rules take it
	resultUnauthenticated = "unauthenticated" // the cluster does not accept the token
	resultRefused         = "refused"         // the cluster accepts the token, our rules do not
	resultForbidden       = "forbidden"       // the server's own account may not create token reviews
	resultThrottled       = "throttled"       // the API server said 429
	resultTimeout         = "timeout"         // the API server did not answer in time
	resultUnreachable     = "unreachable"     // no connection to the API server
	resultFailed          = "failed"          // the API server answered with another error, or with nothing
	resultSaturated       = "saturated"       // all slots stayed taken
	resultPaced           = "paced"           // our own client limit was reached
)

// What the cache can know of a token.
const (
	lookupHit         = "hit"
	lookupNegativeHit = "negative_hit"
	lookupMiss        = "miss"
)

// reviewResults and lookupResults are every value of the label result.
var (
	reviewResults = [...]string{
		resultAuthenticated, resultUnauthenticated, resultRefused, resultForbidden, resultThrottled, resultTimeout, resultUnreachable,
		resultFailed, resultSaturated, resultPaced,
	}
	lookupResults = [...]string{lookupHit, lookupNegativeHit, lookupMiss}
)

// Metrics counts what Online does. One Metrics serves any number of clusters.
type Metrics struct {
	reviews  *prometheus.CounterVec
	lookups  *prometheus.CounterVec
	unasked  prometheus.Counter
	duration prometheus.Histogram
	inFlight prometheus.Gauge
}

// NewMetrics makes the metrics and registers them. A nil registerer makes metrics that nobody reads.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		reviews: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: metricPrefix + "reviews_total", Help: "Token reviews that were not answered from the cache, by result.",
		}, []string{"result"}),
		lookups: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: metricPrefix + "cache_lookups_total", Help: "Lookups of well-formed tokens in the cache of reviews, by result.",
		}, []string{"result"}),
		unasked: prometheus.NewCounter(prometheus.CounterOpts{
			Name: metricPrefix + "refused_unasked_total", Help: "Tokens refused for their shape or claims, without asking a cluster.",
		}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: metricPrefix + "review_duration_seconds", Help: "Time that the API server took for a token review.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
		}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: metricPrefix + "reviews_in_flight", Help: "Token reviews that wait for the API server.",
		}),
	}
	for _, result := range reviewResults {
		m.reviews.WithLabelValues(result)
	}
	for _, result := range lookupResults {
		m.lookups.WithLabelValues(result)
	}
	if registerer == nil {
		return m, nil
	}
	for _, collector := range []prometheus.Collector{m.reviews, m.lookups, m.unasked, m.duration, m.inFlight} {
		if err := registerer.Register(collector); err != nil {
			return nil, fmt.Errorf("registering the token review metrics: %w", err)
		}
	}
	return m, nil
}

// reviewed counts one of reviewResults.
func (m *Metrics) reviewed(result string) { m.reviews.WithLabelValues(result).Inc() }

// lookedUp counts one of lookupResults.
func (m *Metrics) lookedUp(result string) { m.lookups.WithLabelValues(result).Inc() }

// answered records a call that began d ago.
func (m *Metrics) answered(d time.Duration) { m.duration.Observe(d.Seconds()) }
