package chain_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/ca/identity"
)

// leafKeys are keys of every kind that issues or is certified.
var leafKeys = sync.OnceValue(func() map[string]crypto.Signer {
	keys := make(map[string]crypto.Signer)
	add := func(kind string, key crypto.Signer, err error) {
		if err != nil {
			panic(err) //nolint:forbidigo // no test can run
		}
		keys[kind] = key
	}
	for kind, curve := range map[string]elliptic.Curve{"P-256": elliptic.P256(), "P-384": elliptic.P384(), "P-521": elliptic.P521()} {
		key, err := ecdsa.GenerateKey(curve, rand.Reader)
		add(kind, key, err)
	}
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	add("Ed25519", edwards, err)
	rivest, err := rsa.GenerateKey(rand.Reader, 2048)
	add("RSA-2048", rivest, err)
	return keys
})

// leafIssuer returns a self-signed CA certificate for a key. Its subject has the string types that Go would not choose.
func leafIssuer(t testing.TB, key crypto.Signer) *x509.Certificate {
	t.Helper()
	subject := seq(rdn(oidOrganization, text(0x0c, "An Ünusual Organisation")), rdn(oidCommonName, text(0x13, "Issuer")))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), RawSubject: subject, NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, SubjectKeyId: []byte("a key identifier of twenty-four octets"),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// randomLeaf returns approved content of any kind that the encoder can be given.
func randomLeaf(t testing.TB, random *mathrand.Rand) chain.Leaf {
	t.Helper()
	kinds := []string{"P-256", "P-384", "P-521", "Ed25519", "RSA-2048"}
	kind := kinds[random.IntN(len(kinds))]
	spki, err := x509.MarshalPKIXPublicKey(leafKeys()[kind].Public())
	if err != nil {
		t.Fatal(err)
	}
	leaf := chain.Leaf{Serial: randomSerial(random), SPKI: spki, KeyUsage: x509.KeyUsageDigitalSignature, Names: randomNames(random)}
	if random.IntN(3) == 0 {
		leaf.Subject = seq(rdn(oidCommonName, utf8("a name")))
	}
	if kind == "RSA-2048" && random.IntN(2) == 0 {
		leaf.KeyUsage |= x509.KeyUsageKeyEncipherment
	}
	leaf.ExtKeyUsage = [][]x509.ExtKeyUsage{
		nil,
		{x509.ExtKeyUsageServerAuth},
		{x509.ExtKeyUsageClientAuth},
		{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}[random.IntN(5)]
	if strings.HasPrefix(leaf.Names.String(), "URI:spiffe:") && len(leaf.ExtKeyUsage) == 1 {
		leaf.ExtKeyUsage = nil // X509-SVID §4.4
	}
	// the form of a time changes with the year 2050 (RFC 5280 §4.1.2.5)
	turn := time.Date(2050, 1, 1, 0, 0, 0, 0, time.UTC)
	leaf.NotBefore = turn.Add(time.Duration(random.IntN(7)-3) * time.Second)
	leaf.NotAfter = leaf.NotBefore.Add(time.Duration(random.IntN(4)) * time.Second)
	if random.IntN(4) == 0 {
		leaf.NotBefore = time.Unix(random.Int64N(4e9), 0).In(time.FixedZone("somewhere", 3600))
		leaf.NotAfter = leaf.NotBefore.Add(time.Duration(random.Int64N(int64(1000 * time.Hour)))).Truncate(time.Second)
	}
	return leaf
}

// randomSerial returns a positive number of 1 to 159 bits: each length as often as any other.
func randomSerial(random *mathrand.Rand) *big.Int {
	bits := 1 + random.IntN(159)
	serial := new(big.Int).SetBit(new(big.Int), bits-1, 1)
	for bit := range bits - 1 {
		serial.SetBit(serial, bit, uint(random.IntN(2)))
	}
	return serial
}

func randomNames(random *mathrand.Rand) identity.Names {
	var names identity.Names
	for range random.IntN(4) {
		names.DNS = append(names.DNS, fmt.Sprintf("h%d.example.org", random.IntN(1000)))
	}
	for range random.IntN(3) {
		var octets [16]byte
		for i := range octets {
			octets[i] = byte(1 + random.IntN(255))
		}
		addr := netip.AddrFrom16(octets)
		if random.IntN(2) == 0 {
			addr = netip.AddrFrom4([4]byte(octets[:4]))
		}
		names.IPs = append(names.IPs, addr)
	}
	if names.Empty() || random.IntN(2) == 0 {
		names.URIs = []string{fmt.Sprintf("spiffe://example.org/ns/n%d/sa/%s", random.IntN(100), strings.Repeat("x", random.IntN(300)+1))}
	}
	return names.Normalize()
}

// standardTemplate says to crypto/x509 what a leaf says.
func standardTemplate(t testing.TB, leaf chain.Leaf) *x509.Certificate {
	t.Helper()
	keyID, err := chain.KeyID(leaf.SPKI)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: leaf.Serial, RawSubject: leaf.Subject, NotBefore: leaf.NotBefore, NotAfter: leaf.NotAfter, KeyUsage: leaf.KeyUsage,
		ExtKeyUsage: leaf.ExtKeyUsage, BasicConstraintsValid: true, SubjectKeyId: keyID, DNSNames: leaf.Names.DNS,
	}
	for _, ip := range leaf.Names.IPs {
		template.IPAddresses = append(template.IPAddresses, net.IP(ip.AsSlice()))
	}
	for _, text := range leaf.Names.URIs {
		parsed, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		template.URIs = append(template.URIs, parsed)
	}
	return template
}

// TestLeaf holds the encoder against crypto/x509's: the TBSCertificate of any approved content is the same octets, and both parsers read back what was
// approved.
func TestLeaf(t *testing.T) {
	const rounds = 150
	for kind, key := range leafKeys() {
		t.Run("issuer "+kind, func(t *testing.T) {
			issuer := leafIssuer(t, key)
			algorithm, err := chain.AlgorithmFor(key.Public())
			if err != nil {
				t.Fatal(err)
			}
			for seed := range uint64(rounds) {
				leaf := randomLeaf(t, mathrand.New(mathrand.NewPCG(seed, uint64(len(kind)))))
				der := signLeaf(t, leaf, issuer, algorithm, key)
				wantLeaf(t, leaf, der)
				standard, err := x509.CreateCertificate(rand.Reader, standardTemplate(t, leaf), issuer, publicOf(t, leaf.SPKI), key)
				if err != nil {
					t.Fatal(err)
				}
				ours, theirs := parseBoth(t, der), parseBoth(t, standard)
				if !bytes.Equal(ours.RawTBSCertificate, theirs.RawTBSCertificate) {
					t.Fatalf("seed %d, %+v:\n%x\nis not what crypto/x509 writes:\n%x", seed, leaf, ours.RawTBSCertificate, theirs.RawTBSCertificate)
				}
				if err := issuer.CheckSignature(ours.SignatureAlgorithm, ours.RawTBSCertificate, ours.Signature); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
		})
	}
}

func signLeaf(t testing.TB, leaf chain.Leaf, issuer *x509.Certificate, algorithm chain.Algorithm, key crypto.Signer) []byte {
	t.Helper()
	tbs, err := leaf.TBS(issuer, algorithm)
	if err != nil {
		t.Fatalf("%+v: %v", leaf, err)
	}
	der, err := algorithm.Certificate(tbs, key, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// parseBoth reads a certificate by crypto/x509 and by the strict parser, which have to agree.
func parseBoth(t testing.TB, der []byte) *x509.Certificate {
	t.Helper()
	standard, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatalf("crypto/x509: %v\n%x", err, der)
	}
	strict, err := chain.ParseIssued(der)
	if err != nil {
		t.Fatalf("ParseIssued: %v\n%x", err, der)
	}
	if !reflect.DeepEqual(standard, strict) {
		t.Fatalf("the parsers differ on %x", der)
	}
	return strict
}

// wantLeaf compares each field of a certificate with what was approved.
func wantLeaf(t testing.TB, leaf chain.Leaf, der []byte) {
	t.Helper()
	got := parseBoth(t, der)
	subject := leaf.Subject
	if subject == nil {
		subject = seq()
	}
	sum := sha256.Sum256(keyBits(t, leaf.SPKI))
	names := identity.Names{DNS: got.DNSNames}
	for _, ip := range got.IPAddresses {
		addr, _ := netip.AddrFromSlice(ip)
		names.IPs = append(names.IPs, addr)
	}
	for _, uri := range got.URIs {
		names.URIs = append(names.URIs, uri.String())
	}
	for what, same := range map[string]bool{
		"version":                got.Version == 3,
		"serial":                 got.SerialNumber.Cmp(leaf.Serial) == 0,
		"subject":                bytes.Equal(got.RawSubject, subject),
		"names":                  names.Equal(leaf.Names),
		"no other name":          len(got.EmailAddresses) == 0,
		"key":                    bytes.Equal(got.RawSubjectPublicKeyInfo, leaf.SPKI),
		"key usage":              got.KeyUsage == leaf.KeyUsage,
		"extended key usage":     reflect.DeepEqual(got.ExtKeyUsage, leaf.ExtKeyUsage) && len(got.UnknownExtKeyUsage) == 0,
		"not a CA":               got.BasicConstraintsValid && !got.IsCA,
		"notBefore":              got.NotBefore.Equal(leaf.NotBefore),
		"notAfter":               got.NotAfter.Equal(leaf.NotAfter),
		"subject key identifier": bytes.Equal(got.SubjectKeyId, sum[:20]),
		"SAN critical":           isCritical(got, asn1.ObjectIdentifier{2, 5, 29, 17}) == (leaf.Subject == nil),
	} {
		if !same {
			t.Errorf("%s of %+v is another in %x", what, leaf, der)
		}
	}
}

func isCritical(certificate *x509.Certificate, id asn1.ObjectIdentifier) bool {
	for _, extension := range certificate.Extensions {
		if extension.Id.Equal(id) {
			return extension.Critical
		}
	}
	return false
}

func keyBits(t testing.TB, spki []byte) []byte {
	t.Helper()
	var info struct {
		Algorithm pkix.AlgorithmIdentifier
		Key       asn1.BitString
	}
	if _, err := asn1.Unmarshal(spki, &info); err != nil {
		t.Fatal(err)
	}
	return info.Key.Bytes
}

func publicOf(t testing.TB, spki []byte) any {
	t.Helper()
	public, err := x509.ParsePKIXPublicKey(spki)
	if err != nil {
		t.Fatal(err)
	}
	return public
}

func TestLeafRefusesWhatHasNoEncoding(t *testing.T) {
	issuer := leafIssuer(t, leafKeys()["P-256"])
	algorithm, err := chain.AlgorithmFor(issuer.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		change func(*chain.Leaf)
		want   string // part of the error; empty for none
	}{
		{"a valid leaf", func(*chain.Leaf) {}, ""},
		{"the largest serial", func(l *chain.Leaf) { l.Serial = new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 159), big.NewInt(1)) }, ""},
		{"no extended usages", func(l *chain.Leaf) { l.ExtKeyUsage = nil }, ""},
		{"a subject and no name", func(l *chain.Leaf) { l.Names, l.Subject = identity.Names{}, seq(rdn(oidCommonName, utf8("a"))) }, ""},
		{"no serial", func(l *chain.Leaf) { l.Serial = nil }, "serial number"},
		{"serial zero", func(l *chain.Leaf) { l.Serial = new(big.Int) }, "serial number"},
		{"a negative serial", func(l *chain.Leaf) { l.Serial = big.NewInt(-1) }, "serial number"},
		{"a serial of 160 bits", func(l *chain.Leaf) { l.Serial = new(big.Int).Lsh(big.NewInt(1), 159) }, "at most 159 bits"},
		{"a subject that is no Name", func(l *chain.Leaf) { l.Subject = []byte{0x31, 0} }, "subject is not one DER Name"},
		{"a subject with a second element behind it", func(l *chain.Leaf) { l.Subject = append(seq(), seq()...) }, "subject is not one DER Name"},
		{"neither subject nor name", func(l *chain.Leaf) { l.Names = identity.Names{} }, "needs a subject alternative name"},
		{"a key that is no SubjectPublicKeyInfo", func(l *chain.Leaf) { l.SPKI = []byte("key") }, "SubjectPublicKeyInfo"},
		{"a key with something behind it", func(l *chain.Leaf) { l.SPKI = append(bytes.Clone(l.SPKI), 0) }, "SubjectPublicKeyInfo"},
		{"a fraction of a second in notBefore", func(l *chain.Leaf) { l.NotBefore = l.NotBefore.Add(-1) }, "whole seconds"},
		{"a fraction of a second in notAfter", func(l *chain.Leaf) { l.NotAfter = l.NotAfter.Add(1) }, "whole seconds"},
		{"an end before the beginning", func(l *chain.Leaf) { l.NotAfter = l.NotBefore.Add(-time.Second) }, "before notBefore"},
		{"a year of five digits", func(l *chain.Leaf) { l.NotAfter = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }, "GeneralizedTime"},
		{"a usage that is not issued", func(l *chain.Leaf) { l.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning} }, "extended key usage"},
		{"any usage", func(l *chain.Leaf) { l.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageAny} }, "extended key usage"},
		{"a key usage that is not defined", func(l *chain.Leaf) { l.KeyUsage = 1 << 9 }, "not defined"},
	} {
		t.Run(test.name, func(t *testing.T) {
			leaf := randomLeaf(t, mathrand.New(mathrand.NewPCG(1, 1)))
			leaf.Subject = nil
			test.change(&leaf)
			_, err := leaf.TBS(issuer, algorithm)
			wantError(t, err, test.want)
		})
	}
	t.Run("an issuer without a key identifier", func(t *testing.T) {
		nameless := *issuer
		nameless.SubjectKeyId = nil
		_, err := randomLeaf(t, mathrand.New(mathrand.NewPCG(1, 1))).TBS(&nameless, algorithm)
		wantError(t, err, "no subject key identifier")
	})
}

// wantError wants an error that says something, or none if that is empty.
func wantError(t testing.TB, err error, say string) {
	t.Helper()
	switch {
	case say == "" && err != nil:
		t.Errorf("got the error %v, want none", err)
	case say != "" && (err == nil || !strings.Contains(err.Error(), say)):
		t.Errorf("got the error %v, want one that says %q", err, say)
	}
}

// TestKeyUsage writes each usage alone and all of them: the list of bits has to be minimal (X.690 §11.2.2), which ParseIssued checks.
func TestKeyUsage(t *testing.T) {
	key := leafKeys()["RSA-2048"]
	issuer := leafIssuer(t, key)
	algorithm, _ := chain.AlgorithmFor(key.Public())
	spki, _ := x509.MarshalPKIXPublicKey(key.Public())
	all := x509.KeyUsage(0)
	for bit := range 9 {
		all |= 1 << bit
	}
	usages := []x509.KeyUsage{0, all}
	for bit := range 9 {
		usages = append(usages, 1<<bit)
	}
	for _, usage := range usages {
		leaf := randomLeaf(t, mathrand.New(mathrand.NewPCG(1, 1)))
		leaf.SPKI, leaf.KeyUsage = spki, usage
		der := signLeaf(t, leaf, issuer, algorithm, key)
		standard, err := x509.CreateCertificate(rand.Reader, standardTemplate(t, leaf), issuer, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(der, standard) { // PKCS #1 v1.5 signatures of the same octets are the same
			t.Errorf("usage %#x is written as\n%x, crypto/x509 writes\n%x", int(usage), der, standard)
		}
	}
}
