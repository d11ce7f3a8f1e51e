//go:build e2e

package e2e

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/chancery-ca/chancery/test/kubetest"
)

// What a server's account may have to do.
var (
	mayReview = rbacv1.PolicyRule{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}}
	mayFollow = rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods", "serviceaccounts", "nodes"}, Verbs: []string{"get", "list", "watch"}}
)

// access is an account of a server in a cluster.
type access struct {
	kubeconfig string // path
	user       string // as the cluster names it
	cluster    *kubetest.Cluster
}

// newAccess makes a service account that may do what the rules say, and nothing else.
func newAccess(t *testing.T, c *kubetest.Cluster, rules ...rbacv1.PolicyRule) access {
	t.Helper()
	namespace, account := c.Namespace(t), "chancery"
	c.ServiceAccount(t, namespace, account)
	token := noted(c.Token(t, kubetest.TokenOptions{Namespace: namespace, ServiceAccount: account, Lifetime: 4 * time.Hour}))
	a := access{kubeconfig: writeAccess(t, c, token), user: "system:serviceaccount:" + namespace + ":" + account, cluster: c}
	if len(rules) > 0 {
		a.grant(t, rules...)
	}
	return a
}

// grant gives the account more rights.
func (a access) grant(t *testing.T, rules ...rbacv1.PolicyRule) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "chancery-"}, Rules: rules}
	role, err := a.cluster.Client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: a.user}},
	}
	if _, err := a.cluster.Client.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// client is a client with the access.
func (a access) client(t *testing.T) *kubernetes.Clientset {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", a.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// reviewerAccess returns a kubeconfig of a service account that may create token reviews and nothing else.
func reviewerAccess(t *testing.T) string {
	t.Helper()
	return newAccess(t, kube(t), mayReview).kubeconfig
}

// powerlessAccess returns a kubeconfig of a service account that may do nothing.
func powerlessAccess(t *testing.T) string {
	t.Helper()
	return newAccess(t, kube(t)).kubeconfig
}

// writeAccess writes a kubeconfig.
func writeAccess(t *testing.T, c *kubetest.Cluster, token string) string {
	t.Helper()
	dir := t.TempDir()
	tokenFile := filepath.Join(dir, "token")
	if err := os.WriteFile(tokenFile, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {
			Server: c.Config.Host, CertificateAuthority: c.Config.CAFile, CertificateAuthorityData: c.Config.CAData,
		}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {TokenFile: tokenFile}},
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "c",
	}, path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// redirect returns a copy of a kubeconfig for another address of the same API server.
func redirect(t *testing.T, kubeconfig, address string) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.Clusters["c"].Server = address
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// unknownAccess is a kubeconfig whose token nobody issued.
func unknownAccess(t *testing.T) string {
	return writeAccess(t, kube(t), "a-token-that-nobody-issued")
}

// nowhereAccess is a kubeconfig of an address at which no one listens.
func nowhereAccess(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return redirect(t, reviewerAccess(t), "https://"+l.Addr().String())
}

// strangerAccess is a kubeconfig that pins the authority of another API server.
func strangerAccess(t *testing.T) string {
	path := reviewerAccess(t)
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "other")
	mustRun(t, "init", "--dir", dir)
	config.Clusters["c"].CertificateAuthority, config.Clusters["c"].CertificateAuthorityData = "", readFile(t, filepath.Join(dir, "pki", "roots.pem"))
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// kubernetesSettings are the settings of a server that takes service-account tokens.
func kubernetesSettings(kubeconfig string) settings {
	return settings{"authentication.kubernetes.enabled": true, "authentication.kubernetes.kubeconfig": kubeconfig}
}

// livenessSettings are the settings of a server that verifies a cluster's tokens itself and follows what becomes of their pods.
func livenessSettings(c *kubetest.Cluster, kubeconfig string) settings {
	return kubernetesSettings(kubeconfig).with("authentication.kubernetes.mode", "offline+liveness").with("authentication.kubernetes.issuer", c.Issuer)
}

// with returns the settings with more.
func (s settings) with(key string, value any) settings {
	s[key] = value
	return s
}

// withIstio opens the Istio door on an address of its own.
func (s settings) withIstio() settings {
	return s.with("istio.enabled", true).with("istio.listen", "127.0.0.1:0")
}
