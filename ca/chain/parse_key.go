package chain

import (
	"bytes"
	"math/bits"

	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"

	"github.com/chancery-ca/chancery/ca/der"
)

// keyKind is what later rules need of the subject's key.
type keyKind uint8

const (
	keyOther keyKind = iota
	keyRSA
	keyNoEncipherment // signs or agrees only: EC, EdDSA, X25519, X448
)

const minRSABits = 2048

// publicKey reads the contents of SubjectPublicKeyInfo (RFC 5280 §4.1.2.7, RFC 3279, RFC 5480, RFC 8410). That a point lies on its curve is
// for crypto/x509 to find.
func (in *inspection) publicKey(spki cryptobyte.String) {
	var algorithm, key cryptobyte.String
	if !spki.ReadASN1Element(&algorithm, cryptobyte_asn1.SEQUENCE) || !spki.ReadASN1(&key, cryptobyte_asn1.BIT_STRING) || !spki.Empty() {
		in.add(Malformed, "key-fields", "RFC 5280 §4.1.2.7", "a SubjectPublicKeyInfo has to be an algorithm and a BIT STRING, and nothing else")
		return
	}
	oid, parameters, ok := in.algorithmIdentifier("key", algorithm)
	if !ok {
		return
	}
	if key[0] != 0 || len(key) == 1 {
		in.add(Malformed, "key-octets", "RFC 5280 §4.1.2.7", "the public key has to be whole octets and not empty")
		return
	}
	key = key[1:]
	switch string(oid) {
	case "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01":
		in.key = keyRSA
		in.rsaKey(parameters, key)
	case "\x2a\x86\x48\xce\x3d\x02\x01":
		in.key = keyNoEncipherment
		in.ecKey(parameters, key)
	case "\x2b\x65\x6e", "\x2b\x65\x70": // X25519, Ed25519
		in.curveKey(parameters, key, 32)
	case "\x2b\x65\x6f": // X448
		in.curveKey(parameters, key, 56)
	case "\x2b\x65\x71": // Ed448
		in.curveKey(parameters, key, 57)
	default:
		in.add(Nonconforming, "key-unknown", "RFC 5280 §4.1.2.7", "the key algorithm is not one that is known here; use ECDSA, Ed25519 or RSA")
	}
}

func (in *inspection) rsaKey(parameters, key cryptobyte.String) {
	const section = "RFC 3279 §2.3.1"
	if !isNull(parameters) {
		in.add(Malformed, "key-parameters", section, "the parameters of an RSA key have to be NULL")
	}
	var fields, modulus, exponent cryptobyte.String
	if der.Check(key) != nil || !key.ReadASN1(&fields, cryptobyte_asn1.SEQUENCE) || !fields.ReadASN1(&modulus, cryptobyte_asn1.INTEGER) ||
		!fields.ReadASN1(&exponent, cryptobyte_asn1.INTEGER) || !fields.Empty() || !isPositive(modulus) || !isPositive(exponent) {
		in.add(Malformed, "key-rsa", section, "an RSA key has to be the DER of a positive modulus and a positive exponent, and nothing else")
		return
	}
	if modulus[len(modulus)-1]&1 == 0 || exponent[len(exponent)-1]&1 == 0 || string(exponent) == "\x01" {
		in.add(Malformed, "key-rsa", "RFC 8017 §3.1", "an RSA key's modulus and exponent have to be odd and the exponent at least 3")
	}
	modulus = bytes.TrimLeft(modulus, "\x00")
	if 8*len(modulus)-bits.LeadingZeros8(modulus[0]) < minRSABits {
		in.add(Nonconforming, "key-weak", "RFC 9325 §4.5", "the RSA key has fewer than %d bits", minRSABits)
	}
}

// ecPoint returns how many octets an uncompressed point takes on the curve of the given object identifier contents.
func ecPoint(oid string) int {
	switch oid {
	case "\x2b\x81\x04\x00\x21": // P-224
		return 57
	case "\x2a\x86\x48\xce\x3d\x03\x01\x07": // P-256
		return 65
	case "\x2b\x81\x04\x00\x22": // P-384
		return 97
	case "\x2b\x81\x04\x00\x23": // P-521
		return 133
	}
	return 0
}

func (in *inspection) ecKey(parameters, point cryptobyte.String) {
	var curve cryptobyte.String
	if !parameters.ReadASN1(&curve, cryptobyte_asn1.OBJECT_IDENTIFIER) || !parameters.Empty() {
		in.add(Malformed, "key-parameters", "RFC 5480 §2.1.1",
			"the parameters of an EC key have to name a curve; explicit and implicit ones are not allowed")
		return
	}
	size := ecPoint(string(curve))
	switch {
	case size == 0:
		in.add(Nonconforming, "key-curve", "RFC 5480 §2.1.1.1", "the curve is not one that is known here; use P-256, P-384 or P-521")
	case point[0] == 4 && len(point) == size:
	case (point[0] == 2 || point[0] == 3) && len(point) == size/2+1:
		in.add(Nonconforming, "key-compressed", "RFC 5480 §2.2", "the EC point is compressed, which is not supported here")
	default:
		in.add(Malformed, "key-point", "RFC 5480 §2.2", "the EC point does not have the form or the size that its curve needs")
	}
}

func (in *inspection) curveKey(parameters, key cryptobyte.String, size int) {
	in.key = keyNoEncipherment
	if len(parameters) > 0 {
		in.add(Malformed, "key-parameters", "RFC 8410 §3", "the parameters of an Ed25519, Ed448, X25519 or X448 key have to be absent")
	}
	if len(key) != size {
		in.add(Malformed, "key-size", "RFC 8410 §4", "the key has %d octets; its algorithm needs %d", len(key), size)
	}
}
