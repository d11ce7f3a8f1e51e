package tokenreview

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
)

const ciIssuer = "https://ci.example/oauth"

// ciToken is a good ID token of ciIssuer by key, after edit.
func ciToken(key *testKey, edit func(*tokenParts)) string {
	return key.token(func(p *tokenParts) {
		p.claims = map[string]any{
			"iss": ciIssuer, "sub": "repo:example/shop:ref:refs/heads/main", "aud": "chancery", "exp": start.Add(5 * time.Minute).Unix(), "iat": start.Unix(),
			"jti": "run-17", "repository": "example/shop", "attempt": 2, "protected": true, "actor": map[string]any{"id": "42", "groups": []any{"a", "b"}},
		}
		if edit != nil {
			edit(p)
		}
	})
}

// newCI returns an OIDC for ciIssuer that maps to the path /ci/ and the claim repository.
func newCI(t *testing.T, edit func(*OIDCConfig)) *OIDC {
	t.Helper()
	config := OIDCConfig{
		Provider: "ci", Issuer: ciIssuer, Audiences: []string{"chancery"}, TrustDomain: trustDomain, Now: func() time.Time { return start },
		Map: func(_ context.Context, claims map[string]any) (string, error) {
			return fmt.Sprintf("/ci/%s", claims["repository"]), nil
		},
	}
	if edit != nil {
		edit(&config)
	}
	oidc, err := NewOIDC(config, keySetOf(t, nil, theKeys().published()...))
	if err != nil {
		t.Fatal(err)
	}
	return oidc
}

func TestPrincipalOfAnIDToken(t *testing.T) {
	for _, key := range theKeys().published() {
		principal, err := present(t, newCI(t, nil), ciToken(key, nil))
		if err != nil {
			t.Fatal(err)
		}
		want := &identity.Principal{
			ID: spiffeid.RequireFromString("spiffe://cluster.local/ci/example/shop"), Method: identity.MethodOIDC, CredentialID: "run-17",
			Expiry: start.Add(5 * time.Minute),
			OIDC: &identity.OIDC{Provider: "ci", Issuer: ciIssuer, Subject: "repo:example/shop:ref:refs/heads/main", Claims: map[string]any{
				"iss": ciIssuer, "sub": "repo:example/shop:ref:refs/heads/main", "aud": "chancery", "exp": float64(start.Add(5 * time.Minute).Unix()),
				"iat": float64(start.Unix()), "jti": "run-17", "repository": "example/shop", "attempt": float64(2), "protected": true,
				"actor": map[string]any{"id": "42", "groups": []any{"a", "b"}},
			}},
		}
		if !reflect.DeepEqual(principal, want) {
			t.Errorf("%+v %+v\nwant %+v %+v", principal, principal.OIDC, want, want.OIDC)
		}
	}
}

func TestIDTokens(t *testing.T) {
	keys := theKeys()
	set := func(name string, value any) func(*tokenParts) {
		return func(p *tokenParts) {
			if value == nil {
				delete(p.claims, name)
				return
			}
			p.claims[name] = value
		}
	}
	raw := func(name, text string) func(*tokenParts) {
		return func(p *tokenParts) { p.claimsText = jsonWith(p.claims, name, text) }
	}
	nested := func(depth int) string { return strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth) }
	for name, test := range map[string]struct {
		key  *testKey
		edit func(*tokenParts)
		want errkind.Reason
	}{
		"good":                   {keys.rsa, nil, accepted},
		"aud a list":             {keys.rsa, set("aud", []string{"other", "chancery"}), accepted},
		"no jti":                 {keys.rsa, set("jti", nil), accepted},
		"a jti with spaces":      {keys.rsa, set("jti", "a b"), accepted},
		"no iat":                 {keys.rsa, set("iat", nil), accepted},
		"claims 8 deep":          {keys.rsa, raw("deep", nested(7)), accepted},
		"claims 9 deep":          {keys.rsa, raw("deep", nested(8)), errkind.MalformedCredential},
		"lists 9 deep":           {keys.rsa, raw("deep", strings.Repeat("[", 8)+strings.Repeat("]", 8)), errkind.MalformedCredential},
		"claims 3000 deep":       {keys.rsa, raw("deep", strings.Repeat("[", 2500)+strings.Repeat("]", 2500)), errkind.MalformedCredential},
		"a member twice, inside": {keys.rsa, raw("deep", `{"a":[{"b":1,"b":2}]}`), errkind.MalformedCredential},
		"65 members, inside": {keys.rsa, func(p *tokenParts) {
			m := map[string]any{}
			for i := range 65 {
				m[fmt.Sprint(i)] = i
			}
			p.claims["deep"] = m
		}, errkind.MalformedCredential},
		"a number out of range":          {keys.rsa, raw("deep", "1e999"), errkind.MalformedCredential},
		"an access token":                {keys.rsa, func(p *tokenParts) { p.header["typ"] = "at+jwt" }, errkind.MalformedCredential},
		"an access token, in full":       {keys.rsa, func(p *tokenParts) { p.header["typ"] = "application/AT+JWT" }, errkind.MalformedCredential},
		"typ JWT":                        {keys.rsa, func(p *tokenParts) { p.header["typ"] = "JWT" }, accepted},
		"for someone else":               {keys.rsa, set("aud", "vault"), errkind.WrongAudience},
		"for nobody":                     {keys.rsa, set("aud", nil), errkind.WrongAudience},
		"expired":                        {keys.rsa, set("exp", start.Unix()), errkind.CredentialExpired},
		"without end":                    {keys.rsa, set("exp", nil), errkind.MalformedCredential},
		"not yet":                        {keys.rsa, set("nbf", start.Add(61*time.Second).Unix()), errkind.NotYetValid},
		"nbf a text":                     {keys.rsa, set("nbf", "now"), errkind.MalformedCredential},
		"no sub":                         {keys.rsa, set("sub", nil), errkind.MalformedCredential},
		"a sub with a line end":          {keys.rsa, set("sub", "a\nb"), errkind.MalformedCredential},
		"a sub that is not ASCII":        {keys.rsa, set("sub", "jürgen"), errkind.MalformedCredential},
		"a sub of 256 characters":        {keys.rsa, set("sub", strings.Repeat("s", 256)), errkind.MalformedCredential},
		"a stranger's key":               {keys.stranger, nil, errkind.BadSignature},
		"an unknown key":                 {keys.rsa, func(p *tokenParts) { p.header["kid"] = "x" }, errkind.BadSignature},
		"an algorithm of no issuer":      {keys.rsa, func(p *tokenParts) { p.header["alg"] = "PS256" }, errkind.BadSignature},
		"a service account's, as issued": {keys.rsa, set("sub", "system:serviceaccount:shop:cart"), accepted},
	} {
		t.Run(name, func(t *testing.T) {
			oidc := newCI(t, nil)
			principal, err := present(t, oidc, ciToken(test.key, test.edit))
			got := accepted
			if err != nil {
				got = errkind.ReasonOf(err)
				if strings.Contains(errkind.Message(err), "serviceAccountToken") {
					t.Errorf("a CI system is sent the wrong way: %s", errkind.Message(err))
				}
			} else if principal.Method != identity.MethodOIDC || principal.Kubernetes != nil {
				t.Errorf("%+v", principal)
			}
			if got != test.want {
				t.Errorf("%s, want %s: %v", got, test.want, err)
			}
		})
	}
}

// TestMapping holds what a mapping can give, and that no mapping gives more.
func TestMapping(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		err  error
		want string // the path; empty if nobody is mapped
	}{
		"a path":                       {"/ci/example", nil, "/ci/example"},
		"a SPIFFE ID":                  {"spiffe://cluster.local/ci/example", nil, "/ci/example"},
		"nobody":                       {"", nil, ""},
		"a failure":                    {"", errors.New("no such key: repository"), ""},
		"a failure with a text":        {"/ci/example", errors.New("no such key: repository"), ""},
		"the trust domain":             {"spiffe://cluster.local", nil, ""},
		"the trust domain by a path":   {"/", nil, ""},
		"another trust domain":         {"spiffe://other.local/ci", nil, ""},
		"another that begins alike":    {"spiffe://cluster.local.attacker.example/ci", nil, ""},
		"the authority":                {"/chancery", nil, ""},
		"the authority's own":          {"/chancery/server", nil, ""},
		"the same by a SPIFFE ID":      {"spiffe://cluster.local/chancery/server", nil, ""},
		"what begins as the same":      {"/chancery-ci/a", nil, "/chancery-ci/a"},
		"dots":                         {"/ci/../chancery/server", nil, ""},
		"an empty segment":             {"/ci//a", nil, ""},
		"an empty segment at first":    {"//chancery/server", nil, ""},
		"a slash at the end":           {"/ci/", nil, ""},
		"no slash at the beginning":    {"ci/a", nil, ""},
		"a URL":                        {"https://cluster.local/ci", nil, ""},
		"in another case":              {"SPIFFE://cluster.local/ci", nil, ""},
		"with a query":                 {"/ci?a", nil, ""},
		"with a percent sign":          {"/ci/%2e%2e", nil, ""},
		"with a line end":              {"/ci/a\n", nil, ""},
		"longer than an ID may be":     {"/" + strings.Repeat("a", 2100), nil, ""},
		"another's trust domain, user": {"spiffe://cluster.local@attacker.example/ci", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			oidc := newCI(t, func(c *OIDCConfig) {
				c.Map = func(context.Context, map[string]any) (string, error) { return test.text, test.err }
			})
			principal, err := present(t, oidc, ciToken(theKeys().rsa, nil))
			if test.want == "" {
				wantKind(t, err, errkind.Unauthenticated, "maps its claims to no identity here")
				if errkind.ReasonOf(err) != errkind.NotMapped || strings.Contains(errkind.Message(err), "repository") {
					t.Errorf("%v", err)
				}
				if test.err != nil && !errors.Is(err, test.err) {
					t.Errorf("the log does not get the cause: %v", err)
				}
				return
			}
			if err != nil || principal.ID.String() != "spiffe://cluster.local"+test.want {
				t.Errorf("%v %v, want %s", principal, err, test.want)
			}
		})
	}
}

// TestMappingIsAskedAboutVerifiedClaimsOnly holds that nobody's text reaches the mapping before its signature is verified.
func TestMappingIsAskedAboutVerifiedClaimsOnly(t *testing.T) {
	calls := 0
	oidc := newCI(t, func(c *OIDCConfig) {
		c.Map = func(context.Context, map[string]any) (string, error) { calls++; return "/ci/a", nil }
	})
	if _, err := present(t, oidc, ciToken(theKeys().stranger, nil)); err == nil || calls > 0 {
		t.Errorf("%d calls, %v", calls, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	oidc.config.Map = func(ctx context.Context, _ map[string]any) (string, error) { cancel(); return "", ctx.Err() }
	_, handled, err := oidc.Authenticate(ended, identity.Credential{Bearer: identity.Secret(ciToken(theKeys().rsa, nil))})
	if !handled || !errkind.Of(err).Retryable() {
		t.Errorf("a caller who left: %v", err)
	}
}

// TestWhoTakesAToken holds that each token is of one kind: an ID token is never a cluster's, and a cluster's never an ID token.
func TestWhoTakesAToken(t *testing.T) {
	v := newVerifiers(t, nil)
	clusters := must(NewClusters(ClusterEntry{Name: "local", Issuer: testIssuer, Authenticator: v.live}))
	chain := must(NewChain(
		Entry{Accepts: "an ID token", Authenticator: newCI(t, nil)},
		Entry{Accepts: "a service-account token", Authenticator: clusters},
	))
	keys := theKeys()
	asCI := func(edit func(*tokenParts)) string { return ciToken(keys.rsa, edit) }
	for name, test := range map[string]struct {
		token  string
		method identity.Method
		want   errkind.Reason
	}{
		"an ID token":                      {asCI(nil), identity.MethodOIDC, ""},
		"a service account's":              {keys.rsa.token(nil), identity.MethodKubernetes, ""},
		"an ID token with a cluster's iss": {asCI(func(p *tokenParts) { p.claims["iss"] = testIssuer }), "", errkind.UnknownCredential},
		"a cluster's with the ID token's":  {keys.rsa.token(func(p *tokenParts) { p.claims["iss"] = ciIssuer }), "", errkind.NotMapped},
		"an iss with a slash":              {asCI(func(p *tokenParts) { p.claims["iss"] = ciIssuer + "/" }), "", errkind.UnknownCredential},
		"an iss in a list":                 {asCI(func(p *tokenParts) { p.claims["iss"] = []string{ciIssuer} }), "", errkind.UnknownCredential},
		"no iss":                           {asCI(func(p *tokenParts) { delete(p.claims, "iss") }), "", errkind.UnknownCredential},
		"iss twice": {asCI(func(p *tokenParts) {
			p.claimsText = strings.TrimSuffix(jsonWith(p.claims, "iss", `"`+ciIssuer+`"`), "}") + `,"iss":"` + testIssuer + `"}`
		}), "", errkind.MalformedCredential},
		"a forged ID token": {ciToken(keys.stranger, nil), "", errkind.BadSignature},
	} {
		t.Run(name, func(t *testing.T) {
			principal, err := present(t, chain, test.token)
			if err != nil {
				if errkind.ReasonOf(err) != test.want {
					t.Errorf("%v, want %s", err, test.want)
				}
				return
			}
			if principal.Method != test.method {
				t.Errorf("taken as %s, want %s %s", principal.Method, test.method, test.want)
			}
		})
	}
	if v.api.count() > 0 {
		t.Error("the cluster was asked")
	}
	for _, token := range []string{"", "opaque", joinPrefix + "a.b", keys.rsa.token(nil), "eyJ.x"} {
		if principal, handled, err := newCI(t, nil).Authenticate(t.Context(), identity.Credential{Bearer: identity.Secret(token)}); handled || principal != nil || err != nil {
			t.Errorf("%.10q: %v %v %v", token, principal, handled, err)
		}
	}
}

// TestIssuerWithoutKeys holds that an issuer that is away is nobody's fault.
func TestIssuerWithoutKeys(t *testing.T) {
	source := newFakeSource(nil)
	source.set(nil, errors.New("no such host"))
	oidc := newCI(t, nil)
	oidc.keys = must(NewKeySet(source.source(), KeySetConfig{Name: "ci"}, nil, nil))
	_, err := present(t, oidc, ciToken(theKeys().rsa, nil))
	wantKind(t, err, errkind.Unavailable, "try again")
	if errkind.ReasonOf(err) != errkind.IssuerUnavailable {
		t.Error(err)
	}
}

func TestNewOIDCRefuses(t *testing.T) {
	for name, edit := range map[string]func(*OIDCConfig){
		"no name":           func(c *OIDCConfig) { c.Provider = "" },
		"no issuer":         func(c *OIDCConfig) { c.Issuer = "" },
		"no audience":       func(c *OIDCConfig) { c.Audiences = nil },
		"an empty audience": func(c *OIDCConfig) { c.Audiences = []string{""} },
		"no trust domain":   func(c *OIDCConfig) { c.TrustDomain = spiffeid.TrustDomain{} },
		"no mapping":        func(c *OIDCConfig) { c.Map = nil },
		"algorithm none":    func(c *OIDCConfig) { c.Algorithms = []string{"none"} },
	} {
		config := newCI(t, nil).config
		edit(&config)
		if _, err := NewOIDC(config, keySetOf(t, nil, theKeys().p256)); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if _, err := NewOIDC(newCI(t, nil).config, nil); err == nil {
		t.Error("no keys: taken")
	}
}
