package chain

import (
	"crypto/x509"
	"fmt"

	"github.com/chancery-ca/chancery/ca/der"
)

// Severity says how bad a Finding is. The zero Severity is none.
type Severity uint8

// The severities.
const (
	// Nonconforming: the certificate can be read in one way only, but a conforming CA never issues it. It is refused from a backend;
	// a foreign chain may hold it.
	Nonconforming Severity = iota + 1
	// Malformed: readers can differ on what the certificate says, or must refuse it. It is refused from anyone.
	Malformed
)

// String returns the severity as reports show it.
func (s Severity) String() string {
	switch s {
	case Nonconforming:
		return "nonconforming"
	case Malformed:
		return "malformed"
	}
	return "none"
}

// Finding is one rule that a certificate breaks.
type Finding struct {
	Rule     string // a short and stable identifier, as "san-dns-syntax"
	Section  string // as "RFC 5280 §4.2.1.6"
	Detail   string // a sentence: what was found and what is expected
	Severity Severity
}

// String returns the sentence with its section.
func (f Finding) String() string { return f.Detail + " (" + f.Section + ")" }

// ParseError says why a certificate was refused. It has at least one finding.
type ParseError struct {
	Findings []Finding
}

// Error returns the first finding and how many there are.
func (e *ParseError) Error() string {
	if n := len(e.Findings); n > 1 {
		return fmt.Sprintf("%s, and %d more findings", e.Findings[0], n-1)
	}
	return e.Findings[0].String()
}

// ParseCertificate reads a certificate from anyone: an anchor, an intermediate, a peer's chain. It refuses what is Malformed and what
// crypto/x509 does not read. Errors are of type *ParseError.
func ParseCertificate(encoding []byte) (*x509.Certificate, error) {
	return parse(encoding, Malformed)
}

// ParseIssued reads a certificate that we or a backend of ours issued just now: besides what ParseCertificate refuses, it refuses what
// is Nonconforming. Errors are of type *ParseError.
func ParseIssued(encoding []byte) (*x509.Certificate, error) {
	return parse(encoding, Nonconforming)
}

// parse refuses findings that are at least as severe as limit.
func parse(encoding []byte, limit Severity) (*x509.Certificate, error) {
	certificate, findings := Inspect(encoding)
	if len(findings) == 0 {
		return certificate, nil
	}
	var refused []Finding
	for _, finding := range findings {
		// a certificate that crypto/x509 does not read is refused for whatever was found
		if finding.Severity >= limit || certificate == nil {
			refused = append(refused, finding)
		}
	}
	if len(refused) > 0 {
		return nil, &ParseError{Findings: refused}
	}
	return certificate, nil
}

// Inspect reads a certificate and returns everything that is wrong with it. The certificate is nil if it is not DER or if crypto/x509 does
// not read it; in both cases there is a finding that says so. It must not be trusted when there are findings: it is for showing.
func Inspect(encoding []byte) (*x509.Certificate, []Finding) {
	var in inspection
	if err := der.Check(encoding); err != nil {
		in.add(Malformed, "der", "RFC 5280 §4.1", "the certificate is not DER: %v", err)
		return nil, in.findings
	}
	in.certificate(encoding)
	certificate, err := x509.ParseCertificate(encoding)
	if err != nil {
		if len(in.findings) == 0 {
			in.add(Malformed, "crypto-x509", "RFC 5280 §4.1", "the certificate cannot be read: %s", bounded(err.Error()))
		}
		return nil, in.findings
	}
	return certificate, in.findings
}

// maxFindings bounds the findings of each severity: who sends a certificate with ten thousand bad names gets no longer report.
const maxFindings = 20

// inspection collects findings and the facts that rules across fields need.
type inspection struct {
	findings []Finding
	count    [Malformed + 1]int

	subjectEmpty bool
	selfIssued   bool
	key          keyKind
	usage        usageFacts
	identifiers  identifierFacts
	names        nameFacts
	constraints  constraintFacts
}

// add appends a finding. What it formats must be short or quoted by bounded.
func (in *inspection) add(severity Severity, rule, section, format string, args ...any) {
	if in.count[severity]++; in.count[severity] > maxFindings {
		return
	}
	in.findings = append(in.findings, Finding{Rule: rule, Section: section, Detail: fmt.Sprintf(format, args...), Severity: severity})
}

// maxShown is how much of a certificate's own text an error shows.
const maxShown = 120

// bounded cuts a text that may be as long as the sender liked.
func bounded(text string) string {
	if len(text) > maxShown {
		return text[:maxShown] + "…"
	}
	return text
}
