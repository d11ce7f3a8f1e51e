package chain

import (
	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"
)

// pssHash returns the length of the hash with the given object identifier contents, or zero for one that is not accepted.
func pssHash(oid string) byte {
	switch oid {
	case "\x60\x86\x48\x01\x65\x03\x04\x02\x01":
		return 32
	case "\x60\x86\x48\x01\x65\x03\x04\x02\x02":
		return 48
	case "\x60\x86\x48\x01\x65\x03\x04\x02\x03":
		return 64
	}
	return 0
}

const oidMGF1 = "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x08"

// pssParameters reads RSASSA-PSS-params (RFC 4055 §3.1). Sets that crypto/x509 cannot verify are Nonconforming: it takes SHA-2, MGF1 over the
// same hash, a salt of the hash's length and the default trailer.
func (in *inspection) pssParameters(element cryptobyte.String) {
	const section = "RFC 4055 §3.1"
	malformed := func() {
		in.add(Malformed, "pss-parameters", section, "the RSASSA-PSS parameters are absent or malformed")
	}
	var fields cryptobyte.String
	if !element.ReadASN1(&fields, cryptobyte_asn1.SEQUENCE) {
		malformed()
		return
	}
	hash, _ := optional(&fields, 0, true)
	mask, _ := optional(&fields, 1, true)
	salt, hasSalt := optional(&fields, 2, true)
	trailer, hasTrailer := optional(&fields, 3, true)
	if !fields.Empty() {
		malformed()
		return
	}
	var saltLength, trailerField cryptobyte.String
	if hasSalt && (!salt.ReadASN1(&saltLength, cryptobyte_asn1.INTEGER) || !salt.Empty() || saltLength[0] >= 0x80) ||
		hasTrailer && (!trailer.ReadASN1(&trailerField, cryptobyte_asn1.INTEGER) || !trailer.Empty()) {
		malformed()
		return
	}
	if string(saltLength) == "\x14" || string(trailerField) == "\x01" {
		in.add(Malformed, "pss-default", "X.690 §11.5", "the RSASSA-PSS parameters encode a default")
	}
	hashLength := pssHash(hashOID(hash))
	if hashLength == 0 || maskHash(mask) != hashLength || string(saltLength) != string([]byte{hashLength}) || hasTrailer {
		in.add(Nonconforming, "pss-parameters", section,
			"the RSASSA-PSS parameters are not SHA-256, SHA-384 or SHA-512 with MGF1 over the same hash and a salt of its length")
	}
}

// hashOID returns the object identifier of a HashAlgorithm whose parameters are NULL or absent; empty for anything else.
func hashOID(algorithm cryptobyte.String) string {
	var fields, oid cryptobyte.String
	if !algorithm.ReadASN1(&fields, cryptobyte_asn1.SEQUENCE) || !algorithm.Empty() ||
		!fields.ReadASN1(&oid, cryptobyte_asn1.OBJECT_IDENTIFIER) || !fields.Empty() && !isNull(fields) {
		return ""
	}
	return string(oid)
}

// maskHash returns the hash length of a MaskGenAlgorithm that is MGF1; zero for anything else.
func maskHash(algorithm cryptobyte.String) byte {
	var fields, oid cryptobyte.String
	if !algorithm.ReadASN1(&fields, cryptobyte_asn1.SEQUENCE) || !algorithm.Empty() ||
		!fields.ReadASN1(&oid, cryptobyte_asn1.OBJECT_IDENTIFIER) || string(oid) != oidMGF1 {
		return 0
	}
	return pssHash(hashOID(fields))
}
