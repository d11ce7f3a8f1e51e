package csr_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"net/url"
	"testing"

	"github.com/chancery-ca/chancery/csr"
)

// BenchmarkParse compares Parse with what crypto/x509 takes to parse and verify, and with the verification alone.
func BenchmarkParse(b *testing.B) {
	p256, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		b.Fatal(err)
	}
	for _, bench := range []struct {
		name string
		key  any
	}{{"P-256", p256}, {"Ed25519", edKey}, {"RSA-2048", rsaKey}} {
		der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
			URIs:     []*url.URL{{Scheme: "spiffe", Host: "cluster.local", Path: "/ns/default/sa/web"}},
			DNSNames: []string{"web.default.svc", "web.default.svc.cluster.local"},
		}, bench.key)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(bench.name+"/chancery", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := csr.Parse(der, csr.Rules{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(bench.name+"/x509", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				request, err := x509.ParseCertificateRequest(der)
				if err != nil {
					b.Fatal(err)
				}
				if err := request.CheckSignature(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	hash := sha256.Sum256(nil)
	signature, err := ecdsa.SignASN1(rand.Reader, p256, hash[:])
	if err != nil {
		b.Fatal(err)
	}
	b.Run("P-256/verification alone", func(b *testing.B) {
		for b.Loop() {
			if !ecdsa.VerifyASN1(&p256.PublicKey, hash[:], signature) {
				b.Fatal("the signature does not verify")
			}
		}
	})
}
