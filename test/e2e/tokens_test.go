//go:build e2e

package e2e

import (
	"testing"
	"time"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chancery-ca/chancery/test/kubetest"
)

// changed is a token with other claims, signed by the cluster's key.
func changed(t *testing.T, token string, change func(*kubetest.Claims)) string {
	t.Helper()
	claims := kubetest.ClaimsOf(t, token)
	change(&claims)
	return kube(t).SignToken(t, claims)
}

// expire ends a token so lately that an API server would still take it.
func expire(claims *kubetest.Claims) { claims.Expiry = time.Now().Add(-10 * time.Second).Unix() }

// forged is the workload's token, signed by a key that the cluster does not know.
func forged(t *testing.T, w workload, audience string) string {
	t.Helper()
	return kubetest.SignToken(t, newKey(t), "", kubetest.ClaimsOf(t, w.token(t, audience)))
}

func unboundToken(t *testing.T, w workload) string {
	t.Helper()
	return w.cluster.Token(t, kubetest.TokenOptions{Namespace: w.pod.Namespace, ServiceAccount: w.account.Name, Audiences: []string{audience}})
}

func nodeToken(t *testing.T, w workload) string {
	t.Helper()
	return w.cluster.Token(t, kubetest.TokenOptions{
		Namespace: w.pod.Namespace, ServiceAccount: w.account.Name, Audiences: []string{audience}, BoundTo: kubetest.BoundToNode(w.node),
	})
}

// secretToken is a token of the old kind, which a controller writes into a Secret and which never ends.
func secretToken(t *testing.T, w workload) string {
	t.Helper()
	secrets := w.cluster.Client.CoreV1().Secrets(w.pod.Namespace)
	secret, err := secrets.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "old", Annotations: map[string]string{corev1.ServiceAccountNameKey: w.account.Name}},
		Type:       corev1.SecretTypeServiceAccountToken,
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !eventually(t, 20*time.Second, func() bool {
		secret, err = secrets.Get(t.Context(), secret.Name, metav1.GetOptions{})
		return err == nil && len(secret.Data[corev1.ServiceAccountTokenKey]) > 0
	}) {
		t.Fatalf("no controller wrote a token into the Secret: %v", err)
	}
	return string(secret.Data[corev1.ServiceAccountTokenKey])
}

// orphaned is a token of a deleted pod that no one has reviewed.
func orphaned(t *testing.T, connection *grpc.ClientConn) string {
	t.Helper()
	w := newWorkload(t)
	token, others := w.token(t, audience), w.tokens(t, audience)
	kube(t).DeletePod(t, w.pod)
	awaitRefusal(t, connection, others)
	return token
}

// recreated is a token of a service account whose name now belongs to another one.
func recreated(t *testing.T, connection *grpc.ClientConn) string {
	t.Helper()
	w, c := newWorkload(t), kube(t)
	token, others := w.token(t, audience), w.tokens(t, audience)
	if err := c.Client.CoreV1().ServiceAccounts(w.pod.Namespace).Delete(t.Context(), w.account.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if again := c.ServiceAccount(t, w.pod.Namespace, w.account.Name); again.UID == w.account.UID {
		t.Fatal("the new service account has the UID of the old one")
	}
	awaitRefusal(t, connection, others)
	return token
}

// awaitRefusal waits until new tokens are refused. The API server hears of a deletion by a watch, so a moment after it.
func awaitRefusal(t *testing.T, connection *grpc.ClientConn, tokens func() string) {
	t.Helper()
	from := time.Now()
	if !eventually(t, 5*time.Second, func() bool { return present(t, connection, tokens()) != nil }) {
		t.Fatal("tokens that nobody has seen before are still accepted")
	}
	t.Logf("refused after %s", time.Since(from).Round(time.Millisecond))
}
