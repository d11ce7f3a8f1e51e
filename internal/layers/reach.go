package layers

import (
	"slices"
	"strings"
)

// reach holds everything that a package links against the Never rules. Each forbidden package is reported once for each rule, at the import of the
// package that the rule is about, with the way to it.
func (r Rules) reach(imports []importLine) []Violation {
	linked := make(map[string][]importLine) // by importing package
	for _, i := range imports {
		if target, ours := r.inside(i.target); ours && !i.test {
			i.target = target
			linked[i.from] = append(linked[i.from], i)
		}
	}
	var found []Violation
	for _, never := range r.Never {
		forbidden := func(pkg string) bool { return anyMatches(never.Targets, pkg) && !anyMatches(never.Except, pkg) }
		seen := map[string]bool{never.From: true}
		var visit func(first importLine, way []string)
		visit = func(first importLine, way []string) {
			pkg := way[len(way)-1]
			if seen[pkg] {
				return
			}
			seen[pkg] = true
			if forbidden(pkg) {
				found = append(found, first.violation("%s must never reach %s: %s", never.From, pkg, strings.Join(way, " imports ")))
				return
			}
			for _, next := range linked[pkg] {
				visit(first, append(slices.Clone(way), next.target))
			}
		}
		for _, first := range linked[never.From] {
			visit(first, []string{never.From, first.target})
		}
	}
	return found
}
