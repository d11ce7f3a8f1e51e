//go:build e2e

package interop

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chancery-ca/chancery/api/client"
	"github.com/chancery-ca/chancery/ca/pem"
)

// issued is a certificate that went through the whole pipeline. Its files are for judges that are programs: leaf.pem, intermediates.pem,
// chain.pem (both), root.pem and key.pem.
type issued struct {
	name    string // as "serving-p256"
	serving bool   // for names of servers; otherwise for the workload's SPIFFE ID
	key     crypto.Signer
	chain   []*x509.Certificate // leaf first, without the root
	dir     string
}

func (c *issued) file(name string) string { return filepath.Join(c.dir, name) }

// keys are the kinds of keys that are certified, by name. Those of P-256 are made by the command.
var keys = []struct {
	name string
	make func() (crypto.Signer, error)
}{
	{"p256", nil},
	{"p384", func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P384(), rand.Reader) }},
	{"rsa2048", func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, 2048) }},
	{"ed25519", func() (crypto.Signer, error) {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	}},
}

// issueAll gets a certificate of both profiles for every kind of key.
func (b *bed) issueAll(t *testing.T) []*issued {
	t.Helper()
	var all []*issued
	for _, key := range keys {
		for _, serving := range []bool{false, true} {
			c := &issued{name: "workload-" + key.name, serving: serving, dir: t.TempDir()}
			if serving {
				c.name = "serving-" + key.name
			}
			if key.make == nil {
				b.request(t, c)
			} else {
				b.issue(t, c, key.make)
			}
			c.write(t, b.root)
			all = append(all, c)
		}
	}
	return all
}

// own returns the certificate that the server has issued to itself, without its key, which stays in the server.
func (b *bed) own(t *testing.T) *issued {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(b.root)
	connection, err := tls.Dial("tcp", b.address, &tls.Config{MinVersion: tls.VersionTLS12, ServerName: "localhost", RootCAs: roots, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	c := &issued{name: "server", serving: true, chain: connection.ConnectionState().PeerCertificates, dir: t.TempDir()}
	c.write(t, b.root)
	return c
}

// request gets a certificate with a P-256 key as a person does.
func (b *bed) request(t *testing.T, c *issued) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	args := []string{"request", "--server", b.address, "--root", b.rootFile(), "--join-token", b.token(t), "--out", out}
	if c.serving {
		args = append(args, "--profile", "serving", "--dns", strings.Join(dnsNames, ","), "--ip", strings.Join(addresses, ","))
	}
	b.run(t, args...)
	c.chain = readCertificates(t, filepath.Join(out, "chain.pem"))
	text, err := os.ReadFile(filepath.Join(out, "key.pem"))
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
	c.key = key.(crypto.Signer)
	bundle := readCertificates(t, filepath.Join(out, "bundle.pem"))
	if len(bundle) != 1 || !bundle[0].Equal(b.root) {
		t.Errorf("the bundle that came with %s is not the authority's root", c.name)
	}
}

// issue gets a certificate with a key of another kind, as a program does.
func (b *bed) issue(t *testing.T, c *issued, newKey func() (crypto.Signer, error)) {
	t.Helper()
	connection, err := client.Dial(client.Config{Address: b.address, Roots: []*x509.Certificate{b.root}})
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if c.key, err = newKey(); err != nil {
		t.Fatal(err)
	}
	request := client.Request{Key: c.key, Token: b.token(t)}
	if c.serving {
		request.Profile, request.DNSNames, request.IPAddresses = "serving", dnsNames, addresses
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	answer, err := connection.Issue(ctx, request)
	if err != nil {
		t.Fatalf("issuing %s: %v", c.name, err)
	}
	c.chain = answer.Chain
}

// write lays out the files for programs.
func (c *issued) write(t *testing.T, root *x509.Certificate) {
	t.Helper()
	if c.key != nil {
		key, err := x509.MarshalPKCS8PrivateKey(c.key)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, c.file("key.pem"), pem.Encode("PRIVATE KEY", key))
	}
	leaf := pem.Encode("CERTIFICATE", c.chain[0].Raw)
	var intermediates []byte
	for _, certificate := range c.chain[1:] {
		intermediates = pem.Append(intermediates, "CERTIFICATE", certificate.Raw)
	}
	for name, text := range map[string][]byte{
		"leaf.pem": leaf, "intermediates.pem": intermediates, "chain.pem": append(leaf[:len(leaf):len(leaf)], intermediates...),
		"root.pem": pem.Encode("CERTIFICATE", root.Raw),
	} {
		writeFile(t, c.file(name), text)
	}
}
