package chain

import (
	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"
)

// constraintFacts is which extensions of issuers there are.
type constraintFacts struct {
	name, policy, mappings, inhibit bool
}

func (in *inspection) nameConstraints(value cryptobyte.String, critical bool) {
	const rule, section = "name-constraints", "RFC 5280 §4.2.1.10"
	in.constraints.name = true
	in.mustCritical(critical, rule, section, "name constraints")
	fields, ok := in.list(rule, section, "name constraints", value)
	if !ok {
		return
	}
	permitted, hasPermitted := optional(&fields, 0, true)
	excluded, hasExcluded := optional(&fields, 1, true)
	if !fields.Empty() {
		in.add(Malformed, rule, section, "the name constraints have to be permittedSubtrees and excludedSubtrees, and nothing else")
		return
	}
	if hasPermitted {
		in.subtrees(permitted)
	}
	if hasExcluded {
		in.subtrees(excluded)
	}
}

func (in *inspection) subtrees(subtrees cryptobyte.String) {
	const rule, section = "name-constraints-subtree", "RFC 5280 §4.2.1.10"
	if subtrees.Empty() {
		in.add(Malformed, rule, section, "a list of subtrees in the name constraints is empty; leave it out")
	}
	for !subtrees.Empty() {
		var subtree cryptobyte.String
		if !subtrees.ReadASN1(&subtree, cryptobyte_asn1.SEQUENCE) || !in.generalName("name constraints", section, &subtree, nameConstraint) {
			in.add(Malformed, rule, section, "the name constraints hold something that is no subtree")
			return
		}
		// a reader that ignores the distances constrains other names than were meant
		if !subtree.Empty() {
			in.add(Malformed, rule, section,
				"a subtree of the name constraints has a minimum or a maximum; minimum is zero by default and maximum must be absent")
		}
	}
}

// constraintBase holds the base of a subtree against RFC 5280 §4.2.1.10: names there are domains, ranges and hosts.
func constraintBase(kind cryptobyte_asn1.Tag, value []byte) bool {
	switch kind {
	case tagRFC822Name:
		for _, c := range value {
			if c == '@' {
				return isMailbox(value)
			}
		}
		return isDomain(withoutDot(value))
	case tagDNSName:
		return len(value) == 0 || isDomain(withoutDot(value))
	case tagURI:
		return isDomain(withoutDot(value))
	case tagIPAddress:
		return isNetwork(value)
	default:
		return true
	}
}

// withoutDot cuts the leading period that stands for "any host below".
func withoutDot(domain []byte) []byte {
	if len(domain) > 0 && domain[0] == '.' {
		return domain[1:]
	}
	return domain
}

// isNetwork tells whether the octets are an address and a mask of the same length, in the style of RFC 4632.
func isNetwork(value []byte) bool {
	if len(value) != 8 && len(value) != 32 {
		return false
	}
	ended := false
	for _, octet := range value[len(value)/2:] {
		for bit := 7; bit >= 0; bit-- {
			set := octet>>bit&1 == 1
			if set && ended {
				return false
			}
			ended = ended || !set
		}
	}
	return true
}
