package chain_test

import (
	"bytes"
	"crypto/x509"
	"encoding/asn1"
	stdpem "encoding/pem"
	"math/big"
	"testing"

	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/ca/der"
	"github.com/chancery-ca/chancery/ca/pem"
)

// seeds are certificates with and without defects, unsigned ones among them: the parsers do not verify.
func seeds(f *testing.F) [][]byte {
	var all [][]byte
	add := func(from func() *draft, changes ...func(*draft)) {
		d := from()
		for _, change := range changes {
			change(d)
		}
		all = append(all, d.sign(f))
	}
	add(leafDraft)
	add(caDraft)
	add(leafDraft, func(d *draft) { d.subject = seq(); d.get(oidSAN).critical = isTrue })
	add(leafDraft, func(d *draft) { d.version, d.extensions = nil, nil })
	add(leafDraft, with(oidKeyUsage, isTrue, "03020080"))
	add(leafDraft, func(d *draft) { d.uniqueIDs = unhex("81020001") })
	add(leafDraft, with(oidAKI, nil, "300b 800101 a103820161 820101"))
	add(leafDraft, func(d *draft) {
		d.set(oidSAN, nil, names(text(0x81, "a@example.test"), dns("*.xn--mnchen-3ya.test"), uri("https://[2001:db8::1]:1/%20?a#b"),
			unhex("8710 20010db8 00000000 00000000 00000001"), tlv(0xa4, seq(rdn(oidCommonName, utf8("a")))), text(0x88, oidPrivate),
			tlv(0xa0, text(0x06, oidPrivate), tlv(0xa0, utf8("a"))), tlv(0xa5, tlv(0xa1, utf8("a")))))
	})
	add(leafDraft, with(oidCRLDP, nil, "3017 3015 a00d a00b 8609 687474703a2f2f612f 81020640 a200"))
	add(leafDraft, with(oidAIA, nil, "3017 3015 06082b06010505073001 8609 687474703a2f2f612f"))
	add(leafDraft, with(oidPolicies, nil, "30243022 06062b0601040101 3018301606082b06010505070201160a687474703a2f2f612f62"))
	add(caDraft, with(oidMappings, isTrue, "300a 3008 06022a03 06022a04"), with(oidConstraints, isTrue, "3006 800100 810100"), with(oidInhibit, isTrue, "020100"))
	add(caDraft, with(oidNC, isTrue, "300e a0053003820161 a1053003820162"))
	add(caDraft, with(oidIAN, nil, "3003820161"), with(oidFreshest, nil, "3011 300f a00d a00b 8609 687474703a2f2f612f"))
	return all
}

// tbsCertificate is RFC 5280's, for encoding/asn1 to read and write again.
type tbsCertificate struct {
	Version      int `asn1:"optional,explicit,default:0,tag:0"`
	Serial       *big.Int
	Algorithm    asn1.RawValue
	Issuer       asn1.RawValue
	Validity     asn1.RawValue
	Subject      asn1.RawValue
	SPKI         asn1.RawValue
	IssuerID     asn1.BitString `asn1:"optional,tag:1"`
	SubjectID    asn1.BitString `asn1:"optional,tag:2"`
	ExtensionSet []struct {
		ID       asn1.ObjectIdentifier
		Critical bool `asn1:"optional"`
		Value    []byte
	} `asn1:"omitempty,optional,explicit,tag:3"`
}

type certificate struct {
	TBS       tbsCertificate
	Algorithm asn1.RawValue
	Signature asn1.BitString
}

// FuzzParseCertificate holds these rules: what is accepted is DER, crypto/x509 reads it, and encoding/asn1 makes the same octets of it
// again; what ParseIssued accepts has no findings, a positive serial of at most 159 bits and an end that is not before its start.
func FuzzParseCertificate(f *testing.F) {
	for _, seed := range seeds(f) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, encoding []byte) {
		parsed, err := chain.ParseCertificate(encoding)
		issued, issuedErr := chain.ParseIssued(encoding)
		if (err == nil) != (parsed != nil) || (issuedErr == nil) != (issued != nil) {
			t.Fatal("a certificate and an error, or neither")
		}
		if err != nil {
			if issuedErr == nil {
				t.Fatalf("ParseIssued accepts what ParseCertificate refuses: %v", err)
			}
			return
		}
		if err := der.Check(encoding); err != nil {
			t.Fatal(err)
		}
		if _, err := x509.ParseCertificate(encoding); err != nil || !bytes.Equal(parsed.Raw, encoding) {
			t.Fatalf("crypto/x509 says %v", err)
		}
		var value certificate
		if rest, err := asn1.Unmarshal(encoding, &value); err == nil {
			// encoding/asn1 does not read all that there is, but what it reads it has to write alike
			if again, err := asn1.Marshal(value); err != nil || len(rest) > 0 || !bytes.Equal(again, encoding) {
				t.Fatalf("encoded again: %x, %v", again, err)
			}
		}
		if issuedErr != nil {
			return
		}
		if _, findings := chain.Inspect(encoding); len(findings) > 0 {
			t.Fatalf("issued with %v", findings)
		}
		if issued.SerialNumber.Sign() <= 0 || issued.SerialNumber.BitLen() > 159 || issued.NotAfter.Before(issued.NotBefore) {
			t.Fatalf("serial %x, from %s to %s", issued.SerialNumber, issued.NotBefore, issued.NotAfter)
		}
	})
}

// FuzzParseTolerant holds these rules: the result is DER certificates that the strict parser accepts; PEM without BER gives the same as
// ParsePEM; and encoding/pem finds the same certificates in it.
func FuzzParseTolerant(f *testing.F) {
	for _, seed := range seeds(f) {
		f.Add(seed)
		f.Add(indefinite(seed))
		f.Add(pem.Encode("CERTIFICATE", seed))
		f.Add(pem.Append(pem.Encode("CERTIFICATE", indefinite(seed)), "CERTIFICATE", seed))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		certificates, normalised, err := chain.ParseTolerant(input)
		strict, strictErr := chain.ParsePEM(input)
		if strictErr == nil && (err != nil || normalised || len(strict) != len(certificates)) {
			t.Fatalf("ParsePEM reads %d certificates, ParseTolerant %d, %v", len(strict), len(certificates), err)
		}
		if err != nil {
			return
		}
		if len(certificates) == 0 {
			t.Fatal("neither a certificate nor an error")
		}
		for _, c := range certificates {
			if _, err := chain.ParseCertificate(c.Raw); err != nil {
				t.Fatal(err)
			}
		}
		rest := bytes.ReplaceAll(bytes.ReplaceAll(input, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n"))
		for i, c := range strict {
			var block *stdpem.Block
			if block, rest = stdpem.Decode(rest); block == nil || !bytes.Equal(block.Bytes, c.Raw) {
				t.Fatalf("encoding/pem finds another certificate %d", i)
			}
		}
	})
}
