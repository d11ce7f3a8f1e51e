package csr

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/asn1"
	"math/big"

	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"

	"github.com/chancery-ca/chancery/ca/errkind"
)

// Object identifiers of keys and curves, as DER contents.
const (
	oidRSA     = "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01" // rsaEncryption, RFC 3279 §2.3.1
	oidECDSA   = "\x2a\x86\x48\xce\x3d\x02\x01"         // id-ecPublicKey, RFC 5480 §2.1.1
	oidEd25519 = "\x2b\x65\x70"                         // RFC 8410 §3
	oidP224    = "\x2b\x81\x04\x00\x21"                 // secp224r1, RFC 5480 §2.1.1.1
	oidP256    = "\x2a\x86\x48\xce\x3d\x03\x01\x07"     // secp256r1
	oidP384    = "\x2b\x81\x04\x00\x22"
	oidP521    = "\x2b\x81\x04\x00\x23"
)

// readPublicKey reads a SubjectPublicKeyInfo (RFC 5280 §4.1.2.7) of which nothing is left over. It tells the kinds of keys apart; the key policy
// says which are allowed.
func readPublicKey(spki cryptobyte.String) (crypto.PublicKey, error) {
	var info, algorithm, id, parameters cryptobyte.String
	var key []byte
	if !spki.ReadASN1(&info, cryptobyte_asn1.SEQUENCE) || !info.ReadASN1(&algorithm, cryptobyte_asn1.SEQUENCE) ||
		!info.ReadASN1BitStringAsBytes(&key) || !info.Empty() || !algorithm.ReadASN1(&id, cryptobyte_asn1.OBJECT_IDENTIFIER) {
		return nil, invalid("public key: malformed SubjectPublicKeyInfo (RFC 5280 §4.1.2.7)")
	}
	parameters = algorithm
	switch string(id) {
	case oidECDSA:
		return readECDSA(parameters, key)
	case oidEd25519:
		if len(parameters) != 0 || len(key) != ed25519.PublicKeySize {
			return nil, invalid("public key: an Ed25519 key has no parameters and 32 octets (RFC 8410 §3)")
		}
		return ed25519.PublicKey(key), nil
	case oidRSA:
		if string(parameters) != derNull {
			return nil, invalid("public key: the parameters of an RSA key are NULL (RFC 3279 §2.3.1)")
		}
		return readRSA(key)
	default:
		return nil, refused(errkind.KeyRefused, "public key: keys of the algorithm %s are not certified; use ECDSA P-256, Ed25519 or RSA", identifier(id))
	}
}

// readECDSA takes named curves only: parameters spelled out can make a known point anybody's (CVE-2020-0601).
func readECDSA(parameters cryptobyte.String, point []byte) (crypto.PublicKey, error) {
	var id cryptobyte.String
	if !parameters.ReadASN1(&id, cryptobyte_asn1.OBJECT_IDENTIFIER) || !parameters.Empty() {
		return nil, invalid("public key: the curve is not given by name (RFC 5480 §2.1.1); use the named curve P-256")
	}
	var curve elliptic.Curve
	switch string(id) {
	case oidP224:
		curve = elliptic.P224()
	case oidP256:
		curve = elliptic.P256()
	case oidP384:
		curve = elliptic.P384()
	case oidP521:
		curve = elliptic.P521()
	default:
		return nil, refused(errkind.KeyRefused, "public key: keys on the curve %s are not certified; use P-256, P-384 or P-521", identifier(id))
	}
	if len(point) == 0 || point[0] != 4 {
		return nil, invalid("public key: the point is not in uncompressed form (RFC 5480 §2.2); encode it uncompressed")
	}
	key, err := ecdsa.ParseUncompressedPublicKey(curve, point)
	if err != nil {
		return nil, invalid("public key: the point is not on the curve %s (RFC 5480 §2.2); generate a new key", curve.Params().Name)
	}
	return key, nil
}

func readRSA(encoded cryptobyte.String) (crypto.PublicKey, error) {
	var sequence cryptobyte.String
	modulus, exponent := new(big.Int), new(big.Int)
	if !encoded.ReadASN1(&sequence, cryptobyte_asn1.SEQUENCE) || !encoded.Empty() || !sequence.ReadASN1Integer(modulus) ||
		!sequence.ReadASN1Integer(exponent) || !sequence.Empty() || modulus.Sign() <= 0 || exponent.Sign() <= 0 {
		return nil, invalid("public key: malformed RSAPublicKey (RFC 8017 §A.1.1)")
	}
	if exponent.BitLen() > 31 {
		return nil, refused(errkind.KeyRefused, "public key: the RSA exponent has %d bits, and only 65537 is certified; generate a new key", exponent.BitLen())
	}
	return &rsa.PublicKey{N: modulus, E: int(exponent.Int64())}, nil
}

const derNull = "\x05\x00"

// identifier returns the dotted form for a sentence, from DER contents.
func identifier(contents []byte) string {
	if id, ok := readIdentifier(contents); ok {
		return id.String()
	}
	return "with an unreadable identifier"
}

// readIdentifier reads the contents of an OBJECT IDENTIFIER. Arcs of more than 31 bits are not supported, as in encoding/asn1.
func readIdentifier(contents []byte) (asn1.ObjectIdentifier, bool) {
	if len(contents) == 0 || len(contents) > 127 {
		return nil, false
	}
	element := cryptobyte.String(append([]byte{byte(cryptobyte_asn1.OBJECT_IDENTIFIER), byte(len(contents))}, contents...)) //nolint:gosec // at most 127
	var id asn1.ObjectIdentifier
	ok := element.ReadASN1ObjectIdentifier(&id)
	return id, ok
}
