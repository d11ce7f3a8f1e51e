package tokenreview

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-jose/go-jose/v4"
)

const (
	maxJWKS      = 256 << 10
	maxKeys      = 64
	maxKeyID     = 1 << 10 // as long as a token's header allows
	minModulus   = 2048
	maxModulus   = 8192
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
		if key, ok := publicKey(members, text); ok {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("the key set has no key for the algorithms RS256, ES256, ES384 and ES512")
	}
	return keys, nil
}

// publicKey reads a JWK, or tells that it is of no use.
func publicKey(members object, text []byte) (signatureKey, bool) {
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
	var parsed jose.JSONWebKey
	if err := parsed.UnmarshalJSON(text); err != nil || !parsed.Valid() || !parsed.IsPublic() {
		return signatureKey{}, false
	}
	switch public := parsed.Key.(type) {
	case *rsa.PublicKey:
		if bits := public.N.BitLen(); bits < minModulus || bits > maxModulus || public.N.Bit(0) == 0 || public.E < 3 || public.E%2 == 0 {
			return signatureKey{}, false
		}
		key.algorithm = string(jose.RS256)
	case *ecdsa.PublicKey:
		key.algorithm = map[string]string{"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}[public.Curve.Params().Name]
	}
	if key.algorithm == "" || parsed.Algorithm != "" && parsed.Algorithm != key.algorithm {
		return signatureKey{}, false
	}
	key.public = parsed.Key
	return key, true
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

// signedBy tells whether one of the keys made the signature of a token in compact serialisation.
func signedBy(token, algorithm string, keys []signatureKey) bool {
	parsed, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.SignatureAlgorithm(algorithm)})
	if err != nil {
		return false
	}
	for _, key := range keys {
		if _, err := parsed.Verify(key.public); err == nil {
			return true
		}
	}
	return false
}
