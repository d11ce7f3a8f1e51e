package chain

import (
	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"
)

// usageFacts is what basicConstraints and keyUsage say.
type usageFacts struct {
	hasKeyUsage      bool
	certSign         bool
	enciphers        bool // keyEncipherment or dataEncipherment
	hasConstraints   bool
	constraintsMarks bool // basicConstraints is critical
	ca               bool
	pathLength       bool
}

// The first octet of keyUsage (RFC 5280 §4.2.1.3).
const (
	bitKeyEncipherment  = 0x20
	bitDataEncipherment = 0x10
	bitKeyCertSign      = 0x04
)

func (in *inspection) keyUsage(value cryptobyte.String, _ bool) {
	const rule, section = "key-usage", "RFC 5280 §4.2.1.3"
	bits, ok := in.whole(rule, section, "key usage", value, cryptobyte_asn1.BIT_STRING)
	if !ok {
		return
	}
	in.usage.hasKeyUsage = true
	unused, octets := bits[0], bits[1:]
	if len(octets) == 0 {
		in.add(Nonconforming, "key-usage-empty", section, "the key usage has no bit set; set one or leave the extension out")
		return
	}
	last := octets[len(octets)-1]
	switch {
	case last>>unused&1 == 0:
		in.add(Malformed, "key-usage-bits", "X.690 §11.2.2", "the key usage has trailing zero bits, which DER leaves out of a named bit list")
	case len(octets) > 2 || len(octets) == 2 && last != 0x80:
		in.add(Nonconforming, "key-usage-unknown", section, "the key usage has a bit that is not defined")
	}
	in.usage.certSign = octets[0]&bitKeyCertSign != 0
	in.usage.enciphers = octets[0]&(bitKeyEncipherment|bitDataEncipherment) != 0
}

const oidAnyExtendedKeyUsage = "\x55\x1d\x25\x00"

func (in *inspection) extKeyUsage(value cryptobyte.String, critical bool) {
	const rule, section = "ext-key-usage", "RFC 5280 §4.2.1.12"
	purposes, ok := in.list(rule, section, "extended key usage", value)
	for ok && !purposes.Empty() {
		var purpose cryptobyte.String
		if !purposes.ReadASN1(&purpose, cryptobyte_asn1.OBJECT_IDENTIFIER) {
			in.add(Malformed, rule, section, "the extended key usage extension holds something that is no object identifier")
			return
		}
		if critical && string(purpose) == oidAnyExtendedKeyUsage {
			in.add(Nonconforming, "ext-key-usage-any", section,
				"the extended key usage allows any purpose and is critical; it should not be critical then")
		}
	}
}

func (in *inspection) basicConstraints(value cryptobyte.String, critical bool) {
	const rule, section = "basic-constraints", "RFC 5280 §4.2.1.9"
	fields, ok := in.whole(rule, section, "basic constraints", value, cryptobyte_asn1.SEQUENCE)
	if !ok {
		return
	}
	var boolean, length cryptobyte.String
	var hasBoolean bool
	if !fields.ReadOptionalASN1(&boolean, &hasBoolean, cryptobyte_asn1.BOOLEAN) ||
		!fields.ReadOptionalASN1(&length, &in.usage.pathLength, cryptobyte_asn1.INTEGER) || !fields.Empty() {
		in.add(Malformed, rule, section, "the basic constraints have to be cA and pathLenConstraint, and nothing else")
		return
	}
	in.usage.hasConstraints, in.usage.constraintsMarks = true, critical
	in.usage.ca = hasBoolean && boolean[0] != 0
	if hasBoolean && !in.usage.ca {
		in.add(Malformed, "basic-constraints-default", "X.690 §11.5",
			"the basic constraints encode cA FALSE, which is the default and must be left out")
	}
	if in.usage.pathLength && length[0] >= 0x80 {
		in.add(Malformed, "basic-constraints-path-length", section, "the path length is negative")
	}
}
