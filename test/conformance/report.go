package main

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
)

// render writes the report as Markdown.
func render(results []result, openssl string) string {
	var b strings.Builder
	b.WriteString(`# Conformance

Written by ` + "`make conformance`" + ` ([test/conformance](../test/conformance)). Each case of each suite was put to Chancery's own code, to crypto/x509
and to OpenSSL with the same inputs; *right* is the answer that the suite gives. "141 of 162" means that the other cases cannot be put to
that reader: crypto/x509 takes no revocation lists and no initial policy flags, and OpenSSL is a process for each case. Suites marked as not run
stand beside the project and were not there.

`)
	fmt.Fprintf(&b, "| suite | cases | skipped | Chancery: right | wrong | crypto/x509 (%s): right | wrong |", runtime.Version())
	if openssl != "" {
		fmt.Fprintf(&b, " %s: right | wrong |", openssl)
	}
	b.WriteString("\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
	if openssl != "" {
		b.WriteString(" ---: | ---: |")
	}
	b.WriteString("\n")
	for _, r := range results {
		if r.absent != "" {
			fmt.Fprintf(&b, "| %s | not run: %s |\n", r.name, r.absent)
			continue
		}
		fmt.Fprintf(&b, "| %s | %d | %d |", r.name, len(r.tests), sum(r.skipped))
		b.WriteString(cells(r.ours) + cells(r.standard))
		if openssl != "" {
			b.WriteString(cells(r.openssl))
		}
		b.WriteString("\n")
	}
	b.WriteString("\nWhat the suites are:\n\n")
	for _, r := range results {
		fmt.Fprintf(&b, "- %s: %s.\n", r.name, r.about)
	}
	b.WriteString("\n## Skipped\n\n| suite | cases | why |\n| --- | ---: | --- |\n")
	for _, r := range results {
		for _, reason := range slices.Sorted(maps.Keys(r.skipped)) {
			fmt.Fprintf(&b, "| %s | %d | %s |\n", r.name, r.skipped[reason], reason)
		}
	}
	b.WriteString("\n## Where Chancery answers otherwise\n\n| suite | case | our answer | why |\n| --- | --- | --- | --- |\n")
	for _, r := range results {
		for _, wrong := range []struct {
			names  []string
			answer string
		}{{r.ours.lax, "accepted"}, {r.ours.strict, "refused"}} {
			for _, name := range wrong.names {
				fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.name, name, wrong.answer, r.deviations[name])
			}
		}
	}
	b.WriteString("\n## Where the others answer otherwise\n\n| suite | reader | wrongly accepted | wrongly refused |\n| --- | --- | --- | --- |\n")
	for _, r := range results {
		for _, reader := range []struct {
			name string
			score
		}{{"crypto/x509", r.standard}, {"OpenSSL", r.openssl}} {
			if reader.wrong() > 0 {
				fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.name, reader.name, some(reader.lax), some(reader.strict))
			}
		}
	}
	return b.String()
}

// cells are the two columns of a reader.
func cells(s score) string {
	if s.right+s.wrong() == 0 {
		return " – | – |"
	}
	right := fmt.Sprint(s.right)
	if s.notApplicable > 0 {
		right += fmt.Sprintf(" of %d", s.right+s.wrong())
	}
	return fmt.Sprintf(" %s | %d |", right, s.wrong())
}

// some lists the first names and how many more there are.
func some(names []string) string {
	const most = 12
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

func sum(counts map[string]int) int {
	total := 0
	for _, n := range counts {
		total += n
	}
	return total
}
