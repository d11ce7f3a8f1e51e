package chain

import "bytes"

// Bounds of RFC 1035 §2.3.4, for the text form.
const (
	maxLabel  = 63
	maxDomain = 253
)

// dnsNameProblem returns what is wrong with a dNSName: the preferred name syntax of RFC 1034 §3.5 as RFC 1123 §2.1 changed it, and the
// wildcards of RFC 6125 §6.4.3, which RFC 5280 leaves to others.
func dnsNameProblem(name []byte) (Severity, string) {
	switch {
	case len(name) == 0:
		return Malformed, "is empty"
	case len(name) > maxDomain:
		return Malformed, "has more than 253 characters"
	case name[len(name)-1] == '.':
		return Malformed, "ends with a period; write it without"
	case bytes.IndexByte(name, '*') < 0:
		if !isDomain(name) {
			return Malformed, "is not made of labels of 1 to 63 letters, digits and inner hyphens"
		}
	default:
		rest, ok := bytes.CutPrefix(name, []byte("*."))
		if ok && isDomain(rest) {
			break
		}
		// with a letter in the place of each asterisk it would be a domain: the wildcard is what is wrong
		if isDomain(bytes.ReplaceAll(name, []byte("*"), []byte("x"))) {
			return Nonconforming, "has a wildcard that is not its whole leftmost label"
		}
		return Malformed, "is not made of labels of 1 to 63 letters, digits and inner hyphens"
	}
	last := name[bytes.LastIndexByte(name, '.')+1:]
	if isAllDigits(last) {
		return Nonconforming, "ends with a number, as an IP address does; addresses go into iPAddress"
	}
	for label := range bytes.SplitSeq(name, []byte(".")) {
		if len(label) > 4 && bytes.EqualFold(label[:4], []byte("xn--")) && !isPunycode(label[4:]) {
			return Nonconforming, "has a label that starts with xn-- and is not an encoded international label (RFC 5890 §2.3.2.1)"
		}
	}
	return 0, ""
}

// isDomain tells whether name is made of labels of letters, digits and inner hyphens.
func isDomain(name []byte) bool {
	if len(name) > maxDomain {
		return false
	}
	start := 0
	for i := 0; i <= len(name); i++ {
		if i < len(name) && name[i] != '.' {
			if c := name[i]; !isLetter(c) && !isDecimal(c) && c != '-' {
				return false
			}
			continue
		}
		if length := i - start; length == 0 || length > maxLabel || name[start] == '-' || name[i-1] == '-' {
			return false
		}
		start = i + 1
	}
	return true
}

func isDecimal(c byte) bool { return '0' <= c && c <= '9' }

func isAllDigits(label []byte) bool {
	for _, c := range label {
		if !isDecimal(c) {
			return false
		}
	}
	return true
}
