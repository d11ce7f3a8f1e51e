package chain

import (
	"bytes"

	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"
)

const (
	oidAnyPolicy       = "\x55\x1d\x20\x00"
	oidQualifierCPS    = "\x2b\x06\x01\x05\x05\x07\x02\x01"
	oidQualifierNotice = "\x2b\x06\x01\x05\x05\x07\x02\x02"
	maxPolicies        = 64
	maxExplicitText    = 200
)

func (in *inspection) certificatePolicies(value cryptobyte.String, _ bool) {
	const rule, section = "policies", "RFC 5280 §4.2.1.4"
	policies, ok := in.list(rule, section, "certificate policies", value)
	var buffer [8][]byte
	seen := buffer[:0]
	for ok && !policies.Empty() {
		if len(seen) == maxPolicies {
			in.add(Malformed, "policies-count", section, "the certificate has more than %d policies", maxPolicies)
			return
		}
		var policy, oid cryptobyte.String
		if !policies.ReadASN1(&policy, cryptobyte_asn1.SEQUENCE) || !policy.ReadASN1(&oid, cryptobyte_asn1.OBJECT_IDENTIFIER) {
			in.add(Malformed, rule, section, "a certificate policy is not a SEQUENCE that starts with an object identifier")
			return
		}
		for _, other := range seen {
			if bytes.Equal(other, oid) {
				in.add(Malformed, "policies-repeated", section, "a certificate policy stands twice")
				break
			}
		}
		seen = append(seen, oid)
		if !policy.Empty() {
			in.policyQualifiers(policy)
		}
	}
}

// policyQualifiers reads what follows a policy's identifier: one list of qualifiers.
func (in *inspection) policyQualifiers(rest cryptobyte.String) {
	const rule, section = "policy-qualifiers", "RFC 5280 §4.2.1.4"
	var qualifiers cryptobyte.String
	if !rest.ReadASN1(&qualifiers, cryptobyte_asn1.SEQUENCE) || !rest.Empty() || qualifiers.Empty() {
		in.add(Malformed, rule, section, "a certificate policy's qualifiers are not one list with at least one qualifier")
		return
	}
	for !qualifiers.Empty() {
		var fields, oid, qualifier cryptobyte.String
		var tag cryptobyte_asn1.Tag
		if !qualifiers.ReadASN1(&fields, cryptobyte_asn1.SEQUENCE) || !fields.ReadASN1(&oid, cryptobyte_asn1.OBJECT_IDENTIFIER) ||
			!fields.ReadAnyASN1(&qualifier, &tag) || !fields.Empty() {
			in.add(Malformed, rule, section, "a policy qualifier has to be an object identifier and one value")
			return
		}
		switch string(oid) {
		case oidQualifierCPS:
			if tag != cryptobyte_asn1.IA5String {
				in.add(Malformed, rule, section, "a CPS pointer has to be an IA5String")
			}
		case oidQualifierNotice:
			if tag != cryptobyte_asn1.SEQUENCE {
				in.add(Malformed, rule, section, "a user notice has to be a SEQUENCE")
				continue
			}
			in.userNotice(qualifier)
		}
	}
}

// userNotice reads the contents of UserNotice: an optional reference and an optional text.
func (in *inspection) userNotice(fields cryptobyte.String) {
	const rule, section = "policy-notice", "RFC 5280 §4.2.1.4"
	var reference cryptobyte.String
	var hasReference bool
	if fields.ReadOptionalASN1(&reference, &hasReference, cryptobyte_asn1.SEQUENCE) && hasReference {
		var organization, numbers, number cryptobyte.String
		var tag cryptobyte_asn1.Tag
		ok := reference.ReadAnyASN1(&organization, &tag) && in.displayText(tag, organization) &&
			reference.ReadASN1(&numbers, cryptobyte_asn1.SEQUENCE) && reference.Empty()
		for ok && !numbers.Empty() {
			ok = numbers.ReadASN1(&number, cryptobyte_asn1.INTEGER)
		}
		if !ok {
			in.add(Malformed, rule, section, "a user notice's reference has to be an organization and a list of numbers")
		}
	}
	if fields.Empty() {
		return
	}
	var text cryptobyte.String
	var tag cryptobyte_asn1.Tag
	if !fields.ReadAnyASN1(&text, &tag) || !fields.Empty() || !in.displayText(tag, text) {
		in.add(Malformed, rule, section, "a user notice has to be a reference and a text, and nothing else")
	}
}

// displayText returns false for what is no DisplayText.
func (in *inspection) displayText(tag cryptobyte_asn1.Tag, text []byte) bool {
	const tagVisibleString = cryptobyte_asn1.Tag(26)
	switch tag {
	case tagUTF8String, tagIA5String:
	case tagVisibleString, tagBMPString:
		in.add(Nonconforming, "policy-text-type", "RFC 5280 §4.2.1.4", "a user notice is a VisibleString or a BMPString; a CA must not use them")
	default:
		return false
	}
	if characters(tag, text) > maxExplicitText {
		in.add(Nonconforming, "policy-text-length", "RFC 5280 §4.2.1.4", "a user notice has more than %d characters", maxExplicitText)
	}
	return len(text) > 0
}

func (in *inspection) policyMappings(value cryptobyte.String, _ bool) {
	const rule, section = "policy-mappings", "RFC 5280 §4.2.1.5"
	in.constraints.mappings = true
	mappings, ok := in.list(rule, section, "policy mappings", value)
	for ok && !mappings.Empty() {
		var fields, issuer, subject cryptobyte.String
		if !mappings.ReadASN1(&fields, cryptobyte_asn1.SEQUENCE) || !fields.ReadASN1(&issuer, cryptobyte_asn1.OBJECT_IDENTIFIER) ||
			!fields.ReadASN1(&subject, cryptobyte_asn1.OBJECT_IDENTIFIER) || !fields.Empty() {
			in.add(Malformed, rule, section, "a policy mapping has to be two object identifiers")
			return
		}
		if string(issuer) == oidAnyPolicy || string(subject) == oidAnyPolicy {
			in.add(Nonconforming, "policy-mappings-any", section, "a policy is mapped from or to anyPolicy")
		}
	}
}

func (in *inspection) policyConstraints(value cryptobyte.String, critical bool) {
	const rule, section = "policy-constraints", "RFC 5280 §4.2.1.11"
	in.constraints.policy = true
	in.mustCritical(critical, rule, section, "policy constraints")
	fields, ok := in.list(rule, section, "policy constraints", value)
	if !ok {
		return
	}
	if explicit, present := optional(&fields, 0, false); present {
		in.nonNegative(rule, section, "requireExplicitPolicy", explicit)
	}
	if mapping, present := optional(&fields, 1, false); present {
		in.nonNegative(rule, section, "inhibitPolicyMapping", mapping)
	}
	if !fields.Empty() {
		in.add(Malformed, rule, section, "the policy constraints have to be requireExplicitPolicy and inhibitPolicyMapping, and nothing else")
	}
}

func (in *inspection) inhibitAnyPolicy(value cryptobyte.String, critical bool) {
	const rule, section = "inhibit-any-policy", "RFC 5280 §4.2.1.14"
	in.constraints.inhibit = true
	in.mustCritical(critical, rule, section, "inhibit anyPolicy")
	if skip, ok := in.whole(rule, section, "inhibit anyPolicy", value, cryptobyte_asn1.INTEGER); ok && skip[0] >= 0x80 {
		in.add(Malformed, rule, section, "the inhibit anyPolicy extension is negative")
	}
}

func (in *inspection) mustCritical(critical bool, rule, section, what string) {
	if !critical {
		in.add(Nonconforming, rule+"-critical", section, "the %s extension has to be critical", what)
	}
}
