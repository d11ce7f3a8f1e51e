//go:build e2e

package kubetest

import (
	"context"
	"crypto/rand"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const audience = "chancery"

func TestCluster(t *testing.T) {
	c := Start(t)
	ns := c.Namespace(t)
	sa := c.ServiceAccount(t, ns, "web")
	pod := c.Pod(t, PodOptions{Namespace: ns, Name: "web-0", ServiceAccount: sa.Name, Node: "node-a"})
	node := c.Node(t, "node-a")
	token := c.PodToken(t, pod, audience)

	t.Run("a pod with a node is Running, one without is Pending", func(t *testing.T) {
		if pod.Status.Phase != corev1.PodRunning || pod.Status.PodIP == "" {
			t.Errorf("phase %q, IP %q", pod.Status.Phase, pod.Status.PodIP)
		}
		unscheduled := c.Pod(t, PodOptions{Namespace: ns, Name: "web-1", ServiceAccount: sa.Name})
		if unscheduled.Status.Phase != corev1.PodPending {
			t.Errorf("phase %q", unscheduled.Status.Phase)
		}
	})

	t.Run("a token review tells who, where and for whom", func(t *testing.T) {
		status := c.Review(t, token, audience)
		if !status.Authenticated || !slices.Equal(status.Audiences, []string{audience}) {
			t.Fatalf("%+v", status)
		}
		if want := "system:serviceaccount:" + ns + ":web"; status.User.Username != want {
			t.Errorf("username %q, want %q", status.User.Username, want)
		}
		for key, want := range map[string]string{
			"pod-name":  pod.Name,
			"pod-uid":   string(pod.UID),
			"node-name": node.Name,
			"node-uid":  string(node.UID),
		} {
			got := status.User.Extra["authentication.kubernetes.io/"+key]
			if !slices.Equal(got, authenticationv1.ExtraValue{want}) {
				t.Errorf("%s is %q, want %q", key, got, want)
			}
		}
	})

	t.Run("a token signed here is as good as the API server's, and no better", func(t *testing.T) {
		good := ClaimsOf(t, token)
		good.ID = "11111111-2222-4333-8444-555555555555"
		if !c.Accepts(t, c.SignToken(t, good), audience) {
			t.Fatal("the valid one is refused")
		}
		if !c.Accepts(t, SignToken(t, c.ServiceAccountKey(t), "", good), audience) {
			t.Error("the valid one without a key ID is refused")
		}
		for name, change := range map[string]func(*Claims){
			"expired":       func(bad *Claims) { bad.Expiry = time.Now().Add(-time.Hour).Unix() },
			"not yet valid": func(bad *Claims) { bad.NotBefore = time.Now().Add(time.Hour).Unix() },
			"other issuer":  func(bad *Claims) { bad.Issuer = "https://other.invalid" },
			"other pod":     func(bad *Claims) { bad.Kubernetes.Pod = &ObjectRef{Name: pod.Name, UID: "other"} },
		} {
			bad := good
			change(&bad)
			if c.Accepts(t, c.SignToken(t, bad), audience) {
				t.Errorf("the %s one is accepted", name)
			}
		}
	})

	t.Run("kubectl works", func(t *testing.T) {
		got := c.Kubectl(t, "get", "pods", "--namespace="+ns, "--output=name")
		if !strings.Contains(got, "pod/web-0\n") {
			t.Errorf("got %q", got)
		}
		if err := c.KubectlCommand(t.Context(), "get", "nonsense").Run(); err == nil {
			t.Error("no error for a kind that does not exist")
		}
	})

	t.Run("state outlives an outage", func(t *testing.T) {
		c.Stop(t)
		if _, err := c.Client.Discovery().ServerVersion(); err == nil {
			t.Fatal("the API server answers, though it is stopped")
		}
		c.StartAgain(t)
		kept, err := c.Client.CoreV1().Pods(ns).Get(t.Context(), pod.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if kept.UID != pod.UID {
			t.Errorf("pod UID %s, was %s", kept.UID, pod.UID)
		}
		if !c.Accepts(t, token, audience) {
			t.Error("a token from before is refused")
		}
	})

	t.Run("state outlives a crash, and no process does", func(t *testing.T) {
		if err := c.running.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-c.running.done
		c.running = nil
		c.StartAgain(t) // the API server's port would be in use, were the old one alive
		if _, err := c.Client.CoreV1().Pods(ns).Get(t.Context(), pod.Name, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	})

	t.Run("the token key rotates", func(t *testing.T) {
		c.RotateTokenKey(t)
		if !c.Accepts(t, token, audience) || !c.Accepts(t, c.PodToken(t, pod, audience), audience) {
			t.Error("with both keys in its list the API server refuses a token")
		}
		if keys := strings.Count(string(c.KeySet(t)), `"kid"`); keys != 2 {
			t.Errorf("%d keys are published, want 2", keys)
		}
		c.DropOldTokenKeys(t)
		if c.Accepts(t, token, audience) {
			t.Error("a token by the old key is accepted")
		}
		token = c.PodToken(t, pod, audience)
		if !c.Accepts(t, token, audience) {
			t.Error("a token by the new key is refused")
		}
	})

	t.Run("a directory has one control plane", func(t *testing.T) {
		out, err := exec.CommandContext(t.Context(), c.Binary, "up", "--dir="+c.Dir).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "is in use") {
			t.Errorf("%v: %s", err, out)
		}
	})

	t.Run("the tokens of a deleted pod are soon refused", func(t *testing.T) {
		c.DeletePod(t, pod)
		// The API server learns of the deletion by a watch, so a moment later; and it remembers for
		// 10 s what it has accepted, so each try needs a token of its own.
		claims := ClaimsOf(t, token)
		err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
			claims.ID = rand.Text()
			return !c.Accepts(t, c.SignToken(t, claims), audience), nil
		})
		if err != nil {
			t.Error("they are still accepted")
		}
	})
}

func TestOptions(t *testing.T) {
	c := Start(t,
		WithoutControllers(),
		EmulatedVersion("1.36"),
		Issuer("https://issuer.invalid"),
		APIServerFlags("--service-account-max-token-expiration=2h"),
		AuditLog(),
	)
	ns := c.Namespace(t)
	c.ServiceAccount(t, ns, "web")
	token := c.Token(t, TokenOptions{Namespace: ns, ServiceAccount: "web", Audiences: []string{audience}, Lifetime: 24 * time.Hour})
	claims := ClaimsOf(t, token)
	if claims.Issuer != "https://issuer.invalid" {
		t.Errorf("issuer %q", claims.Issuer)
	}
	if got := time.Duration(claims.Expiry-claims.IssuedAt) * time.Second; got != 2*time.Hour {
		t.Errorf("lifetime %v, want the flag's 2 h", got)
	}
	version, err := c.Client.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if version.EmulationMinor != "36" {
		t.Errorf("emulates minor version %q, want 36", version.EmulationMinor)
	}

	own := rest.AnonymousClientConfig(c.Config)
	own.BearerToken, own.UserAgent = c.Token(t, TokenOptions{Namespace: ns, ServiceAccount: "web"}), "kubetest"
	client, err := kubernetes.NewForConfig(own)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Fatal(err)
	}
	want := []Request{{User: "system:serviceaccount:" + ns + ":web", UserAgent: "kubetest", Verb: "list", Resource: "pods", Code: http.StatusForbidden}}
	err = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		return slices.Equal(c.Requests(t, want[0].User), want), nil
	})
	if err != nil {
		t.Errorf("the requests are %+v, want %+v", c.Requests(t, want[0].User), want)
	}
}
