//go:build e2e

package interop

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chancery-ca/chancery/ca/pem"
)

// TestRevocationByOpenSSL is about the issuing certificates, which have to be fit to sign revocation lists. The product makes none yet, so they are made
// here, with the authority's keys.
func TestRevocationByOpenSSL(t *testing.T) {
	b := newBed(t)
	c := &issued{name: "workload-p256", dir: t.TempDir()}
	b.request(t, c)
	c.write(t, b.root)
	for _, revoked := range []bool{false, true} {
		answer := verdictOf(t, "openssl", "verify", "-x509_strict", "-crl_check_all", "-CRLfile", b.revocationLists(t, c, revoked), "-CAfile", c.file("root.pem"),
			"-untrusted", c.file("intermediates.pem"), "-attime", strconv.FormatInt(time.Now().Unix(), 10), c.file("leaf.pem"))
		if revoked != strings.Contains(answer, "certificate revoked") || !revoked && answer != "" {
			t.Errorf("revoked is %v, and OpenSSL says: %s", revoked, answer)
		}
	}
}

// revocationLists writes a list of the root and one of the issuer, which may hold the certificate.
func (b *bed) revocationLists(t *testing.T, c *issued, revoked bool) string {
	t.Helper()
	var lists []byte
	for _, authority := range []struct {
		certificate *x509.Certificate
		key         string
		entries     bool
	}{{b.root, "root-key.pem", false}, {c.chain[1], "issuer-key.pem", revoked}} {
		text, err := os.ReadFile(filepath.Join(b.dir, "pki", authority.key))
		if err != nil {
			t.Fatal(err)
		}
		blocks, err := pem.Decode(text, pem.Rules{Labels: []string{"PRIVATE KEY"}})
		if err != nil {
			t.Fatal(err)
		}
		key, err := x509.ParsePKCS8PrivateKey(blocks[0].Bytes)
		if err != nil {
			t.Fatal(err)
		}
		template := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: time.Now().Add(-time.Minute), NextUpdate: time.Now().Add(time.Hour)}
		if authority.entries {
			template.RevokedCertificateEntries = []x509.RevocationListEntry{{SerialNumber: c.chain[0].SerialNumber, RevocationTime: time.Now().Add(-time.Minute)}}
		}
		list, err := x509.CreateRevocationList(rand.Reader, template, authority.certificate, key.(crypto.Signer))
		if err != nil {
			t.Fatal(err)
		}
		lists = pem.Append(lists, "X509 CRL", list)
	}
	path := filepath.Join(t.TempDir(), "lists.pem")
	writeFile(t, path, lists)
	return path
}
