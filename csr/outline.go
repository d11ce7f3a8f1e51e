package csr

import (
	"github.com/chancery-ca/chancery/ca/der"

	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"
)

// outline is a CertificationRequest cut into its parts (RFC 2986 §4), each of them DER with tag and length unless said otherwise.
type outline struct {
	info       []byte // CertificationRequestInfo: what is signed
	subject    []byte
	spki       []byte
	attributes []byte // the contents of [0]
	algorithm  []byte
	signature  []byte // the octets of the BIT STRING
}

const attributesTag = cryptobyte_asn1.Tag(0 | 0x80 | 0x20) // [0] IMPLICIT SET OF

// readOutline cuts the request. Every element is consumed, and all lengths and values are in their only DER form, so that encoding the
// parts again gives the same octets.
func readOutline(input []byte) (*outline, error) {
	if err := der.Check(input); err != nil {
		return nil, invalid("it is not strict DER (X.690): %v; requests in BER are never accepted", err)
	}
	rest := cryptobyte.String(input)
	var request, infoElement, info, subject, spki, algorithm cryptobyte.String
	if !rest.ReadASN1(&request, cryptobyte_asn1.SEQUENCE) || !rest.Empty() {
		return nil, invalid("it is not one SEQUENCE (RFC 2986 §4.2); send the DER of a PKCS #10 request and nothing after it")
	}
	if !request.ReadASN1Element(&infoElement, cryptobyte_asn1.SEQUENCE) {
		return nil, malformed("certificationRequestInfo")
	}
	var out outline
	out.info = infoElement
	if !infoElement.ReadASN1(&info, cryptobyte_asn1.SEQUENCE) {
		return nil, malformed("certificationRequestInfo")
	}
	if err := readVersion(&info); err != nil {
		return nil, err
	}
	if !info.ReadASN1Element(&subject, cryptobyte_asn1.SEQUENCE) {
		return nil, malformed("subject")
	}
	if !info.ReadASN1Element(&spki, cryptobyte_asn1.SEQUENCE) {
		return nil, malformed("subjectPKInfo")
	}
	// attributes is not OPTIONAL, but requesters without any leave it out, and OpenSSL lets them
	var attributes cryptobyte.String
	if !info.ReadOptionalASN1(&attributes, nil, attributesTag) || !info.Empty() {
		return nil, invalid("certificationRequestInfo: an element other than attributes follows subjectPKInfo (RFC 2986 §4.1)")
	}
	if !request.ReadASN1Element(&algorithm, cryptobyte_asn1.SEQUENCE) {
		return nil, malformed("signatureAlgorithm")
	}
	if !request.ReadASN1BitStringAsBytes(&out.signature) {
		return nil, malformed("signature")
	}
	if !request.Empty() {
		return nil, invalid("an element follows the signature, and a request has three (RFC 2986 §4.2)")
	}
	out.subject, out.spki, out.attributes, out.algorithm = subject, spki, attributes, algorithm
	return &out, nil
}

func readVersion(info *cryptobyte.String) error {
	var version cryptobyte.String
	if !info.ReadASN1(&version, cryptobyte_asn1.INTEGER) {
		return malformed("version")
	}
	if len(version) != 1 || version[0] != 0 {
		return invalid("version: it is not 0, the only one of PKCS #10 (RFC 2986 §4.1)")
	}
	return nil
}

func malformed(field string) error {
	return invalid("%s: missing or malformed (RFC 2986 §4); make the request with another tool", field)
}
