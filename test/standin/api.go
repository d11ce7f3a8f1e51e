// Package standin stands in for what surrounds a server, for tests and measurements that run the real binary: an API server that reviews tokens, and whoever
// builds, starts and ends the process.
package standin

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Audience is the audience of every token.
const Audience = "chancery"

// nodes is how many nodes the pods are on.
const nodes = 50

type reference struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}

type claims struct {
	Issuer     string   `json:"iss"`
	Subject    string   `json:"sub"`
	Audience   []string `json:"aud"`
	Expires    int64    `json:"exp"`
	IssuedAt   int64    `json:"iat"`
	ID         string   `json:"jti"`
	Kubernetes struct {
		Namespace      string    `json:"namespace"`
		ServiceAccount reference `json:"serviceaccount"`
		Pod            reference `json:"pod"`
		Node           reference `json:"node"`
	} `json:"kubernetes.io"`
}

// Token makes what looks like the bound service-account token of a pod, good for an hour. Only an API believes it. Pods of different numbers are of
// different service accounts.
func Token(number int) string {
	now := time.Now()
	c := claims{
		Issuer: "https://standin.test", Subject: fmt.Sprintf("system:serviceaccount:ns%d:sa%d", number%20, number), Audience: []string{Audience},
		Expires: now.Add(time.Hour).Unix(), IssuedAt: now.Unix(), ID: fmt.Sprintf("jti-%d", number),
	}
	c.Kubernetes.Namespace = fmt.Sprintf("ns%d", number%20)
	c.Kubernetes.ServiceAccount = reference{fmt.Sprintf("sa%d", number), fmt.Sprintf("8f0d9f6e-0000-4000-8000-%012d", number)}
	c.Kubernetes.Pod = reference{fmt.Sprintf("pod-%d", number), fmt.Sprintf("9f0d9f6e-0000-4000-8000-%012d", number)}
	c.Kubernetes.Node = reference{fmt.Sprintf("node-%d", number%nodes), fmt.Sprintf("7f0d9f6e-0000-4000-8000-%012d", number%nodes)}
	payload, err := json.Marshal(c)
	if err != nil {
		panic(err) //nolint:forbidigo // a struct of strings and numbers
	}
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"ES256","kid":"standin"}`)) + "." + encode(payload) + "." + goodSignature
}

// goodSignature is what an API takes for its own.
var goodSignature = base64.RawURLEncoding.EncodeToString(make([]byte, 64))

// BadToken makes a token of a pod that no API believes.
func BadToken(number int) string {
	return strings.TrimSuffix(Token(number), goodSignature) + base64.RawURLEncoding.EncodeToString(bytes.Repeat([]byte{1}, 64))
}

// API stands in for a cluster's API server: it reviews tokens, over TLS, and every token of Token is good.
type API struct {
	server  *httptest.Server
	reviews atomic.Int64
}

// NewAPI starts an API. The caller closes it.
func NewAPI() *API {
	a := &API{}
	a.server = httptest.NewTLSServer(http.HandlerFunc(a.review))
	return a
}

// Close ends the API.
func (a *API) Close() { a.server.Close() }

// Reviews returns how many tokens were reviewed.
func (a *API) Reviews() int64 { return a.reviews.Load() }

// Kubeconfig returns a kubeconfig for the API.
func (a *API) Kubeconfig() []byte {
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.server.Certificate().Raw})
	return fmt.Appendf(nil, "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}]\n"+
		"users: [{name: u, user: {token: stand-in}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\n",
		a.server.URL, base64.StdEncoding.EncodeToString(authority))
}

// review answers a TokenReview with what the token says of itself.
func (a *API) review(w http.ResponseWriter, r *http.Request) {
	var review authv1.TokenReview
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a.reviews.Add(1)
	review.TypeMeta = metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenReview"}
	review.Status = status(review.Spec.Token)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(review) // the client has gone if this fails
}

func status(token string) authv1.TokenReviewStatus {
	var c claims
	if !strings.HasSuffix(token, "."+goodSignature) {
		return authv1.TokenReviewStatus{Error: "the signature is not the stand-in's"}
	}
	_, rest, _ := strings.Cut(token, ".")
	payload, _, _ := strings.Cut(rest, ".")
	text, err := base64.RawURLEncoding.DecodeString(payload)
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		return authv1.TokenReviewStatus{Error: "not a token of the stand-in"}
	}
	k := c.Kubernetes
	return authv1.TokenReviewStatus{
		Authenticated: true,
		Audiences:     []string{Audience},
		User: authv1.UserInfo{
			Username: c.Subject, UID: k.ServiceAccount.UID,
			Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + k.Namespace, "system:authenticated"},
			Extra: map[string]authv1.ExtraValue{
				"authentication.kubernetes.io/pod-name":      {k.Pod.Name},
				"authentication.kubernetes.io/pod-uid":       {k.Pod.UID},
				"authentication.kubernetes.io/node-name":     {k.Node.Name},
				"authentication.kubernetes.io/node-uid":      {k.Node.UID},
				"authentication.kubernetes.io/credential-id": {"JTI=" + c.ID},
			},
		},
	}
}
