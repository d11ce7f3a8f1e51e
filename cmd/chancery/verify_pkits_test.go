package main

import (
	"encoding/json"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// pkitsCase is a row of the vectors that Go has beside the certificates of NIST's suite.
type pkitsCase struct {
	Name                        string
	CertPath, CRLPath           []string
	ShouldValidate              bool
	InitialPolicySet            []string
	InitialPolicyMappingInhibit bool
	InitialExplicitPolicy       bool
	InitialAnyPolicyInhibit     bool
}

// pkitsDeviations are the cases that are answered otherwise; docs/conformance.md says why.
var pkitsDeviations = []string{
	"4.1.4 Valid DSA Signatures Test4", "4.1.5 Valid DSA Parameter Inheritance Test5", "4.14.4 Valid distributionPoint Test4",
	"4.14.5 Valid distributionPoint Test5", "4.14.29 Valid cRLIssuer Test29",
}

// arguments writes the case's files and returns the command line.
func (c *pkitsCase) arguments(t *testing.T, certificates string, lists map[string]string) []string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	var path []string
	for _, name := range c.CertPath {
		encoding, err := os.ReadFile(filepath.Join(certificates, name))
		if err != nil {
			t.Fatal(err)
		}
		path = append(path, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: encoding})))
	}
	last := len(path) - 1
	args := []string{"verify", "--at", "2020-01-01T00:00:00Z", "--root", write("root.pem", path[0])}
	if last > 1 {
		args = append(args, "--intermediate", write("intermediates.pem", strings.Join(path[1:last], "")))
	}
	for _, name := range c.CRLPath {
		args = append(args, "--crl", write(name, lists[name]))
	}
	for _, name := range c.InitialPolicySet {
		policy := "2.5.29.32.0"
		if number, ok := strings.CutPrefix(name, "NIST-test-policy-"); ok {
			policy = "2.16.840.1.101.3.2.1.48." + number
		}
		args = append(args, "--policy", policy)
	}
	for flag, set := range map[string]bool{
		"--explicit-policy": c.InitialExplicitPolicy, "--inhibit-policy-mapping": c.InitialPolicyMappingInhibit, "--inhibit-any-policy": c.InitialAnyPolicyInhibit,
	} {
		if set {
			args = append(args, flag)
		}
	}
	return append(args, write("leaf.pem", path[last]))
}

func TestVerifyPKITS(t *testing.T) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skip("there is no go command to ask for GOROOT")
	}
	dir := filepath.Join(strings.TrimSpace(string(root)), "src", "crypto", "x509", "testdata", "nist-pkits")
	vectors, err := os.ReadFile(filepath.Join(dir, "vectors.json"))
	if err != nil {
		t.Skip("this Go has no sources with it")
	}
	var cases []pkitsCase
	if err := json.Unmarshal(vectors, &cases); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "test", "conformance", "testdata", "pkits-crls.pem"))
	if err != nil {
		t.Fatal(err)
	}
	lists, name := make(map[string]string), ""
	for line := range strings.Lines(string(text)) {
		if strings.HasSuffix(line, ".crl\n") {
			name = strings.TrimSpace(line)
		} else {
			lists[name] += line
		}
	}
	for _, c := range cases {
		code, output := typed(c.arguments(t, filepath.Join(dir, "certs"), lists)...)
		if valid := c.ShouldValidate != slices.Contains(pkitsDeviations, c.Name); (code == exitDone) != valid || code > exitRefused {
			t.Errorf("%s: want valid %v, exit code %d\n%s", c.Name, valid, code, output)
		}
	}
}
