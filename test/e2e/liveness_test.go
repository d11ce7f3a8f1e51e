//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chancery-ca/chancery/test/kubetest"
)

// How the audit record says that a token was verified.
const (
	byReview   = "tokenreview"
	byLiveness = "offline+liveness"
	byKeys     = "offline"
)

// refusalBound is how long after its deletion a pod may still get a certificate.
const refusalBound = time.Second

// TestLiveness has a server that follows the cluster while pods, service accounts and nodes go and come again under the same names.
func TestLiveness(t *testing.T) {
	c := kube(t)
	s := startServer(t, livenessSettings(c, newAccess(t, c, mayReview, mayFollow).kubeconfig).with("authentication.kubernetes.node_bound_tokens", true))
	connection := s.dial(t, s.grpc)
	s.awaitView(t, connection, newWorkload(t))

	t.Run("a pod is deleted", func(t *testing.T) {
		w := newWorkload(t)
		s.awaitView(t, connection, w)
		known, tokens := w.token(t, audience), w.tokens(t, audience)
		mustPresent(t, connection, known)
		deleted := time.Now()
		c.DeletePod(t, w.pod)
		t.Logf("a known token is refused %s after the request to delete its pod", refused(t, connection, deleted, same(known)))
		t.Logf("new tokens are refused %s after it", refused(t, connection, deleted, tokens))
		staysRefused(t, connection, known, tokens())
	})

	// The API server and the fallback remember for 10 s each what they accepted.
	t.Run("a pod is deleted whose token was reviewed a moment before", func(t *testing.T) {
		reviews, slowest := 0, time.Duration(0)
		for range 10 {
			w := newWorkload(t)
			token := w.token(t, audience)
			if how := s.verified(t, connection, token); how == byReview {
				reviews++
			}
			deleted := time.Now()
			c.DeletePod(t, w.pod)
			slowest = max(slowest, refused(t, connection, deleted, same(token)))
			staysRefused(t, connection, token)
		}
		t.Logf("%d of 10 tokens were reviewed; the slowest refusal came after %s", reviews, slowest)
	})

	// An API server hears of a deletion by a watch of its own, so it can be behind the server's view: what it says then must not be remembered.
	t.Run("many pods are deleted while they call", func(t *testing.T) {
		const pods, callersEach = 30, 2
		workloads, tokens := make([]workload, pods), make([]string, pods)
		namespace, node := c.Namespace(t), c.Node(t, "node-of-many")
		account := c.ServiceAccount(t, namespace, "cart")
		for i := range workloads {
			workloads[i] = workload{cluster: c, account: account, node: node, pod: c.Pod(t, kubetest.PodOptions{
				Namespace: namespace, Name: fmt.Sprintf("cart-%d", i), ServiceAccount: account.Name, Node: node.Name,
			})}
			tokens[i] = workloads[i].token(t, audience)
		}
		deleted := make([]atomic.Int64, pods) // when, in Unix nanoseconds; zero before
		over := make(chan struct{})
		var callers sync.WaitGroup
		var late, certificates atomic.Int64
		for i := range pods * callersEach {
			callers.Go(func() {
				pod := i % pods
				for {
					select {
					case <-over:
						return
					default:
					}
					at := deleted[pod].Load()
					since := time.Since(time.Unix(0, at))
					if present(t, connection, tokens[pod]) == nil {
						certificates.Add(1)
						if at != 0 && since > refusalBound {
							late.Add(1)
						}
					}
				}
			})
		}
		for i, w := range workloads {
			c.DeletePod(t, w.pod)
			deleted[i].Store(time.Now().UnixNano())
		}
		<-time.After(3 * refusalBound)
		close(over)
		callers.Wait()
		t.Logf("%d certificates, %d of them later than %s after the deletion of their pod", certificates.Load(), late.Load(), refusalBound)
		if late.Load() > 0 || certificates.Load() < pods {
			t.Fail()
		}
	})

	t.Run("a pod comes again under its name", func(t *testing.T) {
		w := newWorkload(t)
		reviews, slowest := 0, time.Duration(0)
		for range 20 {
			old := w.token(t, audience)
			mustPresent(t, connection, old)
			deleted := time.Now()
			c.DeletePod(t, w.pod)
			w.pod = c.Pod(t, kubetest.PodOptions{Namespace: w.pod.Namespace, Name: w.pod.Name, ServiceAccount: w.account.Name, Node: w.node.Name})
			if s.verified(t, connection, w.token(t, audience)) == byReview { // at its first try
				reviews++
			}
			slowest = max(slowest, refused(t, connection, deleted, same(old)))
		}
		t.Logf("%d of 20 new pods were reviewed; the slowest refusal of an old one came %s after its deletion", reviews, slowest)
	})

	t.Run("a service account comes again under its name", func(t *testing.T) {
		w := newWorkload(t)
		accounts := c.Client.CoreV1().ServiceAccounts(w.pod.Namespace)
		slowest := time.Duration(0)
		for range 10 {
			old := w.token(t, audience)
			mustPresent(t, connection, old)
			deleted := time.Now()
			if err := accounts.Delete(t.Context(), w.account.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			w.account = c.ServiceAccount(t, w.pod.Namespace, w.account.Name)
			mustPresent(t, connection, w.token(t, audience))
			slowest = max(slowest, refused(t, connection, deleted, same(old)))
		}
		t.Logf("the slowest refusal came %s after the deletion", slowest)
	})

	t.Run("a node comes again under its name", func(t *testing.T) {
		w := newWorkload(t)
		s.awaitView(t, connection, w)
		old, oldOfPod := nodeToken(t, w), w.token(t, audience)
		mustPresent(t, connection, oldOfPod)
		if how := s.verified(t, connection, old); how != byLiveness && how != byReview {
			t.Errorf("verified by %q", how)
		}
		deleted := time.Now()
		if err := c.Client.CoreV1().Nodes().Delete(t.Context(), w.node.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.node = c.Node(t, w.node.Name)
		mustPresent(t, connection, nodeToken(t, w))
		t.Logf("refused %s after the deletion", refused(t, connection, deleted, same(old)))
		if !c.Accepts(t, oldOfPod, audience) {
			t.Error("the API server looks at the node of a pod's token, too, by now: the manual says that it does not")
		}
		t.Logf("the token of a pod on it is refused %s after the deletion", refused(t, connection, deleted, same(oldOfPod)))
		mustPresent(t, connection, w.token(t, audience)) // which names the new node
	})

	t.Run("a pod that is ending", func(t *testing.T) {
		w := newWorkload(t)
		s.awaitView(t, connection, w)
		grace := int64(30)
		if err := c.Client.CoreV1().Pods(w.pod.Namespace).Delete(t.Context(), w.pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &grace}); err != nil {
			t.Fatal(err)
		}
		for range 20 { // before and after the watch has told
			mustPresent(t, connection, w.token(t, audience))
		}
	})

	t.Run("a pod that has ended", func(t *testing.T) {
		w := newWorkload(t)
		s.awaitView(t, connection, w)
		c.SetPhase(t, w.pod, corev1.PodSucceeded)
		// final, though TokenReview would accept it: a pod that has ended has no use for a certificate
		t.Logf("refused after %s", refused(t, connection, time.Now(), w.tokens(t, audience)))
	})

	t.Run("a token that is bound to a Secret", func(t *testing.T) {
		w := newWorkload(t)
		secret, err := c.Client.CoreV1().Secrets(w.pod.Namespace).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "cart"}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		token := c.Token(t, kubetest.TokenOptions{
			Namespace: w.pod.Namespace, ServiceAccount: w.account.Name, Audiences: []string{audience}, BoundTo: kubetest.BoundToSecret(secret),
		})
		mustRefuse(t, present(t, connection, token), "not bound to a pod")
	})

	t.Run("a token that is bound to nothing", func(t *testing.T) {
		mustRefuse(t, present(t, connection, unboundToken(t, newWorkload(t))), "not bound to a pod")
	})

	t.Run("a forged token", func(t *testing.T) {
		mustRefuse(t, present(t, connection, forged(t, newWorkload(t), audience)), "")
	})
}

// mustPresent shows a token that has to be accepted.
func mustPresent(t *testing.T, connection *grpc.ClientConn, token string) {
	t.Helper()
	if err := present(t, connection, token); err != nil {
		t.Fatalf("a good token is refused: %v", err)
	}
}

// mustRefuse checks that an error is the refusal of a credential, for good, and holds the sentence.
func mustRefuse(t *testing.T, err error, sentence string) {
	t.Helper()
	if status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), sentence) {
		t.Errorf("%v; want Unauthenticated with %q", err, sentence)
	}
	if delay := retryDelay(err); delay != 0 {
		t.Errorf("what will be refused again may be tried after %s", delay)
	}
}

// refused presents tokens until one is refused, and returns how long after a moment the call began that found no more certificate. More than
// refusalBound fails the test.
func refused(t *testing.T, connection *grpc.ClientConn, from time.Time, tokens func() string) time.Duration {
	t.Helper()
	for {
		began := time.Now()
		err := present(t, connection, tokens())
		since := began.Sub(from)
		switch {
		case status.Code(err) == codes.Unauthenticated:
			if since > refusalBound {
				t.Errorf("refused after %s, want at most %s", since.Round(time.Millisecond), refusalBound)
			}
			return since.Round(time.Millisecond)
		case err != nil:
			t.Fatalf("%s after the deletion: %v", since, err)
		case since > 30*time.Second:
			t.Fatalf("still accepted %s after the deletion", since.Round(time.Millisecond))
		}
	}
}

// staysRefused checks that no later answer of anyone turns a refusal round.
func staysRefused(t *testing.T, connection *grpc.ClientConn, tokens ...string) {
	t.Helper()
	for i := range 20 {
		if err := present(t, connection, tokens[i%len(tokens)]); status.Code(err) != codes.Unauthenticated {
			t.Fatalf("refused, and then: %v", err)
		}
	}
}

func same(token string) func() string { return func() string { return token } }

// verified presents a token that nobody has shown to this server before, and returns how the audit record says that it was verified.
func (s *server) verified(t *testing.T, connection *grpc.ClientConn, token string) string {
	t.Helper()
	mustPresent(t, connection, token)
	line := s.log.await(t, 5*time.Second, `"msg":"audit"`, `"decision":"issued"`, `"credential_id":"`+kubetest.ClaimsOf(t, token).ID+`"`)
	var record struct {
		Verification string `json:"verification"`
	}
	decode(t, line, &record)
	if record.Verification == "" {
		t.Fatalf("the audit record does not say how the token was verified: %s", line)
	}
	return record.Verification
}

// awaitView waits until the server's view of the cluster is complete and has the workload.
func (s *server) awaitView(t *testing.T, connection *grpc.ClientConn, w workload) {
	t.Helper()
	tokens, from, how := w.tokens(t, audience), time.Now(), ""
	if !eventually(t, 20*time.Second, func() bool {
		how = s.verified(t, connection, tokens())
		return how == byLiveness
	}) {
		_, body := s.ready(t)
		t.Fatalf("after %s tokens are still verified by %q:\n%s", time.Since(from), how, body)
	}
}

// many makes calls from several goroutines, and returns the errors of those that failed and how long the slowest took.
func many(calls, atOnce int, call func(i int) error) (failed []error, slowest time.Duration) {
	type outcome struct {
		err  error
		took time.Duration
	}
	numbers, outcomes := make(chan int), make(chan outcome)
	for range atOnce {
		go func() {
			for i := range numbers {
				from := time.Now()
				err := call(i)
				outcomes <- outcome{err, time.Since(from)}
			}
		}()
	}
	go func() {
		for i := range calls {
			numbers <- i
		}
		close(numbers)
	}()
	for range calls {
		o := <-outcomes
		if o.err != nil {
			failed = append(failed, o.err)
		}
		slowest = max(slowest, o.took)
	}
	return failed, slowest
}
