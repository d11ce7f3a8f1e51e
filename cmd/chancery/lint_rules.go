package main

import (
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	zlint "github.com/zmap/zlint/v3/lint"

	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/ca/keypolicy"
	"github.com/chancery-ca/chancery/ca/lint"
	"github.com/chancery-ca/chancery/internal/inspect"
)

// lintRules are the rules of issuance, as far as they need no authority.
type lintRules struct {
	linter *lint.Linter
}

func newLintRules() (*lintRules, error) {
	linter, err := lint.New()
	if err != nil {
		return nil, err
	}
	return &lintRules{linter}, nil
}

// certificate lints an input that has to be one certificate.
func (r *lintRules) certificate(report *inspect.Report) ([]lintFinding, error) {
	findings := ofInput(report)
	switch items := report.Certificates(); {
	case len(findings) > 0:
		return findings, nil
	case len(items) != 1 || len(report.Items) != 1:
		return []lintFinding{{Rule: "one-certificate", Section: "RFC 7468 §5", Detail: fmt.Sprintf("there are %d certificates in it, and one is linted; a chain is linted with --kind chain", len(items))}}, nil
	case items[0].Certificate != nil && items[0].Certificate.CA:
		return r.issuer(items[0]), nil
	default:
		return r.leaf(items[0])
	}
}

// ofInput returns what makes the text around the certificates one that is not accepted.
func ofInput(report *inspect.Report) []lintFinding {
	var out []lintFinding
	for _, finding := range report.Findings {
		if finding.Severity == inspect.Refused {
			out = append(out, lintFinding{Rule: finding.Rule, Section: finding.Section, Detail: finding.Detail})
		}
	}
	return out
}

// structure returns what the strict parser of issued certificates refuses.
func structure(item *inspect.Item) []lintFinding {
	var out []lintFinding
	for _, finding := range item.Findings {
		if finding.Severity != inspect.Note {
			out = append(out, lintFinding{Rule: finding.Rule, Section: finding.Section, Detail: finding.Detail})
		}
	}
	return out
}

// leaf lints one certificate as a leaf.
func (r *lintRules) leaf(item *inspect.Item) ([]lintFinding, error) {
	findings := structure(item)
	certificate := item.X509()
	if certificate == nil {
		return findings, nil
	}
	findings = append(findings, leafRules(certificate)...)
	if len(structure(item)) > 0 {
		return findings, nil // zlint is for what the parser takes
	}
	signed, err := chain.New(certificate)
	if err != nil {
		return nil, err
	}
	linted, err := fromLinter(r.linter.Chain(signed, lint.Passed{}))
	return append(findings, linted...), err
}

// maxSerialBits keeps a serial number within 20 octets, sign bit included (RFC 5280 §4.1.2.2).
const maxSerialBits = 159

// leafRules are those of the checker that no profile changes.
func leafRules(leaf *x509.Certificate) []lintFinding {
	var out []lintFinding
	broken := func(rule, section, format string, args ...any) {
		out = append(out, lintFinding{Rule: rule, Section: section, Detail: fmt.Sprintf(format, args...)})
	}
	if leaf.Version != 3 {
		broken("leaf-version", "RFC 5280 §4.1.2.1", "the version is %d; what is issued has extensions, and so version 3", leaf.Version)
	}
	if leaf.SerialNumber.Sign() <= 0 || leaf.SerialNumber.BitLen() > maxSerialBits {
		broken("leaf-serial", "RFC 5280 §4.1.2.2", "the serial number is not positive and of at most %d bits", maxSerialBits)
	}
	if leaf.IsCA || leaf.KeyUsage&(x509.KeyUsageCertSign|x509.KeyUsageCRLSign) != 0 {
		broken("leaf-signs", "RFC 5280 §4.2.1.3", "it can sign certificates or revocation lists, and a leaf never does")
	}
	if leaf.NotAfter.Before(leaf.NotBefore) {
		broken("leaf-times", "RFC 5280 §4.1.2.5", "notAfter %s is before notBefore %s", stamp(leaf.NotAfter), stamp(leaf.NotBefore))
	}
	for _, id := range leaf.UnhandledCriticalExtensions {
		broken("leaf-critical", "RFC 5280 §4.2", "the critical extension %s is not understood here", id)
	}
	if err := keypolicy.Default().Check(leaf.PublicKey); err != nil {
		broken("leaf-key", "RFC 5280 §4.1.2.7", "%v", err)
	}
	return out
}

// issuer lints one certificate as one that signs others.
func (r *lintRules) issuer(item *inspect.Item) []lintFinding {
	findings := structure(item)
	certificate := item.X509()
	if certificate == nil {
		return findings
	}
	// by itself it has nothing above it and nothing below, and no clock
	_, err := chain.IssuerPath([]*x509.Certificate{certificate}, []*x509.Certificate{certificate}, certificate.NotBefore)
	for _, finding := range fromChecker(err, "issuer") {
		finding.Certificate = 0 // there is one
		findings = append(findings, finding)
	}
	return findings
}

// fromChecker returns the finding of an error of ca/chain.
func fromChecker(err error, rule string) []lintFinding {
	var broken *chain.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &broken):
		return []lintFinding{{Certificate: broken.Position, Rule: rule, Section: broken.Rule, Detail: broken.Detail}}
	default:
		return []lintFinding{{Rule: rule, Section: "RFC 5280 §6.1", Detail: err.Error()}}
	}
}

// fromLinter returns the findings of an error of ca/lint, those of zlint with the rule that they cite.
func fromLinter(err error) ([]lintFinding, error) {
	var refusal *lint.Refusal
	switch {
	case err == nil:
		return nil, nil
	case !errors.As(err, &refusal):
		return nil, err
	}
	var out []lintFinding
	for _, text := range refusal.Findings {
		finding := lintFinding{Rule: "structure", Section: "RFC 5280 §4.1", Detail: text}
		if rest, ok := strings.CutPrefix(text, "lint "); ok {
			name, details, _ := strings.Cut(rest, ": ")
			finding.Rule = name
			if known := zlint.GlobalRegistry().CertificateLints().ByName(name); known != nil {
				finding.Section, finding.Detail = known.Citation, known.Description
				if details != "" {
					finding.Detail += ": " + details
				}
			}
		}
		out = append(out, finding)
	}
	return out, nil
}
