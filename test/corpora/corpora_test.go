package corpora_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chancery-ca/chancery/ca/pem"
)

// row is a case of an index: its columns by name.
type row map[string]string

// index reads the index of a corpus.
func index(t *testing.T, corpus string) []row {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(string(read(t, corpus, "index.tsv")), "\n"), "\n")
	columns := strings.Split(lines[0], "\t")
	rows := make([]row, 0, len(lines)-1)
	for _, line := range lines[1:] {
		values := strings.Split(line, "\t")
		if len(values) != len(columns) {
			t.Fatalf("%s: %q has %d columns, the header has %d", corpus, line, len(values), len(columns))
		}
		r := make(row, len(columns))
		for i, column := range columns {
			r[column] = values[i]
		}
		rows = append(rows, r)
	}
	return rows
}

// each runs a test for every case of a corpus, and holds the number of cases against what there has to be at least.
func each(t *testing.T, corpus string, atLeast int, test func(t *testing.T, r row, content []byte)) {
	t.Helper()
	rows := index(t, corpus)
	if len(rows) < atLeast {
		t.Errorf("%s has %d cases; there have to be %d", corpus, len(rows), atLeast)
	}
	for _, r := range rows {
		t.Run(strings.TrimSuffix(r["file"], filepath.Ext(r["file"])), func(t *testing.T) { test(t, r, read(t, corpus, r["file"])) })
	}
}

func read(t *testing.T, corpus, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(corpus, file))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// one returns what the only block of a text holds.
func one(t *testing.T, text []byte, label string) []byte {
	t.Helper()
	blocks, err := pem.Decode(text, pem.Rules{Labels: []string{label}, MaxBlocks: 1})
	if err != nil {
		t.Fatal(err)
	}
	return blocks[0].Bytes
}

// judge holds whether something was accepted against a verdict.
func judge(t *testing.T, r row, who string, err error, verdict string) {
	t.Helper()
	if want := verdict == "accept"; (err == nil) != want {
		t.Errorf("%s (%s): %s has to %s it, and says: %v", r["what"], r["section"], who, verdict, err)
	}
}

// TestSize keeps the corpora small enough for every clone to carry.
func TestSize(t *testing.T) {
	var total int64
	for _, corpus := range []string{"certs", "ber", "pem", "csr", "chains", "crl"} {
		entries, err := os.ReadDir(corpus)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			info, err := entry.Info()
			if err != nil {
				t.Fatal(err)
			}
			total += info.Size()
		}
	}
	if const2MiB := int64(2 << 20); total > const2MiB {
		t.Errorf("the corpora have %d bytes; keep them below %d", total, const2MiB)
	}
}
