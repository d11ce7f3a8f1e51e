package csr_test

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chancery-ca/chancery/csr"
)

// TestCorpus parses a corpus of requests with verdicts, where there is one: index.tsv names a file in its first column and what is
// recommended in its fourth. Where the recommendation leaves a choice, the request may be either.
func TestCorpus(t *testing.T) {
	const corpus = "../../shared/corpora/csr"
	index, err := os.Open(filepath.Join(corpus, "index.tsv"))
	if err != nil {
		t.Skip("no corpus here")
	}
	defer index.Close()
	lines := bufio.NewScanner(index)
	lines.Scan() // the header
	matched, total := 0, 0
	for lines.Scan() {
		columns := strings.Split(lines.Text(), "\t")
		file, recommended := columns[0], columns[3]
		input, err := os.ReadFile(filepath.Join(corpus, file))
		if err != nil {
			t.Fatal(err)
		}
		total++
		_, err = csr.Parse(input, csr.Rules{})
		accepted := err == nil
		mayAccept := strings.Contains(recommended, "accept") || strings.Contains(recommended, "drop")
		mayRefuse := strings.Contains(recommended, "reject")
		if accepted && !mayAccept || !accepted && !mayRefuse {
			t.Errorf("%s: recommended is %s; got %v", file, recommended, err)
			continue
		}
		matched++
	}
	t.Logf("%d of %d", matched, total)
}
