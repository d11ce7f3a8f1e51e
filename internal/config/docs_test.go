package config

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write docs/configuration.md")

// entry is a key of default.yaml and the comment right above it.
type entry struct {
	path, comment string
	value         string // on one line; empty for a section
	depth         int
}

// manual reads default.yaml as a text: keys, values and comments.
func manual(t *testing.T) []entry {
	t.Helper()
	var all []entry
	lines := strings.Split(string(defaultYAML), "\n")
	var walk func(path string, n *yaml.Node, depth int)
	walk = func(path string, n *yaml.Node, depth int) {
		for i := 0; i < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			e := entry{path: join(path, key.Value), depth: depth}
			var comment []string
			for line := key.Line - 2; line >= 0; line-- {
				text, ok := strings.CutPrefix(lines[line], strings.Repeat(" ", key.Column-1)+"#")
				if !ok {
					break
				}
				comment = append([]string{strings.TrimPrefix(text, " ")}, comment...)
			}
			e.comment = strings.Join(comment, "\n")
			if value.Kind == yaml.MappingNode {
				all = append(all, e)
				walk(e.path, value, depth+1)
				continue
			}
			e.value = lines[value.Line-1][value.Column-1:]
			all = append(all, e)
		}
	}
	walk("", document(defaultYAML, &problems{}), 0)
	return all
}

// markdown writes the reference. Top-level keys are chapters, the keys below them rows.
func markdown(entries []entry) []byte {
	var b bytes.Buffer
	b.WriteString("# Configuration\n\n<!-- Generated from internal/config/default.yaml: go test ./internal/config -update -->\n\n")
	header, _, _ := strings.Cut(string(defaultYAML), "\n\n")
	header = strings.ReplaceAll(strings.ReplaceAll(header, "\n#", "\n"), "\n ", "\n")
	b.WriteString(strings.TrimPrefix(header, "# ") + "\n\n")
	b.WriteString("A running server reads the file again on SIGHUP. *Change* says which settings it takes over then (reload) and which wait for the next\nstart (restart).\n")
	inTable := false
	for _, e := range entries {
		if e.depth == 0 {
			fmt.Fprintf(&b, "\n## %s\n\n%s\n", e.path, prose(e.comment))
			inTable = false
			if e.value != "" {
				when := "restart"
				if takesEffectAtReload(e.path) {
					when = "reload"
				}
				fmt.Fprintf(&b, "\nDefault: `%s`. Change: %s.\n", e.value, when)
			}
			continue
		}
		if !inTable {
			b.WriteString("\n| Setting | Default | Change | Meaning |\n| --- | --- | --- | --- |\n")
			inTable = true
		}
		b.WriteString(row(e))
	}
	return b.Bytes()
}

func row(e entry) string {
	value, when := "", ""
	if e.value != "" {
		value, when = "`"+e.value+"`", "restart"
		if takesEffectAtReload(e.path) {
			when = "reload"
		}
	}
	meaning := strings.NewReplacer("\n", " ", "|", `\|`).Replace(e.comment)
	return fmt.Sprintf("| `%s` | %s | %s | %s |\n", e.path, value, when, meaning)
}

// prose turns the indented paragraphs of a comment into code blocks.
func prose(comment string) string {
	paragraphs := strings.Split(comment, "\n\n")
	for i, p := range paragraphs {
		if code, ok := strings.CutPrefix(p, "  "); ok {
			paragraphs[i] = "```\n" + strings.ReplaceAll(code, "\n  ", "\n") + "\n```"
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

// The documentation is generated; go test ./internal/config -update writes it.
func TestDocumentationIsCurrent(t *testing.T) {
	file := filepath.Join("..", "..", "docs", "configuration.md")
	want := markdown(manual(t))
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what default.yaml says (%v); run go test ./internal/config -update", file, err)
	}
}
