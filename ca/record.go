package ca

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
	"github.com/chancery-ca/chancery/ca/ledger"
	"github.com/chancery-ca/chancery/ca/lint"
	"github.com/chancery-ca/chancery/ca/profile"
	"github.com/chancery-ca/chancery/csr"
)

// metrics has fixed label values only: a profile that does not exist counts as "unknown".
type metrics struct {
	decisions *prometheus.CounterVec
	duration  *prometheus.HistogramVec
	notAfter  *prometheus.GaugeVec
	sequence  prometheus.Gauge
}

func newMetrics() *metrics {
	return &metrics{
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "chancery_issuance_decisions_total", Help: "Orders decided, by door, profile and result (issued, or the kind of the refusal).",
		}, []string{"door", "profile", "result"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "chancery_issuance_duration_seconds", Help: "Time from an authenticated order to its decision, by door.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"door"}),
		notAfter: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "chancery_issuer_not_after_seconds", Help: "Unix time at which a certificate above the leaves ends, by role and SHA-256 fingerprint.",
		}, []string{"role", "fingerprint"}),
		sequence: prometheus.NewGauge(prometheus.GaugeOpts{Name: "chancery_bundle_sequence", Help: "Sequence number of the trust bundle in use."}),
	}
}

func (m *metrics) register(registerer prometheus.Registerer) error {
	for _, collector := range []prometheus.Collector{m.decisions, m.duration, m.notAfter, m.sequence} {
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
}

func fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// Refused records the refusal of an order that did not reach Issue: its caller was not authenticated, or the door refused it. The order's
// principal may be nil.
func (a *Authority) Refused(ctx context.Context, order Order, err error, began time.Time) {
	a.record(ctx, order, &decision{began: began}, err)
}

// decision is an order on its way through the pipeline, as far as it came. The audit record tells of it.
type decision struct {
	began    time.Time // the time of issuance
	request  *csr.Request
	profile  *profile.Profile
	names    identity.Names // what it is for
	rule     string         // that allowed it
	limit    time.Duration  // the longest lifetime by the rule; zero for none
	validity profile.Validity
	serial   ledger.Serial // once it was approved
	leaf     chain.Leaf
	passed   lint.Passed
	issuance *Issuance
}

// unknown stands for profiles that do not exist, in labels and records: callers choose the text.
const unknown = "unknown"

// record writes the one audit record of a decision, and counts it. The cause of a refusal goes here and not to the caller.
func (a *Authority) record(ctx context.Context, order Order, d *decision, err error) {
	result := "issued"
	if err != nil {
		result = errkind.Of(err).String()
	}
	name := order.profile()
	if _, ok := a.current.Load().profiles[name]; !ok {
		name = unknown
	}
	a.metrics.decisions.WithLabelValues(string(order.Door), name, result).Inc()
	a.metrics.duration.WithLabelValues(string(order.Door)).Observe(a.now().Sub(d.began).Seconds())

	level := slog.LevelInfo
	if kind := errkind.Of(err); err != nil && (kind.Retryable() || kind == errkind.Internal) {
		level = slog.LevelError // ours to mend
	}
	if !a.logger.Enabled(ctx, level) {
		return
	}
	attributes := make([]slog.Attr, 0, 16)
	attributes = append(attributes, slog.String("decision", result), slog.String("door", string(order.Door)), slog.String("profile", name),
		slog.String("remote", order.Remote))
	if p := order.Principal; p != nil {
		attributes = append(attributes, slog.String("spiffe_id", p.ID.String()), slog.String("method", string(p.Method)), slog.String("credential_id", p.CredentialID))
		if k := p.Kubernetes; k != nil {
			attributes = append(attributes, slog.String("cluster", k.Cluster), slog.String("pod", k.Namespace+"/"+k.PodName), slog.String("node", k.NodeName))
		}
	}
	attributes = append(attributes, d.attributes()...)
	if err != nil {
		attributes = append(attributes, slog.String("error", err.Error()))
	}
	a.logger.LogAttrs(ctx, level, "audit", attributes...)
}

func (d *decision) attributes() []slog.Attr {
	var attributes []slog.Attr
	if !d.names.Empty() {
		attributes = append(attributes, slog.String("names", d.names.String()))
	}
	if d.rule != "" {
		attributes = append(attributes, slog.String("rule", d.rule))
	}
	if d.serial != "" {
		attributes = append(attributes, slog.String("serial", d.serial.String()))
	}
	if issuance := d.issuance; issuance != nil {
		leaf := issuance.Chain.Leaf()
		// what an authority elsewhere has chosen itself is never unseen
		if leaf.SerialNumber.Cmp(d.serial.Int()) != 0 {
			attributes = append(attributes, slog.String("certificate_serial", leaf.SerialNumber.Text(16)))
		}
		if leaf.NotAfter.After(d.leaf.NotAfter) {
			attributes = append(attributes, slog.Time("approved_not_after", d.leaf.NotAfter))
		}
		attributes = append(attributes, slog.Time("not_after", issuance.NotAfter), slog.Uint64("bundle_sequence", issuance.Bundle.Sequence()))
	}
	return attributes
}
