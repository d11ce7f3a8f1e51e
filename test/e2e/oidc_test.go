//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	chanceryv1 "github.com/chancery-ca/chancery/api/chancery/v1"
	"github.com/chancery-ca/chancery/test/kubetest"
)

// discoverable lets anyone read the discovery document and the keys of a cluster, as clusters do whose tokens others are to verify.
func discoverable(t *testing.T, c *kubetest.Cluster) {
	t.Helper()
	_, err := c.Client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "anyone-discovers"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:service-account-issuer-discovery"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:unauthenticated"}},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// TestOIDC takes the API server of another cluster for an OpenID Connect issuer, by its discovery document.
func TestOIDC(t *testing.T) {
	c := secondKube(t)
	discoverable(t, c)
	job, other := newWorkloadIn(t, c), newWorkloadIn(t, c)
	issuer := map[string]any{
		"name": "ci", "issuer": c.Issuer, "audiences": []string{audience}, "ca_file": filepath.Join(c.Dir, "ca.crt"),
		"identity": `claims["kubernetes.io"].namespace == "` + job.pod.Namespace + `" ? "/ci/" + claims["kubernetes.io"].serviceaccount.name : ""`,
	}
	s := startServer(t, kubernetesSettings(reviewerAccess(t)).with("authentication.oidc", []map[string]any{issuer}))
	connection := s.dial(t, s.grpc)
	want := "spiffe://" + trustDomain + "/ci/cart"

	ask := func(t *testing.T, token string) error {
		t.Helper()
		leaf, err := issue(t, connection, bearer(token), &chanceryv1.IssueCertificateRequest{Csr: newCSR(t, nil)})
		if err == nil && !slices.Equal(names(leaf), []string{want}) {
			t.Errorf("it names %q, want %q", names(leaf), want)
		}
		return err
	}
	token := job.token(t, audience)
	if err := ask(t, token); err != nil {
		t.Fatal(err)
	}
	s.log.await(t, 5*time.Second, `"msg":"audit"`, `"decision":"issued"`, `"method":"oidc"`, kubetest.ClaimsOf(t, token).ID)
	sign := func(change func(*kubetest.Claims)) string {
		claims := kubetest.ClaimsOf(t, job.token(t, audience))
		change(&claims)
		return c.SignToken(t, claims)
	}
	for name, test := range map[string]struct{ token, sentence string }{
		"of a job that the expression does not map": {other.token(t, audience), ""},
		"for another audience":                      {job.token(t, "vault"), "audience"},
		"expired":                                   {sign(expire), "expired"},
		"without an expiry":                         {sign(func(c *kubetest.Claims) { c.Expiry = 0 }), "exp"},
		"of an issuer that only begins the same":    {sign(func(c *kubetest.Claims) { c.Issuer += "/" }), ""},
		"forged":                                    {kubetest.SignToken(t, newKey(t), "", kubetest.ClaimsOf(t, token)), ""},
		"of the cluster, by the issuer's key":       {c.SignToken(t, kubetest.ClaimsOf(t, newWorkload(t).token(t, audience))), ""},
	} {
		t.Run(name, func(t *testing.T) { mustRefuse(t, ask(t, test.token), test.sentence) })
	}

	t.Run("the cluster's own tokens go on", func(t *testing.T) {
		mustPresent(t, connection, newWorkload(t).token(t, audience))
	})
	t.Run("the issuer's key changes", func(t *testing.T) {
		c.RotateTokenKey(t)
		if err := ask(t, job.token(t, audience)); err != nil {
			t.Error(err)
		}
	})
	t.Run("the issuer is away", func(t *testing.T) {
		token := job.token(t, audience)
		stopped(t, c)
		if err := ask(t, token); err != nil {
			t.Error(err)
		}
		c.StartAgain(t)
	})
}

// TestOfflineByFile has a server that knows a cluster by a file with its keys and by nothing else.
func TestOfflineByFile(t *testing.T) {
	c, w := kube(t), newWorkload(t)
	keys := filepath.Join(t.TempDir(), "keys.json")
	if err := os.WriteFile(keys, c.KeySet(t), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startServer(t, settings{
		"authentication.kubernetes.enabled": true, "authentication.kubernetes.mode": "offline",
		"authentication.kubernetes.issuer": c.Issuer, "authentication.kubernetes.jwks_file": keys,
	})
	connection := s.dial(t, s.grpc)
	if how := s.verified(t, connection, w.token(t, audience)); how != byKeys {
		t.Errorf("verified by %q", how)
	}
	reviews := c.RequestTotal(t, "tokenreviews")
	for name, token := range map[string]string{
		"forged":                      forged(t, w, audience),
		"for another audience":        w.token(t, "vault"),
		"expired":                     changed(t, w.token(t, audience), expire),
		"without an expiry":           changed(t, w.token(t, audience), func(c *kubetest.Claims) { c.Expiry = 0 }),
		"of another issuer":           issuedBy(t, w, "https://north.invalid")(),
		"bound to nothing":            unboundToken(t, w),
		"bound to a node":             nodeToken(t, w),
		"of a Secret":                 secretToken(t, w),
		"of another account's name":   changed(t, w.token(t, audience), func(c *kubetest.Claims) { c.Subject = "system:serviceaccount:" + w.pod.Namespace + ":payments" }),
		"of another cluster's issuer": newWorkloadIn(t, secondKube(t)).token(t, audience),
	} {
		t.Run(name, func(t *testing.T) { mustRefuse(t, present(t, connection, token), "") })
	}
	t.Run("a pod that is gone is good until its token ends", func(t *testing.T) {
		token := w.token(t, audience)
		c.DeletePod(t, w.pod)
		if how := s.verified(t, connection, token); how != byKeys {
			t.Errorf("verified by %q", how)
		}
	})
	if asked := c.RequestTotal(t, "tokenreviews") - reviews; asked != 0 {
		t.Errorf("the API server was asked %d times", asked)
	}
	t.Run("the file changes", func(t *testing.T) {
		east := newWorkloadIn(t, secondKube(t))
		if err := os.WriteFile(keys, secondKube(t).KeySet(t), 0o600); err != nil {
			t.Fatal(err)
		}
		claims := kubetest.ClaimsOf(t, east.token(t, audience))
		claims.Issuer = c.Issuer
		from := time.Now()
		if !eventually(t, 30*time.Second, func() bool { return present(t, connection, secondKube(t).SignToken(t, claims)) == nil }) {
			t.Fatal("tokens by a key that came into the file are refused")
		}
		t.Logf("a new key was in use %s after it came into the file", time.Since(from).Round(time.Millisecond))
	})
}
