//go:build e2e

package e2e

import (
	"strings"
	"sync"
	"testing"
)

// TestNodeBoundTokens has a server that takes the tokens of node agents, which belong to no pod.
func TestNodeBoundTokens(t *testing.T) {
	s, w := startServer(t, kubernetesSettings(reviewerAccess(t)).with("authentication.kubernetes.node_bound_tokens", true)), newWorkload(t)
	connection := s.dial(t, s.grpc)
	token := nodeToken(t, w)
	if err := present(t, connection, token); err != nil {
		t.Fatal(err)
	}
	var entries []struct {
		Serial string `json:"serial"`
	}
	decode(t, mustRun(t, "certs", "list", "--config", s.config, "--identity", w.id(), "-o", "json"), &entries)
	if len(entries) != 1 {
		t.Fatalf("the ledger has %d entries for %s", len(entries), w.id())
	}
	text := mustRun(t, "certs", "show", entries[0].Serial, "--config", s.config)
	if got, want := row(text, "node"), w.node.Name+" (uid "+string(w.node.UID)+")"; got != want || row(text, "pod") != "" {
		t.Errorf("node is %q, want %q, and no pod:\n%s", got, want, text)
	}

	t.Run("but none that is bound to nothing", func(t *testing.T) {
		if err := present(t, connection, unboundToken(t, w)); err == nil || !strings.Contains(err.Error(), "token is not bound to a pod") {
			t.Error(err)
		}
	})
}

// TestReviewsAreFew counts what the API server is asked while one token brings a hundred requests, one by one and all at once.
func TestReviewsAreFew(t *testing.T) {
	s, w := startServer(t, kubernetesSettings(reviewerAccess(t))), newWorkload(t)
	connection := s.dial(t, s.grpc)
	if err := present(t, connection, w.token(t, audience)); err != nil {
		t.Fatal(err) // from here on the server has probed the API server
	}
	for name, ask := range map[string]func(token string){
		"one by one": func(token string) {
			for range 100 {
				if err := present(t, connection, token); err != nil {
					t.Error(err)
				}
			}
		},
		"at once": func(token string) {
			var all sync.WaitGroup
			for range 100 {
				all.Go(func() {
					if err := present(t, connection, token); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
		},
	} {
		t.Run(name, func(t *testing.T) {
			token, before := w.token(t, audience), reviewsAsked(t)
			ask(token)
			asked := reviewsAsked(t) - before
			t.Logf("%d token reviews for 100 requests", asked)
			if asked < 1 || asked > 3 {
				t.Errorf("want 1, and no more than 2 of the server's own besides")
			}
		})
	}
}

// reviewsAsked is how many token reviews the API server has been asked for.
func reviewsAsked(t *testing.T) int {
	t.Helper()
	return kube(t).RequestTotal(t, "tokenreviews")
}
