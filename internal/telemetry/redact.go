package telemetry

import (
	"crypto"
	"encoding"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"unicode"
)

const redacted = "[redacted]"

// Redact replaces the value of an attribute that is named like a secret or looks like one; slog.HandlerOptions.ReplaceAttr takes it. It is
// the second net: the first is that secrets are of types that do not show themselves (identity.Secret). It sees names, texts, errors and private
// keys; it does not search the fields of other values.
func Redact(groups []string, attr slog.Attr) slog.Attr {
	if secretName(attr.Key) || slices.ContainsFunc(groups, secretName) || secretValue(attr.Value) {
		return slog.String(attr.Key, redacted)
	}
	return attr
}

// secretName tells whether something of this name holds a secret. Names of what only points to one, such as token_id or key_id, do not match.
func secretName(name string) bool {
	name = strings.Map(func(r rune) rune {
		switch r {
		case '_', '-', '.', ' ':
			return -1
		default:
			return unicode.ToLower(r)
		}
	}, name)
	for _, ending := range [...]string{
		"token", "jwt", "authorization", "bearer", "password", "passphrase", "secret", "cookie",
		"privatekey", "signingkey", "hmackey", "authkey", "keypem", "keyder", "keybytes", "keymaterial",
	} {
		if strings.HasSuffix(name, ending) {
			return true
		}
	}
	return false
}

func secretValue(v slog.Value) bool {
	switch v.Kind() {
	case slog.KindString:
		return secretText(v.String())
	case slog.KindAny:
		if _, ok := v.Any().(interface{ Public() crypto.PublicKey }); ok { // what every private key of the standard library has
			return true
		}
		return secretText(textOf(v.Any()))
	default:
		return false
	}
}

// textOf returns the text by which a handler may show a value; empty if it has none, or panics for a nil pointer as slog's handlers allow.
func textOf(value any) (text string) {
	defer func() {
		if recover() != nil {
			text = ""
		}
	}()
	switch x := value.(type) {
	case error:
		return x.Error()
	case fmt.Stringer:
		return x.String()
	case encoding.TextMarshaler:
		b, _ := x.MarshalText()
		return string(b)
	case []byte:
		return string(x)
	default:
		return ""
	}
}

// secretText tells whether a text holds a PEM private key, a JSON Web Token, a join token or the credential of an authorization header.
func secretText(text string) bool {
	if strings.Contains(text, "PRIVATE KEY-----") {
		return true
	}
	// a JWT is base64url of {"…, a dot, base64url of {"…; as a DNS name it is in lower case
	for _, begin := range [...]string{"eyJ", "eyj"} {
		if _, rest, ok := strings.Cut(text, begin); ok && strings.Contains(rest, "."+begin) {
			return true
		}
	}
	// a join token is cjt_ID_SECRET, of which cjt_ID may be shown
	const id = 16
	for _, rest, ok := strings.Cut(text, "cjt_"); ok; _, rest, ok = strings.Cut(rest, "cjt_") {
		if len(rest) > id && rest[id] == '_' {
			return true
		}
	}
	const shortest = 12 // of a credential: the word Bearer alone, in a sentence, is none
	_, rest, ok := strings.Cut(text, "earer ")
	return ok && len(rest)-len(strings.TrimLeft(rest, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/=")) >= shortest
}
