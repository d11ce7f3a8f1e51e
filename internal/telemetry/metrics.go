package telemetry

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Build says which build is running.
type Build struct {
	Version  string // a release, such as v1.2.3, or "devel"
	Revision string // the commit
}

// Registry returns a registry with metrics of the Go runtime and the process, and chancery_build_info. Whoever has metrics of its own
// registers them there; nothing uses Prometheus's global registry.
func Registry(build Build) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "chancery_build_info",
		Help:        "Always 1; the labels say which build is running.",
		ConstLabels: prometheus.Labels{"version": build.Version, "revision": build.Revision, "goversion": runtime.Version()},
	})
	info.Set(1)
	registry.MustRegister( // panics only when two of these four clash
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		info,
	)
	return registry
}
