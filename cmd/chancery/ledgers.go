package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

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

// ledgers are the ledgers by their name in ledger.driver.
var ledgers = map[string]func(ctx context.Context, cfg *config.Config, how access, logger *slog.Logger) (roll, error){
	"sqlite": func(ctx context.Context, cfg *config.Config, how access, logger *slog.Logger) (roll, error) {
		return sqlite.Open(ctx, sqlite.Config{
			Path: cfg.Ledger.SQLite.Path, ReadOnly: how == accessRead, Shared: how == accessShare, Logger: logger,
		})
	},
}

func openLedger(ctx context.Context, cfg *config.Config, how access, logger *slog.Logger) (roll, error) {
	open, ok := ledgers[cfg.Ledger.Driver]
	if !ok {
		return nil, fmt.Errorf("ledger.driver %q is not one of %s", cfg.Ledger.Driver, strings.Join(slices.Sorted(maps.Keys(ledgers)), ", "))
	}
	return open(ctx, cfg, how, logger)
}
