package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/chancery-ca/chancery/ca/ledger"
)

// TestDiskFull: without room for the ledger no certificate leaves; the client is told to try again, the token is still good, and with room again all goes
// on by itself.
func TestDiskFull(t *testing.T) {
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=2m"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("CI runs as root, so that this test runs: mounting a small disk: %v", err)
		}
		t.Skipf("mounting a small disk: %v", err)
	}
	p := newPlace(t, disk)
	t.Cleanup(func() {
		p.kill()
		must(t, syscall.Unmount(disk, 0))
	})
	const identity = "spiffe://example.org/vm/web-1"
	tokens := []string{p.token(identity), p.token(identity)}
	filler := filepath.Join(disk, "filler")
	must(t, fill(filler))

	// what is free in the ledger's own files may be enough for a few
	token := tokens[0]
	for {
		code, stderr := p.request(token, "full")
		if code == exitUnavailable && strings.Contains(stderr, "the ledger cannot record this certificate, so it is not issued; try again (Unavailable)") {
			break
		}
		if code != exitDone {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
		if code, stdout, _ := p.chancery("token", "create", "--config", "ca/chancery.yaml", "--identity", identity); code == exitDone {
			token = strings.TrimSpace(stdout)
		} else if token != tokens[1] {
			token = tokens[1]
		} else {
			t.Fatal("the ledger has room for more than there are tokens: make the disk smaller")
		}
	}
	issued := p.count(ledger.Issued, identity)
	if code, stderr := p.request(token, "out"); code != exitUnavailable {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if _, err := os.Stat(filepath.Join(p.dir, "out", "key.pem")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is a key: %v", err)
	}
	if n := p.count(ledger.Issued, identity); n != issued {
		t.Errorf("the ledger shows %d certificates more", n-issued)
	}
	must(t, p.says("/readyz", "[-] ledger: "))
	if body, err := p.get("/livez"); err != nil {
		t.Errorf("alive says %v:\n%s", err, body)
	}

	must(t, os.Remove(filler))
	if code, stderr := p.request(token, "out"); code != exitDone {
		t.Fatalf("with room again: exit code %d: %s", code, stderr)
	}
	must(t, p.says("/readyz", "[+] ledger: "))
	if n := p.count(ledger.Issued, identity); n != issued+1 {
		t.Errorf("the ledger shows %d certificates more", n-issued)
	}
	if strings.Contains(p.text(), "cjt_") {
		t.Error("a token is in the log")
	}
}

// fill writes a file until its disk is full.
func fill(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	for err == nil {
		_, err = file.Write(make([]byte, 4096))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return errors.Join(err, file.Close())
	}
	return file.Close()
}
