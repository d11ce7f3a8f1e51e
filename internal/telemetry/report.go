package telemetry

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Result is what became of one check.
type Result struct {
	Name     string
	Severity Severity
	Problem  string // one line; empty if the check passed
}

// Report is what became of a set of checks, in their order. It is immutable.
type Report struct {
	At      time.Time
	Results []Result
}

// OK tells whether every required check passed.
func (r Report) OK() bool {
	return !slices.ContainsFunc(r.Results, func(c Result) bool { return c.Problem != "" && c.Severity == Required })
}

// status is a word for the whole.
func (r Report) status() string {
	switch {
	case !r.OK():
		return "failed"
	case slices.ContainsFunc(r.Results, func(c Result) bool { return c.Problem != "" }):
		return "degraded"
	default:
		return "ok"
	}
}

// String returns the result's line: "[+] ledger: ok", "[-] ledger: database is full" or "[!] kubernetes: timeout (degraded)".
func (c Result) String() string {
	switch {
	case c.Problem == "":
		return fmt.Sprintf("[+] %s: ok", c.Name)
	case c.Severity == Degraded:
		return fmt.Sprintf("[!] %s: %s (degraded)", c.Name, c.Problem)
	default:
		return fmt.Sprintf("[-] %s: %s", c.Name, c.Problem)
	}
}

// Text writes a line for each check.
func (r Report) Text(w io.Writer) error {
	var b strings.Builder
	for _, c := range r.Results {
		b.WriteString(c.String() + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// MarshalJSON returns an object with a status (ok, degraded or failed), the time of the run and the checks.
func (r Report) MarshalJSON() ([]byte, error) {
	type check struct {
		Name     string `json:"name"`
		Severity string `json:"severity"`
		OK       bool   `json:"ok"`
		Problem  string `json:"problem,omitempty"`
	}
	checks := make([]check, 0, len(r.Results))
	for _, c := range r.Results {
		checks = append(checks, check{c.Name, c.Severity.String(), c.Problem == "", c.Problem})
	}
	return json.Marshal(struct {
		Status string    `json:"status"`
		At     time.Time `json:"at"`
		Checks []check   `json:"checks"`
	}{r.status(), r.At.UTC(), checks})
}

// sentence returns an error's text as one short line without secrets, never empty.
func sentence(err error) string {
	const limit = 300
	text := strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	switch {
	case text == "":
		return "unknown error"
	case secretText(text):
		return redacted
	case len(text) > limit:
		return strings.ToValidUTF8(text[:limit], "") + "…"
	default:
		return text
	}
}
