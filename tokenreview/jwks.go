package tokenreview

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	_ "crypto/sha256" // for ES256 and RS256
	_ "crypto/sha512" // for ES384 and ES512
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/chancery-ca/chancery/ca/keypolicy"
)

const (
	maxJWKS    = 256 << 10
	maxKeys    = 64
	maxKeyID   = 1 << 10 // as long as a token's header allows
	minModulus = 2048
	maxModulus = 8192

	usualExponent = 65537

	maxAnonymous = 8 // keys that are tried for a token that names none
)

// signatureKey is a public key of an issuer.
type signatureKey struct {
	id        string
	algorithm string // the one that the key is good for
	public    any    // *rsa.PublicKey or *ecdsa.PublicKey
}

// keySet is an issuer's keys at one time. It is immutable.
type keySet []signatureKey

// parseKeySet reads a JWK Set (RFC 7517 §5). Keys that cannot verify what we accept are left out, as the RFC asks: those of other types, sizes, uses and
// algorithms. A set that holds a private or shared key is refused: whoever can read it could sign. A set without one key of use is refused too.
func parseKeySet(text []byte) (keySet, error) {
	set, err := parseObject(text)
	if err != nil {
		return nil, fmt.Errorf("the key set %w", err)
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(set["keys"], &raw); err != nil || raw == nil {
		return nil, errors.New("the key set has no list keys")
	}
	if len(raw) > maxKeys {
		return nil, fmt.Errorf("the key set has %d keys; at most %d are read", len(raw), maxKeys)
	}
	var keys keySet
	for i, text := range raw {
		members, err := parseObject(text)
		if err != nil {
			return nil, fmt.Errorf("key %d of the set %w", i, err)
		}
		for _, private := range []string{"d", "k", "p", "q"} {
			if _, present := members[private]; present {
				return nil, fmt.Errorf("key %d of the set is a private or shared key: publish the public half alone, and replace the key", i)
			}
		}
		if key, ok := publicKey(members); ok {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("the key set has no key for the algorithms RS256, ES256, ES384 and ES512")
	}
	return keys, nil
}

// publicKey reads a JWK, or tells that it is of no use.
func publicKey(members object) (signatureKey, bool) {
	if use, present := members["use"]; present && string(use) != `"sig"` {
		return signatureKey{}, false
	}
	if _, present := members["key_ops"]; present {
		if operations, ok := members.texts("key_ops"); !ok || len(operations) != 1 || operations[0] != "verify" {
			return signatureKey{}, false
		}
	}
	key := signatureKey{}
	if _, present := members["kid"]; present {
		var ok bool
		if key.id, ok = members.text("kid"); !ok || len(key.id) > maxKeyID {
			return signatureKey{}, false
		}
	}
	ok := false
	switch kind, _ := members.text("kty"); kind {
	case "RSA":
		key.algorithm = "RS256"
		key.public, ok = rsaKey(members)
	case "EC":
		curve, _ := members.text("crv")
		curves := map[string]elliptic.Curve{"P-256": elliptic.P256(), "P-384": elliptic.P384(), "P-521": elliptic.P521()}
		if curves[curve] == nil {
			return signatureKey{}, false
		}
		key.algorithm = map[string]string{"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}[curve]
		key.public, ok = ecdsaKey(members, curves[curve])
	}
	if _, present := members["alg"]; present {
		algorithm, _ := members.text("alg")
		ok = ok && algorithm == key.algorithm
	}
	return key, ok
}

// rsaKey reads an RSA key (RFC 7518 §6.3.1). Its exponent has to be the one that everybody uses: with small ones a lapse in the check of a padding is a
// forgery. Its modulus must not be of a kind that is known to be factored.
func rsaKey(members object) (*rsa.PublicKey, bool) {
	n, hasModulus := members.octets("n")
	e, hasExponent := members.octets("e")
	if !hasModulus || !hasExponent {
		return nil, false
	}
	public := &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: usualExponent}
	bits := public.N.BitLen()
	if bits < minModulus || bits > maxModulus || new(big.Int).SetBytes(e).Cmp(big.NewInt(usualExponent)) != 0 {
		return nil, false
	}
	return public, keypolicy.CheckModulus(public.N) == nil
}

// ecdsaKey reads a key on curve (RFC 7518 §6.2.1), whose coordinates have the full length of the field.
func ecdsaKey(members object, curve elliptic.Curve) (*ecdsa.PublicKey, bool) {
	x, hasX := members.octets("x")
	y, hasY := members.octets("y")
	if size := (curve.Params().BitSize + 7) / 8; !hasX || !hasY || len(x) != size || len(y) != size {
		return nil, false
	}
	public, err := ecdsa.ParseUncompressedPublicKey(curve, slices.Concat([]byte{4}, x, y))
	return public, err == nil
}

// octets returns a member that is a text of base64url.
func (o object) octets(name string) (value []byte, ok bool) {
	text, ok := o.text(name)
	if !ok {
		return nil, false
	}
	return decodeSegment(text)
}

// find returns the keys that may have signed a token. One that names no key may be by any of its algorithm.
func (s keySet) find(id, algorithm string) []signatureKey {
	var found []signatureKey
	for _, key := range s {
		if key.algorithm == algorithm && (id == "" || key.id == id) && len(found) < maxAnonymous {
			found = append(found, key)
		}
	}
	return found
}

// has tells whether a key of this name is in the set, for whatever algorithm.
func (s keySet) has(id string) bool {
	for _, key := range s {
		if key.id == id {
			return true
		}
	}
	return false
}

// signedBy tells whether one of the keys, all of the algorithm, made the signature of a token that has passed parseShape (RFC 7518 §3.3, §3.4).
func signedBy(token, algorithm string, keys []signatureKey) bool {
	end := strings.LastIndexByte(token, '.')
	signature, ok := decodeSegment(token[end+1:])
	hash, known := map[string]crypto.Hash{"RS256": crypto.SHA256, "ES256": crypto.SHA256, "ES384": crypto.SHA384, "ES512": crypto.SHA512}[algorithm]
	if !ok || !known {
		return false
	}
	hasher := hash.New()
	hasher.Write([]byte(token[:end]))
	digest := hasher.Sum(nil)
	for _, key := range keys {
		switch public := key.public.(type) {
		case *rsa.PublicKey:
			if rsa.VerifyPKCS1v15(public, hash, digest, signature) == nil {
				return true
			}
		case *ecdsa.PublicKey:
			size := (public.Params().BitSize + 7) / 8
			if len(signature) == 2*size && ecdsa.Verify(public, digest, new(big.Int).SetBytes(signature[:size]), new(big.Int).SetBytes(signature[size:])) {
				return true
			}
		}
	}
	return false
}
