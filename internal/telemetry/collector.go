package telemetry

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
)

// Collector returns chancery_health, a gauge for each check of the set: 1 if it passed, 0 if not. The set's name becomes a label, so that
// readiness and liveness can stand in one registry. A scrape costs no more than a probe.
func (h *Health) Collector(set string) prometheus.Collector {
	return &collector{health: h, up: prometheus.NewDesc("chancery_health", "Whether a health check passed (1) or not (0).",
		[]string{"check", "severity"}, prometheus.Labels{"set": set})}
}

type collector struct {
	health *Health
	up     *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- c.up }

// Collect implements prometheus.Collector.
func (c *collector) Collect(metrics chan<- prometheus.Metric) {
	report, err := c.health.Report(context.Background()) // ends: checks have a timeout
	if err != nil {
		return
	}
	for _, r := range report.Results {
		value := 1.0
		if r.Problem != "" {
			value = 0
		}
		metrics <- prometheus.MustNewConstMetric(c.up, prometheus.GaugeValue, value, r.Name, r.Severity.String())
	}
}
