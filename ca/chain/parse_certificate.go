package chain

import (
	"bytes"

	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"
)

// The tags of X.509's own fields.
const (
	tagVersion         = cryptobyte_asn1.Tag(0) | 0xa0
	tagIssuerUniqueID  = cryptobyte_asn1.Tag(1) | 0x80
	tagSubjectUniqueID = cryptobyte_asn1.Tag(2) | 0x80
	tagExtensions      = cryptobyte_asn1.Tag(3) | 0xa0
)

// certificate reads Certificate (RFC 5280 §4.1). Its encoding is known to be DER, so the readers here look at structure only, and
// consume every element: crypto/x509 ignores what follows the last field that it knows.
func (in *inspection) certificate(encoding cryptobyte.String) {
	var fields, tbs, algorithm, signature cryptobyte.String
	if !encoding.ReadASN1(&fields, cryptobyte_asn1.SEQUENCE) || !fields.ReadASN1(&tbs, cryptobyte_asn1.SEQUENCE) ||
		!fields.ReadASN1Element(&algorithm, cryptobyte_asn1.SEQUENCE) || !fields.ReadASN1(&signature, cryptobyte_asn1.BIT_STRING) ||
		!fields.Empty() {
		in.add(Malformed, "certificate-fields", "RFC 5280 §4.1",
			"a Certificate has to be tbsCertificate, signatureAlgorithm and signatureValue, and nothing else")
		return
	}
	if !in.tbsCertificate(tbs, algorithm) {
		return
	}
	in.signatureValue(algorithm, signature)
	// what is malformed may not have been read to its end, and a rule across fields would then speak of what is not missing
	if in.count[Malformed] == 0 {
		in.acrossFields()
	}
}

// tbsCertificate reads TBSCertificate and returns false if its fields cannot be told apart.
func (in *inspection) tbsCertificate(tbs, outerAlgorithm cryptobyte.String) bool {
	version := in.version(&tbs)
	var serial, algorithm, issuer, validity, subject, spki cryptobyte.String
	if !tbs.ReadASN1(&serial, cryptobyte_asn1.INTEGER) || !tbs.ReadASN1Element(&algorithm, cryptobyte_asn1.SEQUENCE) ||
		!tbs.ReadASN1(&issuer, cryptobyte_asn1.SEQUENCE) || !tbs.ReadASN1(&validity, cryptobyte_asn1.SEQUENCE) ||
		!tbs.ReadASN1(&subject, cryptobyte_asn1.SEQUENCE) || !tbs.ReadASN1(&spki, cryptobyte_asn1.SEQUENCE) {
		in.add(Malformed, "tbs-fields", "RFC 5280 §4.1", "a TBSCertificate lacks a field or has one of another type")
		return false
	}
	in.serial(serial)
	if !bytes.Equal(algorithm, outerAlgorithm) {
		in.add(Malformed, "algorithm-mismatch", "RFC 5280 §4.1.1.2",
			"signatureAlgorithm and tbsCertificate's signature have to be the same octets")
	}
	in.signatureAlgorithm(algorithm)
	in.name("issuer", issuer)
	if len(issuer) == 0 {
		in.add(Malformed, "issuer-empty", "RFC 5280 §4.1.2.4", "the issuer is empty; it has to name somebody")
	}
	in.validity(validity)
	in.name("subject", subject)
	in.subjectEmpty = len(subject) == 0
	in.selfIssued = bytes.Equal(issuer, subject)
	in.publicKey(spki)
	in.uniqueIDs(&tbs, version)
	in.extensions(&tbs, version)
	if !tbs.Empty() {
		in.add(Malformed, "tbs-trailing", "RFC 5280 §4.1", "a TBSCertificate has something after its last field")
	}
	return true
}

// version reads the version and returns 1, 2 or 3.
func (in *inspection) version(tbs *cryptobyte.String) int {
	var explicit, number cryptobyte.String
	var present bool
	if !tbs.ReadOptionalASN1(&explicit, &present, tagVersion) || !present {
		return 1
	}
	if !explicit.ReadASN1(&number, cryptobyte_asn1.INTEGER) || !explicit.Empty() || len(number) != 1 || number[0] > 2 {
		in.add(Malformed, "version", "RFC 5280 §4.1.2.1", "the version has to be one INTEGER, 1 (v2) or 2 (v3)")
		return 3
	}
	if number[0] == 0 {
		in.add(Malformed, "version-default", "X.690 §11.5", "the version says v1, which is the default and must not be encoded")
	}
	return int(number[0]) + 1
}

// maxSerialOctets holds a positive number of up to 159 bits.
const maxSerialOctets = 20

func (in *inspection) serial(serial cryptobyte.String) {
	switch {
	case serial[0] >= 0x80:
		in.add(Malformed, "serial-positive", "RFC 5280 §4.1.2.2", "the serial number is negative; it has to be positive")
	case len(serial) == 1 && serial[0] == 0:
		// several roots in use have it, and every reader reads it alike
		in.add(Nonconforming, "serial-zero", "RFC 5280 §4.1.2.2", "the serial number is zero; it has to be positive")
	case len(serial) > maxSerialOctets:
		in.add(Nonconforming, "serial-length", "RFC 5280 §4.1.2.2",
			"the serial number has %d octets; a CA must not use more than 20", len(serial))
	}
}

func (in *inspection) uniqueIDs(tbs *cryptobyte.String, version int) {
	for _, id := range [...]struct {
		name string
		tag  cryptobyte_asn1.Tag
	}{{"issuerUniqueID", tagIssuerUniqueID}, {"subjectUniqueID", tagSubjectUniqueID}} {
		var value cryptobyte.String
		var present bool
		if !tbs.ReadOptionalASN1(&value, &present, id.tag) || !present {
			continue
		}
		in.contents("unique-id", "RFC 5280 §4.1.2.8", id.name, typeBitString, value)
		if version == 1 {
			in.add(Malformed, "unique-id-version", "RFC 5280 §4.1.2.8", "a version 1 certificate must not have %s", id.name)
		}
		in.add(Nonconforming, "unique-id", "RFC 5280 §4.1.2.8", "the certificate has %s, which a conforming CA must not generate", id.name)
	}
}
