package config

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// maxSize bounds a configuration file, in bytes.
const maxSize = 1 << 20

// document returns the root mapping of data, or nil if there is nothing to decode: because the file is empty or because of problems,
// which are then in found.
//
// It refuses anchors, aliases, merge keys and tags anywhere in the tree: with them a small file can stand for a huge one, and the line
// that sets a value is no longer the line where it is read.
func document(data []byte, found *problems) *yaml.Node {
	if len(data) > maxSize {
		found.add(0, "", "larger than 1 MiB")
		return nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	if err := decoder.Decode(&doc); errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		addSyntax(found, err)
		return nil
	}
	if err := decoder.Decode(&second); err == nil {
		found.add(second.Line, "", "a second document; the configuration is one")
		return nil
	} else if !errors.Is(err, io.EOF) {
		addSyntax(found, err)
		return nil
	}
	before := len(found.list)
	inspect(&doc, found)
	if len(found.list) > before || len(doc.Content) != 1 {
		return nil
	}
	root := doc.Content[0]
	if isNull(root) {
		return nil
	}
	if root.Kind != yaml.MappingNode {
		found.add(root.Line, "", "needs key: value pairs")
		return nil
	}
	return root
}

// inspect looks for what no configuration needs. It does not follow aliases.
func inspect(node *yaml.Node, found *problems) {
	switch {
	case node.Kind == yaml.AliasNode:
		found.add(node.Line, "", "aliases (*%s) are not supported; write the value out", printable(node.Value))
		return
	case node.Anchor != "":
		found.add(node.Line, "", "anchors (&%s) are not supported", printable(node.Anchor))
	case node.Style&yaml.TaggedStyle != 0:
		found.add(node.Line, "", "tags (%s) are not supported", printable(node.Tag))
	}
	for _, child := range node.Content {
		inspect(child, found)
	}
}

func isNull(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && node.Tag == "!!null"
}

// addSyntax moves the line that the parser puts into its message to where ours are.
func addSyntax(found *problems, err error) {
	message := err.Error()
	parts := regexp.MustCompile(`(?s)^yaml: (?:line (\d+): )?(.*)$`).FindStringSubmatch(message)
	if parts == nil {
		found.add(0, "", "not YAML: %s", printable(message))
		return
	}
	line, _ := strconv.Atoi(parts[1]) // empty: unknown, zero
	found.add(line, "", "not YAML: %s", printable(parts[2]))
}
