//go:build e2e

package interop

import (
	"path/filepath"
	"testing"
)

// unexpected returns the findings of pkilint that are not listed.
func unexpected(findings [][3]string) []string {
	var out []string
	for _, f := range findings {
		severity, code, message := f[0], f[1], f[2]
		_, listed := accepted[code+": "+message]
		if severity == "INFO" || severity == "DEBUG" || listed {
			continue
		}
		out = append(out, severity+" "+code+": "+message)
	}
	return out
}

// accepted are findings of pkilint above information that are let pass, with the reason.
var accepted = map[string]string{
	`pkix.invalid_uri_syntax: Invalid URI syntax: "` + identity + `"`:          "its syntax checker knows a list of schemes, and spiffe is not in it",
	`pkix.invalid_domain_name_syntax: Invalid domain name syntax: "localhost"`: "its syntax checker wants a dot; RFC 1034 §3.5 allows one label",
}

func TestPKILint(t *testing.T) {
	b := newBed(t)
	type asked struct {
		Certificate string `json:"certificate"`
		Issuer      string `json:"issuer"`
	}
	issuer := filepath.Join(b.dir, "pki", "issuer.pem")
	questions := []asked{{b.rootFile(), ""}, {issuer, b.rootFile()}}
	names := []string{"root", "issuer"}
	for _, c := range append(b.issueAll(t), b.own(t)) {
		questions = append(questions, asked{c.file("leaf.pem"), issuer})
		names = append(names, c.name)
	}
	var answers [][][3]string
	runPython(t, "pkilint", questions, &answers)
	seen := make(map[string]bool)
	for i, findings := range answers {
		for _, finding := range findings {
			seen[finding[1]+": "+finding[2]] = true
		}
		for _, finding := range unexpected(findings) {
			t.Errorf("%s: %s", names[i], finding)
		}
	}
	for finding, reason := range accepted {
		if !seen[finding] {
			t.Errorf("%s is not found any more (%s); take it out of what is accepted", finding, reason)
		}
	}
	t.Logf("pkilint %s: %d certificates", firstLine(t, python(t), "-c", "import importlib.metadata as m; print(m.version('pkilint'))"), len(answers))
}
