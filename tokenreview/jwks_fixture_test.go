package tokenreview

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	josejwt "github.com/go-jose/go-jose/v4/jwt"
	authv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
)

const testIssuer = "https://kubernetes.default.svc.cluster.local"

// must returns value. What it is for fails only if the test itself is wrong.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err) //nolint:forbidigo // it has no testing.TB
	}
	return value
}

// testKey is a key of an issuer, with its private half.
type testKey struct {
	id, algorithm string
	signer        crypto.Signer
}

// testKeys are made once: keys of RSA take their time.
type testKeys struct{ rsa, rsa2, p256, p384, p521, stranger *testKey }

var theKeys = sync.OnceValue(func() *testKeys {
	newRSA := func(id string, bits int) *testKey {
		return &testKey{id, "RS256", must(rsa.GenerateKey(rand.Reader, bits))}
	}
	newEC := func(id, algorithm string, curve elliptic.Curve) *testKey {
		return &testKey{id, algorithm, must(ecdsa.GenerateKey(curve, rand.Reader))}
	}
	return &testKeys{
		rsa: newRSA("key-rsa", 2048), rsa2: newRSA("key-rsa-2", 2048), stranger: newRSA("key-rsa", 2048),
		p256: newEC("key-p256", "ES256", elliptic.P256()),
		p384: newEC("key-p384", "ES384", elliptic.P384()),
		p521: newEC("key-p521", "ES512", elliptic.P521()),
	}
})

// published are the keys in the issuer's set: all but the stranger's.
func (k *testKeys) published() []*testKey { return []*testKey{k.rsa, k.rsa2, k.p256, k.p384, k.p521} }

var hashes = map[string]crypto.Hash{
	"RS256": crypto.SHA256, "RS384": crypto.SHA384, "RS512": crypto.SHA512, "ES256": crypto.SHA256, "ES384": crypto.SHA384, "ES512": crypto.SHA512,
	"PS256": crypto.SHA256,
}

// signature signs text as an algorithm has it (RFC 7518 §3).
func (k *testKey) signature(text, algorithm string) []byte {
	hash := hashes[algorithm]
	h := hash.New()
	h.Write([]byte(text))
	digest := h.Sum(nil)
	if key, ok := k.signer.(*ecdsa.PrivateKey); ok {
		r, s, err := ecdsa.Sign(rand.Reader, key, digest)
		must(r, err)
		size := (key.Params().BitSize + 7) / 8
		return append(r.FillBytes(make([]byte, size)), s.FillBytes(make([]byte, size))...)
	}
	var options crypto.SignerOpts = hash
	if strings.HasPrefix(algorithm, "PS") {
		options = &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: hash}
	}
	return must(k.signer.Sign(rand.Reader, digest, options))
}

// sign returns the token of parts with this key's signature. The header is taken as it is.
func (k *testKey) sign(parts *tokenParts) string {
	text := unsigned(parts)
	return text + "." + base64.RawURLEncoding.EncodeToString(k.signature(text, k.algorithm))
}

// unsigned is what a signature is made over.
func unsigned(parts *tokenParts) string {
	token := parts.String()
	return token[:strings.LastIndexByte(token, '.')]
}

// token returns a good token that this key has signed, after edit.
func (k *testKey) token(edit func(*tokenParts)) string {
	parts := goodToken(start)
	parts.header = map[string]any{"alg": k.algorithm, "kid": k.id}
	if edit != nil {
		edit(parts)
	}
	return k.sign(parts)
}

func (k *testKey) jwk() map[string]any {
	text := must(json.Marshal(jose.JSONWebKey{Key: k.signer.Public(), KeyID: k.id, Algorithm: k.algorithm, Use: "sig"}))
	members := make(map[string]any)
	return must(members, json.Unmarshal(text, &members))
}

func (k *testKey) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: must(x509.MarshalPKIXPublicKey(k.signer.Public()))})
}

// hmacOf signs text with a shared key.
func hmacOf(text string, key []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// setOf is a JWK Set of keys.
func setOf(keys ...*testKey) []byte {
	list := []any{}
	for _, key := range keys {
		list = append(list, key.jwk())
	}
	return must(json.Marshal(map[string]any{"keys": list}))
}

// fakeSource is a source whose answer a test sets.
type fakeSource struct {
	mu     sync.Mutex
	answer func() ([]byte, error)
	looks  int
	block  chan struct{} // holds a look back until it is closed
	looked chan struct{} // one element a look that has begun, if there is room
}

func newFakeSource(text []byte) *fakeSource {
	s := &fakeSource{looked: make(chan struct{}, 100)}
	s.set(text, nil)
	return s
}

func (s *fakeSource) set(text []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = func() ([]byte, error) { return text, err }
}

func (s *fakeSource) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.looks
}

func (s *fakeSource) source() KeySource {
	return KeySource{refresh: refreshRemote, fetch: func(ctx context.Context) ([]byte, error) {
		s.mu.Lock()
		s.looks++
		answer, block := s.answer, s.block
		s.mu.Unlock()
		select {
		case s.looked <- struct{}{}:
		default:
		}
		if block != nil {
			select {
			case <-block:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		return answer()
	}}
}

// keySetOf returns a KeySet of keys that has looked at its source.
func keySetOf(t testing.TB, now func() time.Time, keys ...*testKey) *KeySet {
	t.Helper()
	set, err := NewKeySet(newFakeSource(setOf(keys...)).source(), KeySetConfig{Name: "local", Now: now}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := set.fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
	return set
}

// objects are the UIDs of what exists in a cluster, by kind and name: "pod shop/cart". As a Liveness it is a view that has seen all of it.
type objects struct {
	mu       sync.Mutex
	uids     map[string]string
	gone     []string
	unsynced bool
	all      bool // whatever is asked for exists
}

func goodObjects() *objects {
	return &objects{uids: map[string]string{"account shop/cart": "sa-uid-1", "pod shop/cart-7d9f-x2x4z": "pod-uid-1", "node node-a": "node-uid-1"}}
}

func (o *objects) has(name, uid string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all || o.uids[name] == uid
}

func (o *objects) Synced() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.unsynced
}

func (o *objects) Alive(h *identity.Kubernetes) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	check := func(name, uid string) error {
		switch {
		case o.uids[name] == uid:
			return nil
		case slices.Contains(o.gone, uid):
			return gone("%s: %w", name, ErrGone)
		default:
			return gone("%s does not exist", name)
		}
	}
	if err := check("account "+h.Namespace+"/"+h.ServiceAccount, h.ServiceAccountUID); err != nil {
		return err
	}
	if h.PodUID != "" {
		return check("pod "+h.Namespace+"/"+h.PodName, h.PodUID)
	}
	return check("node "+h.NodeName, h.NodeUID)
}

// verifyingCluster is a Reviewer that verifies tokens as kube-apiserver does: by the signature, with the library that it uses, and by its objects.
type verifyingCluster struct {
	keys    *jose.JSONWebKeySet
	objects *objects
	now     func() time.Time

	mu    sync.Mutex
	calls int
}

func newVerifyingCluster(t testing.TB, objects *objects, keys ...*testKey) *verifyingCluster {
	t.Helper()
	set := new(jose.JSONWebKeySet)
	if err := json.Unmarshal(setOf(keys...), set); err != nil {
		t.Fatal(err)
	}
	return &verifyingCluster{keys: set, objects: objects, now: func() time.Time { return start }}
}

func (a *verifyingCluster) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.calls
}

func (a *verifyingCluster) Create(_ context.Context, review *authv1.TokenReview, _ metav1.CreateOptions) (*authv1.TokenReview, error) {
	a.mu.Lock()
	a.calls++
	a.mu.Unlock()
	answer := review.DeepCopy()
	status, err := a.verify(review.Spec)
	if err != nil {
		answer.Status = authv1.TokenReviewStatus{Error: fmt.Sprintf("[invalid bearer token, %v]", err)}
		return answer, nil
	}
	answer.Status = *status
	return answer, nil
}

// verify follows pkg/serviceaccount of Kubernetes 1.37.
func (a *verifyingCluster) verify(spec authv1.TokenReviewSpec) (*authv1.TokenReviewStatus, error) {
	token, err := josejwt.ParseSigned(spec.Token, []jose.SignatureAlgorithm{jose.RS256, jose.ES256, jose.ES384, jose.ES512})
	if err != nil {
		return nil, err
	}
	type reference struct {
		Name string `json:"name"`
		UID  string `json:"uid"`
	}
	var public josejwt.Claims
	var private struct {
		Kubernetes struct {
			Namespace string     `json:"namespace"`
			Account   reference  `json:"serviceaccount"`
			Pod       *reference `json:"pod"`
			Secret    *reference `json:"secret"`
			Node      *reference `json:"node"`
		} `json:"kubernetes.io"`
	}
	err = fmt.Errorf("no key")
	for _, key := range a.keys.Keys {
		if id := token.Headers[0].KeyID; id != "" && id != key.KeyID {
			continue
		}
		if err = token.Claims(key, &public, &private); err == nil {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	if public.Issuer != testIssuer {
		return nil, fmt.Errorf("issuer")
	}
	status := &authv1.TokenReviewStatus{Authenticated: true}
	for _, audience := range spec.Audiences {
		if public.Audience.Contains(audience) {
			status.Audiences = append(status.Audiences, audience)
		}
	}
	if len(status.Audiences) == 0 {
		return nil, fmt.Errorf("audience")
	}
	if err := public.Validate(josejwt.Expected{Time: a.now()}); err != nil {
		return nil, err
	}
	k := private.Kubernetes
	if k.Namespace == "" || k.Account.Name == "" || public.Subject != accountPrefix+k.Namespace+":"+k.Account.Name {
		return nil, fmt.Errorf("the subject is not the account")
	}
	if !a.objects.has("account "+k.Namespace+"/"+k.Account.Name, k.Account.UID) {
		return nil, fmt.Errorf("account")
	}
	extra := map[string]authv1.ExtraValue{}
	if k.Secret != nil {
		return nil, fmt.Errorf("secret")
	}
	if k.Pod != nil {
		if k.Pod.UID == "" || !a.objects.has("pod "+k.Namespace+"/"+k.Pod.Name, k.Pod.UID) {
			return nil, fmt.Errorf("pod")
		}
		extra[extraPodName], extra[extraPodUID] = authv1.ExtraValue{k.Pod.Name}, authv1.ExtraValue{k.Pod.UID}
	}
	if k.Node != nil {
		if k.Pod == nil && !a.objects.has("node "+k.Node.Name, k.Node.UID) {
			return nil, fmt.Errorf("node")
		}
		extra[extraNodeName] = authv1.ExtraValue{k.Node.Name}
		if k.Node.UID != "" {
			extra[extraNodeUID] = authv1.ExtraValue{k.Node.UID}
		}
	}
	if public.ID != "" {
		extra[extraCredentialID] = authv1.ExtraValue{"JTI=" + public.ID}
	}
	status.User = authv1.UserInfo{
		Username: public.Subject, UID: k.Account.UID, Extra: extra, Groups: []string{allAccountsGroup, accountsOfPrefix + k.Namespace},
	}
	return status, nil
}

// verifiers are one cluster's tokens, verified in each mode.
type verifiers struct {
	api           *verifyingCluster
	objects       *objects
	online        *Online
	live, offline *Offline
}

func newVerifiers(t testing.TB, edit func(*OfflineConfig)) *verifiers {
	t.Helper()
	now := func() time.Time { return start }
	objects := goodObjects()
	v := &verifiers{api: newVerifyingCluster(t, objects, theKeys().published()...), objects: objects}
	path, err := identity.NewPath(trustDomain, "local", identity.DefaultPath)
	if err != nil {
		t.Fatal(err)
	}
	config := OfflineConfig{Cluster: "local", Identity: path, Issuer: testIssuer, Audiences: []string{"chancery", "istio-ca"}, Now: now}
	if edit != nil {
		edit(&config)
	}
	v.online, err = NewOnline(v.api, Config{
		Cluster: "local", TrustDomain: trustDomain, Issuer: testIssuer, Audiences: config.Audiences, AcceptNodeBound: config.AcceptNodeBound, Now: config.Now,
	}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	keys := keySetOf(t, config.Now, theKeys().published()...)
	if v.live, err = NewOffline(config, keys, objects, v.online, nil); err != nil {
		t.Fatal(err)
	}
	if v.offline, err = NewOffline(config, keys, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	return v
}

// present shows a token, and fails the test if what comes of it breaks the contract or quotes the token.
func present(t testing.TB, to identity.Authenticator, token string) (*identity.Principal, error) {
	t.Helper()
	principal, handled, err := to.Authenticate(t.Context(), identity.Credential{Bearer: identity.Secret(token)})
	if !handled || (principal == nil) != (err != nil) {
		t.Fatalf("handled %v, principal %v, error %v", handled, principal, err)
	}
	if err != nil && !errkind.Of(err).Retryable() && errkind.Of(err) != errkind.Unauthenticated {
		t.Errorf("refused as %s: %v", errkind.Of(err), err)
	}
	if test, ok := t.(*testing.T); ok {
		noLeak(test, token, err)
	}
	return principal, err
}
