package sqlite

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chancery-ca/chancery/ca/ledger"
)

// TestFilesTakenAway: a server whose files are removed or replaced writes nothing until they are back, and says so once.
func TestFilesTakenAway(t *testing.T) {
	all := []string{"", "-wal", "-shm"}
	for name, test := range map[string]struct {
		suffixes []string
		put      bool // another file in the place of each
	}{
		"everything removed":  {suffixes: all},
		"the ledger removed":  {suffixes: []string{""}},
		"the ledger replaced": {suffixes: []string{""}, put: true},
		"the log removed":     {suffixes: []string{"-wal"}},
		"the lock removed":    {suffixes: []string{".lock"}},
		"the lock replaced":   {suffixes: []string{".lock"}, put: true},
	} {
		t.Run(name, func(t *testing.T) {
			said := &bytes.Buffer{}
			path := filepath.Join(t.TempDir(), "ledger.db")
			l := mustOpen(t, Config{Path: path, Logger: slog.New(slog.NewTextHandler(said, nil))})
			before, during := benchIntent(1), benchIntent(2)
			must(t, l.Reserve(t.Context(), before))
			for _, suffix := range test.suffixes {
				must(t, os.Rename(path+suffix, path+suffix+".away"))
				if test.put {
					must(t, os.WriteFile(path+suffix, nil, 0o600))
				}
			}
			for range 2 {
				wantUnavailable(t, l.Reserve(t.Context(), during), "removed or replaced under the server")
				wantUnavailable(t, l.Commit(t.Context(), outcomeOf(before)), "put it back or restart")
				wantUnavailable(t, l.Probe(t.Context()), "removed or replaced under the server")
			}
			for _, suffix := range test.suffixes {
				must(t, os.Rename(path+suffix+".away", path+suffix))
			}
			must(t, l.Probe(t.Context()))
			must(t, l.Reserve(t.Context(), during))
			must(t, l.Commit(t.Context(), outcomeOf(before)))
			must(t, l.Close())
			if n := strings.Count(said.String(), "level=ERROR"); n != 1 {
				t.Errorf("it was logged %d times:\n%s", n, said)
			}
		})
	}
}

// TestLockTakenAway: beside a second server that got in over a removed lock, the first writes nothing.
func TestLockTakenAway(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	first := mustOpen(t, Config{Path: path})
	in := benchIntent(1)
	must(t, first.Reserve(t.Context(), in))
	must(t, os.Remove(path+".lock"))
	second := mustOpen(t, Config{Path: path})
	wantUnavailable(t, first.Commit(t.Context(), outcomeOf(in)), path+".lock")
	wantUnavailable(t, first.Reserve(t.Context(), benchIntent(2)), path+".lock")
	next := benchIntent(3)
	must(t, second.Reserve(t.Context(), next))
	must(t, second.Commit(t.Context(), outcomeOf(next)))
	if e, err := second.Get(t.Context(), in.Serial); err != nil || e.State != ledger.Reserved {
		t.Errorf("got %s, %v", e.State, err)
	}
}

// TestOnePageDamaged: damage that the opening would not come across by itself is found.
func TestOnePageDamaged(t *testing.T) {
	said := &bytes.Buffer{}
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := mustOpen(t, Config{Path: path})
	for n := range 200 {
		in := benchIntent(n)
		must(t, l.Reserve(t.Context(), in))
		must(t, l.Commit(t.Context(), outcomeOf(in)))
	}
	pages, err := l.writer.conn.number("SELECT rootpage FROM sqlite_schema WHERE name = 'join_tokens'")
	must(t, err)
	must(t, l.Close())
	whole, err := os.ReadFile(path)
	must(t, err)
	copy(whole[(pages-1)*4096:pages*4096], bytes.Repeat([]byte{0x5a}, 4096))
	must(t, os.WriteFile(path, whole, 0o600))
	refuse(t, Config{Path: path, Logger: slog.New(slog.NewTextHandler(said, nil))}, path, "damaged", "restore a copy", "docs/operations.md")
	if !strings.Contains(said.String(), "took=") || !strings.Contains(said.String(), "sound=false") {
		t.Errorf("the log does not say how long the check took: %s", said)
	}
}

// TestDamagedWhileOpen: once a write has met damage the probe fails, until the ledger is opened again.
func TestDamagedWhileOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	l := mustOpen(t, Config{Path: path})
	must(t, l.Probe(t.Context()))
	root, err := l.writer.conn.number("SELECT rootpage FROM sqlite_schema WHERE name = 'join_tokens'")
	must(t, err)
	onConnection(t, l, "PRAGMA wal_checkpoint(TRUNCATE)")
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	defer file.Close()
	page := make([]byte, 4096)
	_, err = file.ReadAt(page, (root-1)*4096)
	must(t, err)
	_, err = file.WriteAt(bytes.Repeat([]byte{0x5a}, 4096), (root-1)*4096)
	must(t, err)
	onConnection(t, l, "PRAGMA shrink_memory") // or it would write from its cache

	token := ledger.JoinToken{Hash: []byte("hash"), ID: "id", Created: benchIntent(1).Created, Expires: benchIntent(1).Created.Add(1e15)}
	damaged := func(err error) {
		t.Helper()
		if err == nil || errors.Is(err, ledger.ErrUnavailable) || !strings.Contains(err.Error(), "the ledger file is damaged") {
			t.Errorf("got %v, want the damage", err)
		}
	}
	damaged(l.AddToken(t.Context(), token))
	damaged(l.Probe(t.Context()))
	_, err = file.WriteAt(page, (root-1)*4096)
	must(t, err)
	damaged(l.Probe(t.Context()))
	must(t, l.Close())
	must(t, mustOpen(t, Config{Path: path}).Probe(t.Context()))
}

// TestNewLedgerIsSaid: a ledger that has vanished is not silently begun anew.
func TestNewLedgerIsSaid(t *testing.T) {
	for name, prepare := range map[string]func(path string){
		"missing": func(string) {},
		"empty":   func(path string) { must(t, os.WriteFile(path, nil, 0o600)) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger.db")
			prepare(path)
			for _, want := range []bool{true, false} {
				said := &bytes.Buffer{}
				must(t, mustOpen(t, Config{Path: path, Logger: slog.New(slog.NewTextHandler(said, nil))}).Close())
				warned := strings.Contains(said.String(), `level=WARN msg="made a new, empty ledger" path=`+path)
				if warned != want {
					t.Errorf("warned: %v, want %v: %s", warned, want, said)
				}
			}
		})
	}
}
