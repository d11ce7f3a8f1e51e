package tokenreview

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
	authv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
)

// start is when tests with a fixed clock take place.
var start = time.Date(2026, 11, 12, 8, 0, 0, 0, time.UTC)

var trustDomain = spiffeid.RequireTrustDomainFromString("cluster.local")

// tokenParts is a token before it is encoded. Tests begin with goodToken and change one thing.
type tokenParts struct {
	header map[string]any
	claims map[string]any
	// headerText and claimsText replace the JSON of header and claims.
	headerText, claimsText string
	signature              string
}

func goodToken(now time.Time) *tokenParts {
	return &tokenParts{
		header: map[string]any{"alg": "RS256", "kid": "4Dd8Zj2bq6sVvTnR0lXw1A"},
		claims: map[string]any{
			"iss": "https://kubernetes.default.svc.cluster.local",
			"sub": "system:serviceaccount:shop:cart",
			"aud": []string{"chancery"},
			"exp": now.Add(time.Hour).Unix(),
			"nbf": now.Unix(),
			"iat": now.Unix(),
			"jti": "6b7f4a0e-8a51-4a0e-9a55-0f0c6b1d2e3f",
			"kubernetes.io": map[string]any{
				"namespace":      "shop",
				"serviceaccount": map[string]any{"name": "cart", "uid": "sa-uid-1"},
				"pod":            map[string]any{"name": "cart-7d9f-x2x4z", "uid": "pod-uid-1"},
				"node":           map[string]any{"name": "node-a", "uid": "node-uid-1"},
			},
		},
		signature: strings.Repeat("signature-of-the-cluster", 10),
	}
}

func (p *tokenParts) String() string {
	encode := func(value any, text string) string {
		if text == "" {
			b, _ := json.Marshal(value) // maps of strings and numbers: it cannot fail
			text = string(b)
		}
		return base64.RawURLEncoding.EncodeToString([]byte(text))
	}
	signature := base64.RawURLEncoding.EncodeToString([]byte(p.signature))
	return encode(p.header, p.headerText) + "." + encode(p.claims, p.claimsText) + "." + signature
}

// numbered returns a good token unlike those of other numbers.
func numbered(now time.Time, n int) string {
	p := goodToken(now)
	p.claims["jti"] = fmt.Sprintf("jti-%d", n)
	return p.String()
}

// cluster is a Reviewer that decodes what it is sent, like an API server whose every signature is good, and injects faults.
type cluster struct {
	mu    sync.Mutex
	sent  []authv1.TokenReviewSpec
	edit  func(*authv1.TokenReviewStatus) // changes the answer
	fail  func(token string) error        // replaces the answer
	block chan struct{}                   // holds the answer back until it is closed
	empty bool                            // answers nil, nil
}

func (c *cluster) Create(ctx context.Context, review *authv1.TokenReview, _ metav1.CreateOptions) (*authv1.TokenReview, error) {
	c.mu.Lock()
	c.sent = append(c.sent, review.Spec)
	edit, fail, block, empty := c.edit, c.fail, c.block, c.empty
	c.mu.Unlock()
	if block != nil {
		select {
		case <-block:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if empty {
		return nil, nil
	}
	if fail != nil {
		if err := fail(review.Spec.Token); err != nil {
			return nil, err
		}
	}
	answer := review.DeepCopy()
	answer.Status = statusOf(review.Spec)
	if edit != nil {
		edit(&answer.Status)
	}
	return answer, nil
}

func (c *cluster) calls() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.sent)
}

// statusOf answers as the API server does, by the token's claims.
func statusOf(spec authv1.TokenReviewSpec) authv1.TokenReviewStatus {
	invalid := authv1.TokenReviewStatus{Error: fmt.Sprintf("[invalid bearer token %q, unknown]", spec.Token)}
	parts := strings.Split(spec.Token, ".")
	if len(parts) != 3 {
		return invalid
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return invalid
	}
	type object struct{ Name, UID string }
	var c struct {
		Sub, Jti   string
		Aud        any
		Kubernetes struct {
			Namespace      string
			Serviceaccount object
			Pod, Node      *object
		} `json:"kubernetes.io"`
	}
	if json.Unmarshal(payload, &c) != nil {
		return invalid
	}
	var audiences []string
	for _, audience := range spec.Audiences {
		if strings.Contains(fmt.Sprint(c.Aud), audience) {
			audiences = append(audiences, audience)
		}
	}
	if len(audiences) == 0 {
		return invalid
	}
	extra := map[string]authv1.ExtraValue{extraCredentialID: {"JTI=" + c.Jti}}
	if c.Kubernetes.Pod != nil {
		extra[extraPodName], extra[extraPodUID] = authv1.ExtraValue{c.Kubernetes.Pod.Name}, authv1.ExtraValue{c.Kubernetes.Pod.UID}
	}
	if c.Kubernetes.Node != nil {
		extra[extraNodeName], extra[extraNodeUID] = authv1.ExtraValue{c.Kubernetes.Node.Name}, authv1.ExtraValue{c.Kubernetes.Node.UID}
	}
	return authv1.TokenReviewStatus{
		Authenticated: true,
		Audiences:     audiences,
		User: authv1.UserInfo{
			Username: "system:serviceaccount:" + c.Kubernetes.Namespace + ":" + c.Kubernetes.Serviceaccount.Name,
			UID:      c.Kubernetes.Serviceaccount.UID,
			Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + c.Kubernetes.Namespace, "system:authenticated"},
			Extra:    extra,
		},
	}
}

// fixture is an Online on a fake cluster, with its log.
type fixture struct {
	t       *testing.T
	online  *Online
	cluster *cluster
	log     *bytes.Buffer
	metrics *Metrics
}

func newFixture(t *testing.T, edit func(*Config)) *fixture {
	t.Helper()
	f := &fixture{t: t, cluster: &cluster{}, log: new(bytes.Buffer)}
	config := Config{
		Cluster: "local", ClusterIDs: []string{"Kubernetes"}, TrustDomain: trustDomain, Audiences: []string{"chancery", "istio-ca"},
		Now: func() time.Time { return start },
	}
	if edit != nil {
		edit(&config)
	}
	var err error
	if f.metrics, err = NewMetrics(nil); err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.NewTextHandler(&lockedWriter{to: f.log}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if f.online, err = NewOnline(f.cluster, config, logger, f.metrics); err != nil {
		t.Fatal(err)
	}
	return f
}

type lockedWriter struct {
	mu sync.Mutex
	to *bytes.Buffer
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(p)
}

// ask authenticates token, and fails the test if the token shows up anywhere.
func (f *fixture) ask(ctx context.Context, token string) (*identity.Principal, error) {
	f.t.Helper()
	principal, handled, err := f.online.Authenticate(ctx, identity.Credential{Bearer: identity.Secret(token)})
	if !handled {
		f.t.Errorf("not handled")
	}
	if (principal == nil) != (err != nil) {
		f.t.Errorf("principal %v with error %v", principal, err)
	}
	noLeak(f.t, token, err)
	return principal, err
}

// noLeak fails the test if any text of err holds 20 characters in a row of token.
func noLeak(t *testing.T, token string, err error, texts ...string) {
	t.Helper()
	if err != nil {
		texts = append(texts, err.Error(), fmt.Sprintf("%+v", err), fmt.Sprintf("%#v", err), errkind.Message(err))
	}
	for _, text := range texts {
		for i := 0; i+20 <= min(len(token), 4096); i++ {
			if strings.Contains(text, token[i:i+20]) {
				t.Fatalf("a piece of the token, from character %d, is in %q", i, text)
			}
		}
	}
}

// wantKind checks the kind of err and that its sentence for the caller has a piece of text.
func wantKind(t *testing.T, err error, kind errkind.Kind, sentence string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %s with %q", kind, sentence)
	}
	if got := errkind.Of(err); got != kind {
		t.Errorf("kind %s, want %s: %v", got, kind, err)
	}
	if got := errkind.Message(err); !strings.Contains(got, sentence) {
		t.Errorf("the caller is told %q, want it to have %q", got, sentence)
	}
	if errkind.Of(err).Retryable() != (errkind.RetryAfter(err) > 0) {
		t.Errorf("%s error says to come back after %s", errkind.Of(err), errkind.RetryAfter(err))
	}
}

// jsonWith returns claims as JSON, with the text of one member's value replaced.
func jsonWith(claims map[string]any, name, value string) string {
	names := slices.Sorted(maps.Keys(claims))
	if !slices.Contains(names, name) {
		names = append(names, name)
	}
	var members []string
	for _, n := range names {
		text := value
		if n != name {
			b, _ := json.Marshal(claims[n])
			text = string(b)
		}
		members = append(members, fmt.Sprintf("%q:%s", n, text))
	}
	return "{" + strings.Join(members, ",") + "}"
}
