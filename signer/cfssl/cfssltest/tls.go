package cfssltest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"testing"
	"time"
)

// TLS is the certificate of a server's TLS, for 127.0.0.1 and cfssl.example.org, and the CA that signed it.
type TLS struct {
	CA          *x509.Certificate
	Certificate tls.Certificate
}

// NewTLS makes a certificate that is valid for the twelve hours after now, after one thing in it was changed.
func NewTLS(t testing.TB, now time.Time, change func(*x509.Certificate)) TLS {
	t.Helper()
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "CFSSL server CA"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, SubjectKeyId: []byte("tls"),
	}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	must(t, err)
	ca, err = x509.ParseCertificate(der)
	must(t, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(12 * time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"cfssl.example.org"},
	}
	if change != nil {
		change(template)
	}
	leaf, err := x509.CreateCertificate(rand.Reader, template, ca, key.Public(), caKey)
	must(t, err)
	return TLS{CA: ca, Certificate: tls.Certificate{Certificate: [][]byte{leaf}, PrivateKey: key}}
}
