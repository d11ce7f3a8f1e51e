package chain

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"math/big"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// testNow is when the fixtures are valid.
var testNow = time.Date(2027, 1, 15, 12, 0, 0, 0, time.UTC)

// entity is somebody with a key and a certificate.
type entity struct {
	key         crypto.Signer
	certificate *x509.Certificate
}

// testKey returns one of a few keys that are made once.
func testKey(t testing.TB, number int) crypto.Signer {
	t.Helper()
	keys, err := testKeys()
	if err != nil {
		t.Fatal(err)
	}
	return keys[number]
}

const testKeyCount = 12

var testKeys = sync.OnceValues(func() ([]crypto.Signer, error) {
	keys := make([]crypto.Signer, testKeyCount)
	for i := range keys {
		var err error
		if i%2 == 0 {
			keys[i], err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		} else {
			_, keys[i], err = ed25519.GenerateKey(rand.Reader)
		}
		if err != nil {
			return nil, err
		}
	}
	return keys, nil
})

// weakKey is of a size that no policy allows.
var weakKey = sync.OnceValues(func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, 1024) })

// rootTemplate, intermediateTemplate and leafTemplate are a path in which there is nothing to refuse.
func rootTemplate() *x509.Certificate { return caTemplate("Root", 1) }

func intermediateTemplate() *x509.Certificate {
	template := caTemplate("Intermediate", 2)
	template.MaxPathLen, template.MaxPathLenZero = 0, true
	return template
}

func caTemplate(name string, serial int64) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{Organization: []string{"Example"}, CommonName: name},
		NotBefore: testNow.Add(-time.Hour), NotAfter: testNow.Add(time.Hour),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, BasicConstraintsValid: true, IsCA: true, MaxPathLen: -1,
		SubjectKeyId: []byte(name),
	}
}

func leafTemplate() *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(3), Subject: pkix.Name{CommonName: "leaf"},
		NotBefore: testNow.Add(-time.Minute), NotAfter: testNow.Add(time.Minute),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
		DNSNames:              []string{"leaf.example.test", "*.wild.example.test"}, IPAddresses: []net.IP{net.IPv4(192, 0, 2, 7).To4()},
		URIs: []*url.URL{{Scheme: "spiffe", Host: "example.test", Path: "/ns/a/sa/b"}},
	}
}

// issue signs a template; a nil issuer signs itself.
func issue(t testing.TB, template *x509.Certificate, key crypto.Signer, issuer *entity) *entity {
	t.Helper()
	parent, signer := template, key
	if issuer != nil {
		parent, signer = issuer.certificate, issuer.key
	}
	encoding, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(encoding)
	if err != nil {
		t.Fatal(err)
	}
	return &entity{key, certificate}
}

// fixture is a path whose parts a test changes before it is signed.
type fixture struct {
	root, intermediate, leaf *x509.Certificate
	keys                     [3]crypto.Signer // of root, intermediate and leaf
	options                  VerifyOptions
	// signed is called with root and intermediate once they are there, to add to the options
	signed func(root, intermediate *entity)
}

func newFixture(t testing.TB) *fixture {
	return &fixture{
		root: rootTemplate(), intermediate: intermediateTemplate(), leaf: leafTemplate(),
		keys:    [3]crypto.Signer{testKey(t, 0), testKey(t, 1), testKey(t, 2)},
		options: VerifyOptions{At: testNow, Host: "leaf.example.test", Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}},
	}
}

func (f *fixture) verify(t testing.TB) (*Path, error) {
	t.Helper()
	root := issue(t, f.root, f.keys[0], nil)
	intermediate := issue(t, f.intermediate, f.keys[1], root)
	leaf := issue(t, f.leaf, f.keys[2], intermediate)
	f.options.Roots = append(f.options.Roots, root.certificate)
	f.options.Intermediates = append(f.options.Intermediates, intermediate.certificate)
	if f.signed != nil {
		f.signed(root, intermediate)
	}
	return Verify(leaf.certificate, f.options)
}

// wantRefusal checks that an error is of a position and a rule.
func wantRefusal(t *testing.T, err error, position int, rule string) {
	t.Helper()
	var refusal *Error
	if !errors.As(err, &refusal) {
		t.Fatalf("found %v, want a refusal by %s", err, rule)
	}
	if refusal.Position != position || !strings.Contains(refusal.Rule, rule) {
		t.Errorf("found position %d and %q (%s), want position %d and %q", refusal.Position, refusal.Rule, refusal.Detail, position, rule)
	}
}

// testExtension is an extension with a value of DER.
func testExtension(id asn1.ObjectIdentifier, critical bool, value []byte) pkix.Extension {
	return pkix.Extension{Id: id, Critical: critical, Value: value}
}

var (
	testIDNameConstraints = asn1.ObjectIdentifier{2, 5, 29, 30}
	testIDPrivate         = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 58270, 1}
)

// element returns a DER element of the parts.
func element(tag byte, parts ...[]byte) []byte {
	contents := bytes.Join(parts, nil)
	switch n := len(contents); {
	case n < 0x80:
		return append([]byte{tag, byte(n)}, contents...)
	case n < 0x100:
		return append([]byte{tag, 0x81, byte(n)}, contents...)
	case n < 0x10000:
		return append([]byte{tag, 0x82, byte(n >> 8), byte(n)}, contents...)
	default:
		return append([]byte{tag, 0x83, byte(n >> 16), byte(n >> 8), byte(n)}, contents...)
	}
}
