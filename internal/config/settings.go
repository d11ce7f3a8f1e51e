package config

import (
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
)

// Setting is one value in effect.
type Setting struct {
	Path   string `json:"path"`   // dotted; keys of a list's entries as rules[0].name
	Value  any    `json:"value"`  // bool, int, float64, string or a list of them, as the file would hold it
	Origin string `json:"origin"` // "default" or "file:line"
}

// Settings returns every setting, in the order of default.yaml; profiles in the order of their names.
func (c *Config) Settings() []Setting {
	var all []Setting
	c.root().leaves(func(n node) {
		all = append(all, Setting{Path: n.path, Value: plain(n.value), Origin: c.from(n.path).String()})
	})
	return all
}

// Origin returns where the setting at a dotted path was set, or else the nearest section above it: "default" or "file:line".
func (c *Config) Origin(path string) string { return c.from(path).String() }

// from returns where path was set: itself, or the nearest section above it.
func (c *Config) from(path string) origin {
	for ; path != ""; path = parent(path) {
		if o, ok := c.origins[path]; ok {
			return o
		}
	}
	return origin{}
}

// node is a value of the configuration and where it stands.
type node struct {
	path  string
	key   string // the last element of path; empty for an entry of a list
	value reflect.Value
}

func (c *Config) root() node { return node{value: reflect.ValueOf(c).Elem()} }

// isLeaf tells whether the node is written as one value: a scalar, a list of scalars, or anything empty.
func (n node) isLeaf() bool {
	switch k := n.value.Kind(); {
	case isLeaf(n.value.Type()):
		return true
	case k == reflect.Slice || k == reflect.Map:
		return n.value.Len() == 0
	default:
		return false
	}
}

// children returns what is inside a section, a map of sections or a list of sections.
func (n node) children() []node {
	var all []node
	switch n.value.Kind() {
	case reflect.Map:
		sections := make(map[string]reflect.Value)
		for entries := n.value.MapRange(); entries.Next(); {
			sections[entries.Key().String()] = entries.Value()
		}
		for _, key := range slices.Sorted(maps.Keys(sections)) {
			all = append(all, node{path: join(n.path, key), key: key, value: sections[key]})
		}
	case reflect.Slice:
		for i := range n.value.Len() {
			all = append(all, node{path: fmt.Sprintf("%s[%d]", n.path, i), value: n.value.Index(i)})
		}
	default:
		for _, f := range fields(n.value.Type()) {
			all = append(all, node{path: join(n.path, f.key), key: f.key, value: n.value.Field(f.index)})
		}
	}
	return all
}

func (n node) leaves(visit func(node)) {
	if n.isLeaf() {
		visit(n)
		return
	}
	for _, child := range n.children() {
		child.leaves(visit)
	}
}

// plain returns a leaf in the types of JSON and YAML.
func plain(v reflect.Value) any {
	if v.Kind() == reflect.Slice {
		list := make([]any, 0, v.Len())
		for i := range v.Len() {
			list = append(list, plain(v.Index(i)))
		}
		return list
	}
	switch x := v.Interface().(type) {
	case time.Duration:
		return formatDuration(x)
	case slog.Level:
		return strings.ToLower(x.String())
	case spiffeid.TrustDomain:
		return x.Name()
	case netip.Addr:
		return x.String()
	case netip.Prefix:
		if x.IsSingleIP() {
			return x.Addr().String()
		}
		return x.String()
	default:
		return x
	}
}
