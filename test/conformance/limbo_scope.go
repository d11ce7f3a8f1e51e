package main

import (
	"slices"
	"strings"
)

// outOfScope returns why a case is none of ours, or nothing. It goes by features and names, never by outcomes.
func (c limboCase) outOfScope() string {
	const browserForum = "a rule of the CA/Browser Forum for certificates on the web, which RFC 5280 does not have: "
	switch {
	case slices.Contains(c.Features, "pedantic-webpki-eku"):
		return browserForum + "extended key usages"
	case slices.Contains(c.Features, "pedantic-public-suffix-wildcard"):
		return browserForum + "wildcards below public suffixes"
	case strings.HasPrefix(c.ID, "webpki::cn::"):
		return browserForum + "what a common name may say; common names are never looked at"
	case strings.HasPrefix(c.ID, "webpki::aki::"):
		return browserForum + "the authority key identifier of a root"
	}
	switch c.ID {
	case "webpki::san::san-critical-with-nonempty-subject":
		return browserForum + "subject alternative names must not be critical (RFC 5280 §4.2.1.6 says should)"
	case "webpki::ee-basicconstraints-ca", "webpki::ca-as-leaf":
		return browserForum + "a leaf must not be a CA (the set says of the same chain under rfc5280 that it is valid)"
	case "webpki::nc::permitted-dns-match-noncritical":
		return browserForum + "name constraints need not be critical (the set says of the same chain under rfc5280 that it is invalid)"
	}
	return ""
}

const issuersRule = "a rule for who issues: whoever relies on the path can read the certificate in one way only"

var limboRelyingDeviations = map[string]string{
	"rfc5280::aki::leaf-missing-aki":               "RFC 5280 §4.2.1.1: " + issuersRule,
	"rfc5280::aki::intermediate-missing-aki":       "RFC 5280 §4.2.1.1: " + issuersRule,
	"rfc5280::aki::cross-signed-root-missing-aki":  "RFC 5280 §4.2.1.1: " + issuersRule,
	"rfc5280::nc::permitted-dns-match-noncritical": "RFC 5280 §4.2.1.10: " + issuersRule + "; the constraints are applied",
	"rfc5280::nc::invalid-dnsname-leading-period":  "read as the domains below when permitted, and as those and the domain itself when excluded",
	"rfc5280::nc::not-allowed-in-ee-noncritical":   "RFC 5280 §4.2.1.10: " + issuersRule,
	"rfc5280::nc::not-allowed-in-ee-critical":      "RFC 5280 §4.2.1.10: " + issuersRule,
	"rfc5280::pc::ica-noncritical-pc":              "RFC 5280 §4.2.1.11: " + issuersRule + "; the constraints are applied",
	"rfc5280::san::noncritical-with-empty-subject": "RFC 5280 §4.2.1.6: " + issuersRule,
	"rfc5280::serial::too-long":                    "RFC 5280 §4.1.2.2: " + issuersRule,
	"rfc5280::serial::zero":                        "RFC 5280 §4.1.2.2: " + issuersRule,
	"rfc5280::ski::root-missing-ski":               "RFC 5280 §4.2.1.2: " + issuersRule,
	"rfc5280::ski::intermediate-missing-ski":       "RFC 5280 §4.2.1.2: " + issuersRule,
	"rfc5280::root-non-critical-basic-constraints": "RFC 5280 §4.2.1.9: " + issuersRule,
	"rfc5280::leaf-ku-keycertsign":                 "RFC 5280 §4.2.1.3: " + issuersRule + "; it cannot issue without basic constraints",
}

var limboConformingDeviations = map[string]string{
	"crl::issuer-no-keyusage-extension":           "RFC 5280 §4.2.1.3: a CA has to have a key usage; the set holds it against the rules for relying parties",
	"rfc5280::aki::cross-signed-root-missing-aki": "an anchor's authority key identifier is never used; cve::cve-2024-0567 has such a root, and is valid",
}
