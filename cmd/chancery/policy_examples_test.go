package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/internal/config"
)

// TestPolicyExamples holds the examples of the documentation against their cases, and wants every rule in them to decide a case.
func TestPolicyExamples(t *testing.T) {
	const folder = "../../docs/examples/policy"
	files, err := filepath.Glob(filepath.Join(folder, "*.cases.yaml"))
	if err != nil || len(files) < 5 {
		t.Fatalf("found %d examples, %v", len(files), err)
	}
	for _, cases := range files {
		t.Run(filepath.Base(cases), func(t *testing.T) {
			path := strings.TrimSuffix(cases, ".cases.yaml") + ".yaml"
			var stdout, stderr bytes.Buffer
			if code := run(t.Context(), []string{"policy", "test", "--config", path, cases}, nil, &stdout, &stderr); code != exitDone {
				t.Fatalf("exit code %d\n%s%s", code, &stdout, &stderr)
			}
			cfg, err := config.Load(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, rule := range cfg.Rules {
				if !strings.Contains(stdout.String(), " by "+rule.Name) {
					t.Errorf("no case is decided by %s", rule.Name)
				}
			}
		})
	}
}

// FuzzPolicyCases holds the reader of cases to rules: an error is a *config.Error that names the file, and what is read can be asked about.
func FuzzPolicyCases(f *testing.F) {
	files, err := filepath.Glob("../../docs/examples/policy/*.cases.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, seed := range []string{
		"", "cases: []", "cases: [{name: a, principal: {id: /a, oidc: {claims: {a: [1, {b: ~}], c: true}}}, request: {ip_addresses: ['::1'], lifetime: 1h}, expect: {decision: deny}}]",
		"cases: [{name: a, principal: {id: /a, oidc: {claims: {a: {a: {a: {a: .inf}}}}}}, request: {uris: ['']}, expect: {decision: allow, max_lifetime: 1s}}]",
	} {
		f.Add([]byte(seed))
	}
	cfg, err := config.Parse("chancery.yaml", []byte("trust_domain: example.org\nrules: [{name: a, when: 'request.dns_names == [principal.oidc.claims.a]'}, {name: b, effect: deny, when: 'principal.certificate.grace'}]"), "")
	if err != nil {
		f.Fatal(err)
	}
	desk, err := newPolicyDesk(cfg)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		cases, _, err := readCases("cases.yaml", data, spiffeid.RequireTrustDomainFromString("example.org"))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "cases.yaml:") {
				t.Errorf("the error is %v", err)
			}
			return
		}
		results, err := desk.test(t.Context(), cases)
		if err != nil || len(results) != len(cases) {
			t.Fatalf("%d results of %d cases, %v", len(results), len(cases), err)
		}
		for _, r := range results {
			if (r.Answer.Decision == decisionAllow) != (r.Answer.Reason == "") || r.Answer.Reason == string(errkind.ReasonOf(nil)) {
				t.Errorf("the answer is %+v", r.Answer)
			}
		}
	})
}
