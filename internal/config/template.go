package config

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"go.yaml.in/yaml/v3"
)

// RenderDefault returns the text of default.yaml, comments and all, with the settings at the given dotted paths replaced. A value is
// of the setting's own type, or what the file would hold: a string, bool, int, float64 or a list of them; for rules a []Rule.
//
// It refuses a path that default.yaml does not have (a profile can be added only by hand) and a result that would not load.
func RenderDefault(overrides map[string]any) ([]byte, error) {
	root := document(defaultYAML, &problems{name: defaultName})
	values := make(map[string]*yaml.Node)
	locate("", root, values)

	lines := bytes.Split(defaultYAML, []byte("\n"))
	var errs []error
	for _, path := range slices.Sorted(maps.Keys(overrides)) {
		at, ok := values[path]
		if !ok {
			message := "no such setting in " + defaultName
			if s := suggest(path, slices.Sorted(maps.Keys(values))); s != "" {
				message += fmt.Sprintf("; did you mean %q?", s)
			}
			errs = append(errs, fmt.Errorf("%s: %s", path, message))
			continue
		}
		text, err := override(reflect.ValueOf(overrides[path]))
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", path, err))
			continue
		}
		line := lines[at.Line-1]
		lines[at.Line-1] = append(slices.Clone(line[:at.Column-1]), text...) // a value runs to the end of its line; tests hold default.yaml to it
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	result := bytes.Join(lines, []byte("\n"))
	if _, err := Parse(defaultName, result, ""); err != nil {
		return nil, err
	}
	return result, nil
}

// locate finds the values of all leaves below a mapping.
func locate(path string, n *yaml.Node, values map[string]*yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		at, value := join(path, n.Content[i].Value), n.Content[i+1]
		if value.Kind == yaml.MappingNode {
			locate(at, value, values)
		} else {
			values[at] = value
		}
	}
}

// override writes a value on one line of YAML.
func override(v reflect.Value) (string, error) {
	if !v.IsValid() {
		return "", errors.New("has no value")
	}
	switch x := v.Interface().(type) {
	case bool, int, float64, string, time.Duration, slog.Level, spiffeid.TrustDomain, netip.Addr, netip.Prefix:
		return inline(plain(v)), nil
	case Rule:
		var keys []string
		for _, child := range (node{value: reflect.ValueOf(x)}).children() {
			keys = append(keys, child.key+": "+inline(plain(child.value)))
		}
		return "{" + strings.Join(keys, ", ") + "}", nil
	}
	if v.Kind() == reflect.Interface {
		return override(v.Elem())
	}
	if v.Kind() != reflect.Slice {
		return "", fmt.Errorf("a value of type %s cannot be written", v.Type())
	}
	items := make([]string, 0, v.Len())
	for i := range v.Len() {
		text, err := override(v.Index(i))
		if err != nil {
			return "", err
		}
		items = append(items, text)
	}
	return "[" + strings.Join(items, ", ") + "]", nil
}
