//go:build e2e

package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/chancery-ca/chancery/tokenreview"
)

// requestTimeout is server.request_timeout, unless a test changes it.
const requestTimeout = 10 * time.Second

// TestOutage stops the API server and starts it again.
func TestOutage(t *testing.T) {
	s, w, c := startServer(t, kubernetesSettings(reviewerAccess(t)).withIstio()), newWorkload(t), kube(t)
	connection, agent := s.dial(t, s.grpc), s.pilotAgent(t)
	tokens, istioTokens := w.tokens(t, audience), w.tokens(t, audienceIstio)
	if code, body := s.ready(t); code != http.StatusOK || strings.Contains(body, "[!]") {
		t.Fatalf("readyz before: %d\n%s", code, body)
	}

	known, before := tokens(), time.Now()
	if err := present(t, connection, known); err != nil {
		t.Fatal(err)
	}
	reviewed := time.Now()
	c.Stop(t)
	t.Cleanup(func() { // for the tests after this one, whatever becomes of it
		if _, err := c.Client.Discovery().ServerVersion(); err != nil {
			c.StartAgain(t)
		}
	})
	t.Logf("the API server stopped within %s", time.Since(reviewed).Round(time.Millisecond))

	t.Run("a token that was reviewed before is good for 10 s", func(t *testing.T) {
		if err := present(t, connection, known); err != nil {
			t.Fatalf("%s after its review: %v", time.Since(reviewed), err)
		}
	})
	t.Run("an unknown token is for later", func(t *testing.T) {
		mustBeUnavailable(t, func() error { return present(t, connection, tokens()) })
	})
	t.Run("at Istio's door too", func(t *testing.T) {
		mustBeUnavailable(t, func() error {
			_, err := agent.call(t, istioCall{token: istioTokens(), csr: agent.csr(t, w.id())})
			return err
		})
	})
	t.Run("and at the command line", func(t *testing.T) {
		if r := s.request(t, tokens(), t.TempDir()); r.code != 3 || !strings.Contains(r.stderr, "try again (Unavailable)") {
			t.Errorf("request ended with %d: %s", r.code, r.stderr)
		}
	})
	t.Run("what needs no cluster is refused as ever", func(t *testing.T) {
		err := present(t, connection, changed(t, tokens(), expire))
		if status.Code(err) != codes.Unauthenticated {
			t.Error(err)
		}
	})
	t.Run("readyz says so and stays ready", func(t *testing.T) {
		var code int
		var body string
		if !eventually(t, 20*time.Second, func() bool {
			code, body = s.ready(t)
			return strings.Contains(body, failing("chancery")) && strings.Contains(body, failing("istio"))
		}) || code != http.StatusOK || !strings.Contains(body, "the API server cannot be reached (degraded)") {
			t.Errorf("%d\n%s", code, body)
		}
		s.log.await(t, time.Second, `"msg":"token reviews fail"`, `"level":"ERROR"`, "the API server cannot be reached")
	})
	t.Run("the reviewed token's time ends", func(t *testing.T) {
		var err error
		if !eventually(t, tokenreview.MaxCacheTTL+2*time.Second, func() bool {
			err = present(t, connection, known)
			return err != nil
		}) {
			t.Fatalf("it is still good %s after its review", time.Since(reviewed))
		}
		if since := time.Since(before); since < tokenreview.MaxCacheTTL {
			t.Errorf("it ended after %s", since)
		}
		if status.Code(err) != codes.Unavailable {
			t.Error(err)
		}
	})
	t.Run("it recovers by itself", func(t *testing.T) {
		c.StartAgain(t)
		from := time.Now()
		var err error
		if !eventually(t, 10*time.Second, func() bool {
			err = present(t, connection, tokens())
			return err == nil
		}) {
			t.Fatal(err)
		}
		t.Logf("a certificate %s after the API server was ready", time.Since(from).Round(time.Millisecond))
		if _, err := agent.call(t, istioCall{token: istioTokens(), csr: agent.csr(t, w.id())}); err != nil {
			t.Error(err)
		}
		var body string
		if !eventually(t, 20*time.Second, func() bool {
			_, body = s.ready(t)
			return !strings.Contains(body, "[!]")
		}) {
			t.Errorf("readyz goes on:\n%s", body)
		}
		s.log.await(t, 20*time.Second, `"msg":"token reviews work again"`)
	})
}

// TestHangingAPIServer has an API server that takes connections and says nothing, as behind a broken load balancer.
func TestHangingAPIServer(t *testing.T) {
	access := reviewerAccess(t)
	gate := newGate(t, kube(t).Config.Host)
	s, w := startServer(t, kubernetesSettings(redirect(t, access, gate.url()))), newWorkload(t)
	connection, tokens := s.dial(t, s.grpc), w.tokens(t, audience)
	known := tokens()
	if err := present(t, connection, known); err != nil {
		t.Fatal(err)
	}
	gate.shut()
	mustBeUnavailable(t, func() error { return present(t, connection, tokens()) })
	if err := present(t, connection, known); err != nil {
		t.Errorf("a token that was reviewed before: %v", err)
	}
	var code int
	var body string
	if !eventually(t, 20*time.Second, func() bool {
		code, body = s.ready(t)
		return strings.Contains(body, failing("chancery"))
	}) || code != http.StatusOK || !strings.Contains(body, "did not answer in time") {
		t.Errorf("readyz: %d\n%s", code, body)
	}
	gate.open()
	var err error
	if !eventually(t, 15*time.Second, func() bool {
		err = present(t, connection, tokens())
		return err == nil
	}) {
		t.Errorf("it does not recover: %v", err)
	}
}

// TestServerWithoutRights has servers that the API server does not let review tokens. That is the operator's to mend, never the caller's.
func TestServerWithoutRights(t *testing.T) {
	for name, test := range map[string]struct {
		access func(*testing.T) string
		said   string
	}{
		"no role":           {powerlessAccess, "the server's own account may not create tokenreviews"},
		"no valid token":    {unknownAccess, "the API server does not accept the server's own credential"},
		"no API server":     {nowhereAccess, "the API server cannot be reached"},
		"another authority": {strangerAccess, "the API server cannot be reached"},
	} {
		t.Run(name, func(t *testing.T) {
			s, w := startServer(t, kubernetesSettings(test.access(t))), newWorkload(t)
			connection := s.dial(t, s.grpc)
			sentence := mustBeUnavailable(t, func() error { return present(t, connection, w.token(t, audience)) })
			for _, internal := range []string{"tokenreviews", "system:serviceaccount", "forbidden", "127.0.0.1", "x509"} {
				if strings.Contains(sentence, internal) {
					t.Errorf("the caller learns of %q: %s", internal, sentence)
				}
			}
			s.log.await(t, 5*time.Second, `"msg":"token reviews fail"`, `"level":"ERROR"`, `"reason":"`+test.said)
			var code int
			var body string
			// a report is good for two seconds, and one from before the first call says that nothing is known
			if !eventually(t, 10*time.Second, func() bool {
				code, body = s.ready(t)
				return strings.Contains(body, failing("chancery"))
			}) || code != http.StatusOK || !strings.Contains(body, test.said) {
				t.Errorf("readyz: %d\n%s", code, body)
			}
		})
	}
}

// failing is how the line of /readyz begins that tells of a door without its cluster.
func failing(door string) string {
	return "[!] kubernetes-local-" + door + ": token reviews fail since "
}

// mustBeUnavailable makes a call that the server cannot decide: it says so in time, in a way that agents try again, and when. It returns the
// sentence.
func mustBeUnavailable(t *testing.T, call func() error) (sentence string) {
	t.Helper()
	from := time.Now()
	err := call()
	sentence = status.Convert(err).Message()
	if took := time.Since(from); took > requestTimeout {
		t.Errorf("the answer took %s", took)
	}
	if status.Code(err) != codes.Unavailable || !strings.Contains(sentence, "the cluster could not be asked about the token; try again") {
		t.Fatalf("%v; want Unavailable", err)
	}
	if !retried(status.Code(err)) || retryDelay(err) <= 0 {
		t.Errorf("it does not say when to try again: %v", err)
	}
	if leaked(sentence) {
		t.Errorf("the sentence holds the token: %s", sentence)
	}
	return sentence
}
