//go:build e2e

package e2e

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/chancery-ca/chancery/test/kubetest"
)

// outage is how long the API server of TestOutageWithView is away. CHANCERY_E2E_OUTAGE makes it longer, as in 60s.
func outage(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("CHANCERY_E2E_OUTAGE")
	if text == "" {
		return 30 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("CHANCERY_E2E_OUTAGE: %v", err)
	}
	return d
}

// TestOutageWithView stops the API server under two servers: one that has a view of the cluster, and one that asks about every token.
func TestOutageWithView(t *testing.T) {
	t.Parallel() // it waits for most of the time; no other parallel test uses this control plane
	c := secondKube(t)
	viewing := startServer(t, livenessSettings(c, newAccess(t, c, mayReview, mayFollow).kubeconfig))
	asking := startServer(t, kubernetesSettings(newAccess(t, c, mayReview).kubeconfig))
	w, gone := newWorkloadIn(t, c), newWorkloadIn(t, c)
	fromView, fromReview := viewing.dial(t, viewing.grpc), asking.dial(t, asking.grpc)
	tokens, goneTokens := w.tokens(t, audience), gone.tokens(t, audience)
	viewing.awaitView(t, fromView, w)
	viewing.awaitView(t, fromView, gone)
	mustPresent(t, fromReview, tokens())
	unseen := w.tokens(t, audience)

	away := stopped(t, c)
	end := time.Now().Add(outage(t))
	renewals, unavailable := 0, 0
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for ; time.Now().Before(end); <-tick.C {
		if how := viewing.verified(t, fromView, tokens()); how != byLiveness {
			t.Fatalf("verified by %q while there is no API server", how)
		}
		renewals++
		if renewals%20 == 0 { // each costs this one the wait for an API server
			mustBeUnavailable(t, func() error { return present(t, fromReview, unseen()) })
			unavailable++
		}
	}
	t.Logf("in %s without an API server: %d certificates by the view, none by token reviews (%d tries)", time.Since(away).Round(time.Second), renewals, unavailable)

	c.StartAgain(t)
	back := time.Now()
	for name, way := range map[string]func() error{
		"the one that asks":       func() error { return present(t, fromReview, unseen()) },
		"the one that has a view": func() error { return present(t, fromView, tokens()) },
	} {
		var err error
		if !eventually(t, 15*time.Second, func() bool { err = way(); return err == nil }) {
			t.Errorf("%s does not recover: %v", name, err)
		}
		t.Logf("%s has a certificate %s after the API server was back", name, time.Since(back).Round(time.Millisecond))
	}

	t.Run("a pod that is made after it", func(t *testing.T) {
		mustPresent(t, fromView, newWorkloadIn(t, c).token(t, audience))
	})
	t.Run("a pod that is deleted after it", func(t *testing.T) {
		c.DeletePod(t, gone.pod)
		deleted := time.Now()
		var err error
		if !eventually(t, 15*time.Second, func() bool { err = present(t, fromView, goneTokens()); return err != nil }) { // a broken watch is taken up again after at most 10 s
			t.Fatalf("it still gets certificates %s later", time.Since(deleted))
		}
		t.Logf("refused %s after its deletion, %s after the API server was back", time.Since(deleted).Round(time.Millisecond), time.Since(back).Round(time.Millisecond))
		if status.Code(err) != codes.Unauthenticated {
			t.Error(err)
		}
	})
	viewing.awaitView(t, fromView, newWorkloadIn(t, c))
}

// TestViewGrowsOld has an API server that takes connections and says nothing: the view of the cluster is believed up to its bound, and not beyond.
func TestViewGrowsOld(t *testing.T) {
	t.Parallel() // it waits for most of the time
	const bound = 10 * time.Second
	c := kube(t)
	access := newAccess(t, c, mayReview, mayFollow)
	gate := newGate(t, c.Config.Host)
	s := startServer(t, livenessSettings(c, redirect(t, access.kubeconfig, gate.url())).with("authentication.kubernetes.max_staleness", bound.String()))
	w := newWorkload(t)
	connection, tokens := s.dial(t, s.grpc), w.tokens(t, audience)
	s.awaitView(t, connection, w)
	// While the API server speaks, an hour without an event is no reason for doubt: here a moment longer than the bound.
	for quiet := time.Now(); time.Since(quiet) < bound+2*time.Second; <-time.After(500 * time.Millisecond) {
		if how := s.verified(t, connection, tokens()); how != byLiveness {
			t.Fatalf("verified by %q %s after the view was complete", how, time.Since(quiet))
		}
	}
	gate.shut()
	shut := time.Now()
	renewals, lastBegan := 0, shut
	var err error
	for err == nil && time.Since(shut) < 2*bound {
		lastBegan = time.Now()
		if err = present(t, connection, tokens()); err == nil {
			renewals++
			<-time.After(50 * time.Millisecond)
		}
	}
	if status.Code(err) != codes.Unavailable || retryDelay(err) <= 0 {
		t.Fatalf("%s after the API server fell silent: %v; want Unavailable", time.Since(shut), err)
	}
	t.Logf("%d certificates, until the first call that got Unavailable, %s after the API server fell silent", renewals, lastBegan.Sub(shut).Round(100*time.Millisecond))
	if renewals == 0 || lastBegan.Sub(shut) > bound+time.Second {
		t.Errorf("want certificates at first, and none after %s", bound)
	}
	code, body := s.ready(t)
	if !eventually(t, 10*time.Second, func() bool {
		code, body = s.ready(t)
		return strings.Contains(body, "[!] kubernetes-local-view")
	}) || code != http.StatusOK {
		t.Errorf("readyz: %d\n%s", code, body)
	}
	gate.open()
	opened := time.Now()
	if !eventually(t, time.Minute, func() bool { err = present(t, connection, tokens()); return err == nil }) {
		t.Fatalf("it does not recover: %v", err)
	}
	t.Logf("a certificate %s after the API server spoke again", time.Since(opened).Round(time.Millisecond))
	s.awaitView(t, connection, w)
	t.Logf("by the view %s after it", time.Since(opened).Round(time.Millisecond))
}

// stopped stops a control plane, and starts it again at the end of the test if nothing else has. It returns the time.
func stopped(t *testing.T, c *kubetest.Cluster) time.Time {
	t.Helper()
	c.Stop(t)
	t.Cleanup(func() {
		if _, err := c.Client.Discovery().ServerVersion(); err != nil {
			c.StartAgain(t)
		}
	})
	return time.Now()
}

// TestTokenKeysRotate gives a cluster a new token key under two running servers, and then takes the old one away. Both servers have to say of each token what
// the API server says.
func TestTokenKeysRotate(t *testing.T) {
	c := secondKube(t)
	// The servers show client certificates to the API server: a service account's token would be by the old key, and client-go reads it anew once a minute.
	viewing, asking := startServer(t, livenessSettings(c, c.Kubeconfig)), startServer(t, kubernetesSettings(c.Kubeconfig))
	w := newWorkloadIn(t, c)
	fromView, fromReview := viewing.dial(t, viewing.grpc), asking.dial(t, asking.grpc)
	viewing.awaitView(t, fromView, w)
	known := w.token(t, audience)
	mustPresent(t, fromView, known)
	old := make(chan string, 200) // made by the first key
	for mint := w.tokens(t, audience); len(old) < cap(old); {
		old <- mint()
	}
	next := func() string { return <-old }

	c.RotateTokenKey(t)
	rotated := time.Now()
	mustPresent(t, fromView, w.token(t, audience)) // by the new key, at the first try
	mustPresent(t, fromReview, w.token(t, audience))
	t.Logf("a token by the new key is good at once, %s after the API server was ready", time.Since(rotated).Round(time.Millisecond))
	if !c.Accepts(t, next(), audience) {
		t.Fatal("the API server does not take tokens by the old key, which it still lists")
	}
	mustPresent(t, fromView, next())
	mustPresent(t, fromView, known)
	mustPresent(t, fromReview, next())

	c.DropOldTokenKeys(t)
	dropped := time.Now()
	mustPresent(t, fromView, w.token(t, audience))
	mustPresent(t, fromReview, w.token(t, audience))
	if c.Accepts(t, next(), audience) {
		t.Fatal("the API server takes tokens by a key that it does not list")
	}
	mustRefuse(t, present(t, fromReview, next()), "")
	t.Logf("without a reason to fetch the keys again, a token by the old key gets: %v", present(t, fromView, next()))
	// The set is fetched again every few minutes, and when a token names a key that is not in it.
	stranger := kubetest.SignToken(t, newKey(t), "unknown", kubetest.ClaimsOf(t, w.token(t, audience)))
	var err error
	if !eventually(t, 20*time.Second, func() bool {
		mustRefuse(t, present(t, fromView, stranger), "")
		err = present(t, fromView, next())
		return err != nil
	}) {
		t.Fatal("tokens by a key that was dropped are still taken")
	}
	mustRefuse(t, err, "")
	mustRefuse(t, present(t, fromView, known), "") // that it was good before does not help it
	t.Logf("tokens by the old key were refused %s after the API server without it was ready", time.Since(dropped).Round(time.Millisecond))
	mustPresent(t, fromView, w.token(t, audience))
}
