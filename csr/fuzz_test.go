package csr_test

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"

	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
	"github.com/chancery-ca/chancery/csr"
)

var widest = csr.Rules{
	Emails: true, Wildcards: true, CA: true, SystemSubjects: true, StrayCommonName: true, EncodedDefaults: true, MaxNames: 1000,
	Extensions: []asn1.ObjectIdentifier{{2, 5, 29, 30}, {1, 2, 3}},
}

// FuzzParse gives arbitrary input.
func FuzzParse(f *testing.F) {
	f.Add(newRecipe().der())
	f.Add(encode("CERTIFICATE REQUEST", newRecipe().der()))
	files, _ := filepath.Glob("../../shared/corpora/csr/*.pem")
	for _, file := range files {
		if input, err := os.ReadFile(file); err == nil {
			f.Add(input)
		}
	}
	f.Fuzz(func(t *testing.T, input []byte) { checkProperties(t, input) })
}

// FuzzSigned gives an arbitrary subject and attributes, signed, so that the signature does not stop the fuzzer.
func FuzzSigned(f *testing.F) {
	subject := name(text(oidO, "Example"), text(oidCN, "a.test"))
	for _, list := range [][]byte{
		attributes(), request(), request(san(dns("a.test"), uri(goodURI), ip(10, 0, 0, 7), email("a@b.test"))),
		request(san(uri("https://a.test:8443/x"), uri("urn:a:b"), dns("xn--bcher-kva.test"), dns("*.a.test"))),
		request(extension(oidKeyUsage, bitString(5, 0xa0)), extension(oidEKU, seq(oid("1.3.6.1.5.5.7.3.1"))), critical(oidBasicConstraints, seq(tlv(1, []byte{0xff})))),
		slices.Concat(attribute(oidChallengePassword, tlv(tagUTF8, []byte("x"))), request(extension(oidSKI, tlv(4, []byte{1})))),
		request(seq(oid(oidAKI), tlv(1, []byte{0}), tlv(4, seq()))), request(critical("2.5.29.30", seq())),
	} {
		f.Add(subject, list)
		f.Add(seq(), list)
	}
	f.Fuzz(func(t *testing.T, subject, list []byte) {
		r := newRecipe()
		r.subject, r.attributes = subject, attributes(list)
		checkProperties(t, r.der())
	})
}

// FuzzNames gives arbitrary names in a request that is well formed.
func FuzzNames(f *testing.F) {
	f.Add("a.test", "https://a.test:8443/x", "a@b.test", []byte{10, 0, 0, 7}, "a.test", byte(tagUTF8))
	f.Add("*.a.test", goodURI, "", make([]byte, 16), "10.0.0.7", byte(tagPrintable))
	f.Add("xn--bcher-kva.test", "urn:a:b", "x", []byte{}, "system:nodes", byte(tagIA5))
	f.Add("", "https://[::1]/", "", []byte{}, "", byte(tagBMP))
	f.Fuzz(func(t *testing.T, host, link, mailbox string, address []byte, commonName string, tag byte) {
		if len(host)+len(link)+len(mailbox)+len(address)+len(commonName) > csr.MaxDER || tag&0x1f == 0x1f {
			return
		}
		r := newRecipe()
		r.subject = name(textAs(oidCN, tag, commonName))
		var names [][]byte
		for _, name := range [][]byte{dns(host), uri(link), email(mailbox), ip(address...)} {
			if len(name) > 2 {
				names = append(names, name)
			}
		}
		checkProperties(t, r.withSAN(names...).der())
		for _, name := range names { // one that is refused must not hide the others from the fuzzer
			checkProperties(t, r.withSAN(name).der())
		}
	})
}

// checkProperties holds for every input: a refusal is a bounded sentence of kind Invalid, wider rules accept what narrower ones do, and what is
// accepted is DER that crypto/x509 reads the same.
func checkProperties(t *testing.T, input []byte) {
	got, err := csr.Parse(input, widest)
	if err != nil {
		if message := errkind.Message(err); errkind.Of(err) != errkind.Invalid || len(message) > 1024 || !utf8.ValidString(message) ||
			strings.ContainsAny(message, "\n\r\x00") {
			t.Errorf("kind %v, message %q", errkind.Of(err), message)
		}
		if _, err := csr.Parse(input, csr.Rules{}); err == nil {
			t.Error("the strictest rules accept what the widest refuse")
		}
		return
	}
	der := got.DER()
	if !bytes.Equal(reencode(t, der), der) {
		t.Error("encoding it again gives other octets")
	}
	other, err := x509.ParseCertificateRequest(der)
	if err != nil {
		if !attributesLeftOut(der) { // go#43516
			t.Errorf("crypto/x509 does not parse it: %v", err)
		}
		return
	}
	if err := other.CheckSignature(); err != nil {
		t.Errorf("crypto/x509 does not verify it: %v", err)
	}
	if !bytes.Equal(other.RawSubjectPublicKeyInfo, got.SPKI()) || !bytes.Equal(other.RawSubject, got.RawSubject()) {
		t.Error("crypto/x509 reads another key or subject")
	}
	if fmt.Sprint(other.Subject) != fmt.Sprint(got.Subject()) || other.Subject.CommonName != got.Subject().CommonName {
		t.Errorf("crypto/x509 reads the subject %v, not %v", other.Subject, got.Subject())
	}
	checkSameNames(t, other, got)
	checkSameExtensions(t, other.Extensions, got)
}

func checkSameNames(t *testing.T, other *x509.CertificateRequest, got *csr.Request) {
	names := identity.Names{DNS: other.DNSNames}
	for _, uri := range other.URIs {
		names.URIs = append(names.URIs, uri.String())
	}
	for _, ip := range other.IPAddresses {
		address, ok := netip.AddrFromSlice(ip)
		if !ok {
			t.Errorf("address %v", ip)
		}
		names.IPs = append(names.IPs, address)
	}
	have := got.Names()
	for i, text := range have.URIs { // crypto/x509 keeps no raw URIs
		uri, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		have.URIs[i] = uri.String()
	}
	want, have := names.Normalize(), have.Normalize()
	if !want.Equal(have) || !slices.Equal(other.EmailAddresses, got.Emails()) {
		t.Errorf("crypto/x509 reads the names %v %v, not %v %v", want, other.EmailAddresses, have, got.Emails())
	}
}

func checkSameExtensions(t *testing.T, extensions []pkix.Extension, got *csr.Request) {
	var want []asn1.ObjectIdentifier
	for _, extension := range extensions {
		want = append(want, extension.Id)
	}
	if fmt.Sprint(want) != fmt.Sprint(got.Asked().Extensions) {
		t.Errorf("crypto/x509 reads the extensions %v, not %v", want, got.Asked().Extensions)
	}
}

// reencode takes DER apart down to primitive values and puts it together again.
func reencode(t *testing.T, input cryptobyte.String) []byte {
	var b cryptobyte.Builder
	for !input.Empty() {
		var contents cryptobyte.String
		var tag cryptobyte_asn1.Tag
		if !input.ReadAnyASN1(&contents, &tag) {
			t.Fatal("not DER")
		}
		b.AddASN1(tag, func(b *cryptobyte.Builder) {
			if tag&0x20 != 0 {
				b.AddBytes(reencode(t, contents))
			} else {
				b.AddBytes(contents)
			}
		})
	}
	return b.BytesOrPanic()
}

func attributesLeftOut(der cryptobyte.String) bool {
	var request, info cryptobyte.String
	return der.ReadASN1(&request, cryptobyte_asn1.SEQUENCE) && request.ReadASN1(&info, cryptobyte_asn1.SEQUENCE) &&
		info.SkipASN1(cryptobyte_asn1.INTEGER) && info.SkipASN1(cryptobyte_asn1.SEQUENCE) && info.SkipASN1(cryptobyte_asn1.SEQUENCE) && info.Empty()
}
