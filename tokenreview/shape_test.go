package tokenreview

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/chancery-ca/chancery/ca/errkind"
)

// TestTokensThatCostNoCall starts from a good token, changes one thing and expects a refusal before the cluster is asked.
func TestTokensThatCostNoCall(t *testing.T) {
	claim := func(name string, value any) func(*tokenParts) {
		return func(p *tokenParts) { p.claims[name] = value }
	}
	without := func(name string) func(*tokenParts) {
		return func(p *tokenParts) { delete(p.claims, name) }
	}
	literal := func(name, value string) func(*tokenParts) {
		return func(p *tokenParts) { p.claimsText = jsonWith(p.claims, name, value) }
	}
	header := func(name string, value any) func(*tokenParts) {
		return func(p *tokenParts) { p.header[name] = value }
	}
	for _, test := range []struct {
		name string
		edit func(*tokenParts)
		text func(string) string
		want string
	}{
		// Shape.
		{name: "two parts", text: func(s string) string { return s[:strings.LastIndexByte(s, '.')] }, want: "three parts"},
		{name: "four parts", text: func(s string) string { return s + ".AAAA" }, want: "three parts"},
		{name: "five parts, as JWE", text: func(s string) string { return s + ".AAAA.AAAA" }, want: "three parts"},
		{name: "only dots", text: func(string) string { return ".." }, want: "header"},
		{name: "empty signature", edit: func(p *tokenParts) { p.signature = "" }, want: "signature"},
		{name: "empty header", text: func(s string) string { return s[strings.IndexByte(s, '.'):] }, want: "header"},
		{name: "empty payload", text: func(string) string { return "eyJhbGciOiJSUzI1NiJ9..AAAA" }, want: "payload"},
		{name: "JSON serialisation", text: func(s string) string {
			p := strings.Split(s, ".")
			return `{"protected":"` + p[0] + `","payload":"` + p[1] + `","signature":"` + p[2] + `"}`
		}, want: "three parts"},
		{name: "64 KiB", edit: claim("x", strings.Repeat("a", 64<<10)), want: "8 KiB"},
		{name: "10 MiB", text: func(s string) string { return s + strings.Repeat("A", 10<<20) }, want: "8 KiB"},
		{name: "one over 8 KiB", text: func(s string) string { return s + strings.Repeat("A", MaxTokenBytes+1-len(s)) }, want: "8 KiB"},
		{name: "leading space", text: func(s string) string { return " " + s }, want: "header is not base64url"},
		{name: "trailing newline", text: func(s string) string { return s + "\n" }, want: "signature"},
		{name: "line end inside", text: func(s string) string { return s[:30] + "\r\n" + s[30:] }, want: "not base64url"},
		{name: "padding", text: func(s string) string { return s + "=" }, want: "signature"},
		{name: "standard alphabet", text: func(s string) string { return s[:len(s)-4] + "+/+/" }, want: "signature"},
		{name: "bits after the end", text: func(string) string { return "eyJhbGciOiJSUzI1NiJ9.e30.AB" }, want: "signature"},
		{name: "NUL", text: func(s string) string { return s[:10] + "\x00" + s[10:] }, want: "header is not base64url"},
		{name: "bearer twice", text: func(s string) string { return "Bearer " + s }, want: "header is not base64url"},

		// Header.
		{name: "alg none", edit: header("alg", "none"), want: "algorithm"},
		{name: "alg None", edit: header("alg", "None"), want: "algorithm"},
		{name: "alg NONE", edit: header("alg", "NONE"), want: "algorithm"},
		{name: "alg nOnE", edit: header("alg", "nOnE"), want: "algorithm"},
		{name: "alg HS256, to be checked with the public key", edit: header("alg", "HS256"), want: "algorithm"},
		{name: "alg in lower case", edit: header("alg", "rs256"), want: "algorithm"},
		{name: "alg missing", edit: func(p *tokenParts) { delete(p.header, "alg") }, want: "algorithm"},
		{name: "alg null", edit: header("alg", nil), want: "algorithm"},
		{name: "alg array", edit: header("alg", []string{"RS256"}), want: "algorithm"},
		{name: "Alg", edit: func(p *tokenParts) { p.headerText = `{"Alg":"RS256"}` }, want: "algorithm"},
		{name: "alg twice", edit: func(p *tokenParts) { p.headerText = `{"alg":"RS256","alg":"none"}` }, want: "twice"},
		{name: "jwk", edit: header("jwk", map[string]any{"kty": "RSA"}), want: "jwk"},
		{name: "jku", edit: header("jku", "https://evil.example/jwks"), want: "jku"},
		{name: "x5u", edit: header("x5u", "https://evil.example/chain"), want: "x5u"},
		{name: "x5c", edit: header("x5c", []string{"MIIB"}), want: "x5c"},
		{name: "crit", edit: header("crit", []string{"exp"}), want: "crit"},
		{name: "b64", edit: header("b64", false), want: "b64"},
		{name: "kid as a number", edit: header("kid", 7), want: "kid"},
		{name: "kid of 1 MB", edit: header("kid", strings.Repeat("k", 1<<20)), want: "8 KiB"},
		{name: "kid of 4 KiB", edit: header("kid", strings.Repeat("k", 4<<10)), want: "header is longer"},
		{name: "header is an array", edit: func(p *tokenParts) { p.headerText = `["RS256"]` }, want: "header is not a JSON object"},
		{name: "header is no JSON", edit: func(p *tokenParts) { p.headerText = `{"alg":"RS256",}` }, want: "header is not JSON"},

		// Payload.
		{name: "payload is null", edit: func(p *tokenParts) { p.claimsText = `null` }, want: "payload is not a JSON object"},
		{name: "payload is a string", edit: func(p *tokenParts) { p.claimsText = `"a"` }, want: "payload is not a JSON object"},
		{name: "payload is not UTF-8", edit: func(p *tokenParts) { p.claimsText = "{\"aud\":\"\xff\"}" }, want: "payload is not JSON"},
		{name: "text after the payload", edit: func(p *tokenParts) { p.claimsText = `{} {}` }, want: "payload is not JSON"},
		{name: "payload nested deep", edit: func(p *tokenParts) { p.claimsText = strings.Repeat("[", 5000) }, want: "payload is not JSON"},
		{name: "65 claims", edit: func(p *tokenParts) {
			for i := range 65 {
				p.claims[strings.Repeat("c", i+1)] = 1
			}
		}, want: "too many"},
		{name: "exp twice", edit: func(p *tokenParts) {
			text := jsonWith(p.claims, "exp", "1")
			p.claimsText = text[:len(text)-1] + `,"exp":99999999999}`
		}, want: "twice"},

		// Audience.
		{name: "aud missing", edit: without("aud"), want: "no audience"},
		{name: "aud null", edit: literal("aud", "null"), want: "no audience"},
		{name: "aud empty array", edit: claim("aud", []string{}), want: "another audience"},
		{name: "aud empty string", edit: claim("aud", ""), want: "another audience"},
		{name: "aud number", edit: claim("aud", 7), want: "no audience"},
		{name: "aud object", edit: literal("aud", `{"chancery":true}`), want: "no audience"},
		{name: "aud array with null", edit: literal("aud", `["chancery",null]`), want: "no audience"},
		{name: "aud array with number", edit: literal("aud", `["chancery",1]`), want: "no audience"},
		{name: "aud nested array", edit: literal("aud", `[["chancery"]]`), want: "no audience"},
		{name: "aud prefix of ours", edit: claim("aud", "chance"), want: "another audience"},
		{name: "aud that ours is a prefix of", edit: claim("aud", "chancery.evil.example"), want: "another audience"},
		{name: "aud in capitals", edit: claim("aud", "Chancery"), want: "another audience"},
		{name: "aud with space", edit: claim("aud", "chancery "), want: "another audience"},
		{name: "aud of two in one string", edit: claim("aud", "chancery istio-ca"), want: "another audience"},
		{name: "aud of the API server", edit: claim("aud", []string{"https://kubernetes.default.svc"}), want: "another audience"},
		{name: "Aud", edit: func(p *tokenParts) { delete(p.claims, "aud"); p.claims["Aud"] = "chancery" }, want: "no audience"},

		// Expiry.
		{name: "exp missing", edit: without("exp"), want: "no expiry"},
		{name: "exp null", edit: literal("exp", "null"), want: "no expiry"},
		{name: "exp 0", edit: literal("exp", "0"), want: "no expiry"},
		{name: "exp -0", edit: literal("exp", "-0"), want: "no expiry"},
		{name: "exp negative", edit: literal("exp", "-1"), want: "no expiry"},
		{name: "exp float", edit: literal("exp", "1794477600.5"), want: "no expiry"},
		{name: "exp whole float", edit: literal("exp", "1794477600.0"), want: "no expiry"},
		{name: "exp string", edit: literal("exp", `"1794477600"`), want: "no expiry"},
		{name: "exp 1e99", edit: literal("exp", "1e99"), want: "no expiry"},
		{name: "exp \"1e99\"", edit: literal("exp", `"1e99"`), want: "no expiry"},
		{name: "exp 1e10", edit: literal("exp", "1e10"), want: "no expiry"},
		{name: "exp in the year 10000", edit: literal("exp", "253402300800"), want: "no expiry"},
		{name: "exp over 63 bits", edit: literal("exp", "9223372036854775808"), want: "no expiry"},
		{name: "exp over 64 bits, wrapping to the future", edit: literal("exp", "18446744075504029616"), want: "no expiry"},
		{name: "exp true", edit: literal("exp", "true"), want: "no expiry"},
		{name: "exp array", edit: literal("exp", "[1794477600]"), want: "no expiry"},
		{name: "exp in milliseconds", edit: claim("exp", start.Add(time.Hour).UnixMilli()), want: "no expiry"},
		{name: "exp exactly now", edit: claim("exp", start.Unix()), want: "expired at 2026-11-12T08:00:00Z and the clock here says 2026-11-12T08:00:00Z"},
		{name: "exp a second ago", edit: claim("exp", start.Unix()-1), want: "expired at 2026-11-12T07:59:59Z"},

		// Start.
		{name: "nbf beyond the skew", edit: claim("nbf", start.Unix()+61), want: "starts (nbf) at 2026-11-12T08:01:01Z"},
		{name: "iat beyond the skew", edit: claim("iat", start.Unix()+61), want: "starts (iat) at 2026-11-12T08:01:01Z"},
		{name: "nbf float", edit: literal("nbf", "1.5"), want: "nbf"},
		{name: "iat null", edit: literal("iat", "null"), want: "iat"},
		{name: "nbf at exp", edit: func(p *tokenParts) { p.claims["nbf"] = p.claims["exp"] }, want: "not before its exp"},

		// Subject.
		{name: "sub missing", edit: without("sub"), want: "no service account"},
		{name: "sub of a person", edit: claim("sub", "jane@example.com"), want: "no service account"},
		{name: "sub of a node", edit: claim("sub", "system:node:node-a"), want: "no service account"},
		{name: "sub as a number", edit: claim("sub", 1), want: "no service account"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t, nil)
			parts := goodToken(start)
			if test.edit != nil {
				test.edit(parts)
			}
			token := parts.String()
			if test.text != nil {
				token = test.text(token)
			}
			_, err := f.ask(t.Context(), token)
			wantKind(t, err, errkind.Unauthenticated, test.want)
			if n := f.cluster.calls(); n != 0 {
				t.Errorf("the cluster was asked %d times", n)
			}
			if f.online.cache.bad.Len()+f.online.cache.good.Len() != 0 {
				t.Error("the refusal took room in the cache")
			}
			noLeak(t, token, nil, f.log.String())
		})
	}
}

// FuzzPeek holds that a token which is let through to the cluster has the shape, an audience of ours and an expiry to come, as another
// parser reads it, and that no refusal quotes the token.
func FuzzPeek(f *testing.F) {
	const header = `{"alg":"RS256"}`
	good := jsonWith(goodToken(start).claims, "exp", "1794477600")
	f.Add(header, good, "")
	f.Add(`{"alg":"ES256","kid":"a"}`, `{"aud":"istio-ca","exp":1794477600,"sub":"system:serviceaccount:a:b","exp ":1}`, "")
	f.Add(header, `{"aud":["chancery"],"exp":1e99,"sub":"system:serviceaccount:a:b"}`, "")
	f.Add(header, `{"aud":["chancery",""],"exp":1794477600,"nbf":1,"iat":1,"jti":"a","sub":"system:serviceaccount:"}`, "")
	f.Add("", "", "eyJhbGciOiJSUzI1NiJ9.e30.AAAA")
	f.Add("", "", "..")
	ours := []string{"chancery", "istio-ca"}
	f.Fuzz(func(t *testing.T, header, payloadText, token string) {
		if token == "" { // so that the fuzzer can reach the claims without learning base64
			encode := base64.RawURLEncoding.EncodeToString
			token = encode([]byte(header)) + "." + encode([]byte(payloadText)) + "." + encode([]byte("signature"))
		}
		c, err := peek(token, ours, start)
		noLeak(t, token, err)
		if err != nil {
			if errkind.Of(err) != errkind.Unauthenticated {
				t.Fatalf("refused as %s", errkind.Of(err))
			}
			return
		}
		if !looksLikeJWT(token) || len(token) > MaxTokenBytes || strings.Trim(token, "."+
			"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			t.Fatalf("accepted the shape of %q", token)
		}
		payload, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
		if err != nil {
			t.Fatal(err)
		}
		var read map[string]any
		if err := json.Unmarshal(payload, &read); err != nil {
			t.Fatal(err)
		}
		if exp, ok := read["exp"].(float64); !ok || int64(exp) != c.expires.Unix() || !c.expires.After(start) || c.expires.Year() > 9999 {
			t.Fatalf("accepted exp %v as %s", read["exp"], c.expires)
		}
		if !strings.HasPrefix(read["sub"].(string), "system:serviceaccount:") || read["sub"] != c.subject {
			t.Fatalf("accepted sub %v", read["sub"])
		}
		found := false
		switch aud := read["aud"].(type) {
		case string:
			found = aud == ours[0] || aud == ours[1]
		case []any:
			for _, a := range aud {
				found = found || a == ours[0] || a == ours[1]
			}
		}
		if !found {
			t.Fatalf("accepted aud %v", read["aud"])
		}
	})
}
