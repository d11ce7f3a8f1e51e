package chain

import (
	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"

	"github.com/chancery-ca/chancery/ca/der"
)

// Universal types that stand behind implicit tags.
const (
	typeInteger   = 2
	typeBitString = 3
	typeOID       = 6
	typeIA5String = 22
)

// contents holds an implicitly tagged value against the type that its field has.
func (in *inspection) contents(rule, section, field string, universal uint8, value cryptobyte.String) bool {
	if err := der.CheckContents(universal, value); err != nil {
		in.add(Malformed, rule, section, "%s is malformed: %v", field, err)
		return false
	}
	return true
}

// nonNegative holds an implicitly tagged INTEGER (0..MAX) against its type.
func (in *inspection) nonNegative(rule, section, field string, value cryptobyte.String) {
	if in.contents(rule, section, field, typeInteger, value) && value[0] >= 0x80 {
		in.add(Malformed, rule, section, "%s is negative", field)
	}
}

// whole reads an extension's value that has to be one element of the given tag.
func (in *inspection) whole(rule, section, what string, value cryptobyte.String, tag cryptobyte_asn1.Tag) (cryptobyte.String, bool) {
	var contents cryptobyte.String
	if !value.ReadASN1(&contents, tag) || !value.Empty() {
		in.add(Malformed, rule, section, "the %s extension is not one element of its type", what)
		return nil, false
	}
	return contents, true
}

// list reads an extension's value that is a SEQUENCE SIZE (1..MAX) OF something.
func (in *inspection) list(rule, section, what string, value cryptobyte.String) (cryptobyte.String, bool) {
	contents, ok := in.whole(rule, section, what, value, cryptobyte_asn1.SEQUENCE)
	if ok && contents.Empty() {
		in.add(Malformed, rule+"-empty", section, "the %s extension is an empty list; it needs an element or has to be left out", what)
		return nil, false
	}
	return contents, ok
}

// optional reads an optional context-specific field, primitive or constructed as its type demands. cryptobyte ignores a
// field with the other form, which then stands as an unknown element in the caller's way.
func optional(from *cryptobyte.String, number uint8, constructed bool) (value cryptobyte.String, present bool) {
	tag := cryptobyte_asn1.Tag(number).ContextSpecific()
	if constructed {
		tag = tag.Constructed()
	}
	_ = from.ReadOptionalASN1(&value, &present, tag)
	return value, present
}
