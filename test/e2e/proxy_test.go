//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	chanceryv1 "github.com/chancery-ca/chancery/api/chancery/v1"
	"github.com/chancery-ca/chancery/test/kubetest"
)

// ambient is a cluster in Istio's ambient mode: two nodes, each with its proxy.
type ambient struct {
	namespace    string
	nodeA, nodeB *corev1.Node
	proxyA       workload // ztunnel on node A
}

func newAmbient(t *testing.T, c *kubetest.Cluster) ambient {
	t.Helper()
	namespace := c.Namespace(t)
	a := ambient{namespace: namespace, nodeA: c.Node(t, "a-"+namespace), nodeB: c.Node(t, "b-"+namespace)}
	a.proxyA = workload{
		cluster: c, node: a.nodeA, account: c.ServiceAccount(t, namespace, "ztunnel"),
		pod: c.Pod(t, kubetest.PodOptions{Namespace: namespace, Name: "ztunnel-a", ServiceAccount: "ztunnel", Node: a.nodeA.Name}),
	}
	return a
}

// pod makes a pod on a node, with a service account of its own.
func (a ambient) pod(t *testing.T, node *corev1.Node, account string) workload {
	t.Helper()
	c := a.proxyA.cluster
	return workload{
		cluster: c, node: node, account: c.ServiceAccount(t, a.namespace, account),
		pod: c.Pod(t, kubetest.PodOptions{Namespace: a.namespace, Name: account + "-0", ServiceAccount: account, Node: node.Name}),
	}
}

// TestNodeProxy has a proxy that asks for the identities of the pods on its node, at both doors and in both modes.
func TestNodeProxy(t *testing.T) {
	for _, mode := range []string{"tokenreview", "offline+liveness"} {
		t.Run(mode, func(t *testing.T) { testNodeProxy(t, mode) })
	}
}

func testNodeProxy(t *testing.T, mode string) {
	c := kube(t)
	a := newAmbient(t, c)
	s := startServer(t, livenessSettings(c, newAccess(t, c, mayReview, mayFollow).kubeconfig).with("authentication.kubernetes.mode", mode).
		with("authentication.kubernetes.node_proxies", []string{a.namespace + "/ztunnel"}).withIstio())
	doors := map[string]func(t *testing.T, proxy workload, id string) error{}
	own, z := s.dial(t, s.grpc), s.ztunnel(t)
	doors["Chancery's door"] = func(t *testing.T, proxy workload, id string) error {
		leaf, err := issue(t, own, bearer(proxy.token(t, audience)), &chanceryv1.IssueCertificateRequest{Csr: newCSR(t, nil), Names: &chanceryv1.Names{Uris: []string{id}}})
		if err == nil && names(leaf)[0] != id {
			return fmt.Errorf("it names %q", names(leaf))
		}
		return err
	}
	doors["Istio's door"] = func(t *testing.T, proxy workload, id string) error {
		got, err := z.call(t, istioCall{token: proxy.token(t, audienceIstio), csr: z.csr(t, id), impersonate: id})
		if err != nil {
			return err
		}
		return got.verify(id)
	}

	onA, onB := a.pod(t, a.nodeA, "on-a"), a.pod(t, a.nodeB, "on-b")
	ended, failed := a.pod(t, a.nodeA, "ended"), a.pod(t, a.nodeA, "failed")
	c.SetPhase(t, ended.pod, corev1.PodSucceeded)
	c.SetPhase(t, failed.pod, corev1.PodFailed)
	both := a.pod(t, a.nodeA, "both") // the same account has a pod on each node, and then on the other alone
	c.Pod(t, kubetest.PodOptions{Namespace: a.namespace, Name: "both-1", ServiceAccount: "both", Node: a.nodeB.Name})
	noPod := workload{pod: onA.pod, account: c.ServiceAccount(t, a.namespace, "no-pod")}
	proxyB := a.proxyA
	proxyB.node, proxyB.pod = a.nodeB, c.Pod(t, kubetest.PodOptions{Namespace: a.namespace, Name: "ztunnel-b", ServiceAccount: "ztunnel", Node: a.nodeB.Name})
	later := a.pod(t, a.nodeA, "later")
	s.awaitProxy(t, own, a.proxyA, later.id()) // the last made: whoever sees it sees the others

	for door, ask := range doors {
		refuse := func(t *testing.T, proxy workload, id string) string {
			t.Helper()
			err := ask(t, proxy, id)
			if status.Code(err) != codes.PermissionDenied {
				t.Errorf("%s for %s: %v; want PermissionDenied", proxy.pod.Name, id, err)
			}
			return status.Convert(err).Message()
		}
		t.Run(door, func(t *testing.T) {
			for _, allowed := range []struct {
				proxy workload
				id    string
			}{{a.proxyA, onA.id()}, {a.proxyA, both.id()}, {proxyB, onB.id()}, {proxyB, both.id()}, {a.proxyA, a.proxyA.id()}} {
				if err := ask(t, allowed.proxy, allowed.id); err != nil {
					t.Errorf("%s for %s: %v", allowed.proxy.pod.Name, allowed.id, err)
				}
			}
			sentences := make(map[string]bool)
			for name, id := range map[string]string{
				"a pod of another node": onB.id(), "a pod that has ended": ended.id(), "a pod that has failed": failed.id(), "an account without a pod": noPod.id(),
				"nobody":               "spiffe://" + trustDomain + "/ns/nowhere/sa/nobody",
				"the server":           "spiffe://" + trustDomain + "/chancery/server",
				"another trust domain": "spiffe://elsewhere.example/ns/" + a.namespace + "/sa/on-a",
			} {
				t.Run("not "+name, func(t *testing.T) {
					sentence := refuse(t, a.proxyA, id)
					if leaked(sentence) {
						t.Errorf("the sentence holds a token: %s", sentence)
					}
					sentences[strings.ReplaceAll(sentence, id, "ID")] = true
				})
			}
			if len(sentences) != 1 {
				t.Errorf("refusals tell what runs where: %v", sentences)
			}
			t.Run("not by another account than a proxy's", func(t *testing.T) { refuse(t, onA, both.id()) })
		})
	}

	t.Run("the pod goes", func(t *testing.T) {
		c.DeletePod(t, onA.pod)
		awaitDenial(t, own, a.proxyA, onA.id())
	})
	t.Run("the account's pod moves to the other node", func(t *testing.T) {
		c.DeletePod(t, both.pod)
		awaitDenial(t, own, a.proxyA, both.id())
		if err := doors["Chancery's door"](t, proxyB, both.id()); err != nil {
			t.Error(err)
		}
	})
	t.Run("the proxy's pod is another one under the same name", func(t *testing.T) {
		old := noted(a.proxyA.token(t, audience))
		c.DeletePod(t, a.proxyA.pod)
		a.proxyA.pod = c.Pod(t, kubetest.PodOptions{Namespace: a.namespace, Name: a.proxyA.pod.Name, ServiceAccount: "ztunnel", Node: a.nodeA.Name})
		s.awaitProxy(t, own, a.proxyA, later.id())
		_, err := issue(t, own, bearer(old), &chanceryv1.IssueCertificateRequest{Csr: newCSR(t, nil), Names: &chanceryv1.Names{Uris: []string{later.id()}}})
		if code := status.Code(err); code != codes.Unauthenticated && code != codes.PermissionDenied {
			t.Errorf("the old one's token: %v", err)
		}
	})
	t.Run("the node comes again under its name", func(t *testing.T) {
		token, own := a.proxyA.token(t, audience), s.dial(t, s.grpc)
		if err := c.Client.CoreV1().Nodes().Delete(t.Context(), a.nodeA.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		c.Node(t, a.nodeA.Name)
		var err error
		if !eventually(t, refusalBound, func() bool {
			_, err = issue(t, own, bearer(token), &chanceryv1.IssueCertificateRequest{Csr: newCSR(t, nil), Names: &chanceryv1.Names{Uris: []string{later.id()}}})
			return status.Code(err) == codes.Unauthenticated || status.Code(err) == codes.PermissionDenied
		}) {
			t.Errorf("a proxy of the node that was: %v", err)
		}
		s.awaitProxy(t, own, a.proxyA, later.id()) // with a new token
	})
}

// awaitProxy waits until a proxy may hold an identity: its pod and the other one are in the server's view.
func (s *server) awaitProxy(t *testing.T, connection *grpc.ClientConn, proxy workload, id string) {
	t.Helper()
	var err error
	if !eventually(t, 20*time.Second, func() bool {
		_, err = issue(t, connection, bearer(proxy.token(t, audience)), &chanceryv1.IssueCertificateRequest{Csr: newCSR(t, nil), Names: &chanceryv1.Names{Uris: []string{id}}})
		return err == nil
	}) {
		t.Fatalf("%s may not hold %s: %v", proxy.pod.Name, id, err)
	}
}

func awaitDenial(t *testing.T, connection *grpc.ClientConn, proxy workload, id string) {
	t.Helper()
	var err error
	if !eventually(t, refusalBound, func() bool {
		_, err = issue(t, connection, bearer(proxy.token(t, audience)), &chanceryv1.IssueCertificateRequest{Csr: newCSR(t, nil), Names: &chanceryv1.Names{Uris: []string{id}}})
		return status.Code(err) == codes.PermissionDenied
	}) {
		t.Errorf("%s for %s: %v; want PermissionDenied", proxy.pod.Name, id, err)
	}
}
