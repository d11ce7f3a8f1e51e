package tokenreview

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/chancery-ca/chancery/ca/errkind"
)

// What can become of a look at an issuer's keys.
const (
	fetchOK          = "ok"
	fetchUnreachable = "unreachable" // no answer, or none that is meant to be keys
	fetchMalformed   = "malformed"   // no usable key set
)

// What can become of a token that is verified by its issuer's keys.
const (
	verifiedGood           = "verified"
	verifiedRefused        = "refused"
	verifiedGone           = "gone"         // its pod, service account or node was seen to go
	verifiedUnavailable    = "unavailable"  // there were no keys, and nobody to ask
	verifiedAskedForKeys   = "asked_keys"   // the cluster was asked, since there were no keys
	verifiedAskedForView   = "asked_view"   // the cluster was asked, since the view of it is not complete
	verifiedAskedForObject = "asked_object" // the cluster was asked, since the view does not have what the token names
)

// fetchResults and verifiedResults are every value of the label result.
var (
	fetchResults    = [...]string{fetchOK, fetchUnreachable, fetchMalformed}
	verifiedResults = [...]string{
		verifiedGood, verifiedRefused, verifiedGone, verifiedUnavailable, verifiedAskedForKeys, verifiedAskedForView, verifiedAskedForObject,
	}
)

// KeyMetrics counts what KeySets do and what is verified by them. One KeyMetrics serves any number of issuers.
type KeyMetrics struct {
	fetches  *prometheus.CounterVec
	keys     *prometheus.GaugeVec
	unknown  *prometheus.CounterVec
	verified *prometheus.CounterVec
}

// NewKeyMetrics makes the metrics and registers them. A nil registerer makes metrics that nobody reads.
func NewKeyMetrics(registerer prometheus.Registerer) (*KeyMetrics, error) {
	m := &KeyMetrics{
		fetches: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: metricPrefix + "key_fetches_total", Help: "Looks at the keys of a token issuer, by issuer and result.",
		}, []string{"issuer", "result"}),
		keys: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: metricPrefix + "issuer_keys", Help: "Usable public keys of a token issuer.",
		}, []string{"issuer"}),
		unknown: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: metricPrefix + "unknown_keys_total", Help: "Tokens that named a key which was not in their issuer's set, by issuer.",
		}, []string{"issuer"}),
		verified: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: metricPrefix + "verifications_total", Help: "Tokens verified by their issuer's keys, by issuer and result.",
		}, []string{"issuer", "result"}),
	}
	if registerer == nil {
		return m, nil
	}
	for _, collector := range []prometheus.Collector{m.fetches, m.keys, m.unknown, m.verified} {
		if err := registerer.Register(collector); err != nil {
			return nil, fmt.Errorf("registering the metrics of token issuers: %w", err)
		}
	}
	return m, nil
}

// known makes the series of an issuer, so that what never happened is seen as zero.
func (m *KeyMetrics) known(issuer string) {
	for _, result := range fetchResults {
		m.fetches.WithLabelValues(issuer, result)
	}
	for _, result := range verifiedResults {
		m.verified.WithLabelValues(issuer, result)
	}
	m.keys.WithLabelValues(issuer)
	m.unknown.WithLabelValues(issuer)
}

// count counts one of verifiedResults.
func (k *KeySet) count(result string) {
	k.metrics.verified.WithLabelValues(k.config.Name, result).Inc()
}

// resultOf returns which of verifiedResults an error is.
func resultOf(err error) string {
	if errkind.Of(err).Retryable() {
		return verifiedUnavailable
	}
	return verifiedRefused
}
