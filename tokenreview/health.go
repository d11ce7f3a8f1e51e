package tokenreview

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// quietPeriod is the least time between two log lines about a cluster whose reviews come and go.
	quietPeriod = 10 * time.Second
	// remindPeriod is how often the log repeats that reviews still fail.
	remindPeriod = time.Minute
)

// health is what the last call said about the API server.
type health struct {
	mu       sync.Mutex // guards everything below
	ok       bool
	since    time.Time
	reason   string
	logged   string // the reason that was last logged; empty for well
	loggedAt time.Time
}

// set records the outcome of a call; an empty reason means that the API server gave a verdict. It tells whether the outcome is worth a
// log line: a change is, once the line before is old enough, and so is a failure that lasts.
func (h *health) set(reason string, now time.Time) (worthLogging bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ok := reason == ""; ok != h.ok {
		h.ok, h.since = ok, now
	}
	h.reason = reason

	quiet := now.Sub(h.loggedAt)
	if reason == h.logged {
		worthLogging = reason != "" && quiet >= remindPeriod
	} else {
		worthLogging = h.loggedAt.IsZero() || quiet >= quietPeriod
	}
	if worthLogging {
		h.logged, h.loggedAt = reason, now
	}
	return worthLogging
}

// Health tells whether the cluster could be asked the last time that it was, since when that is so, and why not. Before the first call it
// is well, with the time of the constructor. A server that takes itself out of service on this needs Probe to find the way back.
func (o *Online) Health() (ok bool, since time.Time, reason string) {
	o.health.mu.Lock()
	defer o.health.mu.Unlock()
	return o.health.ok, o.health.since, o.health.reason
}

// note feeds the outcome of a call to the health; cause is already fit for the log.
func (o *Online) note(ctx context.Context, reason string, cause error) {
	if !o.health.set(reason, o.config.Now()) {
		return
	}
	if reason == "" {
		o.logger.InfoContext(ctx, "token reviews work again", slog.String("cluster", o.config.Cluster))
		return
	}
	o.logger.ErrorContext(ctx, "token reviews fail",
		slog.String("cluster", o.config.Cluster), slog.String("reason", reason), slog.Any("cause", cause))
}
