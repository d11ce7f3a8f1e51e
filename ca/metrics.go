package ca

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/chancery-ca/chancery/ca/errkind"
)

// issued is the result, and the reason, of a decision that yields a certificate.
const issued = "issued"

// unknown stands for profiles that do not exist, in labels and records: callers choose the text.
const unknown = "unknown"

// metrics has label values from fixed lists only: a profile that does not exist counts as "unknown", a reason that is not listed as that of its kind.
type metrics struct {
	decisions  *prometheus.CounterVec
	duration   *prometheus.HistogramVec
	summarised prometheus.Counter
	notAfter   *prometheus.GaugeVec
	sequence   prometheus.Gauge
	reasons    map[errkind.Reason]bool
}

func newMetrics() *metrics {
	m := &metrics{
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "chancery_issuance_decisions_total",
			Help: "Orders decided, by door, profile, result (issued, or the kind of the refusal) and reason (issued, or why it was refused).",
		}, []string{"door", "profile", "result", "reason"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "chancery_issuance_duration_seconds", Help: "Time from an authenticated order to its decision, by door.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"door"}),
		summarised: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "chancery_audit_summarised_total", Help: "Refusals of callers nobody knows that have no audit record of their own and stand in a summary.",
		}),
		notAfter: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "chancery_issuer_not_after_seconds", Help: "Unix time at which a certificate above the leaves ends, by role and SHA-256 fingerprint.",
		}, []string{"role", "fingerprint"}),
		sequence: prometheus.NewGauge(prometheus.GaugeOpts{Name: "chancery_bundle_sequence", Help: "Sequence number of the trust bundle in use."}),
		reasons:  make(map[errkind.Reason]bool),
	}
	for _, reason := range errkind.Reasons() {
		m.reasons[reason] = true
	}
	return m
}

func (m *metrics) register(registerer prometheus.Registerer) error {
	for _, collector := range []prometheus.Collector{m.decisions, m.duration, m.summarised, m.notAfter, m.sequence} {
		if err := registerer.Register(collector); err != nil {
			return err
		}
	}
	return nil
}

func (m *metrics) snapshot(s *snapshot) {
	m.sequence.Set(float64(s.bundle.Sequence()))
	m.notAfter.Reset()
	for _, anchor := range s.bundle.Anchors() {
		m.notAfter.WithLabelValues("anchor", fingerprint(anchor.Raw)).Set(float64(anchor.NotAfter.Unix()))
	}
	for _, issuer := range s.issuers {
		if !s.bundle.Contains(issuer) {
			m.notAfter.WithLabelValues("issuer", fingerprint(issuer.Raw)).Set(float64(issuer.NotAfter.Unix()))
		}
	}
	// what ought to grow is there from the beginning, at zero: an alert on nothing being issued needs it
	for name := range s.profiles {
		m.decisions.WithLabelValues(string(DoorChancery), name, issued, issued)
	}
}

// decided counts a decision.
func (m *metrics) decided(door Door, v verdict, took time.Duration) {
	m.decisions.WithLabelValues(string(door), v.profile, v.result, string(v.reason)).Inc()
	m.duration.WithLabelValues(string(door)).Observe(took.Seconds())
}

// reasonOf returns the reason of an error by a word of the fixed list.
func (m *metrics) reasonOf(err error) errkind.Reason {
	if reason := errkind.ReasonOf(err); m.reasons[reason] {
		return reason
	}
	return errkind.Reason(errkind.Of(err).String())
}

func fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}
