package chain_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/ca/der"
	"github.com/chancery-ca/chancery/ca/pem"
)

func TestParsePEMReadsEveryCertificate(t *testing.T) {
	leaf, ca := leafDraft().sign(t), caDraft().sign(t)
	text := append(pem.Encode("CERTIFICATE", leaf), "the issuer:\n"...)
	certificates, err := chain.ParsePEM(pem.Append(text, "CERTIFICATE", ca))
	if err != nil {
		t.Fatal(err)
	}
	if len(certificates) != 2 || !bytes.Equal(certificates[0].Raw, leaf) || !bytes.Equal(certificates[1].Raw, ca) {
		t.Errorf("got %d certificates", len(certificates))
	}
}

func TestParsePEMSaysWhichCertificate(t *testing.T) {
	bad := leafDraft()
	bad.set(oidEKU, nil, unhex("3000"))
	text := pem.Append(pem.Encode("CERTIFICATE", caDraft().sign(t)), "CERTIFICATE", bad.sign(t))
	_, err := chain.ParsePEM(text)
	var position *chain.PositionError
	var refused *chain.ParseError
	if !errors.As(err, &position) || !errors.As(err, &refused) {
		t.Fatalf("got %v", err)
	}
	line := 1 + bytes.Count(text[:bytes.LastIndex(text, []byte("-----BEGIN"))], []byte("\n"))
	if position.Position != 2 || position.Line != line || position.Subject != "CN=leaf.example.test,O=Example" {
		t.Errorf("got %+v, want line %d", position, line)
	}
	const want = `, subject "CN=leaf.example.test,O=Example"): the extended key usage extension is an empty list; it needs an element or has to be left out (RFC 5280 §4.2.1.12)`
	if !strings.HasPrefix(err.Error(), "certificate 2 (line ") || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v", err)
	}
}

func TestParsePEMRefusesOtherBlocksAndTwoValuesInOne(t *testing.T) {
	leaf := leafDraft().sign(t)
	good := pem.Encode("CERTIFICATE", leaf)
	for name, text := range map[string][]byte{
		"a private key":         pem.Append(bytes.Clone(good), "PRIVATE KEY", leaf),
		"another label":         pem.Encode("X509 CERTIFICATE", leaf),
		"two values in a block": pem.Encode("CERTIFICATE", append(bytes.Clone(leaf), leaf...)),
		"an octet after DER":    pem.Encode("CERTIFICATE", append(bytes.Clone(leaf), 0)),
		"no block":              leaf,
		"BER":                   pem.Encode("CERTIFICATE", indefinite(leaf)),
	} {
		if certificates, err := chain.ParsePEM(text); err == nil || certificates != nil {
			t.Errorf("%s: got %d certificates, %v", name, len(certificates), err)
		}
	}
}

// indefinite writes a certificate's outer SEQUENCE with an indefinite length.
func indefinite(certificate []byte) []byte {
	return append(append([]byte{0x30, 0x80}, certificate[4:]...), 0, 0)
}

func TestParseTolerant(t *testing.T) {
	leaf := leafDraft().sign(t)
	for name, test := range map[string]struct {
		input      []byte
		normalised bool
	}{
		"DER":        {leaf, false},
		"PEM of DER": {pem.Encode("CERTIFICATE", leaf), false},
		"BER":        {indefinite(leaf), true},
		"PEM of BER": {pem.Encode("CERTIFICATE", indefinite(leaf)), true},
		"PEM after text that starts with the octet of SEQUENCE": {append([]byte("0 s:CN=leaf\n"), pem.Encode("CERTIFICATE", leaf)...), false},
	} {
		t.Run(name, func(t *testing.T) {
			certificates, normalised, err := chain.ParseTolerant(test.input)
			if err != nil {
				t.Fatal(err)
			}
			if len(certificates) != 1 || !bytes.Equal(certificates[0].Raw, leaf) || normalised != test.normalised {
				t.Errorf("got %d certificates, normalised %v", len(certificates), normalised)
			}
		})
	}
	mixed := pem.Append(pem.Encode("CERTIFICATE", indefinite(leaf)), "CERTIFICATE", caDraft().sign(t))
	if certificates, normalised, err := chain.ParseTolerant(mixed); err != nil || len(certificates) != 2 || !normalised {
		t.Errorf("BER then DER: %d certificates, %v, %v", len(certificates), normalised, err)
	}
}

func TestParseTolerantRefuses(t *testing.T) {
	leaf := leafDraft().sign(t)
	inner := leafDraft()
	inner.version = unhex("a004 02810102")
	for name, input := range map[string][]byte{
		"nothing":            nil,
		"one octet":          {0x30},
		"two certificates":   append(bytes.Clone(leaf), leaf...),
		"octets after BER":   append(indefinite(leaf), 0),
		"BER within the TBS": indefinite(inner.sign(t)),
	} {
		if certificates, _, err := chain.ParseTolerant(input); err == nil {
			t.Errorf("%s: got %d certificates", name, len(certificates))
		}
	}
	_, _, err := chain.ParseTolerant(append(indefinite(leaf), 0))
	var refused *der.Error
	if !errors.As(err, &refused) {
		t.Errorf("got %v, want a der.Error", err)
	}
}

func TestErrorsCountFindingsAndStayShort(t *testing.T) {
	d := leafDraft()
	var list [][]byte
	for range 3000 {
		list = append(list, dns("a b"))
	}
	d.set(oidSAN, nil, names(list...))
	_, err := chain.ParseCertificate(d.sign(t))
	const want = "a dNSName in the subject alternative name extension is not made of labels of 1 to 63 letters, digits and inner hyphens" +
		" (RFC 5280 §4.2.1.6), and 19 more findings"
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestSevereFindingsAreNotCrowdedOut(t *testing.T) {
	d := leafDraft()
	var list [][]byte
	for range 100 {
		list = append(list, dns("a.*.test"))
	}
	d.set(oidSAN, nil, names(append(list, dns(""))...))
	if _, err := chain.ParseCertificate(d.sign(t)); err == nil {
		t.Error("a malformed name behind a hundred others passes")
	}
}

func TestHugeCertificatesAreRefused(t *testing.T) {
	d := leafDraft()
	d.set(oidSAN, nil, manyNames(50_000))
	encoding := d.sign(t)
	if _, err := chain.ParseCertificate(encoding); err == nil {
		t.Errorf("50,000 names in %d octets pass", len(encoding))
	}
	d.set(oidSAN, nil, manyNames(1000))
	if _, err := chain.ParseIssued(d.sign(t)); err != nil {
		t.Errorf("a thousand names: %v", err)
	}
}

func manyNames(count int) []byte {
	var list []byte
	for i := range count {
		list = append(list, dns("h"+hex.EncodeToString([]byte{byte(i >> 8), byte(i)})+".test")...)
	}
	return names(list)
}
