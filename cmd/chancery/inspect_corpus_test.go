package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// corpora may stand beside the module; it does not need them.
const corpora = "../../../shared/corpora"

// verdicts returns the rows of an index of verdicts.
func verdicts(t *testing.T, name string) (dir string, rows [][]string) {
	t.Helper()
	dir = filepath.Join(corpora, name)
	index, err := os.ReadFile(filepath.Join(dir, "index.tsv"))
	if err != nil {
		t.Skip("no corpus beside the module")
	}
	for line := range strings.Lines(string(index)) {
		if fields := strings.Split(strings.TrimRight(line, "\n"), "\t"); !strings.HasPrefix(line, "#") && fields[0] != "file" && len(fields) > 2 {
			rows = append(rows, fields)
		}
	}
	return dir, rows
}

// typed runs a command line and returns its exit code and what it printed.
func typed(args ...string) (code int, output string) {
	var out bytes.Buffer
	code = run(context.Background(), args, strings.NewReader(""), &out, &out)
	return code, out.String()
}

func TestInspectCorpusOfPEM(t *testing.T) {
	dir, rows := verdicts(t, "pem")
	for _, row := range rows {
		// the order of a chain is odd, and the text is right
		want := exitRefused
		if row[5] == "accept" || strings.HasPrefix(row[5], "policy") {
			want = exitDone
		}
		if code, output := typed("inspect", filepath.Join(dir, row[0])); code != want {
			t.Errorf("%s (%s): the corpus says %s, exit code %d\n%s", row[0], row[1], row[5], code, output)
		}
	}
}

func TestInspectCorpusOfBER(t *testing.T) {
	dir, rows := verdicts(t, "ber")
	for _, row := range rows {
		for _, file := range []string{filepath.Join(dir, row[0]+".der"), filepath.Join(dir, row[0]+".pem")} {
			if code, output := typed("inspect", file); (code == exitDone) != (row[6] == "accept") {
				t.Errorf("%s (%s): strictly, the corpus says %s, exit code %d\n%s", file, row[1], row[6], code, output)
			}
			if code, output := typed("inspect", "--allow-ber", file); (code == exitDone) != (row[13] == "accept") {
				t.Errorf("%s (%s): with --allow-ber, the corpus says %s, exit code %d\n%s", file, row[1], row[13], code, output)
			}
		}
	}
}

func TestLintCorpusOfCertificates(t *testing.T) {
	dir, rows := verdicts(t, "certs")
	for _, row := range rows {
		if code, output := typed("lint", "--kind", "certificate", filepath.Join(dir, row[0])); (code == exitDone) != (row[2] == "accept") {
			t.Errorf("%s (%s): the corpus says %s, exit code %d\n%s", row[0], row[1], row[2], code, output)
		}
	}
}

func TestLintCorpusOfRequests(t *testing.T) {
	dir, rows := verdicts(t, "csr")
	for _, row := range rows {
		// where the recommendation leaves a choice, a request may be either
		mayPass := strings.Contains(row[3], "accept") || strings.HasPrefix(row[3], "drop")
		mayFail := strings.Contains(row[3], "reject")
		code, output := typed("lint", "--kind", "csr", filepath.Join(dir, row[0]))
		if code == exitDone && !mayPass || code == exitRefused && !mayFail || code > exitRefused {
			t.Errorf("%s (%s): the corpus says %s, exit code %d\n%s", row[0], row[2], row[3], code, output)
		}
	}
}

// limboCase is a case of C2SP/x509-limbo.
type limboCase struct {
	ID            string   `json:"id"`
	Kind          string   `json:"validation_kind"`
	Roots         []string `json:"trusted_certs"`
	Intermediates []string `json:"untrusted_intermediates"`
	Peer          string   `json:"peer_certificate"`
	At            *string  `json:"validation_time"`
	Expected      string   `json:"expected_result"`
	CRLs          []string `json:"crls"`
	MaxChainDepth *int     `json:"max_chain_depth"`
	Name          *struct {
		Value string `json:"value"`
	} `json:"expected_peer_name"`
	Features []string `json:"features"`
}

// files writes a case's files and returns the flags for them, and the file to verify.
func (c *limboCase) files(t *testing.T) (flags []string, leaf string) {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, texts ...string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(strings.Join(texts, "")), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	flags = []string{"--root", write("root.pem", c.Roots...)}
	if len(c.Intermediates) > 0 {
		flags = append(flags, "--intermediate", write("intermediate.pem", c.Intermediates...))
	}
	if len(c.CRLs) > 0 {
		flags = append(flags, "--crl", write("crl.pem", c.CRLs...))
	}
	if c.At != nil {
		flags = append(flags, "--at", *c.At)
	}
	return flags, write("leaf.pem", c.Peer)
}

// wanted returns the flags that say what the certificate has to be for.
func (c *limboCase) wanted() []string {
	flags := []string{"--usage", "server"}
	if c.Kind == "CLIENT" {
		flags[1] = "client"
	}
	if c.Name != nil {
		flags = append(flags, "--host", c.Name.Value)
	}
	if c.MaxChainDepth != nil {
		flags = append(flags, "--path-length", strconv.Itoa(*c.MaxChainDepth))
	}
	return flags
}

// limboOther are features of cases that ask for the web's rules beyond RFC 5280, and limboWeb are such cases without a feature: common
// names that follow the alternative names, key identifiers in roots, no CA certificate as a leaf.
var (
	limboOther = []string{"pedantic-webpki-eku", "pedantic-public-suffix-wildcard"}
	limboWeb   = []string{
		"webpki::cn::", "webpki::aki::", "webpki::san::san-critical-with-nonempty-subject", "webpki::ee-basicconstraints-ca", "webpki::ca-as-leaf",
		"webpki::nc::permitted-dns-match-noncritical",
	}
)

func (c *limboCase) inScope() bool {
	return !slices.ContainsFunc(limboWeb, func(start string) bool { return strings.HasPrefix(c.ID, start) }) &&
		!slices.ContainsFunc(c.Features, func(f string) bool { return slices.Contains(limboOther, f) })
}

// limboDeviations are the cases that are answered otherwise; docs/conformance.md says why.
var limboDeviations = map[string][]string{
	"":             {"rfc5280::aki::cross-signed-root-missing-aki", "rfc5280::ski::root-missing-ski"},
	"--conforming": {"rfc5280::aki::cross-signed-root-missing-aki", "crl::issuer-no-keyusage-extension"},
}

func TestVerifyCorpusOfChains(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(corpora, "limbo", "limbo-regen.json"))
	if err != nil {
		t.Skip("no corpus beside the module")
	}
	var suite struct {
		Cases []limboCase `json:"testcases"`
	}
	if err := json.Unmarshal(text, &suite); err != nil {
		t.Fatal(err)
	}
	for flag, known := range limboDeviations {
		matched, total, bare := 0, 0, 0
		for _, c := range suite.Cases {
			if !c.inScope() {
				continue
			}
			total++
			files, leaf := c.files(t)
			args := append([]string{"verify", leaf}, files...)
			if flag != "" {
				args = append(args, flag)
			}
			if code, _ := typed(args...); (code == exitDone) == (c.Expected == "SUCCESS") {
				bare++
			}
			code, output := typed(append(args, c.wanted()...)...)
			switch {
			case (code == exitDone) == (c.Expected == "SUCCESS") && code <= exitRefused:
				matched++
			case !slices.Contains(known, c.ID):
				t.Errorf("%s %s: the corpus says %s, exit code %d\n%s", c.ID, flag, c.Expected, code, output)
			}
		}
		t.Logf("verify %s: %d of %d; %d without the name, the usage and the length that are wanted", flag, matched, total, bare)
		if total-matched != len(known) {
			t.Errorf("verify %s: %d cases differ, %d are known", flag, total-matched, len(known))
		}
	}
}
