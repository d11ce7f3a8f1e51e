package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/chancery-ca/chancery/ca/pem"
)

// fixturesAt is the time that the fixtures are made at. Scripts say --at with a time near it.
var fixturesAt = time.Date(2027, 1, 15, 12, 0, 0, 0, time.UTC)

// fixtures are files of a small hierarchy, the same octets at every run: keys come from their names, signatures are those of RFC 6979.
type fixtures struct {
	dir string
	err error
}

func writeFixtures(dir string) error {
	f := &fixtures{dir: dir}
	root, rootKey := f.authority("Example Root", nil, nil, 10)
	issuing, issuingKey := f.authority("Example Issuing", root, rootKey, 5)
	f.certificates("root.pem", root)
	f.certificates("issuing.pem", issuing)

	id := "spiffe://example.org/ns/shop/sa/cart"
	leaf := f.leaf("cart", 0x1001, 43*time.Minute, issuing, issuingKey, func(c *x509.Certificate) { c.URIs = []*url.URL{f.url(id)} })
	web := f.leaf("web", 0x1002, 600*24*time.Hour, issuing, issuingKey, func(c *x509.Certificate) {
		c.Subject, c.DNSNames = pkix.Name{CommonName: "web.example.org"}, []string{"web.example.org", "*.web.example.org"}
	})
	hostile := f.leaf("hostile", 0x1003, time.Hour, issuing, issuingKey, func(c *x509.Certificate) {
		c.Subject, c.DNSNames = pkix.Name{CommonName: "a\x1b[2J\x1b]0;owned\a\u202eb\u009bc"}, []string{"a.example.org"}
	})
	f.certificates("leaf.pem", leaf)
	f.certificates("chain.pem", leaf, issuing)
	f.certificates("full.pem", leaf, issuing, root)
	f.certificates("backwards.pem", issuing, leaf)
	f.certificates("web.pem", web)
	f.certificates("hostile.pem", hostile)
	f.write("leaf.der", leaf.Raw)
	f.write("leaf.ber", longerLength(leaf.Raw))

	key := f.pkcs8("cart")
	f.write("key.pem", pem.Encode("PRIVATE KEY", key))
	f.write("mixed.pem", append(pem.Encode("CERTIFICATE", leaf.Raw), pem.Encode("PRIVATE KEY", key)...))
	f.write("other-key.pem", pem.Encode("PRIVATE KEY", f.pkcs8("other")))

	request := f.request("cart", &x509.CertificateRequest{URIs: []*url.URL{f.url(id)}})
	f.write("cart.csr", pem.Encode("CERTIFICATE REQUEST", request))
	f.write("greedy.csr", pem.Encode("CERTIFICATE REQUEST", f.request("greedy", &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "admin", Organization: []string{"system:admins"}}, DNSNames: []string{"api.example.org"},
	})))
	f.lists("issuing.crl", issuing, issuingKey)
	f.bundle(root)
	f.objects(request, leaf, issuing)
	return f.err
}

func (f *fixtures) keep(err error) {
	if f.err == nil {
		f.err = err
	}
}

func (f *fixtures) write(name string, content []byte) {
	f.keep(os.WriteFile(filepath.Join(f.dir, name), content, 0o600))
}

func (f *fixtures) url(text string) *url.URL {
	u, err := url.Parse(text)
	f.keep(err)
	return u
}

// key returns the P-256 key of a name.
func (f *fixtures) key(name string) *ecdsa.PrivateKey {
	seed := sha256.Sum256([]byte("a fixture of chancery, " + name))
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), seed[:])
	f.keep(err)
	return key
}

func (f *fixtures) pkcs8(name string) []byte {
	encoding, err := x509.MarshalPKCS8PrivateKey(f.key(name))
	f.keep(err)
	return encoding
}

func (f *fixtures) authority(name string, issuer *x509.Certificate, issuerKey *ecdsa.PrivateKey, years int) (*x509.Certificate, *ecdsa.PrivateKey) {
	key := f.key(name)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(int64(years)), Subject: pkix.Name{CommonName: name}, NotBefore: fixturesAt.AddDate(-1, 0, 0), NotAfter: fixturesAt.AddDate(years, 0, 0),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, BasicConstraintsValid: true, IsCA: true, SubjectKeyId: f.keyID(key),
	}
	if issuer == nil {
		issuer, issuerKey = template, key
	} else {
		template.MaxPathLenZero = true
	}
	return f.sign(template, issuer, key, issuerKey), key
}

func (f *fixtures) leaf(name string, serial int64, life time.Duration, issuer *x509.Certificate, issuerKey *ecdsa.PrivateKey, with func(*x509.Certificate)) *x509.Certificate {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), NotBefore: fixturesAt.Add(-time.Minute), NotAfter: fixturesAt.Add(life), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, BasicConstraintsValid: true,
	}
	with(template)
	return f.sign(template, issuer, f.key(name), issuerKey)
}

func (f *fixtures) sign(template, issuer *x509.Certificate, key, issuerKey *ecdsa.PrivateKey) *x509.Certificate {
	encoding, err := x509.CreateCertificate(nil, template, issuer, key.Public(), issuerKey)
	f.keep(err)
	certificate, err := x509.ParseCertificate(encoding)
	f.keep(err)
	return certificate
}

func (f *fixtures) keyID(key *ecdsa.PrivateKey) []byte {
	octets, err := key.PublicKey.Bytes()
	f.keep(err)
	sum := sha256.Sum256(octets)
	return sum[:20]
}

func (f *fixtures) certificates(name string, certificates ...*x509.Certificate) {
	f.write(name, encode(certificates))
}

func (f *fixtures) request(name string, template *x509.CertificateRequest) []byte {
	encoding, err := x509.CreateCertificateRequest(nil, template, f.key(name))
	f.keep(err)
	return encoding
}

func (f *fixtures) lists(name string, issuer *x509.Certificate, key *ecdsa.PrivateKey) {
	encoding, err := x509.CreateRevocationList(nil, &x509.RevocationList{
		Number: big.NewInt(7), ThisUpdate: fixturesAt.Add(-time.Hour), NextUpdate: fixturesAt.Add(6 * 24 * time.Hour),
		RevokedCertificateEntries: []x509.RevocationListEntry{
			{SerialNumber: big.NewInt(0x1002), RevocationTime: fixturesAt.Add(-2 * time.Hour), ReasonCode: 1},
			{SerialNumber: big.NewInt(0x2001), RevocationTime: fixturesAt.Add(-3 * time.Hour)},
		},
	}, issuer, key)
	f.keep(err)
	f.write(name, pem.Encode("X509 CRL", encoding))
}

// bundle writes a SPIFFE bundle.
func (f *fixtures) bundle(root *x509.Certificate) {
	point, err := f.key("jwt").PublicKey.Bytes()
	f.keep(err)
	text, err := json.MarshalIndent(map[string]any{
		"keys": []map[string]any{
			{"kty": "EC", "use": "x509-svid", "crv": "P-256", "x5c": [][]byte{root.Raw}},
			{"kty": "EC", "use": "jwt-svid", "crv": "P-256", "kid": "k1",
				"x": base64.RawURLEncoding.EncodeToString(point[1:33]), "y": base64.RawURLEncoding.EncodeToString(point[33:])},
		},
		"spiffe_sequence": 12, "spiffe_refresh_hint": 300,
	}, "", "  ")
	f.keep(err)
	f.write("bundle.json", text)
}

// objects writes what kubectl prints.
func (f *fixtures) objects(request []byte, chain ...*x509.Certificate) {
	csr := base64.StdEncoding.EncodeToString(pem.Encode("CERTIFICATE REQUEST", request))
	certificate := base64.StdEncoding.EncodeToString(encode(chain))
	f.write("csr.yaml", []byte(strings.TrimLeft(fmt.Sprintf(`
apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata:
  creationTimestamp: "2027-01-15T11:58:00Z"
  name: cart-x7k2p
spec:
  expirationSeconds: 2640
  groups:
  - system:serviceaccounts
  - system:authenticated
  request: %s
  signerName: chancery.dev/workload
  usages:
  - digital signature
  - server auth
  - client auth
  username: system:serviceaccount:shop:cart
status:
  certificate: %s
  conditions:
  - message: the service account may have its own SPIFFE ID
    reason: PolicyAllows
    status: "True"
    type: Approved
`, csr, certificate), "\n")))
	list, err := json.MarshalIndent(map[string]any{
		"apiVersion": "v1", "kind": "List", "items": []map[string]any{
			{"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": map[string]any{"name": "cart-aaaaa"},
				"spec": map[string]any{"request": csr, "signerName": "chancery.dev/workload", "usages": []string{"client auth"}}},
			{"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": map[string]any{"name": "cart-bbbbb"},
				"spec":   map[string]any{"request": csr, "signerName": "chancery.dev/workload", "usages": []string{"client auth"}},
				"status": map[string]any{"conditions": []map[string]any{{"type": "Denied", "reason": "NotYours", "message": "not your name"}}}},
		},
	}, "", "  ")
	f.keep(err)
	f.write("csrs.json", list)
}

// longerLength writes the length of the outer SEQUENCE in four octets, as BER allows.
func longerLength(der []byte) []byte {
	var outer asn1.RawValue
	if _, err := asn1.Unmarshal(der, &outer); err != nil {
		return nil
	}
	n := len(outer.Bytes)
	return append([]byte{0x30, 0x84, 0, 0, byte(n >> 8), byte(n)}, outer.Bytes...)
}
