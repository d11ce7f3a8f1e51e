//go:build e2e

package chain_test

import (
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/ca/pem"
)

// TestOpenSSL has openssl verify what the encoder writes, with its strict checks, at the first second of each certificate. It takes the last one for
// expired, against RFC 5280 §4.1.2.5.
func TestOpenSSL(t *testing.T) {
	const rounds = 10
	dir := t.TempDir()
	file := func(name string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.Encode("CERTIFICATE", der), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	verify := func(issuer, leaf string, at int64) (string, error) {
		out, err := exec.Command("openssl", "verify", "-x509_strict", "-CAfile", issuer, "-attime", strconv.FormatInt(at, 10), leaf).CombinedOutput()
		return string(out), err
	}
	for kind, key := range leafKeys() {
		issuer := leafIssuer(t, key)
		algorithm, err := chain.AlgorithmFor(key.Public())
		if err != nil {
			t.Fatal(err)
		}
		anchor := file(kind+".pem", issuer.Raw)
		for seed := range uint64(rounds) {
			leaf := randomLeaf(t, mathrand.New(mathrand.NewPCG(seed, 1)))
			leaf.NotAfter = leaf.NotAfter.Add(time.Second)
			path := file("leaf.pem", signLeaf(t, leaf, issuer, algorithm, key))
			if out, err := verify(anchor, path, leaf.NotBefore.Unix()); err != nil {
				t.Errorf("issuer %s, seed %d, %+v: %v\n%s", kind, seed, leaf, err, out)
			}
			if out, err := verify(anchor, path, leaf.NotAfter.Unix()+1); err == nil {
				t.Errorf("issuer %s, seed %d: openssl takes an expired certificate\n%s", kind, seed, out)
			}
		}
	}
}
