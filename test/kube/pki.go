package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// lifetime of the test bed's certificates: longer than anyone keeps a state directory.
const lifetime = 365 * 24 * time.Hour

// pair is a certificate and its key; both are in the state directory as name.crt and name.key.
type pair struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// preparePKI makes the keys and certificates that are not in the directory yet.
func (s *state) preparePKI() error {
	ca, err := s.authority("ca")
	if err != nil {
		return err
	}
	// The cluster's CSR signers have a CA of their own, so that the two are never taken for each other.
	if _, err := s.authority("csr-ca"); err != nil {
		return err
	}
	// With a CA for the front proxy, the API server publishes extension-apiserver-authentication.
	proxy, err := s.authority("front-proxy-ca")
	if err != nil {
		return err
	}
	for _, leaf := range []struct {
		name    string
		issuer  pair
		subject pkix.Name
		usage   x509.ExtKeyUsage
	}{
		{"apiserver", ca, pkix.Name{CommonName: "kube-apiserver"}, x509.ExtKeyUsageServerAuth},
		{"admin", ca, pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}}, x509.ExtKeyUsageClientAuth},
		{"kcm", ca, pkix.Name{CommonName: "system:kube-controller-manager"}, x509.ExtKeyUsageClientAuth},
		{"front-proxy-client", proxy, pkix.Name{CommonName: "front-proxy-client"}, x509.ExtKeyUsageClientAuth},
	} {
		template := &x509.Certificate{
			Subject:     leaf.subject,
			KeyUsage:    x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{leaf.usage},
		}
		if leaf.usage == x509.ExtKeyUsageServerAuth {
			template.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}
			template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv4(10, 0, 0, 1)}
		}
		if _, err := s.issue(leaf.name, template, leaf.issuer); err != nil {
			return err
		}
	}
	return s.tokenKey()
}

// authority returns the self-signed CA called name.
func (s *state) authority(name string) (pair, error) {
	return s.issue(name, &x509.Certificate{
		Subject:               pkix.Name{CommonName: "kubetest-" + name},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
	}, pair{})
}

// issue returns the certificate called name as it is in the directory, or makes it from template:
// signed by issuer, or by itself if issuer is the zero pair.
func (s *state) issue(name string, template *x509.Certificate, issuer pair) (pair, error) {
	p, err := s.load(name)
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		return p, err
	}
	key, err := s.newKey(name + ".key")
	if err != nil {
		return pair{}, err
	}
	if issuer.key == nil {
		issuer = pair{certificate: template, key: key}
	}
	template.NotBefore = time.Now().Add(-time.Minute)
	template.NotAfter = template.NotBefore.Add(lifetime)
	// Without a serial number in the template, CreateCertificate draws a random one.
	der, err := x509.CreateCertificate(rand.Reader, template, issuer.certificate, key.Public(), issuer.key)
	if err != nil {
		return pair{}, fmt.Errorf("signing the certificate %s: %w", name, err)
	}
	// The certificate comes after its key, so that one that is there has its key too.
	if err := writePEM(s.path(name+".crt"), "CERTIFICATE", der); err != nil {
		return pair{}, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return pair{}, fmt.Errorf("parsing the certificate %s: %w", name, err)
	}
	return pair{certificate: certificate, key: key}, nil
}

func (s *state) load(name string) (pair, error) {
	loaded, err := tls.LoadX509KeyPair(s.path(name+".crt"), s.path(name+".key"))
	if err != nil {
		return pair{}, fmt.Errorf("loading the certificate %s: %w", name, err)
	}
	key, ok := loaded.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return pair{}, fmt.Errorf("loading the certificate %s: its key is a %T", name, loaded.PrivateKey)
	}
	return pair{certificate: loaded.Leaf, key: key}, nil
}

// tokenKey makes the key that signs service account tokens, sa.key. It is an ECDSA key, so the
// tokens are ES256 ones.
func (s *state) tokenKey() error {
	// sa.pub is written last: if it is there, so is its key.
	if _, err := os.Stat(s.path("sa.pub")); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	key, err := s.newKey("sa.key")
	if err != nil {
		return err
	}
	spki, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("encoding the token key: %w", err)
	}
	return writePEM(s.path("sa.pub"), "PUBLIC KEY", spki)
}

func (s *state) newKey(file string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the key %s: %w", file, err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding the key %s: %w", file, err)
	}
	return key, writePEM(s.path(file), "EC PRIVATE KEY", der)
}

func writePEM(path, label string, der []byte) error {
	return writeFile(path, pem.EncodeToMemory(&pem.Block{Type: label, Bytes: der}))
}
