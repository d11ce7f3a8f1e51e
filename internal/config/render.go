package config

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Render writes every setting in effect as YAML that loads to the same configuration, each with a comment that says where it was set.
func (c *Config) Render(w io.Writer) error {
	var b strings.Builder
	for _, child := range c.root().children() {
		c.render(&b, child, "", "")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// render writes a node. The first line starts with lead, the others with indent.
func (c *Config) render(b *strings.Builder, n node, lead, indent string) {
	if n.isLeaf() {
		fmt.Fprintf(b, "%s%s: %s  # %s\n", lead, n.key, inline(plain(n.value)), printable(c.from(n.path).String()))
		return
	}
	if n.key != "" {
		fmt.Fprintf(b, "%s%s:\n", lead, quote(n.key))
		lead, indent = indent+"  ", indent+"  "
	}
	for _, child := range n.children() {
		if child.key == "" {
			c.render(b, child, indent+"- ", indent+"  ")
			continue
		}
		c.render(b, child, lead, indent)
		lead = indent
	}
}

// RenderJSON writes every setting in effect as a JSON array of path, value and origin.
func (c *Config) RenderJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(c.Settings())
}

// inline writes a value of Setting on one line of YAML.
func inline(v any) string {
	switch x := v.(type) {
	case string:
		return quote(x)
	case float64:
		return strconv.FormatFloat(x, 'f', -1, 64)
	case []any:
		parts := make([]string, 0, len(x))
		for _, item := range x {
			parts = append(parts, inline(item))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	default: // bool, int
		return fmt.Sprint(x)
	}
}

// quote returns s as a YAML string, plain where no reader could take it for something else. Go's escapes are a subset of YAML's.
func quote(s string) string {
	const safe = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-"
	var n yaml.Node
	if strings.Trim(s, safe) == "" && strings.TrimLeft(s, "._-") == s && yaml.Unmarshal([]byte(s), &n) == nil &&
		len(n.Content) == 1 && n.Content[0].Tag == "!!str" {
		return s
	}
	return strconv.Quote(s)
}
