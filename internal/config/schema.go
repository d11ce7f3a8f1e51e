package config

import (
	"reflect"
	"slices"
	"strings"
)

// field is one key of a section, read from the tags of a struct: `yaml:"key"` and, if need be, `config:"path"` for file names,
// `config:"optional"` for a key that an entry of a list may lack, `config:"text"` for text that may have several lines, `config:"reference"` for file:PATH or env:NAME, or more than one of them with a
// comma between.
type field struct {
	key      string
	index    int
	path     bool
	optional bool
	text     bool
	// reference means file:PATH or env:NAME, of which the path is one like those of path.
	reference bool
}

// fields returns the keys of a section in their order. Unexported fields have no key.
func fields(t reflect.Type) []field {
	var all []field
	for i := range t.NumField() {
		f := t.Field(i)
		key, ok := f.Tag.Lookup("yaml")
		if !ok {
			continue
		}
		options := strings.Split(f.Tag.Get("config"), ",")
		all = append(all, field{
			key: key, index: i, path: slices.Contains(options, "path"), optional: slices.Contains(options, "optional"), text: slices.Contains(options, "text"),
			reference: slices.Contains(options, "reference"),
		})
	}
	return all
}

// isLeaf tells whether t is a value or a list of values; otherwise it is a section, a map of sections or a list of sections.
func isLeaf(t reflect.Type) bool {
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return isScalar(t)
}

// join appends a key to a dotted path.
func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// suggest returns the known key that a mistyped one most likely means, or "".
func suggest(key string, known []string) string {
	plain := func(s string) string { return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(s)) }
	best, bestDistance := "", 3 // up to two slips
	if len(key) > 64 {
		return ""
	}
	for _, k := range known {
		d := distance(plain(key), plain(k))
		if d < bestDistance && d < len(k)-1 {
			best, bestDistance = k, d
		}
	}
	return best
}

// distance is the number of single-byte edits between a and b (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		previous := slices.Clone(row)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(previous[j]+cost, previous[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
