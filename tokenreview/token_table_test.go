package tokenreview

import (
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
)

// accepted stands for no refusal.
const accepted errkind.Reason = "accepted"

// tokenCase is a token and what becomes of it. Online is what Online says, offline what Offline says with and without a view of the cluster; empty means
// the same as online. All agree on whether the token is good.
type tokenCase struct {
	token           func() string
	online, offline errkind.Reason
}

// with is a token that the first key has signed, after edit.
func with(edit func(*tokenParts)) func() string {
	return func() string { return theKeys().rsa.token(edit) }
}

// claim is a token with one claim's value replaced by JSON text; without text the claim is left out.
func claim(name, text string) func() string {
	return with(func(p *tokenParts) {
		if text == "" {
			delete(p.claims, name)
			return
		}
		p.claimsText = jsonWith(p.claims, name, text)
	})
}

// header is a token with one header parameter.
func header(name string, value any) func() string {
	return with(func(p *tokenParts) { p.header[name] = value })
}

// private is a token with a changed claim kubernetes.io.
func private(edit func(k map[string]any)) func() string {
	return with(func(p *tokenParts) { edit(p.claims["kubernetes.io"].(map[string]any)) })
}

// text is a good token whose text is changed.
func text(edit func(token string) string) func() string {
	return func() string { return edit(theKeys().rsa.token(nil)) }
}

// signed is a token whose signature is what sign makes of the signed text.
func signed(edit func(*tokenParts), sign func(text string) []byte) func() string {
	return func() string {
		parts := goodToken(start)
		parts.header = map[string]any{"alg": "RS256", "kid": "key-rsa"}
		edit(parts)
		text := unsigned(parts)
		return text + "." + base64.RawURLEncoding.EncodeToString(sign(text))
	}
}

// ecToken is a good ES256 token whose signature is changed.
func ecToken(edit func(signature []byte) []byte) func() string {
	return func() string {
		key := theKeys().p256
		return signed(func(p *tokenParts) { p.header = map[string]any{"alg": "ES256", "kid": key.id} }, func(text string) []byte {
			return edit(key.signature(text, "ES256"))
		})()
	}
}

func segments(token string) (head, body, signature string) {
	parts := strings.Split(token, ".")
	return parts[0], parts[1], parts[2]
}

func encoded(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

func tokenCases() map[string]tokenCase {
	keys := theKeys()
	good := func(token func() string) tokenCase { return tokenCase{token, accepted, accepted} }
	bad := func(reason errkind.Reason, token func() string) tokenCase { return tokenCase{token, reason, reason} }
	malformed := func(token func() string) tokenCase { return bad(errkind.MalformedCredential, token) }
	audience := func(text string) tokenCase { return bad(errkind.WrongAudience, claim("aud", text)) }
	expiry := func(text string) tokenCase { return malformed(claim("exp", text)) }
	issuer := func(text string) tokenCase { return bad(errkind.WrongIssuer, claim("iss", text)) }
	// of these the cluster says only that it does not accept them
	forged := func(token func() string) tokenCase {
		return tokenCase{token, errkind.ClusterRefused, errkind.BadSignature}
	}
	foreignClaims := func(token func() string) tokenCase {
		return tokenCase{token, errkind.ClusterRefused, errkind.MalformedCredential}
	}
	algorithm := func(name any) tokenCase { return malformed(header("alg", name)) }
	shared := func(alg string, key []byte) tokenCase {
		return malformed(signed(func(p *tokenParts) { p.header["alg"] = alg }, func(text string) []byte { return hmacOf(text, key) }))
	}
	jwk, _ := json.Marshal(keys.rsa.jwk())

	cases := map[string]tokenCase{
		// good ones
		"RS256":                       good(with(nil)),
		"RS256, second key":           good(func() string { return keys.rsa2.token(nil) }),
		"ES256":                       good(func() string { return keys.p256.token(nil) }),
		"ES384":                       good(func() string { return keys.p384.token(nil) }),
		"ES512":                       good(func() string { return keys.p521.token(nil) }),
		"no kid":                      good(with(func(p *tokenParts) { delete(p.header, "kid") })),
		"no kid, ES384":               good(func() string { return keys.p384.token(func(p *tokenParts) { delete(p.header, "kid") }) }),
		"empty kid":                   good(header("kid", "")),
		"typ":                         good(header("typ", "JWT")),
		"a header that nobody knows":  good(header("cty", "x")),
		"aud is a string":             good(claim("aud", `"chancery"`)),
		"aud is our second":           good(claim("aud", `["istio-ca"]`)),
		"aud is a superset":           good(claim("aud", `["https://kubernetes.default.svc.cluster.local","chancery","vault"]`)),
		"aud twice":                   good(claim("aud", `["chancery","chancery"]`)),
		"aud with escapes":            good(claim("aud", `["ch\u0061ncery"]`)),
		"expires in a second":         good(claim("exp", "1794470401")),
		"exp at the end of year 9999": good(claim("exp", "253402300799")),
		"nbf within the skew":         good(claim("nbf", "1794470460")),
		"iat within the skew":         good(claim("iat", "1794470460")),
		"no nbf":                      good(claim("nbf", "")),
		"no iat":                      good(claim("iat", "")),
		"no jti":                      good(claim("jti", "")),
		"another claim":               good(claim("groups", `[{"a":[1,2]}]`)),
		"white space in the claims": good(with(func(p *tokenParts) {
			p.claimsText = " " + strings.ReplaceAll(jsonWith(p.claims, "jti", `"a"`), ":{", ": {\n") + "\n"
		})),
		"no node":                       good(private(func(k map[string]any) { delete(k, "node") })),
		"a node without UID":            good(private(func(k map[string]any) { k["node"] = map[string]any{"name": "node-a"} })),
		"warnafter":                     good(private(func(k map[string]any) { k["warnafter"] = start.Add(-time.Hour).Unix() })),
		"kubernetes.io with a stranger": good(private(func(k map[string]any) { k["later"] = map[string]any{"name": "x"} })),

		// algorithms
		"alg none":                algorithm("none"),
		"alg None":                algorithm("None"),
		"alg nOnE":                algorithm("nOnE"),
		"alg NONE, no signature":  malformed(func() string { h, b, _ := segments(header("alg", "NONE")()); return h + "." + b + "." }),
		"alg none, no signature":  malformed(func() string { h, b, _ := segments(header("alg", "none")()); return h + "." + b + "." }),
		"alg empty":               algorithm(""),
		"alg missing":             malformed(with(func(p *tokenParts) { delete(p.header, "alg") })),
		"alg a number":            algorithm(256),
		"alg a list":              algorithm([]string{"RS256"}),
		"alg null":                algorithm(nil),
		"alg in lower case":       algorithm("rs256"),
		"alg with a space":        algorithm("RS256 "),
		"HS256 by the public PEM": shared("HS256", keys.rsa.pem()),
		"HS256 by the JWK":        shared("HS256", jwk),
		"HS256 by no key":         shared("HS256", nil),
		"HS512":                   shared("HS512", keys.rsa.pem()),
		"RS256 by a shared key":   forged(signed(func(*tokenParts) {}, func(text string) []byte { return hmacOf(text, keys.rsa.pem()) })),
		"EdDSA":                   forged(header("alg", "EdDSA")),
		"RS384":                   forged(signed(func(p *tokenParts) { p.header["alg"] = "RS384" }, func(text string) []byte { return keys.rsa.signature(text, "RS384") })),
		"RS512":                   forged(signed(func(p *tokenParts) { p.header["alg"] = "RS512" }, func(text string) []byte { return keys.rsa.signature(text, "RS512") })),
		"PS256":                   forged(signed(func(p *tokenParts) { p.header["alg"] = "PS256" }, func(text string) []byte { return keys.rsa.signature(text, "PS256") })),
		"PS256 called RS256":      forged(signed(func(*tokenParts) {}, func(text string) []byte { return keys.rsa.signature(text, "PS256") })),
		"RS384 called RS256":      forged(signed(func(*tokenParts) {}, func(text string) []byte { return keys.rsa.signature(text, "RS384") })),
		"ES256 with a key of RSA": forged(signed(func(p *tokenParts) { p.header["alg"] = "ES256" }, func(text string) []byte { return keys.p256.signature(text, "ES256") })),
		"RS256 with a P-256 key":  forged(signed(func(p *tokenParts) { p.header["kid"] = "key-p256" }, func(text string) []byte { return keys.rsa.signature(text, "RS256") })),
		"ES384 with a P-256 key":  forged(signed(func(p *tokenParts) { p.header = map[string]any{"alg": "ES384", "kid": "key-p256"} }, func(text string) []byte { return keys.p256.signature(text, "ES384") })),
		"ES256 with a P-384 key":  forged(signed(func(p *tokenParts) { p.header = map[string]any{"alg": "ES256", "kid": "key-p384"} }, func(text string) []byte { return keys.p384.signature(text, "ES256") })),
		"ES256, P-384, no kid":    forged(signed(func(p *tokenParts) { p.header = map[string]any{"alg": "ES256"} }, func(text string) []byte { return keys.p384.signature(text, "ES256") })),

		// headers
		"header jwk":           malformed(header("jwk", keys.stranger.jwk())),
		"header jku":           malformed(header("jku", "https://attacker.example/keys")),
		"header x5u":           malformed(header("x5u", "https://attacker.example/chain")),
		"header x5c":           malformed(header("x5c", []string{"MIIB"})),
		"header crit":          malformed(header("crit", []string{"exp"})),
		"header crit, empty":   malformed(header("crit", []string{})),
		"header b64":           malformed(header("b64", false)),
		"header zip":           malformed(header("zip", "DEF")),
		"header enc":           malformed(header("enc", "A256GCM")),
		"alg twice":            malformed(with(func(p *tokenParts) { p.headerText = `{"alg":"RS256","kid":"key-rsa","alg":"none"}` })),
		"header not an object": malformed(with(func(p *tokenParts) { p.headerText = `["RS256"]` })),
		"header and more":      malformed(with(func(p *tokenParts) { p.headerText = `{"alg":"RS256","kid":"key-rsa"}{}` })),
		"Alg in another case":  malformed(with(func(p *tokenParts) { p.headerText = `{"Alg":"RS256","kid":"key-rsa"}` })),
		"header of 3 KiB":      malformed(header("kid", strings.Repeat("k", 3<<10))),
		"kid of 1 MB":          malformed(header("kid", strings.Repeat("k", 1<<20))),
		"kid unknown":          forged(header("kid", "no-such-key")),
		"kid a path":           forged(header("kid", "../../../../etc/passwd")),
		"kid a device":         forged(header("kid", "/dev/null")),
		"kid a statement":      forged(header("kid", "x' UNION SELECT 'key")),
		"kid of another key":   forged(header("kid", "key-rsa-2")),
		"kid in another case":  forged(header("kid", "KEY-RSA")),
		"kid with a NUL":       forged(header("kid", "key-rsa\x00")),
		"kid a number":         malformed(header("kid", 1)),
		"kid null":             malformed(header("kid", nil)),

		// form
		"empty parts":          malformed(text(func(string) string { return ".." })),
		"two parts":            malformed(text(func(s string) string { return s[:strings.LastIndexByte(s, '.')] })),
		"four parts":           malformed(text(func(s string) string { return s + ".e30" })),
		"five parts, as a JWE": malformed(text(func(s string) string { return s + ".e30.e30" })),
		"no header":            malformed(text(func(s string) string { _, b, sig := segments(s); return "." + b + "." + sig })),
		"no payload":           malformed(text(func(s string) string { h, _, sig := segments(s); return h + ".." + sig })),
		"no signature":         malformed(text(func(s string) string { h, b, _ := segments(s); return h + "." + b + "." })),
		"flattened JSON": malformed(text(func(s string) string {
			h, b, sig := segments(s)
			return `{"protected":"` + h + `","payload":"` + b + `","signature":"` + sig + `"}`
		})),
		"general JSON": malformed(text(func(s string) string {
			h, b, sig := segments(s)
			return `{"payload":"` + b + `","signatures":[{"protected":"` + h + `","signature":"` + sig + `"}]}`
		})),
		"padding":                 malformed(text(func(s string) string { return s + "=" })),
		"a line end at the end":   malformed(text(func(s string) string { return s + "\n" })),
		"a line end inside":       malformed(text(func(s string) string { return s[:10] + "\n" + s[10:] })),
		"a space before":          malformed(text(func(s string) string { return " " + s })),
		"base64, not base64url":   malformed(text(func(s string) string { h, b, _ := segments(s); return h + "." + b + ".++//" })),
		"unused bits in base64":   malformed(text(func(s string) string { h, b, _ := segments(s); return h + "." + b + ".AB" })),
		"8 KiB and a byte":        malformed(text(func(s string) string { return s + strings.Repeat("A", MaxTokenBytes+1-len(s)) })),
		"64 KiB":                  malformed(text(func(s string) string { return s + strings.Repeat("A", 64<<10) })),
		"10 MiB":                  malformed(text(func(s string) string { return s + strings.Repeat("A", 10<<20) })),
		"64 KiB of signed claims": malformed(claim("padding", `"`+strings.Repeat("a", 64<<10)+`"`)),

		// signatures
		"another's key with our kid": forged(func() string { return keys.stranger.token(nil) }),
		"another's key, no kid":      forged(func() string { return keys.stranger.token(func(p *tokenParts) { delete(p.header, "kid") }) }),
		"of another token": forged(text(func(s string) string {
			h, b, _ := segments(s)
			_, _, sig := segments(keys.rsa.token(func(p *tokenParts) { p.claims["jti"] = "b" }))
			return h + "." + b + "." + sig
		})),
		"a changed claim": forged(text(func(s string) string {
			h, b, sig := segments(s)
			claims, _ := base64.RawURLEncoding.DecodeString(b)
			return h + "." + encoded(strings.ReplaceAll(string(claims), "cart", "bank")) + "." + sig
		})),
		"a changed header": forged(text(func(s string) string {
			_, b, sig := segments(s)
			return encoded(`{"kid":"key-rsa","alg":"RS256" }`) + "." + b + "." + sig
		})),
		"a byte less":           forged(signed(func(*tokenParts) {}, func(text string) []byte { return keys.rsa.signature(text, "RS256")[1:] })),
		"a byte more":           forged(signed(func(*tokenParts) {}, func(text string) []byte { return append([]byte{0}, keys.rsa.signature(text, "RS256")...) })),
		"zeros":                 forged(signed(func(*tokenParts) {}, func(string) []byte { return make([]byte, 256) })),
		"one, as the signature": forged(signed(func(*tokenParts) {}, func(string) []byte { return append(make([]byte, 255), 1) })),
		"ECDSA as DER": forged(ecToken(func(s []byte) []byte {
			return must(asn1.Marshal(struct{ R, S *big.Int }{new(big.Int).SetBytes(s[:32]), new(big.Int).SetBytes(s[32:])}))
		})),
		"ECDSA of zeros":             forged(ecToken(func(s []byte) []byte { return make([]byte, len(s)) })),
		"ECDSA, r and s swapped":     forged(ecToken(func(s []byte) []byte { return append(slices.Clone(s[32:]), s[:32]...) })),
		"ECDSA with a zero in front": forged(ecToken(func(s []byte) []byte { return append([]byte{0}, s...) })),
		"ECDSA with a byte behind":   forged(ecToken(func(s []byte) []byte { return append(slices.Clone(s), 0) })),
		"ECDSA with a zero between":  forged(ecToken(func(s []byte) []byte { return slices.Concat(s[:32], []byte{0}, s[32:]) })),
		"ECDSA cut":                  forged(ecToken(func(s []byte) []byte { return s[:63] })),
		"ECDSA in 66-byte halves": forged(ecToken(func(s []byte) []byte {
			return append(append(make([]byte, 34), s[:32]...), append(make([]byte, 34), s[32:]...)...)
		})),

		// audiences
		"aud missing":                  audience(""),
		"aud null":                     audience("null"),
		"aud an empty text":            audience(`""`),
		"aud an empty list":            audience("[]"),
		"aud a number":                 audience("1"),
		"aud an object":                audience(`{"chancery":true}`),
		"aud with a number":            audience(`["chancery",1]`),
		"aud with a null":              audience(`["chancery",null]`),
		"aud with a list":              audience(`[["chancery"]]`),
		"aud of someone else":          audience(`["vault"]`),
		"aud of the API server":        audience(`["https://kubernetes.default.svc.cluster.local"]`),
		"aud begins as ours":           audience(`["chancery-staging"]`),
		"aud is the beginning of ours": audience(`["chancer"]`),
		"aud in another case":          audience(`["Chancery"]`),
		"aud with a space":             audience(`["chancery "]`),
		"aud with a comma":             audience(`["vault,chancery"]`),

		// times
		"exp missing":        expiry(""),
		"exp null":           expiry("null"),
		"exp 0":              expiry("0"),
		"exp negative":       expiry("-1"),
		"exp a fraction":     expiry("1794474000.5"),
		"exp 1e99":           expiry("1e99"),
		"exp 1.8e9":          expiry("1.8e9"),
		"exp a text":         expiry(`"1794474000"`),
		"exp true":           expiry("true"),
		"exp a list":         expiry("[1794474000]"),
		"exp in year 10000":  expiry("253402300800"),
		"exp beyond 64 bits": expiry("99999999999999999999999"),
		"exp twice": malformed(with(func(p *tokenParts) {
			p.claimsText = strings.TrimSuffix(jsonWith(p.claims, "exp", "1794474000"), "}") + `,"exp":1}`
		})),
		"exp now":             bad(errkind.CredentialExpired, claim("exp", "1794470400")),
		"exp a second ago":    bad(errkind.CredentialExpired, claim("exp", "1794470399")),
		"exp long ago":        bad(errkind.CredentialExpired, claim("exp", "1")),
		"nbf beyond the skew": bad(errkind.NotYetValid, claim("nbf", "1794470461")),
		"iat beyond the skew": bad(errkind.NotYetValid, claim("iat", "1794470461")),
		"nbf after exp":       malformed(claim("nbf", "1794474001")),
		"nbf a text":          malformed(claim("nbf", `"1794470400"`)),
		"nbf null":            malformed(claim("nbf", "null")),
		"iat negative":        malformed(claim("iat", "-5")),
		"iat a fraction":      malformed(claim("iat", "1794470400.25")),

		// issuers and subjects
		"iss missing":              issuer(""),
		"iss null":                 issuer("null"),
		"iss a list":               issuer(`["https://kubernetes.default.svc.cluster.local"]`),
		"iss with a slash":         issuer(`"https://kubernetes.default.svc.cluster.local/"`),
		"iss in another case":      issuer(`"https://KUBERNETES.default.svc.cluster.local"`),
		"iss by http":              issuer(`"http://kubernetes.default.svc.cluster.local"`),
		"iss of another":           issuer(`"https://accounts.example"`),
		"iss with more":            issuer(`"https://kubernetes.default.svc.cluster.local.attacker.example"`),
		"sub missing":              bad(errkind.UnknownCredential, claim("sub", "")),
		"sub a user":               bad(errkind.UnknownCredential, claim("sub", `"system:admin"`)),
		"sub a number":             bad(errkind.UnknownCredential, claim("sub", "7")),
		"sub of another account":   foreignClaims(claim("sub", `"system:serviceaccount:shop:bank"`)),
		"sub of another namespace": foreignClaims(claim("sub", `"system:serviceaccount:kube-system:cart"`)),
		"sub with a part more":     foreignClaims(claim("sub", `"system:serviceaccount:shop:cart:admin"`)),
		"sub with nothing":         foreignClaims(claim("sub", `"system:serviceaccount:"`)),
		"sub twice": malformed(with(func(p *tokenParts) {
			p.claimsText = strings.TrimSuffix(jsonWith(p.claims, "exp", "1794474000"), "}") + `,"sub":"system:serviceaccount:a:b"}`
		})),

		// what it is bound to
		"kubernetes.io missing": foreignClaims(claim("kubernetes.io", "")),
		"kubernetes.io null":    foreignClaims(claim("kubernetes.io", "null")),
		"kubernetes.io a text":  foreignClaims(claim("kubernetes.io", `"shop"`)),
		"kubernetes.io in other case": foreignClaims(with(func(p *tokenParts) {
			p.claims["Kubernetes.io"] = p.claims["kubernetes.io"]
			delete(p.claims, "kubernetes.io")
		})),
		"no namespace":             foreignClaims(private(func(k map[string]any) { delete(k, "namespace") })),
		"another namespace":        foreignClaims(private(func(k map[string]any) { k["namespace"] = "bank" })),
		"a namespace with a slash": foreignClaims(private(func(k map[string]any) { k["namespace"] = "shop/../bank" })),
		"no account":               foreignClaims(private(func(k map[string]any) { delete(k, "serviceaccount") })),
		"another account":          foreignClaims(private(func(k map[string]any) { k["serviceaccount"] = map[string]any{"name": "bank", "uid": "sa-uid-1"} })),
		"an account without UID":   foreignClaims(private(func(k map[string]any) { k["serviceaccount"] = map[string]any{"name": "cart"} })),
		"a pod without UID":        foreignClaims(private(func(k map[string]any) { k["pod"] = map[string]any{"name": "cart-7d9f-x2x4z"} })),
		"a pod with an empty UID":  foreignClaims(private(func(k map[string]any) { k["pod"] = map[string]any{"name": "cart-7d9f-x2x4z", "uid": ""} })),
		"a pod without name":       foreignClaims(private(func(k map[string]any) { k["pod"] = map[string]any{"uid": "pod-uid-1"} })),
		"a pod that is a text":     foreignClaims(private(func(k map[string]any) { k["pod"] = "cart-7d9f-x2x4z" })),
		"a pod that is a list":     foreignClaims(private(func(k map[string]any) { k["pod"] = []string{"cart-7d9f-x2x4z"} })),
		"a UID with a line end":    foreignClaims(private(func(k map[string]any) { k["pod"] = map[string]any{"name": "cart-7d9f-x2x4z", "uid": "pod-uid-1\n"} })),
		"a member twice, inside": foreignClaims(with(func(p *tokenParts) {
			p.claimsText = strings.Replace(jsonWith(p.claims, "jti", `"a"`), `"uid":"pod-uid-1"`, `"uid":"pod-uid-1","uid":"pod-uid-2"`, 1)
		})),
		"a pod that is null": {private(func(k map[string]any) { delete(k, "node"); k["pod"] = nil }), errkind.NotBound, errkind.MalformedCredential},
		"bound to a secret": {private(func(k map[string]any) {
			delete(k, "pod")
			delete(k, "node")
			k["secret"] = map[string]any{"name": "s", "uid": "secret-uid"}
		}), errkind.ClusterRefused, errkind.NotBound},
		"bound to a secret and a pod": foreignClaims(private(func(k map[string]any) { k["secret"] = map[string]any{"name": "s", "uid": "secret-uid"} })),
		"bound to nothing":            bad(errkind.NotBound, private(func(k map[string]any) { delete(k, "pod"); delete(k, "node") })),
		"bound to a node":             bad(errkind.NotBound, private(func(k map[string]any) { delete(k, "pod") })),

		// JSON
		"claims that are a list":    malformed(with(func(p *tokenParts) { p.claimsText = "[]" })),
		"claims and more":           malformed(with(func(p *tokenParts) { p.claimsText = jsonWith(p.claims, "jti", `"a"`) + " {}" })),
		"claims cut":                malformed(with(func(p *tokenParts) { p.claimsText = strings.TrimSuffix(jsonWith(p.claims, "jti", `"a"`), "}") })),
		"claims with a BOM":         malformed(with(func(p *tokenParts) { p.claimsText = "\ufeff" + jsonWith(p.claims, "jti", `"a"`) })),
		"claims that are not UTF-8": malformed(claim("note", "\"\xff\"")),
		"claims with NaN":           malformed(claim("note", "NaN")),
		"claims with a comment":     malformed(claim("note", "1/* */")),
		"claims with 65 members": malformed(with(func(p *tokenParts) {
			for i := range 65 {
				p.claims["c"+strings.Repeat("c", i)] = i
			}
		})),
	}
	return cases
}

// TestTokenTable holds that a cluster's API server and we by its keys agree about tokens, and that each refusal has its reason.
func TestTokenTable(t *testing.T) {
	cases := tokenCases()
	if len(cases) < 80 {
		t.Errorf("%d cases", len(cases))
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			v := newVerifiers(t, nil)
			token := test.token()
			principals := make(map[string]*identity.Principal)
			for _, mode := range []struct {
				name string
				to   identity.Authenticator
				want errkind.Reason
			}{{"online", v.online, test.online}, {"offline+liveness", v.live, test.offline}, {"offline", v.offline, test.offline}} {
				principal, err := present(t, mode.to, token)
				got := accepted
				if err != nil {
					got = errkind.ReasonOf(err)
					if !slices.Contains(errkind.Reasons(), got) || errkind.Of(err) != errkind.Unauthenticated || errkind.RetryAfter(err) != 0 {
						t.Errorf("%s: reason %q of kind %s, retried after %s", mode.name, got, errkind.Of(err), errkind.RetryAfter(err))
					}
				}
				if got != mode.want {
					t.Errorf("%s: %s, want %s: %v", mode.name, got, mode.want, err)
				}
				principals[mode.name] = principal
			}
			calls := v.api.count()
			if test.online != accepted {
				if calls > 1 || calls > 0 && test.offline == test.online && test.online != errkind.NotBound {
					t.Errorf("the cluster was asked %d times", calls)
				}
				return
			}
			if calls != 1 {
				t.Errorf("the cluster was asked %d times, want once by Online and never by Offline", calls)
			}
			for mode, verification := range map[string]identity.Verification{
				"online": identity.VerifiedReview, "offline+liveness": identity.VerifiedLive, "offline": identity.VerifiedOffline,
			} {
				if got := principals[mode]; got == nil || got.Kubernetes.Verification != verification {
					t.Errorf("%s: %+v", mode, got)
				}
			}
			if t.Failed() {
				return
			}
			want := principals["online"]
			for _, mode := range []string{"offline+liveness", "offline"} {
				got := clone(principals[mode])
				got.Kubernetes.Verification = want.Kubernetes.Verification
				if *got.Kubernetes != *want.Kubernetes || got.ID != want.ID || got.CredentialID != want.CredentialID || !got.Expiry.Equal(want.Expiry) ||
					got.Method != want.Method || got.OIDC != nil || got.Certificate != nil || got.JoinToken != nil {
					t.Errorf("%s makes %+v %+v, online %+v %+v", mode, got, got.Kubernetes, want, want.Kubernetes)
				}
			}
		})
	}
}
