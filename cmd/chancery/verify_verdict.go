package main

import (
	"cmp"
	"fmt"
	"time"

	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/internal/inspect"
)

// verdict is what came out of a verification. Its JSON form is described in docs/inspect.md.
type verdict struct {
	Schema string    `json:"schema"`
	Valid  bool      `json:"valid"`
	At     time.Time `json:"at"`
	// Path is leaf first and trust anchor last; empty if there is none.
	Path []step `json:"path,omitempty"`
	// Policies are the certificate policies that the path is valid for, if there are any.
	Policies []string `json:"policies,omitempty"`
	Failure  *failure `json:"failure,omitempty"`
	// Unused are the damaged certificates of the files, which were left out.
	Unused []unused `json:"unused"`

	lists bool // revocation lists were given
}

type step struct {
	*inspect.Certificate
	// Revocation is "good" or "not_checked"; empty for the trust anchor.
	Revocation string `json:"revocation,omitempty"`
	// Findings are rules for issuers that the certificate breaks, which path validation passes over.
	Findings []inspect.Finding `json:"findings"`
}

// failure says which certificate broke which rule.
type failure struct {
	File     string `json:"file,omitempty"` // if the file cannot be used
	Position int    `json:"position,omitempty"`
	Subject  string `json:"subject,omitempty"`
	// For is the first name of the leaf, if it is the leaf.
	For    string `json:"for,omitempty"`
	Rule   string `json:"rule"`
	Detail string `json:"detail"`
}

type unused struct {
	File     string `json:"file"`
	Position int    `json:"position"`
	Detail   string `json:"detail"`
}

// The outcomes of revocation for a certificate that is not revoked.
const (
	revocationGood       = "good"
	revocationNotChecked = "not_checked"
)

func (v *verdict) accept(path *chain.Path, at time.Time) {
	v.Valid = true
	for i, certificate := range path.Certificates {
		next := step{Certificate: inspect.Describe(certificate, at), Findings: []inspect.Finding{}}
		if i < len(path.Revocation) {
			next.Revocation = revocationNotChecked
			if path.Revocation[i] {
				next.Revocation = revocationGood
			}
		}
		_, findings := chain.Inspect(certificate.Raw)
		for _, finding := range findings {
			next.Findings = append(next.Findings, inspect.Finding{Severity: inspect.Nonconforming, Rule: finding.Rule, Section: finding.Section, Detail: finding.Detail})
		}
		v.Path = append(v.Path, next)
	}
	for _, policy := range path.Policies {
		v.Policies = append(v.Policies, policy.String())
	}
}

func (v *verdict) write(p *inspect.Page) {
	if v.Valid {
		p.Line(inspect.Good, "valid at %s", stamp(v.At))
		for i, next := range v.Path {
			next.write(p, i+1, i == len(v.Path)-1)
			if v.lists && next.Revocation == revocationNotChecked {
				p.Row("", inspect.Warn, "revocation not checked: no list that was given is about it")
			}
		}
	} else {
		p.Line(inspect.Bad, "not valid at %s", stamp(v.At))
		v.Failure.write(p)
	}
	if v.Valid && !v.lists {
		p.Row("note", inspect.Plain, "revocation was not checked, since no list was given (--crl)")
	}
	for _, left := range v.Unused {
		p.Row("left out", inspect.Warn, fmt.Sprintf("certificate %d of %s: %s", left.Position, left.File, left.Detail))
	}
}

func (s *step) write(p *inspect.Page, position int, anchor bool) {
	who := fmt.Sprintf("%s for %s", s.Role, s.For())
	if anchor {
		who = fmt.Sprintf("%s, the trust anchor", s.For())
	}
	p.Row(fmt.Sprint(position), inspect.Strong, who)
	p.Row("", s.Validity.Tone(), s.Validity.String())
	if s.Revocation == revocationGood {
		p.Row("", inspect.Good, "not revoked")
	}
	for _, finding := range s.Findings {
		p.Row("", inspect.Warn, "odd: "+finding.String())
	}
}

func (f *failure) write(p *inspect.Page) {
	if f.File != "" {
		p.Row("file", inspect.Plain, f.File)
	}
	if f.Position > 0 {
		who := fmt.Sprintf("%d, counted from the leaf", f.Position)
		if f.Position == 1 {
			who = "1, the leaf"
		}
		if name := cmp.Or(f.For, f.Subject); name != "" {
			who += ": " + name
		}
		p.Row("who", inspect.Strong, who)
	}
	p.Row("rule", inspect.Plain, f.Rule)
	p.Row("found", inspect.Plain, f.Detail)
}
