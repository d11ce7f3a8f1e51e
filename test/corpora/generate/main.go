// Command generate writes the test corpora: certificates, BER, PEM texts, requests, chains and revocation lists, each with a verdict.
//
// The output is the same, byte for byte, each time: keys are derived from names, signatures are deterministic and the clock stands still.
// Every defect stands alone, since what it is in has been signed after it was put there. Run it after a change of a case:
//
//	go run ./test/corpora/generate
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chancery-ca/chancery/ca/pem"
)

func main() {
	dir := flag.String("dir", filepath.Join("test", "corpora"), "where to write")
	flag.Parse()
	if err := write(*dir); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// folder is one corpus.
type folder struct {
	name    string
	columns []string
	rows    [][]string
	files   map[string][]byte
}

func newFolder(name string, columns ...string) *folder {
	return &folder{name: name, columns: columns, files: make(map[string][]byte)}
}

// add adds a case: its file, and the other columns of its row.
func (f *folder) add(file string, content []byte, columns ...string) {
	f.files[file] = content
	f.rows = append(f.rows, append([]string{file}, columns...))
}

// index returns the rows as tab-separated values under their header.
func (f *folder) index() []byte {
	var out strings.Builder
	for _, row := range append([][]string{append([]string{"file"}, f.columns...)}, f.rows...) {
		out.WriteString(strings.Join(row, "\t"))
		out.WriteByte('\n')
	}
	return []byte(out.String())
}

// corpora returns all files by their paths below the folder of the corpora.
func corpora() (map[string][]byte, error) {
	all := make(map[string][]byte)
	for _, f := range []*folder{certificates(), berCases(), pemCases(), requests(), chains(), revocationLists()} {
		all[f.name+"/index.tsv"] = f.index()
		for _, row := range f.rows {
			if len(row) != len(f.columns)+1 {
				return nil, fmt.Errorf("%s: %s has %d columns, the header has %d", f.name, row[0], len(row), len(f.columns)+1)
			}
		}
		if len(f.files) < len(f.rows) {
			return nil, fmt.Errorf("%s: two cases have the same name", f.name)
		}
		for name, content := range f.files {
			all[f.name+"/"+name] = content
		}
	}
	return all, nil
}

// write replaces the corpora in a folder.
func write(dir string) error {
	all, err := corpora()
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "README.md")); err != nil {
		return fmt.Errorf("%s is not the folder of the corpora: %w", dir, err)
	}
	for _, path := range slices.Sorted(maps.Keys(all)) {
		name := filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, all[path], 0o644); err != nil {
			return err
		}
	}
	return clean(dir, all)
}

// clean removes files of cases that are no more.
func clean(dir string, all map[string][]byte) error {
	var failed error
	for _, path := range committed(os.DirFS(dir), &failed) {
		if _, ok := all[path]; !ok {
			failed = errors.Join(failed, os.Remove(filepath.Join(dir, filepath.FromSlash(path))))
		}
	}
	return failed
}

// committed lists the files of the corpora that are in a folder.
func committed(dir fs.FS, failed *error) []string {
	var paths []string
	for _, name := range []string{"certs", "ber", "pem", "csr", "chains", "crl"} {
		entries, err := fs.ReadDir(dir, name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			*failed = errors.Join(*failed, err)
		}
		for _, entry := range entries {
			paths = append(paths, name+"/"+entry.Name())
		}
	}
	return paths
}

func certificatePEM(encodings ...[]byte) []byte { return encode("CERTIFICATE", encodings...) }

func encode(label string, encodings ...[]byte) []byte {
	var out []byte
	for _, encoding := range encodings {
		out = pem.Append(out, label, encoding)
	}
	return out
}
