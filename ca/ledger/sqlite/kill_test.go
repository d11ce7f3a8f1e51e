package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chancery-ca/chancery/ca/ledger"
)

// killEnv tells the test binary that it is the child to be killed, and which file it writes.
const killEnv = "CHANCERY_TEST_KILL_LEDGER"

// TestKill kills a server under load, again and again, and looks whether all that it acknowledged is there.
func TestKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	said := map[string]string{} // by serial or token: the last thing that was acknowledged
	for round := range 20 {
		now := map[string]string{}
		killOne(t, path, 20+97*round%400, now)
		checkSaid(t, path, now)
		maps.Copy(said, now)
	}
	checkSaid(t, path, said)
	issued := 0
	for _, what := range said {
		if what == "committed" {
			issued++
		}
	}
	if issued == 0 {
		t.Error("nothing was ever issued: the test proves nothing")
	}
	t.Logf("%d acknowledgements, %d of them certificates", len(said), issued)
}

// killOne runs a child until it has acknowledged so much, kills it, and notes all that it said.
func killOne(t *testing.T, path string, acknowledgements int, said map[string]string) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestKilledChild$", "-test.count=1")
	child.Env = append(os.Environ(), killEnv+"="+path)
	var report, stderr strings.Builder // what a child that fails says
	child.Stderr = &stderr
	output, err := child.StdoutPipe()
	must(t, err)
	must(t, child.Start())
	lines := bufio.NewScanner(output)
	for n := 0; lines.Scan(); n++ {
		what, which, ok := strings.Cut(lines.Text(), " ")
		if !ok || strings.HasPrefix(what, "-") || what == "" {
			fmt.Fprintln(&report, lines.Text())
			continue
		}
		said[which] = what
		if n == acknowledgements {
			must(t, child.Process.Kill())
		}
	}
	if err := child.Wait(); child.ProcessState.ExitCode() >= 0 {
		t.Fatalf("the child ended by itself: %v\n%s%s", err, report.String(), stderr.String())
	}
}

// checkSaid opens the ledger without any help and looks for everything that was acknowledged.
func checkSaid(t *testing.T, path string, said map[string]string) {
	t.Helper()
	l := mustOpen(t, Config{Path: path})
	defer l.Close()
	for which, what := range said {
		if what == "token" {
			hash, err := ledger.ParseSerial(which)
			must(t, err)
			if _, err := l.Token(t.Context(), []byte(hash), time.Now()); err != nil && !errors.Is(err, ledger.ErrTokenUsed) {
				t.Errorf("token %s: %v", which, err)
			}
			continue
		}
		serial, err := ledger.ParseSerial(which)
		must(t, err)
		e, err := l.Get(t.Context(), serial)
		if err != nil {
			t.Errorf("%s was %s: %v", serial, what, err)
			continue
		}
		_, err = l.Token(t.Context(), e.JoinToken, time.Now())
		spent := errors.Is(err, ledger.ErrTokenUsed)
		switch {
		case what == "committed" && (e.State != ledger.Issued || string(e.Outcome.Certificate) != which):
			t.Errorf("%s was committed and is %s", serial, e.State)
		case what == "failed" && e.State != ledger.Failed:
			t.Errorf("%s failed and is %s", serial, e.State)
		case e.State == ledger.Issued != spent:
			t.Errorf("%s is %s, and its token: %v", serial, e.State, err)
		}
	}
	var answer string
	must(t, l.readers.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&answer))
	if answer != "ok" {
		t.Error(answer)
	}
	var open int
	must(t, l.readers.QueryRowContext(t.Context(), "SELECT count(*) FROM intents").Scan(&open))
	if open != 0 {
		t.Errorf("%d intents were not read back", open)
	}
}

// TestKilledChild is the child: it issues as fast as it can and says what was acknowledged, until it is killed.
func TestKilledChild(t *testing.T) {
	path := os.Getenv(killEnv)
	if path == "" {
		t.Skip("runs in the child process of TestKill")
	}
	l := mustOpen(t, Config{Path: path})
	say := func(what, which string) { fmt.Fprintf(os.Stdout, "%s %s\n", what, which) } // one write each: lines stay whole
	ctx := context.Background()
	var callers sync.WaitGroup
	var failures atomic.Int64
	for caller := range 32 {
		callers.Go(func() {
			for n := 0; failures.Load() == 0; n++ {
				if err := issueOnce(ctx, l, caller+n, say); err != nil {
					failures.Add(1)
					t.Error(err)
				}
			}
		})
	}
	callers.Wait()
}

func issueOnce(ctx context.Context, l *Ledger, n int, say func(what, which string)) error {
	in := benchIntent(n)
	serial := in.Serial.String()
	in.JoinToken = in.KeyID[:20]
	in.JoinToken[0] = 0x7f // so that it can be written as a serial
	token := ledger.JoinToken{Hash: in.JoinToken, ID: strconv.Itoa(n), Created: in.Created, Expires: in.Created.Add(time.Hour)}
	if err := l.AddToken(ctx, token); err != nil {
		return err
	}
	say("token", ledger.Serial(token.Hash).String())
	if err := l.Reserve(ctx, in); err != nil {
		return err
	}
	say("reserved", serial)
	if n%5 == 0 {
		if err := l.Fail(ctx, ledger.Outcome{Serial: in.Serial, Reason: "no"}); err != nil {
			return err
		}
		say("failed", serial)
		return nil
	}
	err := l.Commit(ctx, ledger.Outcome{
		Serial: in.Serial, Certificate: []byte(serial), NotBefore: in.Created, NotAfter: in.Created.Add(time.Hour),
	})
	if err == nil {
		say("committed", serial)
	}
	return err
}
