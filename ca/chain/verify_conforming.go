package chain

import (
	"crypto/x509"
	"strings"
)

// checkConforming refuses what a conforming CA never issues: without Conforming, where no reader needs such a certificate; with it, all.
func (v *verification) checkConforming(m *member) *Error {
	_, findings := Inspect(m.certificate.Raw)
	for _, finding := range findings {
		if m.alwaysRefused(finding.Rule) || v.options.Conforming && (!m.anchor || bindsAnchor(finding.Rule)) {
			return refuse(0, m, finding.Section, "%s", finding.Detail)
		}
	}
	if m.constraints != nil && m.constraints.dotted() && (v.options.Conforming || !m.predatesRules()) {
		return refuse(0, m, ruleConstraints, "its name constraints hold a dNSName with a leading period, which only hosts of URIs and mailboxes may have")
	}
	return nil
}

// alwaysRefused tells whether a finding refuses a certificate with or without Conforming. Rules that certificates in use break, or
// those that NIST's path validation suite calls valid, are not among them: these say why beside the others.
func (m *member) alwaysRefused(rule string) bool {
	switch rule {
	case "name-constraints-critical", "inhibit-any-policy-critical", "key-usage-ca", "key-usage-empty", "subject-empty-ca":
		return !m.predatesRules()
	case "policy-constraints-critical":
		// RFC 3280 §4.2.1.12 left it open. Beside policies of its own, a certificate says to a reader that passes over the constraint
		// what it says to one that does not; without, no policy is left below it (RFC 5280 §6.1.3 (e)), and the two part.
		return !m.predatesRules() && !m.policies.present
	case "basic-constraints-critical":
		// RFC 5280 §6.1.4 (k) has every reader look at those of an intermediate, critical or not. Nothing in §6.1 has one look at an
		// anchor's.
		return m.anchor && !m.predatesRules()
	case "serial-zero", "serial-length", "authority-key-id-missing", "subject-key-id-missing", "subject-key-id-empty":
		// An anchor is pinned: its serial number and its issuer's key are never used, and several roots in use have no identifier.
		return !m.anchor
	case "ca-only", "san-critical", "name-dns":
		return !m.anchor
	}
	return false
}

// predatesRules tells whether a trust anchor is older than RFC 5280 as it is followed today, which its own signature by MD5 or SHA-1 shows.
// Stores still hold such roots, and who pins one knows what it is. Below an anchor these signatures are refused.
func (m *member) predatesRules() bool {
	switch m.certificate.SignatureAlgorithm {
	case x509.MD2WithRSA, x509.MD5WithRSA, x509.SHA1WithRSA, x509.ECDSAWithSHA1, x509.DSAWithSHA1:
		return m.anchor
	default:
		return false
	}
}

// bindsAnchor tells whether a rule is about something that is used of a trust anchor. Its serial number, its signature and its issuer's
// key are not.
func bindsAnchor(rule string) bool {
	return !strings.HasPrefix(rule, "serial") && !strings.HasPrefix(rule, "signature") && rule != "authority-key-id-missing"
}
