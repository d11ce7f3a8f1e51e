package chain_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"strings"
	"testing"

	"github.com/chancery-ca/chancery/ca/chain"
)

// draft is a certificate whose parts a test changes before it is signed. Parts are whole elements unless they say otherwise.
type draft struct {
	version    []byte
	serial     []byte
	inner      []byte // tbsCertificate's signature
	issuer     []byte
	validity   []byte
	subject    []byte
	spki       []byte
	uniqueIDs  []byte
	extensions []draftExtension
	wrap       func(list []byte) []byte // the field extensions around its list; nil for [3]
	tail       []byte                   // after the last field of tbsCertificate

	outer     []byte
	unused    byte // of signatureValue
	signature []byte
	end       []byte // after signatureValue
}

type draftExtension struct {
	oid      string // contents
	critical []byte // the BOOLEAN element, or nothing
	value    []byte // contents of extnValue
	tail     []byte
}

// Object identifiers, as contents.
const (
	oidCommonName   = "\x55\x04\x03"
	oidOrganization = "\x55\x04\x0a"
	oidCountry      = "\x55\x04\x06"

	oidSKI         = "\x55\x1d\x0e"
	oidKeyUsage    = "\x55\x1d\x0f"
	oidSAN         = "\x55\x1d\x11"
	oidIAN         = "\x55\x1d\x12"
	oidBasic       = "\x55\x1d\x13"
	oidNC          = "\x55\x1d\x1e"
	oidCRLDP       = "\x55\x1d\x1f"
	oidPolicies    = "\x55\x1d\x20"
	oidMappings    = "\x55\x1d\x21"
	oidAKI         = "\x55\x1d\x23"
	oidConstraints = "\x55\x1d\x24"
	oidEKU         = "\x55\x1d\x25"
	oidFreshest    = "\x55\x1d\x2e"
	oidInhibit     = "\x55\x1d\x36"
	oidAIA         = "\x2b\x06\x01\x05\x05\x07\x01\x01"
	oidSIA         = "\x2b\x06\x01\x05\x05\x07\x01\x0b"
	oidPrivate     = "\x2b\x06\x01\x04\x01\x83\x32\x01"
)

var (
	ecdsaSHA256 = unhex("300a06082a8648ce3d040302")
	isTrue      = unhex("0101ff")
	isFalse     = unhex("010100")
	null        = unhex("0500")
)

// tlv returns an element of the parts.
func tlv(tag byte, parts ...[]byte) []byte {
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

func seq(parts ...[]byte) []byte { return tlv(0x30, parts...) }

func text(tag byte, value string) []byte { return tlv(tag, []byte(value)) }

// rdn is a relative distinguished name with one attribute.
func rdn(oid string, value []byte) []byte { return tlv(0x31, seq(text(0x06, oid), value)) }

func utf8(value string) []byte { return text(0x0c, value) }

func dns(name string) []byte { return text(0x82, name) }

func uri(name string) []byte { return text(0x86, name) }

func names(list ...[]byte) []byte { return seq(list...) }

// leafDraft is a leaf with nothing to find in it.
func leafDraft() *draft {
	key := draftKey().PublicKey
	point, _ := key.Bytes()
	return &draft{
		version:  unhex("a003020102"),
		serial:   unhex("0210" + "5a0102030405060708090a0b0c0d0e0f"),
		inner:    ecdsaSHA256,
		issuer:   seq(rdn(oidCommonName, utf8("Issuing CA"))),
		validity: seq(text(0x17, "270115110000Z"), text(0x17, "270116120000Z")),
		subject:  seq(rdn(oidOrganization, text(0x13, "Example")), rdn(oidCommonName, utf8("leaf.example.test"))),
		spki:     seq(unhex("301306072a8648ce3d020106082a8648ce3d030107"), tlv(0x03, []byte{0}, point)),
		extensions: []draftExtension{
			{oidKeyUsage, isTrue, unhex("03020780"), nil},
			{oidEKU, nil, unhex("301406082b0601050507030106082b06010505070302"), nil},
			{oidBasic, isTrue, unhex("3000"), nil},
			{oidSKI, nil, unhex("0404 01020304"), nil},
			{oidAKI, nil, unhex("3006 8004 05060708"), nil},
			{oidSAN, nil, names(dns("leaf.example.test"), unhex("8704c0000207"), uri("spiffe://example.test/ns/a/sa/b")), nil},
		},
		outer: ecdsaSHA256,
	}
}

// caDraft is an intermediate with nothing to find in it.
func caDraft() *draft {
	d := leafDraft()
	d.subject = seq(rdn(oidCommonName, utf8("Intermediate CA")))
	d.set(oidKeyUsage, isTrue, unhex("03020106"))
	d.set(oidBasic, isTrue, unhex("30060101ff020100"))
	d.drop(oidEKU)
	d.drop(oidSAN)
	return d
}

// set replaces or adds an extension.
func (d *draft) set(oid string, critical, value []byte) {
	for i := range d.extensions {
		if d.extensions[i].oid == oid {
			d.extensions[i] = draftExtension{oid, critical, value, nil}
			return
		}
	}
	d.extensions = append(d.extensions, draftExtension{oid, critical, value, nil})
}

func (d *draft) drop(oid string) {
	for i := range d.extensions {
		if d.extensions[i].oid == oid {
			d.extensions = append(d.extensions[:i:i], d.extensions[i+1:]...)
			return
		}
	}
}

func (d *draft) get(oid string) *draftExtension {
	for i := range d.extensions {
		if d.extensions[i].oid == oid {
			return &d.extensions[i]
		}
	}
	return nil
}

// sign returns the certificate.
func (d *draft) sign(t testing.TB) []byte {
	t.Helper()
	var list []byte
	for _, e := range d.extensions {
		list = append(list, seq(text(0x06, e.oid), e.critical, tlv(0x04, e.value), e.tail)...)
	}
	var extensions []byte
	switch {
	case d.wrap != nil:
		extensions = d.wrap(list)
	case len(list) > 0:
		extensions = tlv(0xa3, seq(list))
	}
	tbs := seq(d.version, d.serial, d.inner, d.issuer, d.validity, d.subject, d.spki, d.uniqueIDs, extensions, d.tail)
	signature := d.signature
	if signature == nil {
		digest := sha256.Sum256(tbs)
		var err error
		if signature, err = ecdsa.SignASN1(rand.Reader, draftKey(), digest[:]); err != nil {
			t.Fatal(err)
		}
	}
	return seq(tbs, d.outer, tlv(0x03, []byte{d.unused}, signature), d.end)
}

func draftKey() *ecdsa.PrivateKey {
	key, _ := ecdsa.ParseRawPrivateKey(elliptic.P256(), bytes.Repeat([]byte{7}, 32))
	return key
}

// draftCase changes one thing in a draft that has no findings.
type draftCase struct {
	name     string
	change   func(*draft)
	rule     string // of the finding; empty for none
	severity chain.Severity
}

// checkDrafts holds the findings of each case against the one that it asks for, and the parsers against the findings.
func checkDrafts(t *testing.T, from func() *draft, cases []draftCase) {
	t.Helper()
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			d := from()
			test.change(d)
			encoding := d.sign(t)
			certificate, findings := chain.Inspect(encoding)
			if test.rule == "" && len(findings) > 0 || test.rule != "" && len(findings) != 1 {
				t.Fatalf("found %v, want rule %q", findings, test.rule)
			}
			if test.rule != "" && (findings[0].Rule != test.rule || findings[0].Severity != test.severity) {
				t.Fatalf("found %s %s (%v), want %s %s", findings[0].Severity, findings[0].Rule, findings[0], test.severity, test.rule)
			}
			_, err := chain.ParseCertificate(encoding)
			wantParse(t, "ParseCertificate", err, test.severity < chain.Malformed && certificate != nil)
			_, err = chain.ParseIssued(encoding)
			wantParse(t, "ParseIssued", err, test.severity == 0)
		})
	}
}

func wantParse(t *testing.T, function string, err error, ok bool) {
	t.Helper()
	var refused *chain.ParseError
	if ok != (err == nil) || !ok && !errors.As(err, &refused) {
		t.Errorf("%s says %v", function, err)
	}
}

func TestDraftsAreGood(t *testing.T) {
	for name, from := range map[string]func() *draft{"leaf": leafDraft, "CA": caDraft} {
		encoding := from().sign(t)
		certificate, err := chain.ParseIssued(encoding)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		std, err := x509.ParseCertificate(encoding)
		if err != nil || !std.Equal(certificate) {
			t.Errorf("%s: crypto/x509 says %v", name, err)
		}
		// the tests' certificates are signed with their own key
		if err := certificate.CheckSignature(x509.ECDSAWithSHA256, certificate.RawTBSCertificate, certificate.Signature); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// unhex reads hexadecimal with blanks.
func unhex(digits string) []byte {
	const alphabet = "0123456789abcdef"
	digits = strings.ReplaceAll(digits, " ", "")
	out := make([]byte, len(digits)/2)
	for i := range out {
		out[i] = byte(strings.IndexByte(alphabet, digits[2*i])<<4 | strings.IndexByte(alphabet, digits[2*i+1]))
	}
	return out
}
