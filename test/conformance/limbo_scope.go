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

var limboDeviations = map[string]string{
	"rfc5280::aki::cross-signed-root-missing-aki": "an anchor's authority key identifier is never used; cve::cve-2024-0567 has such a root, and is valid",
	"rfc5280::ski::root-missing-ski":              "an anchor is pinned, and its identifier only helps to find it; roots in use have none (TWCA Global Root CA, Hongkong Post Root CA 1)",
}
