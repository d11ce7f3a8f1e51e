package config

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

// sheet is a document that is no configuration.
type sheet struct {
	Title string  `yaml:"title" config:"optional"`
	Rows  []strip `yaml:"rows"`
}

type strip struct {
	Name  string        `yaml:"name"`
	For   time.Duration `yaml:"for" config:"optional"`
	Facts JSON          `yaml:"facts" config:"optional"`
	Inner struct {
		Tags []string `yaml:"tags"`
	} `yaml:"inner" config:"optional"`
}

func TestDecode(t *testing.T) {
	var s sheet
	d, err := Decode("sheet.yaml", []byte("rows:\n- name: a\n  for: 1d\n  facts: {a: 1, b: [x, ~, true, {c: 1.5}], d: {}}\n- name: b\n  inner: {tags: [x]}\n"), &s)
	if err != nil {
		t.Fatal(err)
	}
	facts := JSON{"a": 1.0, "b": []any{"x", nil, true, map[string]any{"c": 1.5}}, "d": map[string]any{}}
	if len(s.Rows) != 2 || s.Rows[0].For != 24*time.Hour || !reflect.DeepEqual(s.Rows[0].Facts, facts) || s.Rows[1].Inner.Tags[0] != "x" {
		t.Errorf("got %+v", s)
	}
	if a, b, c := d.Line("rows[0].facts"), d.Line("rows[1].nothing"), d.Line("nothing"); a != 4 || b != 5 || c != 0 {
		t.Errorf("the lines are %d, %d and %d", a, b, c)
	}
	d.Bad("rows[1].inner.tags", "is %s", "odd")
	if err := d.Err(); err == nil || err.Error() != "sheet.yaml:6: rows[1].inner.tags: is odd" {
		t.Errorf("got %v", err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"nothing":             {"", "sheet.yaml: is empty"},
		"a comment":           {"# x", "sheet.yaml: is empty"},
		"a list":              {"[]", "needs key: value pairs"},
		"no rows":             {"title: a", "sheet.yaml:1: rows: missing"},
		"no name":             {"rows: [{for: 1h}]", "rows[0].name: missing"},
		"another key":         {"rows: [{name: a, fr: 1h}]", `rows[0].fr: unknown key; did you mean "for"?`},
		"a key twice":         {"rows: [{name: a, facts: {a: 1, a: 2}}]", "rows[0].facts.a: duplicate key"},
		"facts as a list":     {"rows: [{name: a, facts: [1]}]", "rows[0].facts: needs key: value pairs"},
		"an octal number":     {"rows: [{name: a, facts: {a: 0o17}}]", "rows[0].facts.a: needs a decimal number"},
		"infinity":            {"rows: [{name: a, facts: {a: .inf}}]", "rows[0].facts.a: needs a decimal number"},
		"no number":           {"rows: [{name: a, facts: {a: .nan}}]", "rows[0].facts.a: needs a decimal number"},
		"a date":              {"rows: [{name: a, facts: {a: 2026-01-01}}]", "rows[0].facts.a: needs a string, a number"},
		"an alias":            {"rows: [{name: &n a, facts: {a: *n}}]", "aliases (*n) are not supported"},
		"a tag":               {"rows: [{name: a, facts: {a: !!binary aGk=}}]", "tags (!!binary) are not supported"},
		"deeper than allowed": {"rows: [{name: a, facts: {a: " + strings.Repeat("[", 20) + strings.Repeat("]", 20) + "}}]", "is nested more than 16 deep"},
		"too large":           {strings.Repeat("#", maxSize+1), "larger than 1 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Decode("sheet.yaml", []byte(test.text), new(sheet))
			var refused *Error
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// FuzzDecode holds Decode to rules: an error is a *Error of this file, and facts that are accepted are what JSON can hold.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		"", "rows: []", "rows: [{name: a, for: 1h30m, facts: {a: [1, {b: ~}], c: -1e3, d: 'x', e: true}, inner: {tags: [a]}}]", "title: |\n  a\nrows: [{name: a}]",
		"rows: [{name: a, facts: {a: .inf, b: 0x1f, ? [x] : y}}]", "rows: [{name: a, facts: {<<: {a: b}}}]", "rows:\n- name: \"\\u0007\"", "{rows: &a [*a]}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var s sheet
		_, err := Decode("sheet.yaml", data, &s)
		if err != nil {
			var refused *Error
			if !errors.As(err, &refused) || !strings.HasPrefix(err.Error(), "sheet.yaml:") {
				t.Errorf("the error is %v", err)
			}
			return
		}
		for _, row := range s.Rows {
			text, err := json.Marshal(row.Facts)
			if err != nil {
				t.Fatal(err)
			}
			var again JSON
			if err := json.Unmarshal(text, &again); err != nil {
				t.Fatal(err)
			}
			if once, _ := json.Marshal(again); string(once) != string(text) {
				t.Errorf("%s becomes %s", text, once)
			}
		}
	})
}
