package tokenreview

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	authv1 "k8s.io/api/authentication/v1"

	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
)

// FuzzOffline has a header and claims signed, or takes a token as it is, and holds that what is accepted is what the cluster's API server would accept
// too, with the same holder; that no refusal quotes the token; and that Online, asking that API server, comes to the same principal.
func FuzzOffline(f *testing.F) {
	key := theKeys().p256
	header := fmt.Sprintf(`{"alg":"ES256","kid":%q}`, key.id)
	good := goodToken(start)
	f.Add(header, jsonWith(good.claims, "jti", `"a"`), "")
	f.Add(`{"alg":"ES256"}`, jsonWith(good.claims, "aud", `"istio-ca"`), "")
	f.Add(header, jsonWith(good.claims, "kubernetes.io", `{"namespace":"shop","serviceaccount":{"name":"cart","uid":"u"},"node":{"name":"a","uid":"b"}}`), "")
	f.Add(header, jsonWith(good.claims, "kubernetes.io", `{"namespace":"shop","serviceaccount":{"name":"cart","uid":"u"},"pod":{"name":"a","uid":"b"},"node":{"name":"c"}}`), "")
	f.Add(header, jsonWith(good.claims, "kubernetes.io", `{"namespace":"shop","serviceaccount":{"name":"cart","uid":"u"},"secret":{"name":"a","uid":"b"}}`), "")
	f.Add(header, jsonWith(good.claims, "kubernetes.io", `{"Namespace":"bank","namespace":"shop","serviceaccount":{"uid":"u","name":"cart"},"pod":{"uid":"b","name":"a"}}`), "")
	f.Add(header, jsonWith(good.claims, "nbf", `1794470450`), "")
	f.Add("", "", key.token(nil))
	f.Add("", "", theKeys().stranger.token(nil))
	f.Add("", "", "..")
	v := newVerifiers(f, func(c *OfflineConfig) { c.AcceptNodeBound = true })
	v.objects.all = true
	f.Fuzz(func(t *testing.T, header, claims, token string) {
		if token == "" {
			text := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims))
			token = text + "." + base64.RawURLEncoding.EncodeToString(key.signature(text, "ES256"))
		}
		principal, handled, err := v.offline.Authenticate(t.Context(), identity.Credential{Bearer: identity.Secret(token)})
		noLeak(t, token, err)
		if err != nil && errkind.Of(err) != errkind.Unauthenticated || handled != looksLikeJWT(token) {
			t.Fatalf("handled %v: %v", handled, err)
		}
		if principal == nil {
			return
		}
		status, err := v.api.verify(authv1.TokenReviewSpec{Token: token, Audiences: []string{"chancery", "istio-ca"}})
		if err != nil {
			t.Fatalf("the API server would not take it: %v", err)
		}
		if want := accountPrefix + principal.Kubernetes.Namespace + ":" + principal.Kubernetes.ServiceAccount; status.User.Username != want ||
			!strings.HasSuffix(principal.ID.Path(), "/ns/"+principal.Kubernetes.Namespace+"/sa/"+principal.Kubernetes.ServiceAccount) {
			t.Fatalf("%s is %s", want, status.User.Username)
		}
		online, _, err := v.online.Authenticate(t.Context(), identity.Credential{Bearer: identity.Secret(token)})
		if err != nil {
			t.Fatalf("Online says %v", err)
		}
		principal = clone(principal)
		principal.Kubernetes.Verification = online.Kubernetes.Verification
		if *principal.Kubernetes != *online.Kubernetes || principal.ID != online.ID || principal.CredentialID != online.CredentialID || !principal.Expiry.Equal(online.Expiry) {
			t.Fatalf("%+v %+v, online %+v %+v", principal, principal.Kubernetes, online, online.Kubernetes)
		}
	})
}

// BenchmarkOffline verifies one token, with a view of the cluster that has its objects.
func BenchmarkOffline(b *testing.B) {
	for _, key := range []*testKey{theKeys().rsa, theKeys().p256, theKeys().p384, theKeys().p521} {
		b.Run(key.algorithm, func(b *testing.B) {
			v := newVerifiers(b, nil)
			credential := identity.Credential{Bearer: identity.Secret(key.token(nil))}
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := v.live.Authenticate(b.Context(), credential); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("refused", func(b *testing.B) {
		v := newVerifiers(b, nil)
		credential := identity.Credential{Bearer: identity.Secret(theKeys().stranger.token(nil))}
		for b.Loop() {
			if _, _, err := v.live.Authenticate(b.Context(), credential); err == nil {
				b.Fatal("accepted")
			}
		}
	})
}
