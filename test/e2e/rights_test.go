//go:build e2e

package e2e

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
)

// TestLeastRights holds what the manual says of the rights that a server needs in mode offline+liveness: with these and no others all is well, and
// the server never asks for anything else.
func TestLeastRights(t *testing.T) {
	c := kube(t)
	account := newAccess(t, c, mayReview, mayFollow)
	s, w := startServer(t, livenessSettings(c, account.kubeconfig)), newWorkload(t)
	connection := s.dial(t, s.grpc)
	s.awaitView(t, connection, w)
	code, body := s.ready(t)
	if !eventually(t, 10*time.Second, func() bool { // a report is good for two seconds
		code, body = s.ready(t)
		return !strings.Contains(body, "[!]")
	}) || code != http.StatusOK {
		t.Errorf("readyz: %d\n%s", code, body)
	}
	var used []string
	for _, r := range settled(t, c, account.user) {
		if r.Code == http.StatusForbidden {
			t.Errorf("it was refused %s %s", r.Verb, r.Resource)
		}
		if what := r.Verb + " " + r.Resource; !slices.Contains(used, what) {
			used = append(used, what)
		}
		if !strings.HasPrefix(r.UserAgent, "chancery") {
			t.Errorf("the user agent is %q", r.UserAgent)
		}
	}
	slices.Sort(used)
	t.Logf("it used: %s", strings.Join(used, ", "))
	allowed := []string{
		"create tokenreviews", "get /openid/v1/jwks", "list nodes", "list pods", "list serviceaccounts", "watch nodes", "watch pods", "watch serviceaccounts",
	}
	for _, what := range used {
		if !slices.Contains(allowed, what) {
			t.Errorf("it used %s", what)
		}
	}
}

// TestMissingRights takes rights away from a server that wants a view of the cluster: it asks about every token instead, never accepts without, and says
// which right is missing.
func TestMissingRights(t *testing.T) {
	follow := func(verbs []string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: resources, Verbs: verbs}
	}
	all := []string{"get", "list", "watch"}
	for name, test := range map[string]struct {
		rules []rbacv1.PolicyRule
		said  string // the resource
	}{
		"none on pods":             {[]rbacv1.PolicyRule{mayReview, follow(all, "serviceaccounts", "nodes")}, "pods"},
		"no right to watch pods":   {[]rbacv1.PolicyRule{mayReview, follow(all, "serviceaccounts", "nodes"), follow([]string{"get", "list"}, "pods")}, "pods"},
		"none on service accounts": {[]rbacv1.PolicyRule{mayReview, follow(all, "pods", "nodes")}, "serviceaccounts"},
		"none on nodes":            {[]rbacv1.PolicyRule{mayReview, follow(all, "pods", "serviceaccounts")}, "nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			c := kube(t)
			s, w := startServer(t, livenessSettings(c, newAccess(t, c, test.rules...).kubeconfig)), newWorkload(t)
			connection := s.dial(t, s.grpc)
			missing := regexp.MustCompile(`the server's own account may not (list|watch) ` + test.said)
			from, tokens := time.Now(), w.tokens(t, audience)
			var body string
			if !eventually(t, 20*time.Second, func() bool {
				if how := s.verified(t, connection, tokens()); how != byReview {
					t.Fatalf("verified by %q", how)
				}
				_, body = s.ready(t)
				return missing.MatchString(body)
			}) {
				t.Fatalf("readyz does not say what is missing:\n%s", body)
			}
			t.Logf("said after %s:\n%s", time.Since(from).Round(time.Millisecond), body)
			if code, _ := s.ready(t); code != http.StatusOK {
				t.Errorf("readyz answers %d, although certificates are issued", code)
			}
			s.log.await(t, 5*time.Second, `"msg":"the view of the cluster is not up to date"`, `"believed":false`, test.said)
		})
	}
}

// TestRightsComeLater gives a running server the right to follow the cluster. It needs no restart, and what it was told about a token before it had a view does
// not outlive the pod.
func TestRightsComeLater(t *testing.T) {
	t.Parallel() // it waits for most of the time
	c := kube(t)
	account := newAccess(t, c, mayReview)
	s, w := startServer(t, livenessSettings(c, account.kubeconfig)), newWorkload(t)
	connection := s.dial(t, s.grpc)
	token, tokens := w.token(t, audience), w.tokens(t, audience)
	if how := s.verified(t, connection, token); how != byReview {
		t.Fatalf("verified by %q", how)
	}
	account.grant(t, mayFollow)
	granted := time.Now()
	if !eventually(t, 30*time.Second, func() bool {
		mustPresent(t, connection, token) // so that it is remembered at any time
		return s.verified(t, connection, tokens()) == byLiveness
	}) {
		t.Fatal("the right does not come through")
	}
	t.Logf("by its view %s after it got the right", time.Since(granted).Round(100*time.Millisecond))
	deleted := time.Now()
	c.DeletePod(t, w.pod)
	t.Logf("refused %s after the deletion of the pod", refused(t, connection, deleted, same(token)))
	staysRefused(t, connection, token)
}
