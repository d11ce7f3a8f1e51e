package chain_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"testing"

	"github.com/chancery-ca/chancery/ca/chain"
)

type severity = chain.Severity

const (
	malformed     = chain.Malformed
	nonconforming = chain.Nonconforming
)

func TestCertificateFields(t *testing.T) {
	checkDrafts(t, leafDraft, []draftCase{
		{"a serial of 20 octets", func(d *draft) { d.serial = tlv(2, []byte{0x7f}, make([]byte, 19)) }, "", 0},
		{"a serial of 21 octets", func(d *draft) { d.serial = tlv(2, []byte{0, 0x80}, make([]byte, 19)) }, "serial-length", nonconforming},
		{"a serial of zero", func(d *draft) { d.serial = unhex("020100") }, "serial-zero", nonconforming},
		{"a negative serial", func(d *draft) { d.serial = unhex("0201ff") }, "serial-positive", malformed},
		{"a serial with leading zeros", func(d *draft) { d.serial = unhex("02020005") }, "der", malformed},
		{"a serial that is no INTEGER", func(d *draft) { d.serial = unhex("040105") }, "tbs-fields", malformed},
		{"version 1 encoded", func(d *draft) { d.version, d.extensions = unhex("a003020100"), nil }, "version-default", malformed},
		{"version 4", func(d *draft) { d.version = unhex("a003020103") }, "version", malformed},
		{"a version of two numbers", func(d *draft) { d.version = unhex("a006020102020102") }, "version", malformed},
		{"version 2 with extensions", func(d *draft) { d.version = unhex("a003020101") }, "extensions-version", malformed},
		{"version 1 with extensions", func(d *draft) { d.version = nil }, "extensions-version", malformed},
		{"something after signatureValue", func(d *draft) { d.end = null }, "certificate-fields", malformed},
		{"something after the extensions", func(d *draft) { d.tail = null }, "tbs-trailing", malformed},
		{"an empty list of extensions", func(d *draft) {
			d.wrap = func([]byte) []byte { return unhex("a3023000") }
		}, "extensions-fields", malformed},
		{"something after the list of extensions", func(d *draft) {
			d.wrap = func(list []byte) []byte { return tlv(0xa3, seq(list), null) }
		}, "extensions-fields", malformed},
		{"an issuerUniqueID", func(d *draft) { d.uniqueIDs = unhex("81020001") }, "unique-id", nonconforming},
		{"a subjectUniqueID", func(d *draft) { d.uniqueIDs = unhex("82020001") }, "unique-id", nonconforming},
		{"a constructed issuerUniqueID", func(d *draft) { d.uniqueIDs = unhex("a10403020001") }, "tbs-trailing", malformed},
	})
}

func TestUniqueIDThatIsNoBitString(t *testing.T) {
	d := leafDraft()
	d.uniqueIDs = unhex("81020901")
	wantRules(t, d, "unique-id", "unique-id")
	d = leafDraft()
	d.version, d.extensions, d.uniqueIDs = nil, nil, unhex("81020001")
	wantRules(t, d, "unique-id-version", "unique-id")
}

// wantRules is for defects that show twice.
func wantRules(t *testing.T, d *draft, rules ...string) {
	t.Helper()
	_, findings := chain.Inspect(d.sign(t))
	for i, finding := range findings {
		if i >= len(rules) || finding.Rule != rules[i] {
			t.Fatalf("found %v, want %v", findings, rules)
		}
	}
	if len(findings) != len(rules) {
		t.Fatalf("found %v, want %v", findings, rules)
	}
}

func TestValidity(t *testing.T) {
	times := func(list ...[]byte) func(*draft) { return func(d *draft) { d.validity = seq(list...) } }
	utc := text(0x17, "270115110000Z")
	checkDrafts(t, leafDraft, []draftCase{
		{"no well-defined end", times(utc, text(0x18, "99991231235959Z")), "", 0},
		{"the last UTCTime", times(utc, text(0x17, "491231235959Z")), "", 0},
		{"the first GeneralizedTime", times(utc, text(0x18, "20500101000000Z")), "", 0},
		{"the first UTCTime", times(text(0x17, "500101000000Z"), utc), "", 0},
		{"one second", times(utc, utc), "", 0},
		{"GeneralizedTime before 2050", times(utc, text(0x18, "20491231235959Z")), "time-generalized", nonconforming},
		{"a fraction", times(utc, text(0x18, "20500101000000.5Z")), "time-fraction", malformed},
		{"UTCTime without seconds", times(text(0x17, "2701151100Z"), utc), "der", malformed},
		{"UTCTime with an offset", times(text(0x17, "270115110000+0000"), utc), "der", malformed},
		{"a leap second", times(utc, text(0x17, "281231235960Z")), "der", malformed},
		{"31 February", times(utc, text(0x17, "280231000000Z")), "der", malformed},
		{"an end before the start", times(utc, text(0x17, "270115105959Z")), "validity-order", malformed},
		{"an end in 1951", times(utc, text(0x17, "510101000000Z")), "validity-order", malformed},
		{"a third time", times(utc, utc, utc), "validity-trailing", malformed},
		{"one time", times(utc), "time-type", malformed},
		{"a string", times(utc, utf8("270115110000Z")), "time-type", malformed},
	})
}

func TestSignatureAlgorithms(t *testing.T) {
	both := func(algorithm []byte) func(*draft) {
		return func(d *draft) { d.inner, d.outer = algorithm, algorithm }
	}
	rsaWith := func(algorithm []byte) func(*draft) {
		return func(d *draft) { both(algorithm)(d); d.signature = make([]byte, 256) }
	}
	pss := func(parameters string) func(*draft) {
		return rsaWith(seq(unhex("06092a864886f70d01010a"), unhex(parameters)))
	}
	const (
		sha256     = "300d0609608648016503040201 0500"
		mgf1       = "06092a864886f70d010108"
		mgf1SHA256 = "301a" + mgf1 + sha256
	)
	checkDrafts(t, leafDraft, []draftCase{
		{"different parameters inside", func(d *draft) { d.inner = unhex("300a06082a8648ce3d040303") }, "algorithm-mismatch", malformed},
		{"a third field", both(unhex("300e06082a8648ce3d0403020500 0500")), "algorithm-fields", malformed},
		{"ECDSA with NULL", both(unhex("300c06082a8648ce3d0403020500")), "signature-parameters", malformed},
		{"ECDSA with SHA-1", both(unhex("300906072a8648ce3d0401")), "signature-weak", nonconforming},
		{"an unknown algorithm", both(unhex("3005 0603 2a0304")), "signature-unknown", nonconforming},
		{"RSA", rsaWith(unhex("300d06092a864886f70d01010b0500")), "", 0},
		{"RSA without NULL", rsaWith(unhex("300b06092a864886f70d01010b")), "signature-parameters", nonconforming},
		{"RSA with other parameters", rsaWith(unhex("300e06092a864886f70d01010b020100")), "signature-parameters", malformed},
		{"RSA with MD5", rsaWith(unhex("300d06092a864886f70d0101040500")), "signature-weak", nonconforming},
		{"PSS", pss("3034 a00f" + sha256 + "a11c" + mgf1SHA256 + "a203020120"), "", 0},
		{"PSS without parameters", pss(""), "pss-parameters", malformed},
		{"PSS with defaults, SHA-1", pss("3000"), "pss-parameters", nonconforming},
		{"PSS with another salt", pss("3034 a00f" + sha256 + "a11c" + mgf1SHA256 + "a203020121"), "pss-parameters", nonconforming},
		{"PSS with a trailer that is not the default", pss("3039 a00f" + sha256 + "a11c" + mgf1SHA256 + "a203020120 a303020102"), "pss-parameters", nonconforming},
		{"PSS with something more", pss("3036 a00f" + sha256 + "a11c" + mgf1SHA256 + "a203020120 0500"), "pss-parameters", malformed},
		{"Ed25519", func(d *draft) { both(unhex("300506032b6570"))(d); d.signature = make([]byte, 64) }, "", 0},
		{"Ed25519 with NULL", func(d *draft) { both(unhex("300706032b65700500"))(d); d.signature = make([]byte, 64) }, "signature-parameters", malformed},
		{"Ed25519 with a short signature", func(d *draft) { both(unhex("300506032b6570"))(d); d.signature = make([]byte, 63) }, "signature-form", malformed},
		{"unused bits in the signature", func(d *draft) { d.unused, d.signature = 1, unhex("3006 020101 020102") }, "signature-octets", malformed},
		{"an empty signature", func(d *draft) { d.signature = []byte{} }, "signature-octets", malformed},
		{"an ECDSA signature with something more", func(d *draft) { d.signature = unhex("3006 020101 020102 00") }, "signature-form", malformed},
		{"an ECDSA signature of zero", func(d *draft) { d.signature = unhex("3006 020101 020100") }, "signature-form", malformed},
		{"an ECDSA signature that is not DER", func(d *draft) { d.signature = unhex("3007 02020001 020102") }, "signature-form", malformed},
	})
	d := leafDraft()
	pss("3039 a00f" + sha256 + "a11c" + mgf1SHA256 + "a203020120 a303020101")(d)
	wantRules(t, d, "pss-default", "pss-parameters")
}

func TestKeys(t *testing.T) {
	key := func(parts ...[]byte) func(*draft) { return func(d *draft) { d.spki = seq(parts...) } }
	bit := func(contents []byte) []byte { return tlv(0x03, []byte{0}, contents) }
	rsaID := unhex("300d06092a864886f70d0101010500")
	modulus := func(bits int) []byte {
		n := bytes.Repeat([]byte{0xff}, bits/8)
		return tlv(2, []byte{0}, n)
	}
	e := unhex("0203010001")
	good := seq(modulus(2048), e)
	ec := unhex("301306072a8648ce3d020106082a8648ce3d030107")
	point, _ := draftKey().PublicKey.Bytes()
	offCurve := bytes.Clone(point)
	offCurve[64] ^= 1
	public, _, _ := ed25519.GenerateKey(rand.Reader)
	checkDrafts(t, leafDraft, []draftCase{
		{"RSA", key(rsaID, bit(good)), "", 0},
		{"RSA without NULL", key(unhex("300b06092a864886f70d010101"), bit(good)), "key-parameters", malformed},
		{"RSA with something more", key(rsaID, bit(seq(modulus(2048), e, null))), "key-rsa", malformed},
		{"RSA with octets after it", key(rsaID, bit(append(bytes.Clone(good), 0))), "key-rsa", malformed},
		{"RSA in BER", key(rsaID, bit(seq(modulus(2048), unhex("020400010001")))), "key-rsa", malformed},
		{"RSA with a negative modulus", key(rsaID, bit(seq(tlv(2, bytes.Repeat([]byte{0x81}, 256)), e))), "key-rsa", malformed},
		{"RSA with an even modulus", key(rsaID, bit(seq(tlv(2, []byte{0x7f}, make([]byte, 256)), e))), "key-rsa", malformed},
		{"RSA with exponent 1", key(rsaID, bit(seq(modulus(2048), unhex("020101")))), "key-rsa", malformed},
		{"RSA with an even exponent", key(rsaID, bit(seq(modulus(2048), unhex("020104")))), "key-rsa", malformed},
		{"RSA of 1024 bits", key(rsaID, bit(seq(modulus(1024), e))), "key-weak", nonconforming},
		{"RSA of 2047 bits", key(rsaID, bit(seq(tlv(2, []byte{0x7f}, bytes.Repeat([]byte{0xff}, 255)), e))), "key-weak", nonconforming},
		{"Ed25519", key(unhex("300506032b6570"), bit(public)), "", 0},
		{"Ed25519 with NULL", key(unhex("300706032b65700500"), bit(public)), "key-parameters", malformed},
		{"Ed25519 of 33 octets", key(unhex("300506032b6570"), bit(append(bytes.Clone(public), 0))), "key-size", malformed},
		{"unused bits in the key", func(d *draft) { d.spki = seq(ec, tlv(3, []byte{1}, append(bytes.Clone(point[:64]), 0))) }, "key-octets", malformed},
		{"something after the key", key(ec, bit(point), null), "key-fields", malformed},
		{"EC without a curve", key(unhex("300906072a8648ce3d0201"), bit(point)), "key-parameters", malformed},
		{"EC with explicit parameters", key(unhex("300e06072a8648ce3d02013003020101"), bit(point)), "key-parameters", malformed},
		{"EC with an unknown curve", key(unhex("300d06072a8648ce3d020106022a03"), bit(point)), "key-curve", nonconforming},
		{"a compressed point", key(ec, bit(append([]byte{2}, point[1:33]...))), "key-compressed", nonconforming},
		{"a hybrid point", key(ec, bit(append([]byte{6}, point[1:]...))), "key-point", malformed},
		{"the point at infinity", key(ec, bit([]byte{0})), "key-point", malformed},
		{"a point that is too short", key(ec, bit(point[:64])), "key-point", malformed},
		{"a point that is not on the curve", key(ec, bit(offCurve)), "crypto-x509", malformed},
		{"an unknown key algorithm", key(unhex("300406022a03"), bit(point)), "key-unknown", nonconforming},
	})
}

func TestRealKeys(t *testing.T) {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	d := leafDraft()
	if d.spki, err = x509.MarshalPKIXPublicKey(&private.PublicKey); err != nil {
		t.Fatal(err)
	}
	wantRules(t, d)
}
