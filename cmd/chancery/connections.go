package main

import (
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/chancery-ca/chancery/internal/admission"
	"github.com/chancery-ca/chancery/internal/config"
)

// remindOfRefusals is the least time between two log lines about connections that were closed: whoever causes them can cause any number.
const remindOfRefusals = 10 * time.Second

// newConnections bounds the connections of all gRPC listeners, and says when it has to.
func newConnections(cfg *config.Config, registry *prometheus.Registry, logger *slog.Logger) (*admission.Connections, error) {
	refused := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "chancery_connections_refused_total", Help: "Connections that were closed as soon as they came, by which limit was reached (connections, address).",
	}, []string{"limit"})
	var mu sync.Mutex
	var logged time.Time
	connections, err := admission.NewConnections(cfg.Limits.Connections, cfg.Limits.PerAddress, func(from netip.Prefix, all bool) {
		limit, setting := "address", "limits.connections_per_address"
		if all {
			limit, setting = "connections", "limits.connections"
		}
		refused.WithLabelValues(limit).Inc()
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); now.Sub(logged) >= remindOfRefusals {
			logged = now
			logger.Warn("connections are refused", "limit", setting, "from", from.String())
		}
	})
	if err != nil {
		return nil, err
	}
	for _, limit := range []string{"address", "connections"} {
		refused.WithLabelValues(limit)
	}
	open := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "chancery_connections_open", Help: "Open gRPC connections."},
		func() float64 { return float64(connections.Open()) })
	for _, collector := range []prometheus.Collector{refused, open} {
		if err := registry.Register(collector); err != nil {
			return nil, err
		}
	}
	return connections, nil
}
