//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/chancery-ca/chancery/test/kubetest"
	"github.com/chancery-ca/chancery/tokenreview"
)

// probeInterval is how often the server asks whether an API server that answers is still there.
const probeInterval = 15 * time.Second

// TestAPICalls counts what a server asks the API server for 1,000 certificates: token reviews by the API server's own metric, and all that the server's account
// asks by the API server's audit log.
func TestAPICalls(t *testing.T) {
	const (
		certificates = 1000
		pods         = 20
	)
	c := kube(t)
	workloads := make([]workload, pods)
	for i := range workloads {
		workloads[i] = newWorkload(t)
	}
	var table strings.Builder
	fmt.Fprintf(&table, "\n%-18s%-22s%15s%15s%15s%10s\n", "mode", "tokens", "certificates", "token reviews", "other calls", "time")
	for _, test := range []struct {
		mode   string
		tokens int // how many there are among the calls
		least  int // token reviews
	}{
		{"tokenreview", certificates, certificates},
		{"tokenreview", 10, 10},
		{"tokenreview", 1, 1},
		{"offline+liveness", certificates, 0},
		{"offline+liveness", 1, 0},
	} {
		t.Run(fmt.Sprintf("%s with %d tokens", test.mode, test.tokens), func(t *testing.T) {
			account := newAccess(t, c, mayReview, mayFollow)
			s := startServer(t, livenessSettings(c, account.kubeconfig).with("authentication.kubernetes.mode", test.mode))
			connection := s.dial(t, s.grpc)
			if test.mode == byLiveness {
				for _, w := range workloads {
					s.awaitView(t, connection, w)
				}
			}
			mustPresent(t, connection, workloads[0].token(t, audience))
			mint := make([]func() string, pods)
			for i, w := range workloads {
				mint[i] = w.tokens(t, audience)
			}
			tokens := make([]string, test.tokens)
			for i := range tokens {
				tokens[i] = mint[i%pods]()
			}

			asked := settled(t, c, account.user)
			reviews, from := c.RequestTotal(t, "tokenreviews"), time.Now()
			failed, slowest := many(certificates, 8, func(i int) error {
				token := tokens[i%len(tokens)]
				for {
					err := present(t, connection, token)
					if status.Code(err) != codes.ResourceExhausted {
						return err
					}
					<-time.After(retryDelay(err)) // as a client does that asks too often
				}
			})
			took := time.Since(from)
			if len(failed) > 0 {
				t.Fatalf("%d of %d failed: %v", len(failed), certificates, failed[0])
			}
			reviews = c.RequestTotal(t, "tokenreviews") - reviews
			others := make(map[string]int)
			own := 0
			for _, r := range settled(t, c, account.user)[len(asked):] {
				if r.Resource == "tokenreviews" {
					own++
				} else {
					others[r.Verb+" "+r.Resource]++
				}
			}
			sum := 0
			for _, n := range others {
				sum += n
			}
			fmt.Fprintf(&table, "%-18s%-22s%15d%15d%15d%10s\n", test.mode, fmt.Sprintf("%d distinct", test.tokens), certificates, reviews, sum, took.Round(10*time.Millisecond))
			t.Logf("%d certificates in %s, the slowest in %s: %d token reviews, of which the server's %d; besides %v", certificates, took.Round(time.Millisecond),
				slowest.Round(time.Millisecond), reviews, own, others)

			// A good token is asked about again after cache_ttl, and the server asks now and then whether the API server is there.
			most := test.least*(1+int(took/tokenreview.MaxCacheTTL)) + 1 + int(took/probeInterval)
			if test.mode == byLiveness {
				most = int(took / probeInterval)
			}
			if reviews != own || own < test.least || own > most {
				t.Errorf("%d token reviews, of which the server's %d; want %d to %d", reviews, own, test.least, most)
			}
			if sum > 0 {
				t.Errorf("other calls: %v", others)
			}
		})
	}
	t.Log(table.String())
}

// settled returns what a user has asked the API server once all of it is in the audit log: a request that came later is.
func settled(t *testing.T, c *kubetest.Cluster, user string) []kubetest.Request {
	t.Helper()
	marker := newAccess(t, c)
	client := marker.client(t)
	_, _ = client.Discovery().ServerVersion()
	if !eventually(t, 5*time.Second, func() bool { return len(c.Requests(t, marker.user)) > 0 }) {
		t.Fatal("the audit log does not go on")
	}
	return c.Requests(t, user)
}
