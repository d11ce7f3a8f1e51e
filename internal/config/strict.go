package config

import (
	"fmt"
	"reflect"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// Document is a file that is read as strictly as the configuration but is none: every key known, every value of its type, all problems at once.
type Document struct {
	origins  map[string]origin
	problems *problems
}

// Decode reads data into a struct whose fields have tags as those of Config. Entries of lists need all their keys that are not optional. The error is a
// *Error that calls the data by name. What the values mean is checked by the caller, who can tell problems of its own in the same form.
func Decode(name string, data []byte, into any) (*Document, error) {
	d := &Document{origins: make(map[string]origin), problems: &problems{name: name}}
	root := document(data, d.problems)
	if root == nil {
		if len(d.problems.list) == 0 {
			d.problems.add(0, "", "is empty")
		}
		return nil, d.Err()
	}
	decoder := &decoder{file: name, origins: d.origins, problems: d.problems}
	decoder.mapping("", root, reflect.ValueOf(into).Elem(), true)
	if err := d.Err(); err != nil {
		return nil, err
	}
	return d, nil
}

// Bad adds a problem of the value at a dotted path, in the line where that, or the section around it, begins.
func (d *Document) Bad(path, format string, args ...any) {
	d.problems.add(d.Line(path), path, format, args...)
}

// Line returns where the value at a dotted path, or the section around it, begins; 1-based, zero if nothing is there.
func (d *Document) Line(path string) int {
	for ; path != ""; path = parent(path) {
		if o, ok := d.origins[path]; ok {
			return o.line
		}
	}
	return 0
}

// Err returns all problems as a *Error, or nil.
func (d *Document) Err() error { return d.problems.err() }

// JSON is a value without declared keys, in the types of encoding/json. Only what Decode reads may have one.
type JSON map[string]any

// maxJSONDepth bounds how deep a JSON is nested.
const maxJSONDepth = 16

// json decodes a mapping without declared keys.
func (d *decoder) json(path string, node *yaml.Node, into reflect.Value) {
	if v, ok := d.object(path, node, 0); ok {
		into.Set(reflect.ValueOf(JSON(v)))
	}
}

func (d *decoder) object(path string, node *yaml.Node, depth int) (map[string]any, bool) {
	pairs, ok := d.pairs(path, node)
	if !ok {
		return nil, false
	}
	out := make(map[string]any, len(pairs))
	for _, p := range pairs {
		out[p.key] = d.plain(join(path, printable(p.key)), p.value, depth+1)
	}
	return out, true
}

// plain decodes any value into the types of encoding/json.
func (d *decoder) plain(path string, node *yaml.Node, depth int) any {
	switch {
	case depth > maxJSONDepth:
		d.bad(node, path, "is nested more than %d deep", maxJSONDepth)
	case node.Kind == yaml.MappingNode:
		out, _ := d.object(path, node, depth)
		return out
	case node.Kind == yaml.SequenceNode:
		list := make([]any, 0, len(node.Content))
		for i, item := range node.Content {
			list = append(list, d.plain(fmt.Sprintf("%s[%d]", path, i), item, depth+1))
		}
		return list
	case isNull(node):
	case node.Tag == "!!bool", node.Tag == "!!int", node.Tag == "!!float", node.Tag == "!!str":
		v, err := plainScalar(node)
		if err != nil {
			d.bad(node, path, "%s", err)
		}
		return v
	default:
		d.bad(node, path, "needs a string, a number, true, false, null, a list or key: value pairs")
	}
	return nil
}

// plainScalar reads what JSON can hold. Numbers are decimal: what YAML reads otherwise has to be quoted.
func plainScalar(node *yaml.Node) (any, error) {
	switch node.Tag {
	case "!!bool":
		return parseBool(node)
	case "!!str":
		return node.Value, nil
	default:
		f, err := strconv.ParseFloat(node.Value, 64)
		if err != nil || f != f || f-f != 0 {
			return nil, fmt.Errorf("needs a decimal number; write %q if it is text", node.Value)
		}
		return f, nil
	}
}
