package csr_test

import (
	"crypto/x509"
	"encoding/asn1"
	"testing"

	"github.com/chancery-ca/chancery/csr"
)

func bitString(unused byte, octets ...byte) []byte { return tlv(0x03, []byte{unused}, octets) }

func TestExtensions(t *testing.T) {
	octets, yes, no, null := tlv(0x04, make([]byte, 20)), tlv(0x01, []byte{0xff}), tlv(0x01, []byte{0}), tlv(0x05)
	serverAuth := oid("1.3.6.1.5.5.7.3.1")
	many := make([][]byte, 33)
	for i := range many {
		many[i] = oid("1.2.3.4")
	}
	const asksForCA = "it asks for a CA certificate"
	for name, test := range map[string]struct {
		extension []byte
		fragment  string
	}{
		"SAN, critical":                       {critical(oidSAN, seq(dns("a.test"))), ""},
		"key usage":                           {extension(oidKeyUsage, bitString(5, 0xa0)), ""},
		"key usage, ninth bit":                {extension(oidKeyUsage, bitString(7, 0x08, 0x80)), ""},
		"key usage of no bits":                {extension(oidKeyUsage, bitString(0)), "keyUsage: malformed"},
		"key usage, trailing zeros":           {extension(oidKeyUsage, bitString(0, 0xa0)), "keyUsage: malformed"},
		"key usage, a zero octet":             {extension(oidKeyUsage, bitString(0, 0)), "keyUsage: malformed"},
		"key usage of ten bits":               {extension(oidKeyUsage, bitString(6, 0x80, 0x40)), "keyUsage: malformed"},
		"key usage, unused bits set":          {extension(oidKeyUsage, bitString(5, 0xa1)), "keyUsage: malformed"},
		"key usage, octets after":             {extension(oidKeyUsage, bitString(5, 0xa0), null), "keyUsage: malformed"},
		"key usage, empty":                    {extension(oidKeyUsage), "keyUsage: malformed"},
		"keyCertSign":                         {extension(oidKeyUsage, bitString(2, 0x04)), asksForCA},
		"cRLSign":                             {extension(oidKeyUsage, bitString(1, 0x02)), asksForCA},
		"EKU":                                 {extension(oidEKU, seq(serverAuth)), ""},
		"EKU empty":                           {extension(oidEKU, seq()), "extKeyUsage: malformed"},
		"EKU not a list":                      {extension(oidEKU, serverAuth), "extKeyUsage: malformed"},
		"EKU, octets after":                   {extension(oidEKU, seq(serverAuth), null), "extKeyUsage: malformed"},
		"EKU of something else":               {extension(oidEKU, seq(null)), "extKeyUsage: missing or malformed"},
		"EKU any":                             {extension(oidEKU, seq(serverAuth, oid("2.5.29.37.0"))), "anyExtendedKeyUsage"},
		"32 EKUs":                             {extension(oidEKU, seq(many[:32]...)), ""},
		"33 EKUs":                             {extension(oidEKU, seq(many...)), "more than 32 usages"},
		"basic constraints empty":             {extension(oidBasicConstraints, seq()), ""},
		"basic constraints, cA":               {extension(oidBasicConstraints, seq(yes)), asksForCA},
		"basic constraints, critical cA":      {critical(oidBasicConstraints, seq(yes, tlv(2, []byte{0}))), asksForCA},
		"basic constraints, cA spelled FALSE": {extension(oidBasicConstraints, seq(no)), "cA is FALSE and spelled out"},
		"basic constraints, boolean of 01":    {extension(oidBasicConstraints, seq(tlv(1, []byte{1}))), "missing or malformed"},
		"path length without cA":              {extension(oidBasicConstraints, seq(tlv(2, []byte{0}))), "a path length"},
		"path length negative":                {extension(oidBasicConstraints, seq(yes, tlv(2, []byte{0xff}))), "a path length"},
		"basic constraints, element after":    {extension(oidBasicConstraints, seq(yes, tlv(2, []byte{0}), null)), "a path length"},
		"basic constraints, octets after":     {extension(oidBasicConstraints, seq(), null), "basicConstraints: missing or malformed"},
		"SKI":                                 {extension(oidSKI, octets), ""},
		"SKI not an OCTET STRING":             {extension(oidSKI, null), "subjectKeyIdentifier: malformed"},
		"SKI, octets after":                   {extension(oidSKI, octets, null), "subjectKeyIdentifier: malformed"},
		"AKI":                                 {extension(oidAKI, seq(tlv(0x80, make([]byte, 20)))), ""},
		"AKI in BER":                          {extension(oidAKI, []byte{0x30, 0x81, 0x00}), "authorityKeyIdentifier: malformed"},
		"critical FALSE spelled out":          {seq(oid(oidSKI), no, tlv(0x04, octets)), "critical is FALSE and spelled out"}, // certmonger
		"critical of 01":                      {seq(oid(oidSKI), tlv(1, []byte{1}), tlv(0x04, octets)), "not strict DER"},
		"critical twice":                      {seq(oid(oidSKI), yes, yes, tlv(0x04, octets)), "extensionRequest: missing or malformed"},
		"no value":                            {seq(oid(oidSKI)), "extensionRequest: missing or malformed"},
		"element after the value":             {seq(oid(oidSKI), tlv(0x04, octets), null), "extensionRequest: missing or malformed"},
		"no identifier":                       {seq(tlv(0x04, octets)), "extensionRequest: missing or malformed"},
		"not an extension":                    {null, "extensionRequest: missing or malformed"},
		"name constraints":                    {critical("2.5.29.30", seq()), "2.5.29.30 may not be asked for"},
		"certificate policies":                {extension("2.5.29.32", seq()), "2.5.29.32 may not be asked for"},
		"CT poison":                           {critical("1.3.6.1.4.1.11129.2.4.3", null), "1.3.6.1.4.1.11129.2.4.3 may not be asked for"},
		"OCSP no check":                       {extension("1.3.6.1.5.5.7.48.1.5", null), "1.3.6.1.5.5.7.48.1.5 may not be asked for"},
		"unknown":                             {extension("1.3.6.1.4.1.32473.1", null), "1.3.6.1.4.1.32473.1 may not be asked for"},
		"an endless identifier":               {seq(tlv(6, []byte{0x2a, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}), tlv(4)), "extensionRequest: missing or malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			wants(t, newRecipe().withExtensions(test.extension).der(), csr.Rules{}, test.fragment)
		})
	}
}

func TestExtensionsAreDistinct(t *testing.T) {
	names := san(dns("a.test"))
	wants(t, newRecipe().withExtensions(names, names).der(), csr.Rules{}, "2.5.29.17 is there twice")
	wants(t, newRecipe().withExtensions(names, extension(oidEKU, seq(oid("1.2.3"))), san(dns("b.test"))).der(), csr.Rules{}, "2.5.29.17 is there twice")
}

func TestExtensionsByRule(t *testing.T) {
	template := asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 311, 20, 2}
	rules := csr.Rules{Extensions: []asn1.ObjectIdentifier{{1, 2, 3}, template}}
	got := wants(t, newRecipe().withExtensions(extension(template.String(), tlv(tagBMP, []byte("\x00W"))), san(dns("a.test"))).der(), rules, "")
	if asked := got.Asked(); len(asked.Extensions) != 2 || !asked.Extensions[0].Equal(template) {
		t.Errorf("asked is %+v", asked)
	}
	wants(t, newRecipe().withExtensions(extension(template.String(), []byte{0x30, 0x80})).der(), rules, "is not strict DER")
	wants(t, newRecipe().withExtensions(extension(template.String()+".1", tlv(0x05))).der(), rules, "may not be asked for")
	many := make([][]byte, 33)
	for i := range many {
		id := asn1.ObjectIdentifier{1, 2, 3, i}
		rules.Extensions = append(rules.Extensions, id)
		many[i] = extension(id.String(), tlv(0x05))
	}
	wants(t, newRecipe().withExtensions(many[:32]...).der(), rules, "")
	wants(t, newRecipe().withExtensions(many...).der(), rules, "more than 32 extensions")
}

func TestRequestsForACAByRule(t *testing.T) {
	yes := tlv(0x01, []byte{0xff})
	for name, extensions := range map[string][][]byte{
		"cA":          {critical(oidBasicConstraints, seq(yes))},
		"path length": {critical(oidBasicConstraints, seq(yes, tlv(2, []byte{0})))},
		"keyCertSign": {extension(oidKeyUsage, bitString(2, 0x04))},
		"all":         {critical(oidBasicConstraints, seq(yes)), critical(oidKeyUsage, bitString(1, 0x06))},
	} {
		t.Run(name, func(t *testing.T) {
			got := wants(t, newRecipe().withExtensions(extensions...).der(), csr.Rules{CA: true}, "")
			if !got.RequestsCA() {
				t.Error("RequestsCA is false")
			}
		})
	}
	got := wants(t, newRecipe().withExtensions(extension(oidKeyUsage, bitString(7, 0x08, 0x80))).der(), csr.Rules{CA: true}, "")
	if got.RequestsCA() || got.Asked().KeyUsage != x509.KeyUsageKeyAgreement|x509.KeyUsageDecipherOnly {
		t.Errorf("asked is %+v", got.Asked())
	}
}

// TestEncodedDefaultsByRule is for certmonger (pyca/cryptography#6368).
func TestEncodedDefaultsByRule(t *testing.T) {
	no := tlv(0x01, []byte{0})
	r := newRecipe().withExtensions(seq(oid(oidSAN), no, tlv(4, seq(dns("a.test")))), seq(oid(oidBasicConstraints), no, tlv(4, seq(no))))
	wants(t, r.der(), csr.Rules{}, "critical is FALSE and spelled out")
	got := wants(t, r.der(), csr.Rules{EncodedDefaults: true}, "")
	if got.RequestsCA() {
		t.Error("cA FALSE is taken for TRUE")
	}
}
