package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
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
	Name          *struct {
		Value string `json:"value"`
	} `json:"expected_peer_name"`
	Features []string `json:"features"`
}

// arguments writes the case's files and returns the command line.
func (c *limboCase) arguments(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, texts []string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(strings.Join(texts, "")), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	at := time.Now().Format(time.RFC3339)
	if c.At != nil {
		at = *c.At
	}
	usage := "server"
	if c.Kind == "CLIENT" {
		usage = "client"
	}
	args := []string{"verify", "--at", at, "--usage", usage, "--root", write("root.pem", c.Roots)}
	if len(c.Intermediates) > 0 {
		args = append(args, "--intermediate", write("intermediate.pem", c.Intermediates))
	}
	if len(c.CRLs) > 0 {
		args = append(args, "--crl", write("crl.pem", c.CRLs))
	}
	if c.Name != nil {
		args = append(args, "--host", c.Name.Value)
	}
	return append(args, write("leaf.pem", []string{c.Peer}))
}

// limboOther are features of cases that ask for what verify does not do: the web's rules beyond RFC 5280, and a limit on the path.
var limboOther = []string{"pedantic-webpki-eku", "pedantic-webpki-subscriber-key", "pedantic-public-suffix-wildcard", "max-chain-depth"}

// limboWeb are cases that fail by rules of the web beyond RFC 5280, which verify does not know: common names that follow the alternative
// names, key identifiers in roots, no CA certificate as a leaf.
var limboWeb = []string{
	"webpki::cn::", "webpki::aki::root-with-aki-", "webpki::san::san-critical-with-nonempty-subject", "webpki::ee-basicconstraints-ca", "webpki::ca-as-leaf",
}

// limboIssuers are cases in which a conforming CA would not have issued a certificate, and path validation (RFC 5280 §6) has no rule against it.
var limboIssuers = []string{
	"rfc5280::aki::", "rfc5280::ski::", "rfc5280::serial::", "rfc5280::nc::permitted-dns-match-noncritical", "rfc5280::nc::invalid-dnsname-leading-period",
	"rfc5280::nc::not-allowed-in-ee-", "rfc5280::pc::ica-noncritical-pc", "rfc5280::san::noncritical-with-empty-subject",
	"rfc5280::root-non-critical-basic-constraints", "rfc5280::leaf-ku-keycertsign",
}

// limboConforming are cases that the suite accepts, or accepts once and refuses once, though no conforming CA issued them; and one that it calls pedantic.
var limboConforming = []string{
	"crl::issuer-no-keyusage-extension", "webpki::nc::permitted-dns-match-noncritical", "rfc5280::aki::cross-signed-root-missing-aki",
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
	for flag, known := range map[string][]string{"--conforming=false": append(limboIssuers, limboWeb...), "--conforming": append(limboConforming, limboWeb...)} {
		matched, total := 0, 0
		for _, c := range suite.Cases {
			if slices.ContainsFunc(c.Features, func(f string) bool { return slices.Contains(limboOther, f) }) {
				continue
			}
			total++
			code, output := typed(append(c.arguments(t), flag)...)
			switch {
			case (code == exitDone) == (c.Expected == "SUCCESS") && code <= exitRefused:
				matched++
			case !slices.ContainsFunc(known, func(start string) bool { return strings.HasPrefix(c.ID, start) }):
				t.Errorf("%s %s: the corpus says %s, exit code %d\n%s", c.ID, flag, c.Expected, code, output)
			}
		}
		t.Logf("%s: %d of %d", flag, matched, total)
	}
}
