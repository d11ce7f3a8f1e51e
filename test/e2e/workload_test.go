//go:build e2e

package e2e

import (
	"crypto/rand"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/chancery-ca/chancery/test/kubetest"
)

// The audiences of the two doors.
const (
	audience      = "chancery"
	audienceIstio = "istio-ca"
)

// workload is a running pod with what it belongs to, in a namespace of its own.
type workload struct {
	cluster *kubetest.Cluster
	account *corev1.ServiceAccount
	pod     *corev1.Pod
	node    *corev1.Node
}

func newWorkload(t *testing.T) workload {
	t.Helper()
	return newWorkloadIn(t, kube(t))
}

// newWorkloadIn is newWorkload in another cluster than the one that the tests share.
func newWorkloadIn(t *testing.T, c *kubetest.Cluster) workload {
	t.Helper()
	namespace := c.Namespace(t)
	return workload{
		cluster: c,
		account: c.ServiceAccount(t, namespace, "cart"),
		node:    c.Node(t, "node-"+namespace),
		pod:     c.Pod(t, kubetest.PodOptions{Namespace: namespace, Name: "cart-0", ServiceAccount: "cart", Node: "node-" + namespace}),
	}
}

// id is the SPIFFE ID that the workload is to get.
func (w workload) id() string {
	return "spiffe://" + trustDomain + "/ns/" + w.pod.Namespace + "/sa/" + w.account.Name
}

// token is one that the kubelet would project into the pod.
func (w workload) token(t *testing.T, audiences ...string) string {
	t.Helper()
	return noted(w.cluster.PodToken(t, w.pod, audiences...))
}

// tokens returns a function that mints one good token after another, none of which anyone has seen before.
func (w workload) tokens(t *testing.T, audiences ...string) func() string {
	t.Helper()
	claims := kubetest.ClaimsOf(t, w.token(t, audiences...))
	return func() string {
		claims.ID = rand.Text()
		return noted(w.cluster.SignToken(t, claims))
	}
}

// signatures holds the last part of every token that a test sends. What is signed by it tells much, but only with it a token is one.
var signatures sync.Map

// noted remembers a token, so that it is looked for where it must not be.
func noted(token string) string {
	if parts := strings.Split(token, "."); len(parts) == 3 && len(parts[2]) > 16 {
		signatures.Store(parts[2], true)
	}
	return token
}

// leaked tells whether a text holds a token, or the start of one: the base64 of {".
func leaked(text string) bool { return strings.Contains(text, "eyJ") || leakedWhole(text) }

// leakedWhole is leaked for bytes at random, in which the start of a token could be there by chance.
func leakedWhole(text string) bool {
	found := false
	signatures.Range(func(signature, _ any) bool {
		found = strings.Contains(text, signature.(string))
		return !found
	})
	return found
}
