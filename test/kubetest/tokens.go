package kubetest

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TokenOptions says which token Token asks for.
type TokenOptions struct {
	Namespace      string
	ServiceAccount string
	Audiences      []string                               // none: the API server's own
	Lifetime       time.Duration                          // at least 10 minutes; default 1 hour
	BoundTo        *authenticationv1.BoundObjectReference // none: bound to the service account alone
}

// BoundToPod is the reference that binds a token to pod.
func BoundToPod(pod *corev1.Pod) *authenticationv1.BoundObjectReference {
	return &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}
}

// BoundToNode is the reference that binds a token to node.
func BoundToNode(node *corev1.Node) *authenticationv1.BoundObjectReference {
	return &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}
}

// BoundToSecret is the reference that binds a token to secret.
func BoundToSecret(secret *corev1.Secret) *authenticationv1.BoundObjectReference {
	return &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: secret.Name, UID: secret.UID}
}

// Token has the API server issue a service account token, as the kubelet does for a pod.
func (c *Cluster) Token(t testing.TB, o TokenOptions) string {
	t.Helper()
	if o.Lifetime == 0 {
		o.Lifetime = time.Hour
	}
	seconds := int64(o.Lifetime / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences:         o.Audiences,
		ExpirationSeconds: &seconds,
		BoundObjectRef:    o.BoundTo,
	}}
	answer, err := c.Client.CoreV1().ServiceAccounts(o.Namespace).CreateToken(t.Context(), o.ServiceAccount, request, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("requesting a token: %v", err)
	}
	return answer.Status.Token
}

// PodToken is the token of pod's own service account, bound to pod, for audiences.
func (c *Cluster) PodToken(t testing.TB, pod *corev1.Pod, audiences ...string) string {
	t.Helper()
	return c.Token(t, TokenOptions{
		Namespace:      pod.Namespace,
		ServiceAccount: pod.Spec.ServiceAccountName,
		Audiences:      audiences,
		BoundTo:        BoundToPod(pod),
	})
}

// Review asks the API server what it makes of a token for an audience.
func (c *Cluster) Review(t testing.TB, token, audience string) authenticationv1.TokenReviewStatus {
	t.Helper()
	answer, err := c.Client.AuthenticationV1().TokenReviews().Create(t.Context(), &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{audience}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("reviewing a token: %v", err)
	}
	return answer.Status
}

// Accepts tells whether the API server takes a token for an audience. It remembers a token that it took for 10 s.
func (c *Cluster) Accepts(t testing.TB, token, audience string) bool {
	t.Helper()
	status := c.Review(t, token, audience)
	return status.Authenticated && slices.Contains(status.Audiences, audience)
}

// ServiceAccountKey returns the key with which the control plane signs service account tokens.
func (c *Cluster) ServiceAccountKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(c.Dir, "sa.key"))
	if err != nil {
		t.Fatalf("reading the token key: %v", err)
	}
	block, _ := pem.Decode(b)
	if block == nil {
		t.Fatal("reading the token key: no PEM block")
	}
	key, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		t.Fatalf("parsing the token key: %v", err)
	}
	return key
}

// Claims are those of a service account token.
type Claims struct {
	Issuer     string           `json:"iss,omitempty"`
	Subject    string           `json:"sub,omitempty"`
	Audience   []string         `json:"aud,omitempty"`
	Expiry     int64            `json:"exp,omitempty"` // seconds since 1970, as all times here
	NotBefore  int64            `json:"nbf,omitempty"`
	IssuedAt   int64            `json:"iat,omitempty"`
	ID         string           `json:"jti,omitempty"`
	Kubernetes KubernetesClaims `json:"kubernetes.io,omitzero"`
}

// KubernetesClaims say what a token is bound to.
type KubernetesClaims struct {
	Namespace      string     `json:"namespace,omitempty"`
	ServiceAccount *ObjectRef `json:"serviceaccount,omitempty"`
	Pod            *ObjectRef `json:"pod,omitempty"`
	Node           *ObjectRef `json:"node,omitempty"`
	Secret         *ObjectRef `json:"secret,omitempty"`
	WarnAfter      int64      `json:"warnafter,omitempty"`
}

// ObjectRef names one life of an object.
type ObjectRef struct {
	Name string `json:"name,omitempty"`
	UID  string `json:"uid,omitempty"`
}

// ClaimsOf reads a token's claims without a look at its signature. The way to a bad token is to take
// the claims of a good one, change one thing and sign them again with SignToken.
func ClaimsOf(t testing.TB, token string) Claims {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("reading a token's claims: %d parts, not 3", len(parts))
	}
	b, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatalf("reading a token's claims: %v", err)
	}
	var c Claims
	decoder := json.NewDecoder(strings.NewReader(string(b)))
	decoder.DisallowUnknownFields() // SignToken would lose what we do not know
	if err := decoder.Decode(&c); err != nil {
		t.Fatalf("reading a token's claims: %v", err)
	}
	return c
}

// SignToken signs claims (Claims, or anything that encoding/json encodes to an object) as the control
// plane signs its tokens: with its key, as ES256, under its key ID.
func (c *Cluster) SignToken(t testing.TB, claims any) string {
	t.Helper()
	key := c.ServiceAccountKey(t)
	id, err := keyID(&key.PublicKey)
	if err != nil {
		t.Fatalf("signing a token: %v", err)
	}
	return SignToken(t, key, id, claims)
}

// SignToken signs claims with any P-256 key, as ES256. An empty id leaves out the header "kid".
func SignToken(t testing.TB, key *ecdsa.PrivateKey, id string, claims any) string {
	t.Helper()
	token, err := signES256(key, id, claims)
	if err != nil {
		t.Fatalf("signing a token: %v", err)
	}
	return token
}

// keyID is how Kubernetes names a token key: the hash of its SubjectPublicKeyInfo.
func keyID(key *ecdsa.PublicKey) (string, error) {
	spki, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(spki)
	return base64.RawURLEncoding.EncodeToString(sum[:]), nil
}

func signES256(key *ecdsa.PrivateKey, id string, claims any) (string, error) {
	header, err := json.Marshal(struct {
		Algorithm string `json:"alg"`
		KeyID     string `json:"kid,omitempty"`
	}{"ES256", id})
	if err != nil {
		return "", err
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", fmt.Errorf("encoding the claims: %w", err)
	}
	signed := base64.RawURLEncoding.EncodeToString(header) + "." + base64.RawURLEncoding.EncodeToString(payload)
	sum := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, key, sum[:])
	if err != nil {
		return "", err
	}
	// RFC 7518 §3.4: R and S as 32 octets each, not as ASN.1.
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}
