package chain

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"fmt"
	"io"

	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"
)

// Algorithm is how one kind of issuing key signs certificates.
type Algorithm struct {
	x509       x509.SignatureAlgorithm
	hash       crypto.Hash // zero for algorithms that hash by themselves
	identifier []byte      // DER AlgorithmIdentifier
}

// AlgorithmFor returns the signature algorithm for an issuing key: ECDSA with the hash of the curve's size, Ed25519, or RSA PKCS #1 v1.5 with
// SHA-256. It takes pointers to the keys of crypto/ecdsa and crypto/rsa, and ed25519.PublicKey. Whether the key is strong is not its question.
func AlgorithmFor(public crypto.PublicKey) (Algorithm, error) {
	ecdsaWith := func(algorithm x509.SignatureAlgorithm, hash crypto.Hash, arc byte) (Algorithm, error) {
		// 1.2.840.10045.4.3.x, parameters absent (RFC 5758 §3.2)
		return Algorithm{algorithm, hash, []byte{0x30, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, arc}}, nil
	}
	switch key := public.(type) {
	case *ecdsa.PublicKey:
		switch key.Curve {
		case elliptic.P256():
			return ecdsaWith(x509.ECDSAWithSHA256, crypto.SHA256, 2)
		case elliptic.P384():
			return ecdsaWith(x509.ECDSAWithSHA384, crypto.SHA384, 3)
		case elliptic.P521():
			return ecdsaWith(x509.ECDSAWithSHA512, crypto.SHA512, 4)
		}
		return Algorithm{}, fmt.Errorf("curve %s cannot sign certificates here; use P-256, P-384 or P-521", key.Curve.Params().Name)
	case ed25519.PublicKey:
		return Algorithm{x509.PureEd25519, 0, []byte{0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70}}, nil // RFC 8410 §3
	case *rsa.PublicKey:
		// 1.2.840.113549.1.1.11, parameters NULL (RFC 4055 §5)
		return Algorithm{x509.SHA256WithRSA, crypto.SHA256, []byte{
			0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b, 0x05, 0x00,
		}}, nil
	default:
		return Algorithm{}, fmt.Errorf("a %T cannot sign certificates here; use ECDSA, Ed25519 or RSA", public)
	}
}

// Sign returns the signature over message by a key of the algorithm's kind. It does not verify it.
func (a Algorithm) Sign(message []byte, key crypto.Signer, random io.Reader) ([]byte, error) {
	digest := message
	if a.hash != 0 {
		h := a.hash.New()
		h.Write(message)
		digest = h.Sum(nil)
	}
	signature, err := key.Sign(random, digest, a.hash)
	if err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	return signature, nil
}

// Verify checks a signature that Sign made with the key of a certificate.
func (a Algorithm) Verify(certificate *x509.Certificate, message, signature []byte) error {
	return certificate.CheckSignature(a.x509, message, signature)
}

// Certificate signs a TBSCertificate and returns the DER Certificate. It does not verify the signature: the checker does.
func (a Algorithm) Certificate(tbs []byte, key crypto.Signer, random io.Reader) ([]byte, error) {
	signature, err := a.Sign(tbs, key, random)
	if err != nil {
		return nil, err
	}
	b := cryptobyte.NewBuilder(make([]byte, 0, len(tbs)+len(signature)+64))
	b.AddASN1(cryptobyte_asn1.SEQUENCE, func(b *cryptobyte.Builder) {
		b.AddBytes(tbs)
		b.AddBytes(a.identifier)
		b.AddASN1BitString(signature)
	})
	return b.Bytes()
}
