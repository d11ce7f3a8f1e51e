package chain

import (
	"bytes"

	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"

	"github.com/chancery-ca/chancery/ca/der"
)

// signatureKind is what a signature algorithm's identifier implies for its parameters and its value.
type signatureKind uint8

const (
	signatureUnknown signatureKind = iota
	signaturePKCS1                 // parameters NULL (RFC 4055 §5)
	signaturePSS                   // parameters RSASSA-PSS-params (RFC 4055 §3.1)
	signatureECDSA                 // parameters absent (RFC 5758 §3.2)
	signatureDSA                   // parameters absent (RFC 5758 §3.1)
	signatureEd25519               // parameters absent (RFC 8410 §3)
	signatureEd448                 // parameters absent (RFC 8410 §3)
)

// signatureKindOf returns the kind, by the contents of an object identifier, and whether its hash is broken.
func signatureKindOf(oid string) (kind signatureKind, weak bool) {
	switch oid {
	case "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x02", "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x04", "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x05": // MD2, MD5, SHA-1
		return signaturePKCS1, true
	case "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b", "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0c", "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0d",
		"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0e":
		return signaturePKCS1, false
	case "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0a":
		return signaturePSS, false
	case "\x2a\x86\x48\xce\x3d\x04\x01": // SHA-1
		return signatureECDSA, true
	case "\x2a\x86\x48\xce\x3d\x04\x03\x01", "\x2a\x86\x48\xce\x3d\x04\x03\x02", "\x2a\x86\x48\xce\x3d\x04\x03\x03", "\x2a\x86\x48\xce\x3d\x04\x03\x04":
		return signatureECDSA, false
	case "\x2a\x86\x48\xce\x38\x04\x03": // SHA-1
		return signatureDSA, true
	case "\x60\x86\x48\x01\x65\x03\x04\x03\x01", "\x60\x86\x48\x01\x65\x03\x04\x03\x02":
		return signatureDSA, false
	case "\x2b\x65\x70":
		return signatureEd25519, false
	case "\x2b\x65\x71":
		return signatureEd448, false
	}
	return signatureUnknown, false
}

// algorithmIdentifier reads an AlgorithmIdentifier element: its object identifier's contents and its parameters' element, which is empty if
// they are absent.
func (in *inspection) algorithmIdentifier(where string, element cryptobyte.String) (oid, parameters cryptobyte.String, ok bool) {
	var fields cryptobyte.String
	if !element.ReadASN1(&fields, cryptobyte_asn1.SEQUENCE) || !fields.ReadASN1(&oid, cryptobyte_asn1.OBJECT_IDENTIFIER) ||
		!fields.Empty() && !fields.ReadAnyASN1Element(&parameters, nil) || !fields.Empty() {
		in.add(Malformed, "algorithm-fields", "RFC 5280 §4.1.1.2",
			"the %s algorithm has to be an object identifier and at most one parameters field", where)
		return nil, nil, false
	}
	return oid, parameters, true
}

func (in *inspection) signatureAlgorithm(element cryptobyte.String) {
	oid, parameters, ok := in.algorithmIdentifier("signature", element)
	if !ok {
		return
	}
	kind, weak := signatureKindOf(string(oid))
	if weak {
		in.add(Nonconforming, "signature-weak", "RFC 9155, RFC 6151", "the signature algorithm uses MD2, MD5 or SHA-1; use SHA-256 or better")
	}
	switch kind {
	case signatureUnknown:
		in.add(Nonconforming, "signature-unknown", "RFC 5280 §4.1.1.2", "the signature algorithm is not one that is known here")
	case signaturePKCS1:
		switch {
		case len(parameters) == 0:
			in.add(Nonconforming, "signature-parameters", "RFC 4055 §5",
				"the parameters of an RSA signature algorithm are absent; a CA writes NULL")
		case !isNull(parameters):
			in.add(Malformed, "signature-parameters", "RFC 4055 §5", "the parameters of an RSA signature algorithm have to be NULL")
		}
	case signaturePSS:
		in.pssParameters(parameters)
	case signatureECDSA, signatureDSA:
		if len(parameters) > 0 {
			in.add(Malformed, "signature-parameters", "RFC 5758 §3", "the parameters of an ECDSA or DSA signature algorithm have to be absent")
		}
	case signatureEd25519, signatureEd448:
		if len(parameters) > 0 {
			in.add(Malformed, "signature-parameters", "RFC 8410 §3", "the parameters of an EdDSA signature algorithm have to be absent")
		}
	}
}

// signatureValue reads the contents of the BIT STRING signatureValue. Whether the signature is good is for who knows the issuer.
func (in *inspection) signatureValue(algorithm, bits cryptobyte.String) {
	if bits[0] != 0 || len(bits) == 1 {
		in.add(Malformed, "signature-octets", "RFC 5280 §4.1.1.3", "signatureValue has to be whole octets and not empty")
		return
	}
	signature := bits[1:]
	var fields, oid cryptobyte.String
	if !algorithm.ReadASN1(&fields, cryptobyte_asn1.SEQUENCE) || !fields.ReadASN1(&oid, cryptobyte_asn1.OBJECT_IDENTIFIER) {
		return // the algorithm has its finding
	}
	good := true
	switch kind, _ := signatureKindOf(string(oid)); kind {
	case signatureECDSA, signatureDSA:
		good = isPairOfPositives(signature)
	case signatureEd25519:
		good = len(signature) == 64
	case signatureEd448:
		good = len(signature) == 114
	default:
		// an RSA signature has the length of the issuer's modulus, which is not known here
	}
	if !good {
		in.add(Malformed, "signature-form", "RFC 5758 §3, RFC 8410 §6", "signatureValue does not have the form of its algorithm's signatures")
	}
}

// isPairOfPositives tells whether the octets are the DER of SEQUENCE { r INTEGER, s INTEGER } with both above zero.
func isPairOfPositives(encoding cryptobyte.String) bool {
	var pair, r, s cryptobyte.String
	return der.Check(encoding) == nil && encoding.ReadASN1(&pair, cryptobyte_asn1.SEQUENCE) && pair.ReadASN1(&r, cryptobyte_asn1.INTEGER) &&
		pair.ReadASN1(&s, cryptobyte_asn1.INTEGER) && pair.Empty() && isPositive(r) && isPositive(s)
}

// isPositive looks at the contents of an INTEGER that is known to be DER.
func isPositive(contents []byte) bool {
	return contents[0] < 0x80 && (len(contents) > 1 || contents[0] != 0)
}

func isNull(element []byte) bool { return bytes.Equal(element, []byte{0x05, 0x00}) }
