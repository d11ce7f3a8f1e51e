package tokenreview

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
	authv1 "k8s.io/api/authentication/v1"

	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
)

func TestPrincipalOfAGoodToken(t *testing.T) {
	f := newFixture(t, nil)
	token := goodToken(start).String()
	got, err := f.ask(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	want := &identity.Principal{
		ID:           spiffeid.RequireFromString("spiffe://cluster.local/ns/shop/sa/cart"),
		Method:       identity.MethodKubernetes,
		CredentialID: "6b7f4a0e-8a51-4a0e-9a55-0f0c6b1d2e3f",
		Expiry:       start.Add(time.Hour),
		Kubernetes: &identity.Kubernetes{
			Cluster: "local", Namespace: "shop", ServiceAccount: "cart", ServiceAccountUID: "sa-uid-1", PodName: "cart-7d9f-x2x4z",
			PodUID: "pod-uid-1", NodeName: "node-a", NodeUID: "node-uid-1", TokenAudienceMatch: "chancery", Verification: identity.VerifiedReview,
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v with %+v", got, got.Kubernetes)
	}
	sent := []authv1.TokenReviewSpec{{Token: token, Audiences: []string{"chancery", "istio-ca"}}}
	if !reflect.DeepEqual(f.cluster.sent, sent) {
		t.Errorf("the cluster was sent other reviews than the one expected: %d", len(f.cluster.sent))
	}
	if f.log.Len() != 0 {
		t.Errorf("log: %s", f.log)
	}
}

// TestAnswers starts from a good token and a good answer of the cluster, changes one thing and expects one call. An empty want is an acceptance.
func TestAnswers(t *testing.T) {
	type status = authv1.TokenReviewStatus
	extra := func(key string, values ...string) func(*status) {
		return func(s *status) { s.User.Extra[key] = values }
	}
	drop := func(keys ...string) func(*status) {
		return func(s *status) {
			for _, key := range keys {
				delete(s.User.Extra, key)
			}
		}
	}
	username := func(name string) func(*status) { return func(s *status) { s.User.Username = name } }
	both := func(edits ...func(*status)) func(*status) {
		return func(s *status) {
			for _, edit := range edits {
				edit(s)
			}
		}
	}
	nodeBound := func(c *Config) { c.AcceptNodeBound = true }

	for _, test := range []struct {
		name   string
		token  func(*tokenParts)
		answer func(*status)
		config func(*Config)
		want   string
		check  func(*identity.Principal) bool
	}{
		// Tokens that are good.
		{name: "aud string", token: func(p *tokenParts) { p.claims["aud"] = "chancery" }},
		{name: "aud superset", token: func(p *tokenParts) { p.claims["aud"] = []string{"vault", "chancery"} }},
		{name: "aud the second of ours", token: func(p *tokenParts) { p.claims["aud"] = "istio-ca" },
			check: func(p *identity.Principal) bool { return p.Kubernetes.TokenAudienceMatch == "istio-ca" }},
		{name: "exp a second ahead", token: func(p *tokenParts) {
			p.claims["exp"] = start.Unix() + 1
		}, check: func(p *identity.Principal) bool { return p.Expiry.Equal(start.Add(time.Second)) }},
		{name: "exp at the end of 9999", token: func(p *tokenParts) { p.claims["exp"] = 253402300799 }},
		{name: "nbf within the skew", token: func(p *tokenParts) { p.claims["nbf"] = start.Unix() + 60 }},
		{name: "nbf and iat missing", token: func(p *tokenParts) { delete(p.claims, "nbf"); delete(p.claims, "iat") }},
		{name: "kid missing", token: func(p *tokenParts) { delete(p.header, "kid") }},
		{name: "kid traversal, which only the cluster reads", token: func(p *tokenParts) { p.header["kid"] = "../../etc/passwd" }},
		{name: "ES256", token: func(p *tokenParts) { p.header["alg"] = "ES256" }},
		{name: "just 8 KiB", token: func(p *tokenParts) {
			p.signature = strings.Repeat("s", (MaxTokenBytes-len(p.String()))*3/4+len(p.signature)-3)
		}},
		{name: "jti unfit for a log", token: func(p *tokenParts) { p.claims["jti"] = "a\nb" }, answer: drop(extraCredentialID),
			check: func(p *identity.Principal) bool { return p.CredentialID == "" }},
		{name: "cluster without credential ids", answer: drop(extraCredentialID),
			check: func(p *identity.Principal) bool { return p.CredentialID == "6b7f4a0e-8a51-4a0e-9a55-0f0c6b1d2e3f" }},
		{name: "credential id that is no jti", answer: extra(extraCredentialID, "X509SHA256=00"),
			check: func(p *identity.Principal) bool { return p.CredentialID == "6b7f4a0e-8a51-4a0e-9a55-0f0c6b1d2e3f" }},
		{name: "cluster without node extras", answer: drop(extraNodeName, extraNodeUID),
			check: func(p *identity.Principal) bool { return p.Kubernetes.NodeName == "" && p.Kubernetes.PodUID != "" }},
		{name: "node name without UID", answer: drop(extraNodeUID)},
		{name: "extras of others", answer: extra("example.com/team", "a", "b")},
		{name: "confirmed audiences with a foreign one", answer: func(s *status) { s.Audiences = []string{"vault", "chancery"} }},
		{name: "node-bound, when that is accepted", answer: drop(extraPodName, extraPodUID), config: nodeBound,
			check: func(p *identity.Principal) bool {
				return p.Kubernetes.PodName == "" && p.Kubernetes.NodeUID == "node-uid-1"
			}},

		// The cluster says no.
		{name: "not authenticated", answer: func(s *status) { *s = status{} }, want: "does not accept the token"},
		{name: "not authenticated, with error", answer: func(s *status) { *s = status{Error: "token has been invalidated"} }, want: "does not accept the token"},
		{name: "authenticated, with error", answer: func(s *status) { s.Error = "webhook broke" }, want: "does not accept the token"},
		{name: "not authenticated, though all the rest is there", answer: func(s *status) { s.Authenticated = false }, want: "does not accept the token"},

		// Audiences.
		{name: "no confirmed audiences", answer: func(s *status) { s.Audiences = nil }, want: "does not confirm"},
		{name: "empty confirmed audiences", answer: func(s *status) { s.Audiences = []string{} }, want: "does not confirm"},
		{name: "confirmed audience of the API server", answer: func(s *status) { s.Audiences = []string{"https://kubernetes.default.svc"} }, want: "does not confirm"},
		{name: "confirmed audience that the token has not", answer: func(s *status) { s.Audiences = []string{"istio-ca"} }, want: "does not confirm"},
		{name: "confirmed prefix", answer: func(s *status) { s.Audiences = []string{"chancer"} }, want: "does not confirm"},

		// User.
		{name: "a person", answer: username("jane"), want: "no service account"},
		{name: "a node", answer: username("system:node:node-a"), want: "no service account"},
		{name: "no user name", answer: username(""), want: "no service account"},
		{name: "prefix in capitals", answer: username("System:serviceaccount:shop:cart"), want: "no service account"},
		{name: "no account", answer: username("system:serviceaccount:shop"), want: "no service account"},
		{name: "empty account", answer: username("system:serviceaccount:shop:"), want: "no service account"},
		{name: "empty namespace", answer: username("system:serviceaccount::cart"), want: "no service account"},
		{name: "third part", answer: username("system:serviceaccount:shop:cart:x"), want: "no service account"},
		{name: "slash in the namespace", answer: username("system:serviceaccount:shop/sa:cart"), want: "no service account"},
		{name: "path in the account", answer: username("system:serviceaccount:shop:../sa/admin"), want: "no service account"},
		{name: "capitals in the account", answer: username("system:serviceaccount:shop:Cart"), want: "no service account"},
		{name: "dotted namespace", answer: username("system:serviceaccount:sh.op:cart"), want: "no service account"},
		{name: "another account than the subject", answer: username("system:serviceaccount:shop:admin"), want: "another account"},
		{name: "subject of another account", token: func(p *tokenParts) { p.claims["sub"] = "system:serviceaccount:shop:admin" }, want: "another account"},
		{name: "no groups", answer: func(s *status) { s.User.Groups = nil }, want: "no service account"},
		{name: "not in all accounts' group", answer: func(s *status) { s.User.Groups = s.User.Groups[1:] }, want: "no service account"},
		{name: "group of another namespace", answer: func(s *status) {
			s.User.Groups = []string{"system:serviceaccounts", "system:serviceaccounts:other"}
		}, want: "no service account"},
		{name: "no UID", answer: func(s *status) { s.User.UID = "" }, want: "no service account"},
		{name: "UID unfit for a log", answer: func(s *status) { s.User.UID = "a\nb" }, want: "no service account"},

		// Binding.
		{name: "no extras", answer: func(s *status) { s.User.Extra = nil }, want: "not bound to a pod"},
		{name: "bound to nothing", answer: drop(extraPodName, extraPodUID, extraNodeName, extraNodeUID), want: "not bound to a pod"},
		{name: "bound to nothing, when node-bound is accepted", config: nodeBound,
			answer: drop(extraPodName, extraPodUID, extraNodeName, extraNodeUID), want: "not bound to a pod"},
		{name: "node-bound", answer: drop(extraPodName, extraPodUID), want: "bound to a node"},
		{name: "node-bound without UID, when that is accepted", answer: drop(extraPodName, extraPodUID, extraNodeUID), config: nodeBound,
			want: "not bound to a pod"},
		{name: "pod without UID", answer: drop(extraPodUID), want: "only one of the pod's"},
		{name: "pod without name", answer: drop(extraPodName), want: "only one of the pod's"},
		{name: "pod without UID, when node-bound is accepted", answer: drop(extraPodUID), config: nodeBound, want: "only one of the pod's"},
		{name: "node UID without name", answer: drop(extraNodeName), want: "without its name"},
		{name: "two pods", answer: extra(extraPodName, "a", "b"), want: "no single well-formed"},
		{name: "pod name without value", answer: extra(extraPodName), want: "no single well-formed"},
		{name: "empty pod name", answer: extra(extraPodName, ""), want: "no single well-formed"},
		{name: "empty pod name and UID", answer: both(extra(extraPodName, ""), extra(extraPodUID, "")), want: "no single well-formed"},
		{name: "pod name that is none", answer: extra(extraPodName, "../x"), want: "no single well-formed"},
		{name: "node name that is none", answer: extra(extraNodeName, "a b"), want: "no single well-formed"},
		{name: "endless pod UID", answer: extra(extraPodUID, strings.Repeat("u", 129)), want: "no single well-formed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t, test.config)
			f.cluster.edit = test.answer
			parts := goodToken(start)
			if test.token != nil {
				test.token(parts)
			}
			token := parts.String()
			principal, err := f.ask(t.Context(), token)
			switch {
			case test.want != "":
				wantKind(t, err, errkind.Unauthenticated, test.want)
			case err != nil:
				t.Fatal(err)
			case test.check != nil && !test.check(principal):
				t.Errorf("principal %+v with %+v", principal, principal.Kubernetes)
			}
			if n := f.cluster.calls(); n != 1 {
				t.Errorf("the cluster was asked %d times", n)
			}
			if ok, _, reason := f.online.Health(); !ok {
				t.Errorf("a verdict made the cluster unwell: %s", reason)
			}
			noLeak(t, token, nil, f.log.String())
		})
	}
}

func TestTokenThatExpiresWhileTheClusterThinksIsRefused(t *testing.T) {
	now := start
	f := newFixture(t, func(c *Config) { c.Now = func() time.Time { return now } })
	f.cluster.edit = func(*authv1.TokenReviewStatus) { now = now.Add(2 * time.Second) } // the API server gives it a minute more
	parts := goodToken(start)
	parts.claims["exp"] = start.Add(time.Second).Unix()
	_, err := f.ask(t.Context(), parts.String())
	wantKind(t, err, errkind.Unauthenticated, "token expired at")
}

func TestErrorOfTheClusterIsForTheLogOnly(t *testing.T) {
	f := newFixture(t, nil)
	token := goodToken(start).String()
	f.cluster.edit = func(s *authv1.TokenReviewStatus) {
		*s = authv1.TokenReviewStatus{Error: "etcd-7.internal:2379 refused\n" + token}
	}
	_, err := f.ask(t.Context(), token)
	if strings.Contains(errkind.Message(err), "etcd") {
		t.Errorf("the caller is told %q", errkind.Message(err))
	}
	if !strings.Contains(err.Error(), "etcd-7.internal:2379 refused [redacted]") || strings.Contains(err.Error(), "\n") {
		t.Errorf("the log is told %q", err)
	}
}

func TestRedact(t *testing.T) {
	token := goodToken(start).String()
	parts := strings.Split(token, ".")
	for _, text := range []string{
		token, "token=" + token, `"` + token + `"`, parts[1], "x" + parts[2], token[:40] + "...", token[len(token)-30:], strings.Repeat(token, 9),
	} {
		got := redact("cannot read "+text, token)
		noLeak(t, token, nil, got)
		if !strings.HasPrefix(got, "cannot read ") {
			t.Errorf("got %q", got)
		}
	}
	plain := `Post "https://10.0.0.1/apis": x509: certificate signed by unknown authority (pod 0b7c3f7e-52c3-4e43-95ea-0aa2b3e4a0a1)`
	if got := redact(plain, token); got != plain {
		t.Errorf("got %q", got)
	}
}

func TestClusterIDs(t *testing.T) {
	f := newFixture(t, nil)
	for id, known := range map[string]bool{
		"": true, "local": true, "Kubernetes": true, "kubernetes": false, "other": false, "Kubernetes ": false, strings.Repeat("x", 1<<20): false,
	} {
		_, handled, err := f.online.Authenticate(t.Context(), identity.Credential{
			Bearer: identity.Secret(goodToken(start).String()), ClusterID: id,
		})
		if !handled || (err == nil) != known {
			t.Errorf("%.20q: handled %t, error %v", id, handled, err)
		}
		if !known {
			wantKind(t, err, errkind.Unauthenticated, "not known here")
			if len(err.Error()) > 400 {
				t.Errorf("an error of %d octets", len(err.Error()))
			}
		}
	}
}

func TestOnlineLeavesOtherCredentialsAlone(t *testing.T) {
	f := newFixture(t, nil)
	for _, bearer := range []string{"", "cjt_0123", "cjt_a.b.c", "opaque", "s3cr3t", strings.Repeat("a", 1<<20)} {
		principal, handled, err := f.online.Authenticate(t.Context(), identity.Credential{Bearer: identity.Secret(bearer)})
		if principal != nil || handled || err != nil {
			t.Errorf("%.20q: %v, %t, %v", bearer, principal, handled, err)
		}
	}
	for _, bearer := range []string{"eyJ", "a.b", "{}", ".", "v4.public.xyz"} {
		_, err := f.ask(t.Context(), bearer)
		wantKind(t, err, errkind.Unauthenticated, "malformed token")
	}
}

func TestConfigRules(t *testing.T) {
	good := Config{Cluster: "local", TrustDomain: trustDomain, Audiences: []string{"chancery"}}
	if _, err := NewOnline(&cluster{}, good, nil, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := NewOnline(nil, good, nil, nil); err == nil {
		t.Error("made without a reviewer")
	}
	for want, edit := range map[string]func(*Config){
		"cluster is empty":       func(c *Config) { c.Cluster = "" },
		"entry of cluster ids":   func(c *Config) { c.ClusterIDs = []string{""} },
		"trust domain is empty":  func(c *Config) { c.TrustDomain = spiffeid.TrustDomain{} },
		"audiences are empty":    func(c *Config) { c.Audiences = nil },
		"have an empty entry":    func(c *Config) { c.Audiences = []string{"chancery", ""} },
		"timeout is 31s":         func(c *Config) { c.Timeout = 31 * time.Second },
		"timeout is -1ns":        func(c *Config) { c.Timeout = -1 },
		"cache TTL is 11s":       func(c *Config) { c.CacheTTL = 11 * time.Second },
		"negative TTL is 11s":    func(c *Config) { c.NegativeTTL = 11 * time.Second },
		"max wait is 6s":         func(c *Config) { c.MaxWait = 6 * time.Second },
		"max in flight is -1":    func(c *Config) { c.MaxInFlight = -1 },
		"cache size is -1":       func(c *Config) { c.CacheSize = -1 },
		"max in flight is 10000": func(c *Config) { c.MaxInFlight = 10000 },
	} {
		config := good
		edit(&config)
		if _, err := NewOnline(&cluster{}, config, nil, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	audiences := slices.Clone(good.Audiences)
	config := good
	config.Audiences = audiences
	online, err := NewOnline(&cluster{}, config, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if audiences[0] = "other"; online.config.Audiences[0] != "chancery" {
		t.Error("the config is not the constructor's own")
	}
}
