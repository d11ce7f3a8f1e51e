package config

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// decoder lays one document over a Config and notes where each value was set.
type decoder struct {
	file     string // empty for default.yaml
	dir      string
	origins  map[string]origin
	problems *problems
}

func (d *decoder) bad(node *yaml.Node, path, format string, args ...any) {
	d.problems.add(node.Line, path, format, args...)
}

func (d *decoder) set(node *yaml.Node, path string) {
	d.origins[path] = origin{file: d.file, line: node.Line}
}

// mapping decodes a section into a struct. With whole it has to have every key that is not optional, since no default stands below it.
func (d *decoder) mapping(path string, node *yaml.Node, into reflect.Value, whole bool) {
	known := fields(into.Type())
	given, ok := d.pairs(path, node)
	if !ok {
		return
	}
	for _, pair := range given {
		i := slices.IndexFunc(known, func(f field) bool { return f.key == pair.key })
		if i < 0 {
			d.unknown(path, pair, known)
			continue
		}
		f := known[i]
		d.value(join(path, f.key), pair, into.Field(f.index), f)
	}
	if !whole {
		return
	}
	for _, f := range known {
		if !f.optional && !slices.ContainsFunc(given, func(p pair) bool { return p.key == f.key }) {
			d.bad(node, join(path, f.key), "missing")
		}
	}
}

func (d *decoder) unknown(path string, p pair, known []field) {
	keys := make([]string, 0, len(known))
	for _, f := range known {
		keys = append(keys, f.key)
	}
	message := "unknown key"
	if p.name.Tag == "!!merge" {
		message = "merge keys are not supported"
	} else if s := suggest(p.key, keys); s != "" {
		message = fmt.Sprintf("unknown key; did you mean %q?", s)
	}
	d.bad(p.name, join(path, printable(p.key)), "%s", message)
}

// value decodes what a key holds, whatever its kind.
func (d *decoder) value(path string, p pair, into reflect.Value, f field) {
	if isNull(p.value) {
		hint := ""
		if into.Kind() == reflect.Slice {
			hint = " ([] is the empty list)"
		}
		d.bad(p.name, path, "has no value; give it one or remove the key%s", hint)
		return
	}
	d.set(p.name, path)
	t := into.Type()
	switch {
	case isScalar(t):
		d.scalar(path, p.value, into, f)
	case t.Kind() == reflect.Slice:
		if d.list(path, p.value, into); f.optional && into.Len() == 0 {
			into.SetZero() // as if the key were absent
		}
	case t == reflect.TypeFor[JSON]():
		d.json(path, p.value, into)
	case t.Kind() == reflect.Map:
		d.named(path, p.value, into)
	default:
		d.mapping(path, p.value, into, false)
	}
}

func (d *decoder) scalar(path string, node *yaml.Node, into reflect.Value, f field) {
	parse := parseScalar
	if f.text {
		parse = parseLines
	}
	v, err := parse(node, into.Type())
	if err != nil {
		d.bad(node, path, "%s", err)
		return
	}
	if f.path && d.dir != "" && v.String() != "" {
		if p := v.String(); !filepath.IsAbs(p) {
			v = reflect.ValueOf(filepath.Join(d.dir, p))
		}
	}
	if name, ok := strings.CutPrefix(v.String(), "file:"); f.reference && ok && d.dir != "" && name != "" && !filepath.IsAbs(name) {
		v = reflect.ValueOf("file:" + filepath.Join(d.dir, name))
	}
	into.Set(v)
}

// list decodes a list, which replaces what was there before.
func (d *decoder) list(path string, node *yaml.Node, into reflect.Value) {
	if node.Kind != yaml.SequenceNode {
		d.bad(node, path, "needs a list, such as [a, b]")
		return
	}
	result := reflect.MakeSlice(into.Type(), len(node.Content), len(node.Content))
	for i, item := range node.Content {
		at := fmt.Sprintf("%s[%d]", path, i)
		d.set(item, at)
		if isScalar(into.Type().Elem()) {
			d.scalar(at, item, result.Index(i), field{})
		} else {
			d.mapping(at, item, result.Index(i), true)
		}
	}
	into.Set(result)
}

// named decodes a map of sections: those that exist already are changed key by key, a new one needs all its keys.
func (d *decoder) named(path string, node *yaml.Node, into reflect.Value) {
	if into.IsNil() {
		into.Set(reflect.MakeMap(into.Type()))
	}
	sections, _ := d.pairs(path, node)
	for _, p := range sections {
		if !isName(p.key) {
			d.bad(p.name, join(path, printable(p.key)), "a name is %s", nameFormat)
			continue
		}
		at := join(path, p.key)
		if isNull(p.value) {
			d.bad(p.name, at, "has no value; give it one or remove the key")
			continue
		}
		d.set(p.name, at)
		section := reflect.New(into.Type().Elem()).Elem()
		old := into.MapIndex(reflect.ValueOf(p.key))
		if old.IsValid() {
			section.Set(old)
		}
		d.mapping(at, p.value, section, !old.IsValid())
		into.SetMapIndex(reflect.ValueOf(p.key), section)
	}
}

// pair is one key of a mapping and what it holds.
type pair struct {
	key         string
	name, value *yaml.Node
}

// pairs returns the keys of a mapping, each once, or false if node is none.
func (d *decoder) pairs(path string, node *yaml.Node) ([]pair, bool) {
	if node.Kind != yaml.MappingNode {
		d.bad(node, path, "needs key: value pairs")
		return nil, false
	}
	result := make([]pair, 0, len(node.Content)/2)
	first := make(map[string]int, len(node.Content)/2)
	for i := 0; i+1 < len(node.Content); i += 2 {
		name := node.Content[i]
		if name.Kind != yaml.ScalarNode {
			d.bad(name, path, "a key has to be a plain name")
			continue
		}
		if line, twice := first[name.Value]; twice {
			d.bad(name, join(path, printable(name.Value)), "duplicate key; it is in line %d already", line)
			continue
		}
		first[name.Value] = name.Line
		result = append(result, pair{key: name.Value, name: name, value: node.Content[i+1]})
	}
	return result, true
}
