package inspect

import (
	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"
)

// binary reads one thing in DER or, if it is a certificate, in BER. What is not told to be something else is taken for a certificate, so that
// damage is described by the reader of certificates.
func (in *reader) binary(encoding []byte) *Item {
	kind, format := shape(encoding)
	return in.one(kind, format, encoding)
}

func (in *reader) one(kind Kind, format string, encoding []byte) *Item {
	switch kind {
	case KindRequest:
		return in.request(encoding)
	case KindRevocationList:
		return in.revocationList(encoding)
	case KindPrivateKey:
		return in.privateKey(encoding, format)
	case KindPublicKey:
		return in.publicKey(encoding)
	default:
		return in.certificate(encoding)
	}
}

// shape tells by their first elements what octets are, and the format if that is a private key.
func shape(encoding cryptobyte.String) (kind Kind, format string) {
	const integer, sequence = cryptobyte_asn1.INTEGER, cryptobyte_asn1.SEQUENCE
	var outer, inner cryptobyte.String
	if !encoding.ReadASN1(&outer, sequence) {
		return KindCertificate, ""
	}
	if outer.PeekASN1Tag(integer) {
		outer.SkipASN1(integer)
		switch {
		case outer.PeekASN1Tag(cryptobyte_asn1.OCTET_STRING):
			return KindPrivateKey, formatSEC1
		case outer.PeekASN1Tag(integer):
			return KindPrivateKey, formatPKCS1
		case outer.PeekASN1Tag(sequence):
			return KindPrivateKey, formatPKCS8
		}
		return KindCertificate, ""
	}
	if !outer.ReadASN1(&inner, sequence) {
		return KindCertificate, ""
	}
	if inner.PeekASN1Tag(cryptobyte_asn1.OBJECT_IDENTIFIER) {
		if outer.PeekASN1Tag(cryptobyte_asn1.OCTET_STRING) {
			return KindPrivateKey, formatEncrypted
		}
		return KindPublicKey, ""
	}
	return signedShape(inner), ""
}

// signedShape tells what is signed by the fields of its content. A certificate of version 3 starts with [0]; one of version 1 and a request
// start with a number, a list with a number or not.
func signedShape(content cryptobyte.String) Kind {
	const sequence = cryptobyte_asn1.SEQUENCE
	var first, next cryptobyte.String
	if !content.SkipOptionalASN1(cryptobyte_asn1.INTEGER) || !content.ReadASN1(&first, sequence) || !content.ReadASN1(&next, sequence) {
		return KindCertificate
	}
	switch {
	case content.PeekASN1Tag(cryptobyte_asn1.UTCTime), content.PeekASN1Tag(cryptobyte_asn1.GeneralizedTime):
		return KindRevocationList
	// algorithm and key of a request's SubjectPublicKeyInfo; a version 1 certificate has its issuer there
	case next.SkipASN1(sequence) && next.PeekASN1Tag(cryptobyte_asn1.BIT_STRING):
		return KindRequest
	}
	return KindCertificate
}
