package inspect

import (
	"crypto"
	"crypto/dsa" //nolint:staticcheck // to name such keys, not to use them
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
)

// Key is a public key.
type Key struct {
	Kind   string `json:"kind"`   // "P-256", "RSA-2048", "Ed25519"
	SHA256 string `json:"sha256"` // of the DER SubjectPublicKeyInfo, in hexadecimal
}

func keyOf(public crypto.PublicKey, spki []byte) Key {
	sum := sha256.Sum256(spki)
	return Key{Kind: keyKind(public), SHA256: hex.EncodeToString(sum[:])}
}

func keyKind(public crypto.PublicKey) string {
	switch key := public.(type) {
	case *ecdsa.PublicKey:
		return key.Curve.Params().Name
	case *rsa.PublicKey:
		return fmt.Sprintf("RSA-%d", key.N.BitLen())
	case ed25519.PublicKey:
		return "Ed25519"
	case *ecdh.PublicKey:
		return "X25519"
	case *dsa.PublicKey:
		return "DSA"
	}
	return "unknown"
}

// PrivateKey is a private key, of which nothing is shown but the public half.
type PrivateKey struct {
	Format    string `json:"format"` // "PKCS #8", "SEC 1", "PKCS #1"
	Encrypted bool   `json:"encrypted"`
	// Key is the public half; nil if it is encrypted.
	Key *Key `json:"public_key,omitempty"`
	// Matches are the positions of the certificates and requests of the same input with this key.
	Matches []int `json:"matches"`
}

// The formats that private keys come in.
const (
	formatPKCS8     = "PKCS #8"
	formatSEC1      = "SEC 1"
	formatPKCS1     = "PKCS #1"
	formatEncrypted = "PKCS #8, encrypted"
)

// privateKey reads a private key. Errors say nothing of its octets.
func (in *reader) privateKey(encoding []byte, format string) *Item {
	out := item(KindPrivateKey)
	out.PrivateKey = &PrivateKey{Format: format, Encrypted: format == formatEncrypted, Matches: []int{}}
	if out.PrivateKey.Encrypted {
		return out
	}
	public, err := publicHalf(encoding, format)
	if err != nil {
		out.PrivateKey = nil
		out.add(Refused, "private-key", "RFC 5958", "the private key is not of a kind that is known, or is damaged; it is not shown")
		return out
	}
	spki, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		out.add(Note, "private-key", "RFC 5958", "its public half cannot be written")
		return out
	}
	key := keyOf(public, spki)
	out.PrivateKey.Key = &key
	if err := in.certifiable(public); err != nil {
		out.add(Note, "key-policy", "", "its key is not one that Chancery certifies: %v", err)
	}
	return out
}

func publicHalf(encoding []byte, format string) (crypto.PublicKey, error) {
	var private any
	var err error
	switch format {
	case formatSEC1:
		private, err = x509.ParseECPrivateKey(encoding)
	case formatPKCS1:
		private, err = x509.ParsePKCS1PrivateKey(encoding)
	default:
		private, err = x509.ParsePKCS8PrivateKey(encoding)
	}
	if err != nil {
		return nil, err
	}
	switch key := private.(type) {
	case crypto.Signer:
		return key.Public(), nil
	case *ecdh.PrivateKey:
		return key.PublicKey(), nil
	}
	return nil, errors.New("unknown kind of key")
}

// publicKey reads a SubjectPublicKeyInfo.
func (in *reader) publicKey(encoding []byte) *Item {
	out := item(KindPublicKey)
	public, err := x509.ParsePKIXPublicKey(encoding)
	if err != nil {
		out.add(Refused, "public-key", "RFC 5280 §4.1.2.7", "the public key cannot be read: %v", err)
		return out
	}
	key := keyOf(public, encoding)
	out.PublicKey = &key
	if err := in.certifiable(public); err != nil {
		out.add(Note, "key-policy", "", "its key is not one that Chancery certifies: %v", err)
	}
	return out
}

// match notes with each private key of an input what it belongs to.
func match(items []*Item) {
	for _, holder := range items {
		private := holder.PrivateKey
		if private == nil || private.Key == nil {
			continue
		}
		others := 0
		for _, other := range items {
			var key *Key
			switch {
			case other.Certificate != nil:
				key = &other.Certificate.Key
			case other.Request != nil:
				key = &other.Request.Key
			default:
				continue
			}
			if others++; key.SHA256 == private.Key.SHA256 {
				private.Matches = append(private.Matches, other.Position)
			}
		}
		if others > 0 && len(private.Matches) == 0 {
			holder.add(Note, "key-mismatch", "", "it is the key of no certificate and no request beside it")
		}
	}
}
