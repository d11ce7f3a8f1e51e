//go:build e2e

package e2e

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"net/url"
	"strings"
	"testing"
)

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newRSAKey(t *testing.T, bits int) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// newCSR makes a request with a new P-256 key and returns its DER. A nil template names nothing.
func newCSR(t *testing.T, template *x509.CertificateRequest) []byte {
	t.Helper()
	return signCSR(t, newKey(t), template)
}

func signCSR(t *testing.T, key crypto.Signer, template *x509.CertificateRequest) []byte {
	t.Helper()
	if template == nil {
		template = &x509.CertificateRequest{}
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// naming is a request for one URI.
func naming(t *testing.T, uri string) *x509.CertificateRequest {
	t.Helper()
	parsed, err := url.Parse(uri)
	if err != nil {
		t.Fatal(err)
	}
	return &x509.CertificateRequest{URIs: []*url.URL{parsed}}
}

// pilotCSR is what Istio's agent in a sidecar sends: RSA, one organization that is empty, and a critical name.
func pilotCSR(t *testing.T, id string) string {
	t.Helper()
	return pemCSR(signCSR(t, newRSAKey(t, 2048), &x509.CertificateRequest{
		Subject: pkix.Name{Organization: []string{""}}, ExtraExtensions: []pkix.Extension{criticalURI(t, id)},
	}))
}

// ztunnelCSR is what ztunnel sends: P-256, no subject, and a critical name.
func ztunnelCSR(t *testing.T, id string) string {
	t.Helper()
	return pemCSR(newCSR(t, &x509.CertificateRequest{ExtraExtensions: []pkix.Extension{criticalURI(t, id)}}))
}

func pemCSR(der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

// criticalURI is a critical subjectAltName of one URI (RFC 5280 §4.2.1.6).
func criticalURI(t *testing.T, uri string) pkix.Extension {
	t.Helper()
	value, err := asn1.Marshal([]asn1.RawValue{{Class: asn1.ClassContextSpecific, Tag: 6, Bytes: []byte(uri)}})
	if err != nil {
		t.Fatal(err)
	}
	return pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Critical: true, Value: value}
}

// asksForCA is basicConstraints with cA TRUE (RFC 5280 §4.2.1.9).
func asksForCA() *x509.CertificateRequest {
	return &x509.CertificateRequest{ExtraExtensions: []pkix.Extension{
		{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Critical: true, Value: []byte{0x30, 3, 1, 1, 0xff}},
	}}
}

// nameLength is the length of each of manyNames.
const nameLength = 50

// manyNames is a request for DNS names of that many octets together.
func manyNames(octets int) *x509.CertificateRequest {
	template := &x509.CertificateRequest{}
	for i := range octets / nameLength {
		template.DNSNames = append(template.DNSNames, fmt.Sprintf("%07d.%s.example.org", i, strings.Repeat("a", nameLength-7-13)))
	}
	return template
}
