package csr_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/chancery-ca/chancery/csr"
)

func TestRequestSaysWhatWasAsked(t *testing.T) {
	r := newRecipe()
	r.subject = name(text(oidO, "Example"), text(oidCN, "web"))
	r.withExtensions(
		san(dns("WEB.default.svc"), uri(goodURI), ip(10, 0, 0, 7), dns("web.default.svc"), ip(netip.IPv6Loopback().AsSlice()...)),
		critical(oidKeyUsage, tlv(0x03, []byte{5, 0xa0})),
		extension(oidEKU, seq(oid("1.3.6.1.5.5.7.3.1"), oid("1.3.6.1.4.1.311.20.2.2"))),
		extension(oidBasicConstraints, seq()),
	)
	der := r.der()
	got := wants(t, der, csr.Rules{}, "")
	if !slices.Equal(got.DER(), der) || !slices.Equal(got.SPKI(), r.spki) || !slices.Equal(got.RawSubject(), r.subject) {
		t.Error("the DER of the request, the key or the subject is another")
	}
	if got.KeyHash() != sha256.Sum256(r.spki) || !testKey().PublicKey.Equal(got.PublicKey()) {
		t.Error("the key is another")
	}
	if subject := got.Subject(); subject.CommonName != "web" || !slices.Equal(subject.Organization, []string{"Example"}) {
		t.Errorf("subject is %v", subject)
	}
	names := got.Names()
	if !slices.Equal(names.URIs, []string{goodURI}) || !slices.Equal(names.DNS, []string{"web.default.svc"}) ||
		!slices.Equal(names.IPs, []netip.Addr{netip.MustParseAddr("10.0.0.7"), netip.IPv6Loopback()}) || got.Emails() != nil {
		t.Errorf("names are %v and %v", names, got.Emails())
	}
	asked := got.Asked()
	if got.RequestsCA() || asked.KeyUsage != x509.KeyUsageDigitalSignature|x509.KeyUsageKeyEncipherment ||
		fmt.Sprint(asked.ExtKeyUsage) != "[1.3.6.1.5.5.7.3.1 1.3.6.1.4.1.311.20.2.2]" ||
		fmt.Sprint(asked.Extensions) != "[2.5.29.17 2.5.29.15 2.5.29.37 2.5.29.19]" {
		t.Errorf("asked is %+v", asked)
	}
}

func TestRequestIsImmutable(t *testing.T) {
	r := newRecipe().withExtensions(san(dns("a.test"), uri(goodURI), ip(10, 0, 0, 7), email("a@b.test")),
		extension(oidEKU, seq(oid("1.3.6.1.5.5.7.3.1"))))
	r.subject = name(text(oidO, "Example"))
	input := r.der()
	got := wants(t, input, csr.Rules{Emails: true}, "")
	before := fmt.Sprint(got.DER(), got.SPKI(), got.RawSubject(), got.Subject(), got.Names(), got.Emails(), got.Asked())
	clear(input)
	clear(got.DER())
	clear(got.SPKI())
	clear(got.RawSubject())
	clear(got.Subject().Organization)
	clear(got.Subject().Names)
	clear(got.Names().DNS)
	clear(got.Names().URIs)
	clear(got.Names().IPs)
	clear(got.Emails())
	clear(got.Asked().ExtKeyUsage[0])
	clear(got.Asked().Extensions)
	if after := fmt.Sprint(got.DER(), got.SPKI(), got.RawSubject(), got.Subject(), got.Names(), got.Emails(), got.Asked()); after != before {
		t.Errorf("it changed from %s to %s", before, after)
	}
}

// TestKeyPolicyComesBeforeTheSignature gives every kind of bad key a bad signature, and counts how often one is checked.
func TestKeyPolicyComesBeforeTheSignature(t *testing.T) {
	p224, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	modulus, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	rules := csr.CountVerifications(csr.Rules{}, &count)
	for fragment, public := range map[string]any{
		"ECDSA on this curve is not allowed": &p224.PublicKey,
		"the RSA exponent is 3":              &rsa.PublicKey{N: modulus.N, E: 3},
	} {
		r := newRecipe().withPublic(public)
		r.sign = func([]byte) []byte { return []byte("no signature") }
		wants(t, r.der(), rules, fragment)
	}
	if count != 0 {
		t.Errorf("%d signatures were checked", count)
	}
	r := newRecipe()
	r.sign = func([]byte) []byte { return []byte("no signature") }
	wants(t, r.withSAN(dns("")).der(), rules, `the DNS name "" is empty`)
	if count != 0 {
		t.Errorf("%d signatures were checked before the names", count)
	}
	wants(t, r.withSAN(dns("web")).der(), rules, "the signature does not verify")
	wants(t, newRecipe().der(), rules, "")
	if count != 2 {
		t.Errorf("%d signatures were checked, want one for each of two requests", count)
	}
}

// TestRequestsOfKnownClients are those that clients of a workload CA send.
func TestRequestsOfKnownClients(t *testing.T) {
	workload, err := url.Parse(goodURI)
	if err != nil {
		t.Fatal(err)
	}
	for client, template := range map[string]*x509.CertificateRequest{
		"Istio agent":         {Subject: pkix.Name{Organization: []string{""}}, URIs: []*url.URL{workload}},
		"SPIRE agent":         {Subject: pkix.Name{Country: []string{"US"}, Organization: []string{"SPIRE"}}, URIs: []*url.URL{workload}},
		"no subject, no name": {},
		"host":                {Subject: pkix.Name{CommonName: "db.example.test"}, DNSNames: []string{"db.example.test"}},
	} {
		t.Run(client, func(t *testing.T) {
			der, err := x509.CreateCertificateRequest(rand.Reader, template, testKey())
			if err != nil {
				t.Fatal(err)
			}
			wants(t, der, csr.Rules{}, "")
		})
	}
}

func TestChallengePasswordIsNotShown(t *testing.T) {
	r := newRecipe()
	r.attributes = attributes(attribute(oidChallengePassword, tlv(tagUTF8, []byte("hunter2"))), request(san(uri(goodURI))))
	got := wants(t, r.der(), csr.Rules{}, "")
	for _, shown := range []string{fmt.Sprint(got), fmt.Sprintf("%+v", got), fmt.Sprintf("%q", got)} {
		if strings.Contains(shown, "hunter2") || !strings.Contains(shown, goodURI) {
			t.Errorf("shown as %s", shown)
		}
	}
	r.attributes = attributes(attribute(oidChallengePassword, tlv(tagUTF8, []byte("hunter2"))), request(san(dns("bad name"))))
	if _, err := csr.Parse(r.der(), csr.Rules{}); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("error is %v", err)
	}
}
