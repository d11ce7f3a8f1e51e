//go:build e2e

package e2e

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	chanceryv1 "github.com/chancery-ca/chancery/api/chancery/v1"
	"github.com/chancery-ca/chancery/test/kubetest"
)

// TestClusters has a server for two clusters, in each mode.
func TestClusters(t *testing.T) {
	for _, mode := range []string{"tokenreview", "offline+liveness"} {
		t.Run(mode, func(t *testing.T) { testClusters(t, mode) })
	}
}

// clusterSettings are those of a server for kube, called local, and secondKube, called east, whose API server it finds at a URL.
func clusterSettings(t *testing.T, mode, eastURL string) settings {
	t.Helper()
	west, east := kube(t), secondKube(t)
	eastAccess := newAccess(t, east, mayReview, mayFollow).kubeconfig
	return kubernetesSettings(newAccess(t, west, mayReview, mayFollow).kubeconfig).
		with("authentication.kubernetes.mode", mode).
		with("authentication.kubernetes.issuer", west.Issuer).
		with("authentication.kubernetes.clusters", []map[string]any{{
			"name": "east", "mode": mode, "issuer": east.Issuer, "kubeconfig": redirect(t, eastAccess, eastURL), "cluster_ids": []string{"east-1"},
			"spiffe_id": "/cluster/{cluster}/ns/{namespace}/sa/{service_account}",
		}}).withIstio()
}

// presentIn shows a token under the name of a cluster, and returns what the certificate names.
func presentIn(t *testing.T, connection *grpc.ClientConn, cluster, token string) (string, error) {
	t.Helper()
	md := bearer(token)
	if cluster != "" {
		md = metadata.Join(md, metadata.Pairs("clusterid", cluster))
	}
	leaf, err := issue(t, connection, md, &chanceryv1.IssueCertificateRequest{Csr: newCSR(t, nil)})
	if err != nil {
		return "", err
	}
	return names(leaf)[0], nil
}

func testClusters(t *testing.T, mode string) {
	west, east := kube(t), secondKube(t)
	s := startServer(t, clusterSettings(t, mode, east.Config.Host))
	connection := s.dial(t, s.grpc)
	here, there := newWorkloadIn(t, west), newWorkloadIn(t, east)
	eastID := fmt.Sprintf("spiffe://%s/cluster/east/ns/%s/sa/%s", trustDomain, there.pod.Namespace, there.account.Name)
	if mode == byLiveness {
		s.awaitView(t, connection, here)
		s.awaitView(t, connection, there)
	}

	for name, test := range map[string]struct {
		cluster string
		token   func() string
		id      string // empty: refused
	}{
		"by issuer, here":               {"", here.tokens(t, audience), here.id()},
		"by issuer, there":              {"", there.tokens(t, audience), eastID},
		"by name, here":                 {"local", here.tokens(t, audience), here.id()},
		"by Istio's name for it":        {"Kubernetes", here.tokens(t, audience), here.id()},
		"by name, there":                {"east", there.tokens(t, audience), eastID},
		"by another name, there":        {"east-1", there.tokens(t, audience), eastID},
		"from there under a name here":  {"Kubernetes", there.tokens(t, audience), ""},
		"from here under a name there":  {"east", here.tokens(t, audience), ""},
		"under a name of no cluster":    {"north", here.tokens(t, audience), ""},
		"of an issuer of no cluster":    {"", issuedBy(t, here, "https://north.invalid"), ""},
		"of the other's issuer, forged": {"", issuedBy(t, here, east.Issuer), ""},
	} {
		t.Run(name, func(t *testing.T) {
			id, err := presentIn(t, connection, test.cluster, test.token())
			if test.id == "" {
				mustRefuse(t, err, "")
			} else if err != nil || id != test.id {
				t.Errorf("it names %q (%v), want %q", id, err, test.id)
			}
		})
	}

	t.Run("at Istio's door", func(t *testing.T) {
		z := s.ztunnel(t)
		got, err := z.call(t, istioCall{token: there.token(t, audienceIstio), csr: z.csr(t, eastID), cluster: "east"})
		if err != nil {
			t.Fatal(err)
		}
		if err := got.verify(eastID); err != nil {
			t.Error(err)
		}
		if _, err := z.call(t, istioCall{token: there.token(t, audienceIstio), csr: z.csr(t, eastID)}); status.Code(err) != codes.Unauthenticated {
			t.Errorf("under the name of the other cluster: %v", err)
		}
	})

	t.Run("one stops", func(t *testing.T) {
		hereTokens, thereTokens := here.tokens(t, audience), there.tokens(t, audience)
		stopped(t, east)
		untouched(t, connection, hereTokens, thereTokens, mode)
		east.StartAgain(t)
		recovers(t, connection, thereTokens)
	})
}

// TestHangingCluster has a second cluster whose API server takes connections and says nothing, while callers of both come at once.
func TestHangingCluster(t *testing.T) {
	east := secondKube(t)
	gate := newGate(t, east.Config.Host)
	s := startServer(t, clusterSettings(t, "tokenreview", gate.url()))
	connection := s.dial(t, s.grpc)
	here, there := newWorkload(t), newWorkloadIn(t, east)
	hereTokens, thereTokens := here.tokens(t, audience), there.tokens(t, audience)
	mustPresent(t, connection, thereTokens())
	mustPresent(t, connection, hereTokens())
	gate.shut()
	untouched(t, connection, hereTokens, thereTokens, "tokenreview")
	gate.open()
	recovers(t, connection, thereTokens)
}

// untouched has callers of two clusters call, one of which has lost its API server.
func untouched(t *testing.T, connection *grpc.ClientConn, here, there func() string, mode string) {
	t.Helper()
	const callers = 100
	var good, lost []string
	for range callers {
		good, lost = append(good, here()), append(lost, there())
	}
	before, calm := many(callers, 8, func(i int) error { return present(t, connection, good[i]) })
	if len(before) > 0 {
		t.Fatal(before[0])
	}
	for i := range good {
		good[i] = here()
	}
	away := make(chan []error)
	go func() {
		failed, _ := many(callers, callers, func(i int) error { return present(t, connection, lost[i]) })
		away <- failed
	}()
	failed, slowest := many(callers, 8, func(i int) error { return present(t, connection, good[i]) })
	t.Logf("%d calls: the slowest took %s, and %s while %d callers of the other cluster waited", callers, calm.Round(time.Millisecond), slowest.Round(time.Millisecond), callers)
	if len(failed) > 0 || slowest > time.Second {
		t.Errorf("the slowest took %s, %d failed: %v", slowest, len(failed), failed)
	}
	failed = <-away
	for _, err := range failed {
		if code := status.Code(err); code != codes.Unavailable && code != codes.ResourceExhausted {
			t.Fatalf("a caller of the lost cluster: %v", err)
		}
	}
	if want := map[string]int{"tokenreview": callers, byLiveness: 0}[mode]; len(failed) != want {
		t.Errorf("%d of %d callers of the lost cluster got nothing, want %d: %v", len(failed), callers, want, failed)
	}
}

func recovers(t *testing.T, connection *grpc.ClientConn, tokens func() string) {
	t.Helper()
	from := time.Now()
	var err error
	if !eventually(t, 20*time.Second, func() bool { err = present(t, connection, tokens()); return err == nil }) {
		t.Fatalf("it does not recover: %v", err)
	}
	t.Logf("a certificate %s after the API server was back", time.Since(from).Round(time.Millisecond))
}

// issuedBy returns tokens of a workload that name another issuer.
func issuedBy(t *testing.T, w workload, issuer string) func() string {
	t.Helper()
	return func() string {
		return changed(t, w.token(t, audience), func(c *kubetest.Claims) { c.Issuer = issuer })
	}
}
