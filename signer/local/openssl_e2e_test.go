//go:build e2e

package local_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chancery-ca/chancery/ca/pem"
	"github.com/chancery-ca/chancery/signer/local"
	"github.com/chancery-ca/chancery/signer/signertest"
)

// TestOpenSSL has openssl verify a new hierarchy and a leaf under it, with its strict checks.
func TestOpenSSL(t *testing.T) {
	at := time.Now()
	h, err := local.Create(signertest.TrustDomain, at)
	must(t, err)
	s, err := local.New(local.Config{Key: h.IssuerKey, Chain: []*x509.Certificate{h.Issuer}, Roots: roots(t, h.Root)}, at)
	must(t, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	signed, err := s.Sign(t.Context(), signertest.NewOrder(t, 1, key, at))
	must(t, err)

	dir := t.TempDir()
	file := func(name string, certificate *x509.Certificate) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, pem.Encode("CERTIFICATE", certificate.Raw), 0o600))
		return path
	}
	root, issuer, leaf := file("root.pem", h.Root), file("issuer.pem", h.Issuer), file("leaf.pem", signed.Leaf())
	verify := func(wantOK bool, arguments ...string) {
		t.Helper()
		command := exec.Command("openssl", append([]string{"verify", "-x509_strict", "-check_ss_sig", "-auth_level", "2", "-CAfile", root}, arguments...)...)
		out, err := command.CombinedOutput()
		if (err == nil) != wantOK {
			t.Errorf("openssl %v: %v\n%s", arguments, err, out)
		}
	}
	verify(true, root)
	verify(true, issuer)
	verify(true, "-untrusted", issuer, "-purpose", "sslserver", leaf)
	verify(true, "-untrusted", issuer, "-purpose", "sslclient", leaf)
	verify(false, "-untrusted", issuer, "-purpose", "smimesign", leaf)
	verify(false, leaf) // without the issuer there is no path: openssl does look

	out, err := exec.Command("openssl", "x509", "-in", leaf, "-noout", "-text").CombinedOutput()
	must(t, err)
	if !bytes.Contains(out, []byte("URI:spiffe://example.org/workload/1")) {
		t.Errorf("openssl reads\n%s", out)
	}
}
