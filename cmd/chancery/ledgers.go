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
	"sqlite": openSQLite,
}

// openLedger opens the configured ledger. What it says of a file that is not there, damaged or in use elsewhere is the configuration's or the
// operator's to mend; a disk that is full or locked may be better in a moment.
func openLedger(ctx context.Context, cfg *config.Config, how access, logger *slog.Logger) (roll, error) {
	open, ok := ledgers[cfg.Ledger.Driver]
	if !ok {
		return nil, usageError{fmt.Errorf("ledger.driver %q is not one of %s", cfg.Ledger.Driver, strings.Join(slices.Sorted(maps.Keys(ledgers)), ", "))}
	}
	opened, err := open(ctx, cfg, how, logger)
	if err != nil {
		err = fmt.Errorf("ledger.%s: %w", cfg.Ledger.Driver, err)
		if errors.Is(err, ledger.ErrUnavailable) || ctx.Err() != nil {
			return nil, err
		}
		return nil, usageError{err}
	}
	return opened, nil
}

func openSQLite(ctx context.Context, cfg *config.Config, how access, logger *slog.Logger) (roll, error) {
	path := cfg.Ledger.SQLite.Path
	if how != accessServe {
		// only a server makes a ledger: what a tool makes by a mistaken path, no server would ever look into
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("%w; name the configuration of the server with --config, or start the server once", err)
		}
	}
	return sqlite.Open(ctx, sqlite.Config{Path: path, ReadOnly: how == accessRead, Shared: how == accessShare, Logger: logger})
}
