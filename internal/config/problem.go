package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Problem is one reason why a configuration is refused.
type Problem struct {
	File    string
	Line    int    // 1-based; zero if the problem is not in one line
	Path    string // dotted, as in authentication.kubernetes.timeout; empty for the file as a whole
	Message string
}

// String returns "file:line: path: message".
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		b.WriteString(":" + strconv.Itoa(p.Line))
	}
	if p.Path != "" {
		b.WriteString(": " + p.Path)
	}
	b.WriteString(": " + p.Message)
	return b.String()
}

// maxShown bounds the text of an Error: a file that is not a configuration at all would otherwise fill the screen.
const maxShown = 50

// Error is every problem of a configuration, in the order of its lines.
type Error struct {
	Problems []Problem
}

// Error returns a line for each problem.
func (e *Error) Error() string {
	lines := make([]string, 0, len(e.Problems))
	for i, p := range e.Problems {
		if i == maxShown {
			lines = append(lines, fmt.Sprintf("and %d more problems", len(e.Problems)-maxShown))
			break
		}
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n")
}

// problems collects what is wrong with the file called name.
type problems struct {
	name  string
	list  []Problem
	at    map[string]bool // paths that have a problem
	below map[string]bool // sections that have one inside
}

// maxMessage bounds a Problem's message, which may quote the file.
const maxMessage = 500

func (p *problems) add(line int, path, format string, args ...any) {
	if p.at == nil {
		p.at, p.below = make(map[string]bool), make(map[string]bool)
	}
	p.at[path] = true
	for section := parent(path); section != ""; section = parent(section) {
		p.below[section] = true
	}
	message := fmt.Sprintf(format, args...)
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	p.list = append(p.list, Problem{File: p.name, Line: line, Path: path, Message: message})
}

// has tells whether path, something below it or a section above it has a problem, so that a check on its value would mislead.
func (p *problems) has(path string) bool {
	if p.below[path] {
		return true
	}
	for ; path != ""; path = parent(path) {
		if p.at[path] {
			return true
		}
	}
	return false
}

func (p *problems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	slices.SortStableFunc(p.list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Path, b.Path))
	})
	return &Error{Problems: p.list}
}

// parent returns the section that holds path, or "".
func parent(path string) string {
	return path[:max(0, strings.LastIndexAny(path, ".["))]
}

// within tells whether path is below section.
func within(path, section string) bool {
	rest, ok := strings.CutPrefix(path, section)
	return ok && rest != "" && (rest[0] == '.' || rest[0] == '[')
}

// origin is where a value was set. The zero origin is default.yaml.
type origin struct {
	file string
	line int
}

// String returns "default" or "file:line".
func (o origin) String() string {
	if o.file == "" {
		return "default"
	}
	return fmt.Sprintf("%s:%d", printable(o.file), o.line)
}

// printable returns s, quoted if it would not stand on one line as it is or is longer than a line.
func printable(s string) string {
	const limit = 200
	if len(s) > limit {
		return strconv.Quote(s[:limit]) + "…"
	}
	if quoted := strconv.Quote(s); len(quoted) != len(s)+2 {
		return quoted
	}
	return s
}
