package sqlite

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/chancery-ca/chancery/ca/ledger"
	"github.com/chancery-ca/chancery/ca/ledger/ledgertest"
)

func TestConformance(t *testing.T) {
	ledgertest.Run(t, func(t testing.TB) ledgertest.Store {
		path := filepath.Join(t.TempDir(), "ledger.db")
		return ledgertest.Store{
			Open:   func(t testing.TB) ledger.Ledger { return mustOpen(t, Config{Path: path}) },
			Beside: func(t testing.TB) ledger.Ledger { return mustOpen(t, Config{Path: path, Shared: true}) },
			Abandon: func(t testing.TB, l ledger.Ledger) {
				// The files as they are at this moment are what a crash would leave; TestKill makes real ones.
				after := filepath.Join(t.TempDir(), "ledger.db")
				for _, suffix := range []string{"", "-wal"} {
					copyFile(t, after+suffix, path+suffix)
				}
				must(t, l.Close())
				path = after
			},
		}
	})
}

func mustOpen(t testing.TB, config Config) *Ledger {
	t.Helper()
	l, err := Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// copyFile copies a file of a ledger that is open but idle. It closes a descriptor of it, and so drops SQLite's locks of this
// process: nothing else may have the file open.
func copyFile(t testing.TB, to, from string) {
	t.Helper()
	source, err := os.Open(from)
	must(t, err)
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o600)
	must(t, err)
	defer target.Close()
	_, err = io.Copy(target, source)
	must(t, err)
}
