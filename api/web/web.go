// Package web is the plain HTTP front end: metrics and health. It serves nothing that a passer-by may not read.
package web

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/chancery-ca/chancery/internal/telemetry"
)

// Handler serves /metrics, /livez and /readyz. /readyz and /livez answer 200 or 503 with a line for each check, or with JSON when the
// client accepts that.
func Handler(gatherer prometheus.Gatherer, live, ready *telemetry.Health, logger *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{Timeout: 10 * time.Second, MaxRequestsInFlight: 8}))
	mux.Handle("GET /livez", probe(live, logger))
	mux.Handle("GET /readyz", probe(ready, logger))
	return mux
}

func probe(health *telemetry.Health, logger *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		report, err := health.Report(r.Context())
		if err != nil {
			http.Error(w, "the checks did not answer in time", http.StatusServiceUnavailable)
			return
		}
		code := http.StatusOK
		if !report.OK() {
			code = http.StatusServiceUnavailable
		}
		write := report.Text
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if strings.Contains(r.Header.Get("Accept"), "application/json") {
			w.Header().Set("Content-Type", "application/json")
			write = func(w io.Writer) error { return json.NewEncoder(w).Encode(report) }
		}
		w.WriteHeader(code)
		if err := write(w); err != nil {
			logger.DebugContext(r.Context(), "probe not answered", "error", err)
		}
	})
}

// Server returns an http.Server with limits that a slow or hostile client cannot stretch.
func Server(handler http.Handler, logger *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
}
