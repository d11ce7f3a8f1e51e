package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/chancery-ca/chancery/ca/ledger"
	"github.com/chancery-ca/chancery/ca/ledger/sqlite"
	"github.com/chancery-ca/chancery/internal/config"
)

// access says what a command wants to do with the ledger.
type access int

const (
	accessServe access = iota // reserve and commit: one process at a time
	accessShare               // write beside the server, as for a join token
	accessRead
)

// roll is an open ledger with what the server watches about it.
type roll interface {
	ledger.Ledger
	// Stuck returns how long the oldest write has been waiting.
	Stuck(now time.Time) time.Duration
}

// rollTools are what a ledger tells its operator by.
type rollTools struct {
	logger  *slog.Logger
	metrics *ledgerMetrics // nil for a command that is over in a moment
}

// ledgers are the ledgers by their name in ledger.driver.
var ledgers = map[string]func(ctx context.Context, cfg *config.Config, how access, with rollTools) (roll, error){
	"sqlite": openSQLite,
}

// openLedger opens the configured ledger. What it says of a file that is not there, damaged or in use elsewhere is the configuration's or the
// operator's to mend; a disk that is full or locked may be better in a moment.
func openLedger(ctx context.Context, cfg *config.Config, how access, with rollTools) (roll, error) {
	open, ok := ledgers[cfg.Ledger.Driver]
	if !ok {
		return nil, usageError{fmt.Errorf("ledger.driver %q is not one of %s", cfg.Ledger.Driver, strings.Join(slices.Sorted(maps.Keys(ledgers)), ", "))}
	}
	opened, err := open(ctx, cfg, how, with)
	if err != nil {
		err = fmt.Errorf("ledger.%s: %w", cfg.Ledger.Driver, err)
		if errors.Is(err, ledger.ErrUnavailable) || ctx.Err() != nil {
			return nil, err
		}
		return nil, usageError{err}
	}
	return opened, nil
}

func openSQLite(ctx context.Context, cfg *config.Config, how access, with rollTools) (roll, error) {
	path := cfg.Ledger.SQLite.Path
	if how != accessServe {
		// only a server makes a ledger: what a tool makes by a mistaken path, no server would ever look into
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("%w; name the configuration of the server with --config, or start the server once", err)
		}
	}
	settings := sqlite.Config{Path: path, ReadOnly: how == accessRead, Shared: how == accessShare, Logger: with.logger}
	if with.metrics != nil {
		settings.Flushed = with.metrics.flushed
	}
	return sqlite.Open(ctx, settings)
}

// ledgerMetrics measures the transactions in which the ledger's writes are grouped.
type ledgerMetrics struct {
	duration prometheus.Histogram
	writes   prometheus.Counter
	failures prometheus.Counter
}

func newLedgerMetrics(registerer prometheus.Registerer) *ledgerMetrics {
	m := &ledgerMetrics{
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "chancery_ledger_flush_duration_seconds", Help: "Time that one transaction of the ledger took until it was durable.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}),
		writes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "chancery_ledger_writes_total", Help: "Writes that the ledger made durable or failed to; divided by the flushes it is how many share one.",
		}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "chancery_ledger_flush_failures_total", Help: "Transactions of the ledger that failed: disk full, read-only, locked. Nothing of them was written.",
		}),
	}
	registerer.MustRegister(m.duration, m.writes, m.failures)
	return m
}

func (m *ledgerMetrics) flushed(f sqlite.Flush) {
	m.duration.Observe(f.Took.Seconds())
	m.writes.Add(float64(f.Writes))
	if f.Err != nil {
		m.failures.Inc()
	}
}
