package layers

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// plant writes a module of fake Go files: by file name, the packages that each imports. One without a dot is of the module.
func plant(t *testing.T, files map[string][]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, imports := range files {
		text := "//go:build never\n\npackage fake\n\n"
		for _, i := range imports {
			if !strings.Contains(i, ".") {
				i = Chancery().Module + "/" + i
			}
			text += fmt.Sprintf("import _ %q\n", i)
		}
		if strings.HasSuffix(name, "go.mod") {
			text = "module nested\n"
		}
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestViolations(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string][]string
		want  []string
	}{
		"nothing": {},
		"downwards": {map[string][]string{
			"cmd/chancery/main.go":  {"api/server", "ca", "signer/local", "internal/config", "k8s.io/client-go/rest"},
			"ca/ca.go":              {"signer", "ca/ledger", "csr", "context.x"},
			"ca/ledger/sqlite/a.go": {"ca/ledger"},
			"ca/ledger/ledger.go":   {"ca/errkind"},
		}, nil},
		"upwards":                   {map[string][]string{"ca/chain/a.go": {"ca/errkind", "ca/profile"}}, []string{"ca/chain/a.go:6: ca/chain (level 1) imports ca/profile (level 2); imports run downwards"}},
		"sideways":                  {map[string][]string{"signer/local/a.go": {"signer/vault"}}, []string{"signer/local/a.go:5: signer/local (level 3) imports signer/vault (level 3); imports run downwards"}},
		"the longer name decides":   {map[string][]string{"signer/local/a.go": {"signer/keystore"}, "signer/keystore/a.go": {"signer"}}, []string{"signer/keystore/a.go:5: signer/keystore (level 1) imports signer (level 2); imports run downwards"}},
		"controllers on the queue":  {map[string][]string{"internal/controller/csrsigner/a.go": {"internal/controller/queue"}}, nil},
		"deep below a pattern":      {map[string][]string{"internal/agent/sds/inner/a.go": {"ca"}}, []string{"internal/agent/sds/inner/a.go:5: internal/agent/sds/inner (level 3) imports ca (level 4); imports run downwards"}},
		"a package without a level": {map[string][]string{"ca/util/a.go": nil, "ca/util/b.go": nil}, []string{"ca/util/a.go:1: package ca/util has no level; place it in internal/layers/table.go"}},
		"a test without a level":    {map[string][]string{"helpers/a_test.go": {"ca"}}, []string{"helpers/a_test.go:1: package helpers has no level; place it in internal/layers/table.go"}},
		"the module's root":         {map[string][]string{"a.go": nil}, []string{"a.go:1: package . has no level; place it in internal/layers/table.go"}},
		"import without a level":    {map[string][]string{"ca/ca.go": {"ca/nothing"}}, []string{"ca/ca.go:5: imports ca/nothing, which has no level"}},
		"import of a command":       {map[string][]string{"test/e2e/a_test.go": {"cmd/chancery"}}, []string{"test/e2e/a_test.go:5: imports the command cmd/chancery; what is worth sharing has a package of its own"}},
		"test beds":                 {map[string][]string{"test/bench/main.go": {"test/kubetest", "ca/ledger/ledgertest"}, "test/kubetest/a.go": nil}, nil},
		"tests of one level":        {map[string][]string{"ca/ledger/sqlite/a_test.go": {"ca/ledger/sqlite", "ca/ledger/ledgertest", "signer/local"}}, nil},
		"a test's own suite above":  {map[string][]string{"ca/ledger/a_test.go": {"ca/ledger/ledgertest"}}, nil},
		"another's suite above":     {map[string][]string{"ca/chain/a_test.go": {"ca/ledger/ledgertest"}}, []string{"ca/chain/a_test.go:5: ca/chain (level 1) imports ca/ledger/ledgertest (level 3); imports run downwards"}},
		"a test upwards":            {map[string][]string{"ca/a_test.go": {"api/server"}}, []string{"ca/a_test.go:5: ca (level 4) imports api/server (level 5); imports run downwards"}},
		"a suite in the product":    {map[string][]string{"ca/ca.go": {"signer/signertest"}}, []string{"ca/ca.go:5: imports the test suite signer/signertest outside of a test"}},
		"cfssl elsewhere":           {map[string][]string{"signer/cfssl/a.go": {"github.com/cloudflare/cfssl/auth"}, "signer/local/a.go": {"github.com/cloudflare/cfssl/signer"}}, []string{"signer/local/a.go:5: github.com/cloudflare/cfssl is for signer/cfssl, internal/config/cfsslimport only"}},
		"client-go elsewhere":       {map[string][]string{"ca/a_test.go": {"k8s.io/client-go/kubernetes"}, "tokenreview/a.go": {"k8s.io/client-go/rest"}, "ca/b.go": {"k8s.io/client-gone"}}, []string{"ca/a_test.go:5: k8s.io/client-go is for tokenreview, signer/kubecsr, signer/keystore, internal/controller, cmd, test only"}},
		"grpc elsewhere":            {map[string][]string{"ca/errkind/a.go": {"google.golang.org/grpc/codes"}, "api/server/a.go": {"google.golang.org/grpc"}}, []string{"ca/errkind/a.go:5: google.golang.org/grpc is for api, internal/agent, signer/upstream, cmd, test only"}},
		"the agent and what it may": {map[string][]string{
			"cmd/chancery-agent/main.go":      {"internal/agent/renewal"},
			"internal/agent/renewal/a.go":     {"api/client", "ca/chain"},
			"api/client/a.go":                 {"ca/errkind"},
			"api/client/a_test.go":            {"ca/ledger"}, // level 1 imports level 1, in a test; tests are not linked
			"cmd/chancery-agent/main_test.go": {"ca"},
		}, nil},
		"the agent reaching a key": {map[string][]string{
			"cmd/chancery-agent/main.go":  {"internal/agent/sds"},
			"internal/agent/sds/a.go":     {"internal/agent/renewal"},
			"internal/agent/renewal/a.go": {"signer/keystore"},
		}, []string{"cmd/chancery-agent/main.go:5: cmd/chancery-agent must never reach signer/keystore: cmd/chancery-agent imports internal/agent/sds imports internal/agent/renewal imports signer/keystore"}},
		"the agent and the authority": {map[string][]string{"cmd/chancery-agent/main.go": {"ca/ledger", "ca"}}, []string{
			"cmd/chancery-agent/main.go:5: cmd/chancery-agent must never reach ca/ledger: cmd/chancery-agent imports ca/ledger",
			"cmd/chancery-agent/main.go:6: cmd/chancery-agent must never reach ca: cmd/chancery-agent imports ca",
		}},
		"what is not of the module": {map[string][]string{
			"tools/go.mod": nil, "tools/a.go": {"ca"}, "tools/gen/a.go": nil, "ca/testdata/a.go": nil, ".git/a.go": nil, "_old/a.go": nil, "ca/_a.go": {"cmd/chancery"},
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := Check(plant(t, test.files), Chancery())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, v := range found {
				got = append(got, v.String())
			}
			if strings.Join(got, "\n") != strings.Join(test.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

func TestUnreadableImportsAreAnError(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte("package a\nimport fmt\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Check(dir, Chancery()); err == nil {
		t.Error("no error")
	}
}

func TestEveryPackageHasOnePlace(t *testing.T) {
	seen := make(map[string]int)
	for _, l := range Chancery().Levels {
		for _, name := range l.Packages {
			if other, twice := seen[name]; twice {
				t.Errorf("%s is in level %d and level %d", name, other, l.Number)
			}
			seen[name] = l.Number
		}
	}
}

func TestThisModule(t *testing.T) {
	root := filepath.Join("..", "..")
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil || !strings.HasPrefix(string(mod), "module "+Chancery().Module+"\n") {
		t.Fatalf("%s is not this module's root: %v", root, err)
	}
	_, packages, err := scan(root)
	if err != nil || len(packages) < 10 {
		t.Fatalf("reading %s: %d packages, %v", root, len(packages), err)
	}
	found, err := Check(root, Chancery())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range found {
		t.Error(v)
	}
}
