package chain_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/ca/pem"
)

// corpus returns the rows of an index of verdicts that may stand beside the module; the module does not need it.
func corpus(t *testing.T, name string) (dir string, rows [][]string) {
	t.Helper()
	dir = filepath.Join("..", "..", "..", "shared", "corpora", name)
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

func readFile(t *testing.T, dir, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func decodePEM(t *testing.T, text []byte) []byte {
	t.Helper()
	blocks, err := pem.Decode(text, pem.Rules{Labels: []string{"CERTIFICATE"}})
	if err != nil {
		t.Fatal(err)
	}
	return blocks[0].Bytes
}

func TestCorpusOfPEM(t *testing.T) {
	dir, rows := corpus(t, "pem")
	for _, row := range rows {
		// the order of a chain is for its checker
		want := row[5] == "accept" || strings.HasPrefix(row[5], "policy")
		certificates, err := chain.ParsePEM(readFile(t, dir, row[0]))
		if (err == nil) != want {
			t.Errorf("%s (%s): %v, the corpus says %s", row[0], row[1], err, row[5])
		}
		if count := string(rune('0' + len(certificates))); count != row[6] {
			t.Errorf("%s (%s): %s certificates, the corpus says %s", row[0], row[1], count, row[6])
		}
	}
}

func TestCorpusOfBER(t *testing.T) {
	dir, rows := corpus(t, "ber")
	for _, row := range rows {
		for _, extension := range []string{".der", ".pem"} {
			input := readFile(t, dir, row[0]+extension)
			certificates, normalised, err := chain.ParseTolerant(input)
			if (err == nil) != (row[13] == "accept") {
				t.Errorf("%s%s: tolerant: %v, the corpus says %s", row[0], extension, err, row[13])
			}
			var strict error
			if extension == ".der" {
				_, strict = chain.ParseCertificate(input)
			} else {
				_, strict = chain.ParsePEM(input)
			}
			if (strict == nil) != (row[6] == "accept") {
				t.Errorf("%s%s: strict: %v, the corpus says %s", row[0], extension, strict, row[6])
			}
			if err == nil && normalised != (strict != nil) {
				t.Errorf("%s%s: normalised is %v", row[0], extension, normalised)
			}
			if err == nil && len(certificates) != 1 {
				t.Errorf("%s%s: %d certificates", row[0], extension, len(certificates))
			}
		}
	}
}

func TestCorpusOfCertificates(t *testing.T) {
	dir, rows := corpus(t, "certs")
	for _, row := range rows {
		text := readFile(t, dir, row[0])
		_, err := chain.ParsePEM(text)
		block := decodePEM(t, text)
		_, issuedErr := chain.ParseIssued(block)
		certificate, findings := chain.Inspect(block)
		worst := chain.Severity(0)
		for _, finding := range findings {
			worst = max(worst, finding.Severity)
		}
		ok := false
		switch row[2] {
		case "accept":
			ok = err == nil && issuedErr == nil && worst == 0
		case "reject":
			ok = err != nil && issuedErr != nil && worst == chain.Malformed
		case "nonconforming", "policy-reject":
			// crypto/x509 refuses some of these by itself
			ok = (err == nil) == (certificate != nil) && issuedErr != nil && worst == chain.Nonconforming
		}
		if !ok {
			t.Errorf("%s (%s): the corpus says %s, found %v", row[0], row[1], row[2], findings)
		}
	}
}
