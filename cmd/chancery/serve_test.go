package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chancery-ca/chancery/ca/ledger"
)

// place is a new authority in a directory of its own, and whoever asks it.
type place struct {
	t   *testing.T
	dir string
	*running
}

// newPlace makes an authority. Its ledger is where ledgerDir says, if it says anything.
func newPlace(t *testing.T, ledgerDir string) *place {
	t.Helper()
	p := &place{t: t, dir: t.TempDir()}
	p.succeed("init", "--dir", "ca", "--trust-domain", "example.org", "--ip", "127.0.0.1", "--listen-grpc", "127.0.0.1:0", "--listen-http", "127.0.0.1:0")
	if ledgerDir != "" {
		path := filepath.Join(p.dir, "ca", "chancery.yaml")
		text, err := os.ReadFile(path)
		must(t, err)
		must(t, os.WriteFile(path, bytes.Replace(text, []byte("path: chancery.db"), []byte("path: "+filepath.Join(ledgerDir, "chancery.db")), 1), 0o600))
	}
	var err error
	p.running, err = startServer(filepath.Join("ca", "chancery.yaml"), p.dir)
	must(t, err)
	t.Cleanup(p.kill)
	return p
}

// chancery runs a command and returns its exit code and what it says.
func (p *place) chancery(args ...string) (code int, stdout, stderr string) {
	p.t.Helper()
	var out, problems bytes.Buffer
	command := exec.Command("chancery", args...)
	command.Dir, command.Stdout, command.Stderr, command.Env = p.dir, &out, &problems, append(os.Environ(), "GORACE="+raceOptions)
	if err := command.Run(); err != nil {
		if _, ended := errors.AsType[*exec.ExitError](err); !ended {
			p.t.Error(err)
		}
	}
	return command.ProcessState.ExitCode(), out.String(), problems.String()
}

func (p *place) succeed(args ...string) string {
	p.t.Helper()
	code, stdout, stderr := p.chancery(args...)
	if code != exitDone {
		p.t.Fatalf("%s: exit code %d: %s", args[0], code, stderr)
	}
	return stdout
}

// token makes a join token.
func (p *place) token(identity string) string {
	p.t.Helper()
	return strings.TrimSpace(p.succeed("token", "create", "--config", "ca/chancery.yaml", "--identity", identity))
}

func (p *place) request(token, out string) (code int, stderr string) {
	p.t.Helper()
	code, _, stderr = p.chancery("request", "--server", p.grpc, "--root", "ca/pki/roots.pem", "--join-token", token, "--out", out)
	return code, stderr
}

// count returns how many issuances the ledger shows in a state, for an identity.
func (p *place) count(state ledger.State, identity string) int {
	p.t.Helper()
	return strings.Count(p.succeed("certs", "list", "--config", "ca/chancery.yaml", "--identity", identity, "--state", string(state), "-o", "json"), `"serial"`)
}

// TestOneTokenManyClients: of clients that race with one token, one wins, and the others are told that somebody was faster.
func TestOneTokenManyClients(t *testing.T) {
	p := newPlace(t, "")
	const identity = "spiffe://example.org/vm/web-1"
	for round := range 3 {
		token := p.token(identity)
		codes, texts := make([]int, 6), make([]string, 6)
		var clients sync.WaitGroup
		for i := range codes {
			clients.Go(func() { codes[i], texts[i] = p.request(token, fmt.Sprintf("out-%d-%d", round, i)) })
		}
		clients.Wait()
		won := 0
		for i, code := range codes {
			_, err := os.Stat(filepath.Join(p.dir, fmt.Sprintf("out-%d-%d", round, i), "key.pem"))
			switch {
			case code == exitDone && err == nil:
				won++
			case code != exitRefused || !errors.Is(err, fs.ErrNotExist) || !strings.Contains(texts[i], "was already used"):
				t.Errorf("client %d: exit code %d, %v: %s", i, code, err, texts[i])
			}
		}
		if won != 1 {
			t.Errorf("%d clients won", won)
		}
	}
	if n := p.count(ledger.Issued, identity); n != 3 {
		t.Errorf("the ledger shows %d certificates", n)
	}
	if n := p.count(ledger.Reserved, identity); n != 0 {
		t.Errorf("the ledger shows %d reservations", n)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
