package pem_test

import (
	"encoding/asn1"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chancery-ca/chancery/ca/pem"
)

// TestCorpus compares verdicts with a corpus that may stand beside the module; the module does not need it.
func TestCorpus(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "shared", "corpora", "pem")
	index, err := os.ReadFile(filepath.Join(dir, "index.tsv"))
	if err != nil {
		t.Skip("no corpus beside the module")
	}
	for line := range strings.Lines(string(index)) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if strings.HasPrefix(line, "#") || len(fields) < 7 || fields[0] == "file" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, fields[0]))
		if err != nil {
			t.Fatal(err)
		}
		// an order is for the reader of chains to judge, not for the reader of PEM
		want := fields[5] == "accept" || strings.HasPrefix(fields[5], "policy")
		blocks, err := pem.Decode(text, certificates())
		accepted := err == nil
		for _, b := range blocks {
			// whether a block holds exactly one value is for its parser to judge; the corpus judges both at once
			var value asn1.RawValue
			if rest, err := asn1.Unmarshal(b.Bytes, &value); err != nil || len(rest) > 0 {
				accepted = false
			}
		}
		if accepted != want {
			t.Errorf("%s (%s): accepted %v (%v), the corpus says %s", fields[0], fields[1], accepted, err, fields[5])
		}
	}
}
