package tokenreview

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
)

// A join token is cjt_ID_SECRET: ID is 8 octets in lower-case hexadecimal and may be shown, SECRET is 256 bits in base64url. The length is
// fixed, so that a token which lost a character in copying is told from one that was never made.
const (
	joinPrefix      = "cjt_"
	joinIDOctets    = 8
	joinSecretBytes = 32
	joinIDEnd       = len(joinPrefix) + 2*joinIDOctets
	joinTokenLength = joinIDEnd + 1 + (joinSecretBytes*8+5)/6
)

// NewJoinToken makes a join token of randomness from random, which is crypto/rand.Reader outside of tests. hash is what the ledger keeps:
// the SHA-256 of the whole token, which needs no salt since nobody can guess 256 random bits.
func NewJoinToken(random io.Reader) (token identity.Secret, id string, hash []byte, err error) {
	var octets [joinIDOctets + joinSecretBytes]byte
	if _, err := io.ReadFull(random, octets[:]); err != nil {
		return "", "", nil, fmt.Errorf("reading randomness for a join token: %w", err)
	}
	id = hex.EncodeToString(octets[:joinIDOctets])
	text := joinPrefix + id + "_" + base64.RawURLEncoding.EncodeToString(octets[joinIDOctets:])
	return identity.Secret(text), id, hashJoinToken(text), nil
}

// ParseJoinToken returns the public id of a join token and the hash by which the ledger knows it. It accepts exactly what NewJoinToken
// makes; its error is Unauthenticated and holds no part of the token.
func ParseJoinToken(token identity.Secret) (id string, hash []byte, err error) {
	text := token.Reveal()
	if len(text) != joinTokenLength || !isJoinToken(text) || text[joinIDEnd] != '_' {
		return "", nil, malformedJoinToken()
	}
	id = text[len(joinPrefix):joinIDEnd]
	if strings.Trim(id, "0123456789abcdef") != "" {
		return "", nil, malformedJoinToken()
	}
	if _, ok := decodeSegment(text[joinIDEnd+1:]); !ok {
		return "", nil, malformedJoinToken()
	}
	return id, hashJoinToken(text), nil
}

// isJoinToken tells whether a bearer token is meant to be a join token, well-formed or not.
func isJoinToken(bearer string) bool { return strings.HasPrefix(bearer, joinPrefix) }

func hashJoinToken(text string) []byte {
	hash := sha256.Sum256([]byte(text))
	return hash[:]
}

func malformedJoinToken() error {
	return errkind.New(errkind.Unauthenticated,
		"malformed join token: part of it is missing or changed; copy it again as `chancery token create` printed it").Because(errkind.MalformedCredential)
}
