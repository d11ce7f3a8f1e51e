package signertest

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/chancery-ca/chancery/ca/bundle"
	"github.com/chancery-ca/chancery/ca/chain"
)

// TrustDomain is the trust domain of the suite's hierarchies and orders.
var TrustDomain = spiffeid.RequireTrustDomainFromString("example.org")

// Authority is a CA certificate with its key.
type Authority struct {
	Certificate *x509.Certificate
	Key         crypto.Signer
}

// Hierarchy is a root, an intermediate under it, and the intermediate under that which issues leaves. They are valid for the hundred days around Now.
type Hierarchy struct {
	Root, Middle, Issuer Authority
	Now                  time.Time
}

// validFor is how far an authority's life reaches from Now into the past and into the future.
const validFor = 50 * 24 * time.Hour

// NewHierarchy returns a hierarchy whose keys are made once a process.
func NewHierarchy(t testing.TB, now time.Time) *Hierarchy {
	t.Helper()
	h := &Hierarchy{Now: now.UTC().Truncate(time.Second)}
	h.makeRoot(t, nil)
	h.makeMiddle(t, nil)
	h.makeIssuer(t, nil)
	return h
}

// Bundle returns the bundle that holds the root.
func (h *Hierarchy) Bundle(t testing.TB) *bundle.Bundle {
	t.Helper()
	roots, err := bundle.New(TrustDomain, []*x509.Certificate{h.Root.Certificate})
	must(t, err)
	return roots
}

// Issuers returns the issuer, the intermediate above it and the root.
func (h *Hierarchy) Issuers() []*x509.Certificate {
	return []*x509.Certificate{h.Issuer.Certificate, h.Middle.Certificate, h.Root.Certificate}
}

func (h *Hierarchy) makeRoot(t testing.TB, change func(*x509.Certificate)) {
	t.Helper()
	h.Root = h.authority(t, keys().root, "root", nil, change)
}

func (h *Hierarchy) makeMiddle(t testing.TB, change func(*x509.Certificate)) {
	t.Helper()
	h.Middle = h.authority(t, keys().middle, "intermediate", &h.Root, change)
}

func (h *Hierarchy) makeIssuer(t testing.TB, change func(*x509.Certificate)) {
	t.Helper()
	h.Issuer = h.authority(t, keys().issuer, "issuer", &h.Middle, change)
}

// authority makes a CA certificate after one thing in it was changed. Without a parent it is signed by its own key.
func (h *Hierarchy) authority(t testing.TB, key crypto.Signer, name string, parent *Authority, change func(*x509.Certificate)) Authority {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(int64(len(name))), Subject: pkix.Name{Organization: []string{"Example"}, CommonName: name},
		NotBefore: h.Now.Add(-validFor), NotAfter: h.Now.Add(validFor), IsCA: true, BasicConstraintsValid: true, MaxPathLen: -1,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, SubjectKeyId: []byte("the key of the " + name),
	}
	if change != nil {
		change(template)
	}
	by := &Authority{template, key}
	if parent != nil {
		by = parent
	}
	return Authority{certify(t, template, *by, key.Public()), key}
}

// certify has a certificate signed.
func certify(t testing.TB, template *x509.Certificate, by Authority, public crypto.PublicKey) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, by.Certificate, public, by.Key)
	must(t, err)
	return parsed(t, der)
}

func parsed(t testing.TB, der []byte) *x509.Certificate {
	t.Helper()
	certificate, err := x509.ParseCertificate(der)
	must(t, err)
	return certificate
}

// templateOf says to crypto/x509 what a leaf says.
func templateOf(t testing.TB, leaf chain.Leaf) *x509.Certificate {
	t.Helper()
	keyID, err := chain.KeyID(leaf.SPKI)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: leaf.Serial, RawSubject: leaf.Subject, NotBefore: leaf.NotBefore, NotAfter: leaf.NotAfter, KeyUsage: leaf.KeyUsage,
		ExtKeyUsage: leaf.ExtKeyUsage, BasicConstraintsValid: true, SubjectKeyId: keyID, DNSNames: leaf.Names.DNS,
	}
	for _, ip := range leaf.Names.IPs {
		template.IPAddresses = append(template.IPAddresses, net.IP(ip.AsSlice()))
	}
	for _, text := range leaf.Names.URIs {
		uri, err := url.Parse(text)
		must(t, err)
		template.URIs = append(template.URIs, uri)
	}
	return template
}

// resign signs the TBSCertificate of a certificate again after its octets were changed.
func resign(t testing.TB, certificate *x509.Certificate, key crypto.Signer, change func(tbs []byte) []byte) []byte {
	t.Helper()
	algorithm, err := chain.AlgorithmFor(key.Public())
	must(t, err)
	der, err := algorithm.Certificate(change(bytes.Clone(certificate.RawTBSCertificate)), key, rand.Reader)
	must(t, err)
	return der
}

// resignSHA1 signs the TBSCertificate of a certificate, which an RSA key has signed with SHA-256, again with SHA-1.
func resignSHA1(t testing.TB, certificate *x509.Certificate, key crypto.Signer) []byte {
	t.Helper()
	// sha256WithRSAEncryption and sha1WithRSAEncryption, which differ in the last arc
	sha256RSA, sha1RSA := []byte("\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b"), []byte("\x2a\x86\x48\x86\xf7\x0d\x01\x01\x05")
	tbs := bytes.Replace(bytes.Clone(certificate.RawTBSCertificate), sha256RSA, sha1RSA, 1)
	digest := crypto.SHA1.New()
	digest.Write(tbs)
	signature, err := key.Sign(rand.Reader, digest.Sum(nil), crypto.SHA1)
	must(t, err)
	der, err := asn1.Marshal(struct {
		TBS       asn1.RawValue
		Algorithm pkix.AlgorithmIdentifier
		Signature asn1.BitString
	}{
		asn1.RawValue{FullBytes: tbs},
		pkix.AlgorithmIdentifier{Algorithm: asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 5}, Parameters: asn1.NullRawValue},
		asn1.BitString{Bytes: signature, BitLength: 8 * len(signature)},
	})
	must(t, err)
	return der
}

type keyRing struct {
	root, middle, issuer, other *ecdsa.PrivateKey
	strong, weak                *rsa.PrivateKey
}

// keys returns the keys of all hierarchies, made once.
var keys = sync.OnceValue(func() *keyRing {
	var ring keyRing
	var err error
	for _, key := range []**ecdsa.PrivateKey{&ring.root, &ring.middle, &ring.issuer, &ring.other} {
		if *key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			panic(err) //nolint:forbidigo // no test can run
		}
	}
	for key, bits := range map[**rsa.PrivateKey]int{&ring.strong: 2048, &ring.weak: 1024} {
		if *key, err = rsa.GenerateKey(rand.Reader, bits); err != nil {
			panic(err) //nolint:forbidigo // no test can run
		}
	}
	return &ring
})

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
