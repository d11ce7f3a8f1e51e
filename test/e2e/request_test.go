//go:build e2e

package e2e

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chancery-ca/chancery/test/kubetest"
)

// TestRequest takes a pod's projected token to a certificate, as a person does at the command line.
func TestRequest(t *testing.T) {
	s, w := startServer(t, kubernetesSettings(reviewerAccess(t))), newWorkload(t)
	out := filepath.Join(t.TempDir(), "tls")
	token := w.token(t, audience)
	r := s.request(t, token, out)
	if r.code != 0 || leaked(r.stdout+r.stderr) {
		t.Fatalf("request ended with %d:\n%s%s", r.code, r.stdout, r.stderr)
	}
	var reported struct {
		Serial string   `json:"serial"`
		Names  []string `json:"names"`
	}
	decode(t, r.stdout, &reported)
	chain := filepath.Join(out, "chain.pem")
	leaf := firstCertificate(t, readFile(t, chain))

	t.Run("the certificate is for the service account", func(t *testing.T) {
		if got := names(leaf); !slices.Equal(got, []string{w.id()}) {
			t.Errorf("the certificate names %q, want %q", got, w.id())
		}
		if want := []string{"URI:" + w.id()}; !slices.Equal(reported.Names, want) {
			t.Errorf("request reports %q, want %q", reported.Names, want)
		}
		if len(leaf.DNSNames)+len(leaf.IPAddresses)+len(leaf.EmailAddresses)+len(leaf.Subject.Names) > 0 {
			t.Errorf("it names more than that: %+v", leaf)
		}
		if life := time.Until(leaf.NotAfter); leaf.IsCA || life > time.Hour || life < 59*time.Minute {
			t.Errorf("CA is %t, and it ends in %s", leaf.IsCA, life)
		}
	})

	t.Run("openssl accepts it", func(t *testing.T) {
		for _, more := range [][]string{nil, {"-x509_strict"}, {"-x509_strict", "-purpose", "sslserver"}, {"-x509_strict", "-purpose", "sslclient"}} {
			args := append([]string{"verify", "-CAfile", filepath.Join(out, "bundle.pem"), "-untrusted", chain}, more...)
			text, err := exec.CommandContext(t.Context(), "openssl", append(args, chain)...).CombinedOutput()
			if err != nil || !strings.HasSuffix(string(text), ": OK\n") {
				t.Errorf("openssl %s: %v\n%s", strings.Join(args, " "), err, text)
			}
		}
	})

	t.Run("the ledger names the pod and the node", func(t *testing.T) {
		var entry struct {
			State, Identity, Rule, Certificate string
		}
		decode(t, mustRun(t, "certs", "show", reported.Serial, "--config", s.config, "-o", "json"), &entry)
		if entry.State != "issued" || entry.Identity != w.id() || entry.Rule != "self" || !firstCertificate(t, []byte(entry.Certificate)).Equal(leaf) {
			t.Errorf("the entry is %+v", entry)
		}
		text := mustRun(t, "certs", "show", reported.Serial, "--config", s.config)
		for field, want := range map[string]string{
			"account":    w.account.Name + " (uid " + string(w.account.UID) + ")",
			"pod":        w.pod.Name + " (uid " + string(w.pod.UID) + ")",
			"node":       w.node.Name + " (uid " + string(w.node.UID) + ")",
			"namespace":  w.pod.Namespace,
			"credential": kubetest.ClaimsOf(t, token).ID,
		} {
			if got := row(text, field); got != want {
				t.Errorf("certs show: %s is %q, want %q", field, got, want)
			}
		}
		if leaked(text) {
			t.Error("the ledger holds a token")
		}
	})

	t.Run("what was got before outlives a refusal", func(t *testing.T) {
		before := readFile(t, chain)
		r := s.request(t, w.token(t, "vault"), out)
		if r.code != 1 || !strings.Contains(r.stderr, "request one with audience chancery (Unauthenticated)") || leaked(r.stdout+r.stderr) {
			t.Errorf("request ended with %d:\n%s%s", r.code, r.stdout, r.stderr)
		}
		if !bytes.Equal(readFile(t, chain), before) {
			t.Error("the chain is another one")
		}
	})

	t.Run("the audit record says the same", func(t *testing.T) {
		s.log.await(t, 5*time.Second, `"msg":"audit"`, `"decision":"issued"`, reported.Serial, w.id(), w.pod.Namespace+"/"+w.pod.Name, w.node.Name)
	})
}

// TestReviewersRights holds the test bed to what it claims: the server gets by with one right.
func TestReviewersRights(t *testing.T) {
	client := newAccess(t, kube(t), mayReview).client(t)
	for resource, want := range map[string]bool{
		"authentication.k8s.io/tokenreviews": true, "authorization.k8s.io/subjectaccessreviews": false, "/pods": false, "/serviceaccounts": false,
	} {
		group, name, _ := strings.Cut(resource, "/")
		answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "create", Group: group, Resource: name},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if answer.Status.Allowed != want {
			t.Errorf("may it create %s? %t", resource, answer.Status.Allowed)
		}
	}
}

// request runs chancery request.
func (s *server) request(t *testing.T, token, out string) result {
	t.Helper()
	return runCommand(t, "request", "--server", s.grpc, "--root", s.rootFile, "--token-file", writeToken(t, token), "--out", out, "-o", "json")
}

// row returns the value of a line of a table: what follows the name and the blanks.
func row(table, name string) string {
	for line := range strings.Lines(table) {
		if value, ok := strings.CutPrefix(line, name+"  "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}

func writeToken(t *testing.T, token string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// firstCertificate returns the first certificate of a PEM text.
func firstCertificate(t *testing.T, text []byte) *x509.Certificate {
	t.Helper()
	return certificates(t, text)[0]
}

// certificates returns all certificates of a PEM text, of which there is at least one.
func certificates(t *testing.T, text []byte) []*x509.Certificate {
	t.Helper()
	var out []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, certificate)
	}
	if len(out) == 0 {
		t.Fatalf("no certificate in %q", text)
	}
	return out
}
