package layers

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// importLine is one import of one file.
type importLine struct {
	file   string
	line   int
	test   bool   // in a _test.go file
	from   string // the importing package, inside the module
	target string // the import path
}

func (i importLine) violation(format string, args ...any) Violation {
	return Violation{File: i.file, Line: i.line, Message: fmt.Sprintf(format, args...)}
}

// goPackage is a folder with Go files.
type goPackage struct {
	path string // inside the module; "." for its root
	file string // the first of them
}

// scan reads the import lines of the module in dir.
func scan(dir string) ([]importLine, []goPackage, error) {
	var imports []importLine
	var packages []goPackage
	seen := make(map[string]bool)
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := strings.HasPrefix(entry.Name(), ".") || strings.HasPrefix(entry.Name(), "_")
		switch {
		case name == dir:
			return nil
		case entry.IsDir():
			if hidden || entry.Name() == "testdata" || entry.Name() == "vendor" || isModule(name) {
				return filepath.SkipDir
			}
			return nil
		case hidden || !strings.HasSuffix(entry.Name(), ".go"):
			return nil
		}
		relative, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		file := filepath.ToSlash(relative)
		if pkg := path.Dir(file); !seen[pkg] {
			seen[pkg] = true
			packages = append(packages, goPackage{pkg, file})
		}
		lines, err := read(name, file)
		imports = append(imports, lines...)
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("reading imports: %w", err)
	}
	return imports, packages, nil
}

func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// read returns the import lines of a file.
func read(name, file string) ([]importLine, error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, name, nil, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	var lines []importLine
	for _, spec := range parsed.Imports {
		target, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: import %s: %w", file, spec.Path.Value, err)
		}
		lines = append(lines, importLine{
			file: file, line: files.Position(spec.Pos()).Line, test: strings.HasSuffix(file, "_test.go"), from: path.Dir(file), target: target,
		})
	}
	return lines, nil
}
