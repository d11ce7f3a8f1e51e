// Package layers proves which package may import which: imports run strictly downwards through numbered levels, some modules are for a few
// packages only, and some packages must never reach others.
//
// It reads the import lines of every Go file below a folder with go/parser, whatever their build tags, and never asks the go command: what
// that lists depends on tags and platform, and its answer would hide behind the test cache. It never looks into nested modules, testdata
// and folders that begin with a dot or an underscore.
package layers

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Rules say what may import what. Packages are named by their path inside the module; "x/*" stands for everything below x, at any depth, that no
// longer name covers.
type Rules struct {
	Module string // the module path
	Levels []Level
	// Mutual are names whose packages may import each other although they are of one level.
	Mutual []string
	Only   []Only
	Never  []Never
}

// Level is a set of packages that import only lower levels.
type Level struct {
	Number   int
	Packages []string
}

// Only keeps a foreign module, or a part of it, to some folders of ours, with what is below them. It holds for tests too.
type Only struct {
	Import  string
	Folders []string
}

// Never keeps a package from linking others, directly or through anything that it imports. Tests are not linked and not counted.
type Never struct {
	From    string
	Targets []string
	Except  []string // of the targets
}

// Violation is an import, or a package, that the rules do not allow.
type Violation struct {
	File    string // relative to the checked folder
	Line    int
	Message string
}

// String returns "file:line: message".
func (v Violation) String() string { return fmt.Sprintf("%s:%d: %s", v.File, v.Line, v.Message) }

// Check returns the violations in the module in dir, in the order of files and lines. An error means that a file could not be read.
func Check(dir string, rules Rules) ([]Violation, error) {
	imports, packages, err := scan(dir)
	if err != nil {
		return nil, err
	}
	var found []Violation
	for _, p := range packages {
		if _, ok := rules.level(p.path); !ok {
			found = append(found, Violation{p.file, 1, fmt.Sprintf("package %s has no level; place it in internal/layers/table.go", p.path)})
		}
	}
	for _, i := range imports {
		found = append(found, rules.foreign(i)...)
		if target, ours := rules.inside(i.target); ours {
			found = append(found, rules.downwards(i, target)...)
		}
	}
	found = append(found, rules.reach(imports)...)
	slices.SortStableFunc(found, func(a, b Violation) int { return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line)) })
	return found, nil
}

// inside returns the path inside the module of an import path, if it is ours.
func (r Rules) inside(target string) (string, bool) {
	if target == r.Module {
		return ".", true
	}
	return strings.CutPrefix(target, r.Module+"/")
}

// level returns the level of a package: of its own name, or of the longest pattern above it.
func (r Rules) level(pkg string) (int, bool) {
	best, number := -1, 0
	for _, l := range r.Levels {
		for _, name := range l.Packages {
			if matches(name, pkg) && len(name) > best {
				best, number = len(name), l.Number
			}
			if name == pkg {
				return l.Number, true
			}
		}
	}
	return number, best >= 0
}

// matches tells whether a name, or a pattern, stands for a package.
func matches(name, pkg string) bool {
	folder, pattern := strings.CutSuffix(name, "/*")
	if pattern {
		return strings.HasPrefix(pkg, folder+"/")
	}
	return name == pkg
}

func anyMatches(names []string, pkg string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return matches(name, pkg) })
}

// within tells whether pkg is folder or below it.
func within(folder, pkg string) bool { return pkg == folder || strings.HasPrefix(pkg, folder+"/") }

// foreign holds an import against the Only rules.
func (r Rules) foreign(i importLine) []Violation {
	var found []Violation
	for _, only := range r.Only {
		if within(only.Import, i.target) && !slices.ContainsFunc(only.Folders, func(f string) bool { return within(f, i.from) }) {
			found = append(found, i.violation("%s is for %s only", only.Import, strings.Join(only.Folders, ", ")))
		}
	}
	return found
}

// downwards holds an import of ours against the levels.
//
// A test may import its own level as well, since what it tests with is often beside it (a ledger for an authority, a signer's suite), and the suite
// of its own package, which lies above: ca/ledger/ledgertest for ca/ledger. Nobody else imports a suite, and nobody imports a command.
func (r Rules) downwards(i importLine, target string) []Violation {
	from, placed := r.level(i.from)
	to, known := r.level(target)
	switch {
	case !known:
		return []Violation{i.violation("imports %s, which has no level", target)}
	case !placed, target == i.from: // reported already; an external test of its own package
		return nil
	case within("cmd", target):
		return []Violation{i.violation("imports the command %s; what is worth sharing has a package of its own", target)}
	case isSuite(target) && !i.test && !isSuite(i.from) && !within("test", i.from):
		return []Violation{i.violation("imports the test suite %s outside of a test", target)}
	case to < from,
		i.test && to == from,
		i.test && isSuite(target) && path.Dir(target) == i.from,
		slices.ContainsFunc(r.Mutual, func(name string) bool { return matches(name, i.from) && matches(name, target) }):
		return nil
	default:
		return []Violation{i.violation("%s (level %d) imports %s (level %d); imports run downwards", i.from, from, target, to)}
	}
}

// isSuite tells whether a package is the test suite of the one above it, as signer/signertest is of signer.
func isSuite(pkg string) bool {
	return path.Base(pkg) == path.Base(path.Dir(pkg))+"test"
}
