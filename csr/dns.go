package csr

import (
	"strings"

	"golang.org/x/net/idna"
)

const (
	maxHost   = 253
	maxLabel  = 63
	acePrefix = "xn--"
)

// checkDNS checks a dNSName: the preferred syntax of RFC 5280 §4.2.1.6, that is letters, digits and hyphens.
func checkDNS(name string, rules *Rules) error {
	host, wildcard := strings.CutPrefix(name, "*.")
	if reason := checkHost(host); reason != "" {
		return invalid("subjectAltName: the DNS name %.80q %s", name, reason)
	}
	switch {
	case !wildcard:
		return nil
	case !rules.Wildcards:
		return invalid("subjectAltName: the DNS name %q is a wildcard, and workloads get none; ask for the names themselves", name)
	case !strings.Contains(host, "."):
		return invalid("subjectAltName: the DNS name %q covers a whole top-level domain; put at least two labels after the star", name)
	}
	return nil
}

// checkHost returns what is wrong with a host name, as the rest of a sentence, or nothing.
func checkHost(host string) (reason string) {
	switch {
	case host == "":
		return "is empty (RFC 5280 §4.2.1.6); leave it out"
	case len(host) > maxHost:
		return "is longer than 253 octets (RFC 1035 §2.3.4)"
	case host[len(host)-1] == '.':
		return "ends with a dot, which names in certificates do not (RFC 5280 §4.2.1.6); leave the dot out"
	}
	last := ""
	for label := range strings.SplitSeq(host, ".") {
		if reason := checkHostLabel(label); reason != "" {
			return reason
		}
		last = label
	}
	if endsInNumber(last) {
		return "is an IP address or looks like one; put it into an iPAddress (RFC 5280 §4.2.1.6)"
	}
	return ""
}

func checkHostLabel(label string) (reason string) {
	switch {
	case label == "":
		return "has an empty label (RFC 1034 §3.5)"
	case len(label) > maxLabel:
		return "has a label longer than 63 octets (RFC 1035 §2.3.4)"
	case label[0] == '-' || label[len(label)-1] == '-':
		return "has a label that begins or ends with a hyphen (RFC 1123 §2.1)"
	case strings.ContainsFunc(label, notLDH):
		return "has characters other than letters, digits and hyphens (RFC 5280 §4.2.1.6)"
	}
	// RFC 5890 §2.3.2.1: a label that only looks like an A-label may be shown as any other name
	if len(label) >= len(acePrefix) && strings.EqualFold(label[:len(acePrefix)], acePrefix) {
		lower := strings.ToLower(label)
		unicode, err := idna.Registration.ToUnicode(lower)
		if err != nil || unicode == lower {
			return "has a label that begins with xn-- and is not one of IDNA (RFC 5891 §5.4)"
		}
	}
	return ""
}

// endsInNumber tells whether URL parsers take a host with this last label for an IPv4 address.
func endsInNumber(label string) bool {
	digits := strings.TrimLeft(label, "0123456789")
	if digits == "" {
		return true
	}
	hex, ok := strings.CutPrefix(strings.ToLower(label), "0x")
	return ok && strings.Trim(hex, "0123456789abcdef") == ""
}

func notLDH(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-'
}
