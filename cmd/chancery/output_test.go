package main

import (
	"strings"
	"testing"
)

func TestPrintable(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"plain":                {"the CA says no: ünïcode", "the CA says no: ünïcode"},
		"a window's title":     {"\x1b]0;owned\a", `\x1b]0;owned\a`},
		"another line":         {"no\nchancery: ok", `no\nchancery: ok`},
		"the order reversed":   {"a\u202eb", `a\u202eb`},
		"not UTF-8":            {"a\xffb", "a\ufffdb"},
		"longer than a screen": {strings.Repeat("x", 5000), strings.Repeat("x", maxShown) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := printable(test.text); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}
