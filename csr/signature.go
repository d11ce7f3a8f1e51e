package csr

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"

	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"
)

const oidPSS = "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0a" // id-RSASSA-PSS, RFC 4055 §3.1

type family uint8

const (
	familyECDSA family = iota
	familyEd25519
	familyRSA
	familyBroken // a hash that no longer resists collisions, or a key that is not certified
)

// algorithm is one way of signing, by the contents of its object identifier.
type algorithm struct {
	name   string
	family family
	x509   x509.SignatureAlgorithm
}

// lookupAlgorithm knows all but RSASSA-PSS, whose hash is in its parameters.
func lookupAlgorithm(id string) (algorithm, bool) {
	switch id {
	case "\x2a\x86\x48\xce\x3d\x04\x03\x02": // RFC 5758 §3.2
		return algorithm{"ecdsa-with-SHA256", familyECDSA, x509.ECDSAWithSHA256}, true
	case "\x2a\x86\x48\xce\x3d\x04\x03\x03":
		return algorithm{"ecdsa-with-SHA384", familyECDSA, x509.ECDSAWithSHA384}, true
	case "\x2a\x86\x48\xce\x3d\x04\x03\x04":
		return algorithm{"ecdsa-with-SHA512", familyECDSA, x509.ECDSAWithSHA512}, true
	case oidEd25519:
		return algorithm{"Ed25519", familyEd25519, x509.PureEd25519}, true
	case "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b": // RFC 4055 §5
		return algorithm{"sha256WithRSAEncryption", familyRSA, x509.SHA256WithRSA}, true
	case "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0c":
		return algorithm{"sha384WithRSAEncryption", familyRSA, x509.SHA384WithRSA}, true
	case "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0d":
		return algorithm{"sha512WithRSAEncryption", familyRSA, x509.SHA512WithRSA}, true
	case "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x02":
		return algorithm{name: "md2WithRSAEncryption", family: familyBroken}, true
	case "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x04":
		return algorithm{name: "md5WithRSAEncryption", family: familyBroken}, true
	case "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x05", "\x2b\x0e\x03\x02\x1d":
		return algorithm{name: "sha1WithRSAEncryption", family: familyBroken}, true
	case "\x2a\x86\x48\xce\x3d\x04\x01":
		return algorithm{name: "ecdsa-with-SHA1", family: familyBroken}, true
	case "\x2a\x86\x48\xce\x38\x04\x03":
		return algorithm{name: "dsa-with-SHA1", family: familyBroken}, true
	default:
		return algorithm{}, false
	}
}

// readAlgorithm reads the AlgorithmIdentifier of the signature and refuses one that does not go with the key.
func readAlgorithm(element cryptobyte.String, public crypto.PublicKey) (x509.SignatureAlgorithm, error) {
	var sequence, id cryptobyte.String
	if !element.ReadASN1(&sequence, cryptobyte_asn1.SEQUENCE) || !sequence.ReadASN1(&id, cryptobyte_asn1.OBJECT_IDENTIFIER) {
		return 0, malformed("signatureAlgorithm")
	}
	parameters := string(sequence)
	if string(id) == oidPSS {
		return readPSS(parameters, public)
	}
	found, known := lookupAlgorithm(string(id))
	switch {
	case !known:
		return 0, invalid("signatureAlgorithm: %s is not supported; sign with SHA-256, SHA-384, SHA-512 or Ed25519", identifier(id))
	case found.family == familyBroken:
		return 0, invalid("signatureAlgorithm: %s is broken and never accepted; sign with SHA-256", found.name)
	case !found.family.matches(public):
		return 0, invalid("signatureAlgorithm: %s does not go with the request's %s key; sign with that key", found.name, keyName(public))
	case parameters != "" && (found.family != familyRSA || parameters != derNull):
		// RFC 4055 §5 has verifiers accept RSA with absent parameters too; RFC 5758 §3.2 and RFC 8410 §3 allow none
		return 0, invalid("signatureAlgorithm: the parameters of %s are not as its RFC has them (RFC 4055 §5, RFC 5758 §3.2, RFC 8410 §3)", found.name)
	}
	return found.x509, nil
}

// readPSS takes the three sets of parameters in use, byte for byte: one hash for message and mask, and a salt of its length. crypto/x509
// verifies no others.
func readPSS(parameters string, public crypto.PublicKey) (x509.SignatureAlgorithm, error) {
	if !familyRSA.matches(public) {
		return 0, invalid("signatureAlgorithm: RSASSA-PSS does not go with the request's %s key; sign with that key", keyName(public))
	}
	switch parameters {
	case pssParameters(1, 32):
		return x509.SHA256WithRSAPSS, nil
	case pssParameters(2, 48):
		return x509.SHA384WithRSAPSS, nil
	case pssParameters(3, 64):
		return x509.SHA512WithRSAPSS, nil
	default:
		return 0, invalid("signatureAlgorithm: RSASSA-PSS needs SHA-256, SHA-384 or SHA-512 for message and MGF1 alike and a salt as long as the hash " +
			"(RFC 4055 §3.1)")
	}
}

// pssParameters returns RSASSA-PSS-params for the hash 2.16.840.1.101.3.4.2.arc.
func pssParameters(arc, salt byte) string {
	hash := "\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02" + string(rune(arc)) + derNull
	mask := "\x30\x1a\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x08" + hash
	return "\x30\x34\xa0\x0f" + hash + "\xa1\x1c" + mask + "\xa2\x03\x02\x01" + string(rune(salt))
}

func (f family) matches(public crypto.PublicKey) bool {
	switch public.(type) {
	case *ecdsa.PublicKey:
		return f == familyECDSA
	case ed25519.PublicKey:
		return f == familyEd25519
	case *rsa.PublicKey:
		return f == familyRSA
	default:
		return false
	}
}

func keyName(public crypto.PublicKey) string {
	switch public.(type) {
	case *ecdsa.PublicKey:
		return "ECDSA"
	case ed25519.PublicKey:
		return "Ed25519"
	default:
		return "RSA"
	}
}

// verifySignature leaves the work to crypto/x509, so that all of Chancery verifies in one way.
func verifySignature(public any, algorithm x509.SignatureAlgorithm, message, signature []byte) error {
	return (&x509.Certificate{PublicKey: public}).CheckSignature(algorithm, message, signature)
}
