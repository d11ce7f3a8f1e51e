package tokenreview

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/chancery-ca/chancery/ca/errkind"
)

// MaxTokenBytes bounds a bearer token. A service-account token with all its claims has about 1.2 KiB.
const MaxTokenBytes = 8 << 10

// maxHeaderBytes bounds a token's decoded header: an algorithm, a key id of at most 1 KiB and a type.
const maxHeaderBytes = 2 << 10

// algorithms are those that a service-account issuer may use (RFC 7518 §3.1, RFC 8037). The API server decides which it takes; a shared-key
// or unsigned token is none of them, so it costs no call.
var algorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// foreign are header parameters that bring their own key or change how the token is read (RFC 7515 §4.1, RFC 7797). No cluster writes them.
var foreign = []string{"jwk", "jku", "x5u", "x5c", "crit", "b64", "zip", "enc"}

// looksLikeJWT tells whether a bearer token is meant to be a JWT, well-formed or not: such a token is decided here and nowhere else.
func looksLikeJWT(bearer string) bool {
	if isJoinToken(bearer) {
		return false
	}
	head := bearer[:min(len(bearer), MaxTokenBytes+1)]
	return strings.HasPrefix(head, "eyJ") || strings.HasPrefix(head, "{") || strings.Contains(head, ".")
}

// malformed is the refusal of a token that has not the shape of a service-account token.
func malformed(rule string) *errkind.Error {
	return errkind.New(errkind.Unauthenticated,
		"malformed token: %s; send the unchanged content of a projected serviceAccountToken volume", rule).Because(errkind.MalformedCredential)
}

// jwt is a token that has the shape of one. Nothing in it is verified.
type jwt struct {
	header, claims object
	wayOut         string // what the holder of a token that is refused can do
}

// malformed is the refusal of a token whose claims are not those of its kind.
func (t jwt) malformed(rule string) *errkind.Error {
	return errkind.New(errkind.Unauthenticated, "malformed token: %s; %s", rule, t.wayOut).Because(errkind.MalformedCredential)
}

// parseShape checks that token is a JWS in compact serialisation (RFC 7515 §7.1) with a plausible header. Nothing is verified.
func parseShape(token string) (jwt, error) {
	if len(token) > MaxTokenBytes {
		return jwt{}, malformed("it is longer than 8 KiB")
	}
	if strings.Count(token, ".") != 2 {
		return jwt{}, malformed("it has not the three parts of a JWS in compact serialisation")
	}
	head, rest, _ := strings.Cut(token, ".")
	body, signature, _ := strings.Cut(rest, ".")

	if base64.RawURLEncoding.DecodedLen(len(head)) > maxHeaderBytes {
		return jwt{}, malformed("its header is longer than 2 KiB")
	}
	headerText, ok := decodeSegment(head)
	if !ok {
		return jwt{}, malformed("its header is not base64url")
	}
	claimsText, ok := decodeSegment(body)
	if !ok {
		return jwt{}, malformed("its payload is not base64url")
	}
	if _, ok := decodeSegment(signature); !ok {
		return jwt{}, malformed("its signature is missing or not base64url")
	}

	header, err := parseObject(headerText)
	if err != nil {
		return jwt{}, malformed("its header " + err.Error())
	}
	if algorithm, _ := header.text("alg"); !slices.Contains(algorithms, algorithm) {
		return jwt{}, malformed("its header names no signature algorithm of a service-account issuer")
	}
	for _, name := range foreign {
		if _, present := header[name]; present {
			return jwt{}, malformed("its header has " + name + ", which no service-account issuer writes")
		}
	}
	if _, present := header["kid"]; present {
		if _, isText := header.text("kid"); !isText {
			return jwt{}, malformed("its header's kid is not a string")
		}
	}
	claims, err := parseObject(claimsText)
	if err != nil {
		return jwt{}, malformed("its payload " + err.Error())
	}
	return jwt{header, claims, wayOut}, nil
}

// decodeSegment decodes unpadded base64url (RFC 7515 §2). encoding/base64 skips line ends, so the alphabet is checked first.
func decodeSegment(segment string) ([]byte, bool) {
	if segment == "" {
		return nil, false
	}
	for i := range len(segment) {
		if !isBase64URL(segment[i]) {
			return nil, false
		}
	}
	decoded, err := base64.RawURLEncoding.Strict().DecodeString(segment)
	return decoded, err == nil
}

func isBase64URL(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}
