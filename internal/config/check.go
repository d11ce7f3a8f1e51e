package config

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
)

// checker holds values against their bounds. A path with a problem is not looked at again: its value is the one before, and a second
// report would mislead.
type checker struct {
	config *Config
	found  *problems
}

// bad reports a problem in the line where path, or the section that holds it, was set.
func (v *checker) bad(path, format string, args ...any) {
	if v.found.has(path) {
		return
	}
	line := 0
	if o := v.config.from(path); o.file != "" {
		line = o.line
	}
	v.found.add(line, path, format, args...)
}

// trusted tells whether all paths hold what the file says.
func (v *checker) trusted(paths ...string) bool {
	return !slices.ContainsFunc(paths, v.found.has)
}

// latest returns the first of the paths that the user's file set, or the first: where a problem between several is shown.
func (v *checker) latest(paths ...string) string {
	for _, path := range paths {
		if v.config.from(path).file != "" {
			return path
		}
	}
	return paths[0]
}

func (v *checker) number(path string, n, most int) {
	if n < 1 || n > most {
		v.bad(path, "%d is not from 1 to %d", n, most)
	}
}

// within checks a number that may be 0.
func (v *checker) within(path string, n, most float64) {
	if n < 0 || n > most {
		v.bad(path, "%v is not from 0 to %v", n, int(most))
	}
}

func (v *checker) duration(path string, d, least, most time.Duration) {
	if d < least || d > most {
		v.bad(path, "%s is not from %s to %s", formatDuration(d), formatDuration(least), formatDuration(most))
	}
}

// count checks the length of a list.
func (v *checker) count(path string, n, least, most int) {
	switch {
	case n < least:
		v.bad(path, "needs at least %d", least)
	case n > most:
		v.bad(path, "has %d entries; at most %d", n, most)
	}
}

func (v *checker) oneOf(path, value string, known ...string) {
	if slices.Contains(known, value) {
		return
	}
	message := fmt.Sprintf("%q is not one of %s", value, strings.Join(known, ", "))
	if len(known) == 1 {
		message = fmt.Sprintf("%q is not known; this version has %s", value, known[0])
	}
	if s := suggest(value, known); s != "" {
		message += fmt.Sprintf("; did you mean %q?", s)
	}
	v.bad(path, "%s", message)
}

func (v *checker) filled(path, value string) {
	if value == "" {
		v.bad(path, "is empty")
	}
}

func (v *checker) name(path, value string) {
	if !isName(value) {
		v.bad(path, "%q is not %s", value, nameFormat)
	}
}

// words checks a list of opaque names, such as audiences: each once, none empty or with spaces.
func (v *checker) words(path string, list []string, least, most int) {
	v.count(path, len(list), least, most)
	unique(v, path, list, func(path, word string) {
		if word == "" || len(word) > 255 || strings.ContainsFunc(word, unicode.IsSpace) {
			v.bad(path, "%q is not 1 to 255 characters without spaces", word)
		}
	})
}

// unique checks each item of a list, and that it is there once.
func unique[T comparable](v *checker, path string, list []T, check func(path string, item T)) {
	first := make(map[T]int)
	for i, item := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		if !v.trusted(at) {
			continue
		}
		if j, twice := first[item]; twice {
			v.bad(at, "%v is in the list already, as entry %d", item, j)
			continue
		}
		first[item] = i
		check(at, item)
	}
}
