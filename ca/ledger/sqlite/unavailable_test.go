package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/chancery-ca/chancery/ca/ledger"
)

// onConnection runs SQL on the writer's connection, which makes it fail as a test wants. The writer must be idle: every call has
// returned.
func onConnection(t testing.TB, l *Ledger, text string) {
	t.Helper()
	must(t, l.writer.conn.exec(text))
}

func wantUnavailable(t testing.TB, err error, cause string) {
	t.Helper()
	if !errors.Is(err, ledger.ErrUnavailable) || !strings.Contains(err.Error(), cause) {
		t.Errorf("got %v, want it unavailable because of %q", err, cause)
	}
}

func outcomeOf(in ledger.Intent) ledger.Outcome {
	return ledger.Outcome{Serial: in.Serial, Certificate: []byte("certificate"), NotBefore: in.Created, NotAfter: in.Created.Add(1e12)}
}

// TestFaultPasses makes every write fail and then succeed again, on one open ledger.
func TestFaultPasses(t *testing.T) {
	for name, fault := range map[string]struct{ begin, end, cause string }{
		"the file may not grow": {"PRAGMA max_page_count = 1", "PRAGMA max_page_count = 1000000", "full"},
		"the file is read-only": {"PRAGMA query_only = 1", "PRAGMA query_only = 0", "readonly"},
	} {
		t.Run(name, func(t *testing.T) {
			var flushes []Flush
			path := filepath.Join(t.TempDir(), "ledger.db")
			l := mustOpen(t, Config{Path: path, Flushed: func(f Flush) { flushes = append(flushes, f) }})
			before, during := benchIntent(1), benchIntent(2)
			during.Identity = "spiffe://example.org/never-seen-before"
			during.Rule = strings.Repeat("r", 30<<10) // more than the file has free pages for
			token := ledger.JoinToken{Hash: []byte("hash"), ID: "id", Created: before.Created, Expires: before.Created.Add(1e12)}
			during.JoinToken = token.Hash
			must(t, l.AddToken(t.Context(), token))
			must(t, l.Reserve(t.Context(), before))

			onConnection(t, l, fault.begin)
			committed := outcomeOf(before)
			committed.Certificate = make([]byte, 60<<10)
			for range 3 {
				wantUnavailable(t, l.Reserve(t.Context(), during), fault.cause)
				wantUnavailable(t, l.Commit(t.Context(), committed), fault.cause)
			}
			if _, err := l.Get(t.Context(), during.Serial); !errors.Is(err, ledger.ErrNotFound) {
				t.Errorf("the reservation that was refused: %v", err)
			}
			if e, err := l.Get(t.Context(), before.Serial); err != nil || e.State != ledger.Reserved {
				t.Errorf("the reservation that could not be settled is %s, %v", e.State, err)
			}
			if _, err := l.Token(t.Context(), token.Hash, before.Created); err != nil {
				t.Errorf("the token of the reservation that was refused: %v", err)
			}

			onConnection(t, l, fault.end)
			must(t, l.Reserve(t.Context(), during))
			must(t, l.Commit(t.Context(), committed))
			must(t, l.Commit(t.Context(), outcomeOf(during)))
			var open int
			must(t, l.readers.QueryRowContext(t.Context(), "SELECT count(*) FROM intents").Scan(&open))
			if open != 0 {
				t.Errorf("%d intents rows are left over", open)
			}
			must(t, l.Close())
			failed := 0
			for _, f := range flushes {
				if f.Err != nil {
					failed++
				}
			}
			if failed != 6 {
				t.Errorf("%d groups were reported as failed, want 6", failed)
			}
		})
	}
}

// TestDiskFull fills a real disk, and makes room again.
func TestDiskFull(t *testing.T) {
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=1m"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("CI runs as root, so that this test runs: mounting a small disk: %v", err)
		}
		t.Skipf("mounting a small disk: %v", err)
	}
	defer func() { must(t, syscall.Unmount(disk, 0)) }()
	l := mustOpen(t, Config{Path: filepath.Join(disk, "ledger.db")})
	defer l.Close()
	first := benchIntent(0)
	must(t, l.Reserve(t.Context(), first))
	filler := filepath.Join(disk, "filler")
	fill(t, filler)

	var acknowledged []ledger.Intent
	var refused ledger.Intent
	for n := 1; ; n++ {
		in := benchIntent(n)
		if err := l.Reserve(t.Context(), in); err != nil {
			wantUnavailable(t, err, "full")
			refused = in
			break
		}
		acknowledged = append(acknowledged, in)
	}
	wantUnavailable(t, l.Commit(t.Context(), outcomeOf(first)), "")
	wantUnavailable(t, l.Probe(t.Context()), "")
	for _, in := range acknowledged {
		if e, err := l.Get(t.Context(), in.Serial); err != nil || e.State != ledger.Reserved {
			t.Errorf("%s is %s, %v", in.Serial, e.State, err)
		}
	}
	if _, err := l.Get(t.Context(), refused.Serial); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("what was refused: %v", err)
	}

	must(t, os.Remove(filler))
	must(t, l.Probe(t.Context()))
	must(t, l.Reserve(t.Context(), refused))
	for _, in := range append(acknowledged, first, refused) {
		must(t, l.Commit(t.Context(), outcomeOf(in)))
	}
	t.Logf("%d reservations fitted on the full disk", len(acknowledged))
}

// fill writes a file until the disk has no room for a byte more.
func fill(t testing.TB, path string) {
	t.Helper()
	file, err := os.Create(path)
	must(t, err)
	defer file.Close()
	for err == nil {
		_, err = file.Write(make([]byte, 4096))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}

// TestOneBreaksTheTransaction: what breaks the transaction of a group fails alone.
func TestOneBreaksTheTransaction(t *testing.T) {
	l := mustOpen(t, Config{Path: filepath.Join(t.TempDir(), "ledger.db")})
	poison := errors.New("poison")
	good, reserved := benchIntent(1), benchIntent(2)
	must(t, l.Reserve(t.Context(), reserved))
	release := block(t, l)
	answers := make(chan error, 3)
	queue(t, l, func() { answers <- l.Reserve(t.Context(), good) })
	queue(t, l, func() {
		err := l.submit(t.Context(), "poisoning", &request{write: func(*group) (error, error) { return nil, poison }}, false)
		if !errors.Is(err, poison) || errors.Is(err, ledger.ErrUnavailable) {
			err = fmt.Errorf("the poisoned write got %w", err)
		} else {
			err = nil
		}
		answers <- err
	})
	queue(t, l, func() { answers <- l.Commit(t.Context(), outcomeOf(reserved)) })
	release()
	for range 3 {
		must(t, <-answers)
	}
	must(t, l.Commit(t.Context(), outcomeOf(good)))
}
