package chain

import (
	"bytes"
	"unicode/utf8"

	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"
)

// String types of attribute values that cryptobyte does not name.
const (
	tagUTF8String      = cryptobyte_asn1.UTF8String
	tagPrintableString = cryptobyte_asn1.PrintableString
	tagIA5String       = cryptobyte_asn1.IA5String
	tagTeletexString   = cryptobyte_asn1.T61String
	tagUniversalString = cryptobyte_asn1.Tag(28)
	tagBMPString       = cryptobyte_asn1.Tag(30)
)

// attribute is what RFC 5280 Appendix A.1 says of an attribute type.
type attribute struct {
	name string
	// tag is the only string type allowed; zero stands for DirectoryString.
	tag cryptobyte_asn1.Tag
	// max is the upper bound in characters.
	max int
}

// attributeOf returns what is known of a type, by the contents of its object identifier.
func attributeOf(oid string) (attribute, bool) {
	switch oid {
	case "\x55\x04\x03":
		return attribute{"commonName", 0, 64}, true
	case "\x55\x04\x04":
		return attribute{"surname", 0, 32768}, true
	case "\x55\x04\x05":
		return attribute{"serialNumber", tagPrintableString, 64}, true
	case "\x55\x04\x06":
		return attribute{"countryName", tagPrintableString, 2}, true
	case "\x55\x04\x07":
		return attribute{"localityName", 0, 128}, true
	case "\x55\x04\x08":
		return attribute{"stateOrProvinceName", 0, 128}, true
	case "\x55\x04\x0a":
		return attribute{"organizationName", 0, 64}, true
	case "\x55\x04\x0b":
		return attribute{"organizationalUnitName", 0, 64}, true
	case "\x55\x04\x0c":
		return attribute{"title", 0, 64}, true
	case "\x55\x04\x29":
		return attribute{"name", 0, 32768}, true
	case "\x55\x04\x2a":
		return attribute{"givenName", 0, 32768}, true
	case "\x55\x04\x2b":
		return attribute{"initials", 0, 32768}, true
	case "\x55\x04\x2c":
		return attribute{"generationQualifier", 0, 32768}, true
	case "\x55\x04\x2e":
		return attribute{"dnQualifier", tagPrintableString, 32768}, true
	case "\x55\x04\x41":
		return attribute{"pseudonym", 0, 128}, true
	case "\x09\x92\x26\x89\x93\xf2\x2c\x64\x01\x19":
		return attribute{"domainComponent", tagIA5String, 32768}, true
	case "\x2a\x86\x48\x86\xf7\x0d\x01\x09\x01":
		return attribute{"emailAddress", tagIA5String, 255}, true
	}
	return attribute{}, false
}

// maxAttributes bounds a Name. Real ones have about ten, and writing a Name as text takes time quadratic in them.
const maxAttributes = 64

// name reads the contents of a Name (RFC 5280 §4.1.2.4): issuer, subject or a directoryName.
func (in *inspection) name(where string, rdns cryptobyte.String) {
	const section = "RFC 5280 §4.1.2.4"
	attributes := 0
	for !rdns.Empty() {
		var rdn cryptobyte.String
		if !rdns.ReadASN1(&rdn, cryptobyte_asn1.SET) || rdn.Empty() {
			in.add(Malformed, "name-rdn", section, "the %s holds a relative distinguished name that is empty or no SET", where)
			return
		}
		var buffer [4][]byte
		seen := buffer[:0]
		for !rdn.Empty() {
			var pair, oid, value cryptobyte.String
			var tag cryptobyte_asn1.Tag
			if !rdn.ReadASN1(&pair, cryptobyte_asn1.SEQUENCE) || !pair.ReadASN1(&oid, cryptobyte_asn1.OBJECT_IDENTIFIER) ||
				!pair.ReadAnyASN1(&value, &tag) || !pair.Empty() {
				in.add(Malformed, "name-attribute", section, "the %s holds an attribute that is not a type and one value", where)
				return
			}
			for _, other := range seen {
				if bytes.Equal(other, oid) {
					in.add(Malformed, "name-repeated-type", section,
						"the %s has an attribute type twice in one relative distinguished name", where)
					break
				}
			}
			if attributes++; attributes > maxAttributes {
				in.add(Malformed, "name-attributes", section, "the %s has more than %d attributes", where, maxAttributes)
				return
			}
			seen = append(seen, oid)
			in.attributeValue(where, string(oid), tag, value)
		}
	}
}

func (in *inspection) attributeValue(where, oid string, tag cryptobyte_asn1.Tag, value cryptobyte.String) {
	const section = "RFC 5280 §4.1.2.4"
	if hasControl(tag, value) {
		in.add(Nonconforming, "name-control", section, "the %s holds a control character in an attribute", where)
	}
	known, ok := attributeOf(oid)
	if !ok {
		return
	}
	switch {
	case known.tag != 0 && tag != known.tag:
		in.add(Malformed, "name-string-type", "RFC 5280 Appendix A.1",
			"the %s's %s has another string type than it is defined with", where, known.name)
		return
	case known.tag == 0 && !isDirectoryString(tag):
		in.add(Malformed, "name-string-type", "RFC 5280 Appendix A.1", "the %s's %s is no DirectoryString", where, known.name)
		return
	case known.tag == 0 && tag != tagUTF8String && tag != tagPrintableString:
		in.add(Nonconforming, "name-string-old", section,
			"the %s's %s is a TeletexString, BMPString or UniversalString; use UTF8String", where, known.name)
	}
	switch length := characters(tag, value); {
	case known.name == "countryName" && length != 2:
		in.add(Malformed, "name-country", "RFC 5280 Appendix A.1", "the %s's countryName has to be the two letters of ISO 3166", where)
	case known.name == "countryName" && !(isLetter(value[0]) && isLetter(value[1])):
		in.add(Nonconforming, "name-country", "RFC 5280 Appendix A.1", "the %s's countryName has to be the two letters of ISO 3166", where)
	case length == 0:
		in.add(Malformed, "name-empty-value", "RFC 5280 Appendix A.1", "the %s's %s is empty; leave it out", where, known.name)
	case length > known.max:
		in.add(Nonconforming, "name-upper-bound", "RFC 5280 Appendix A.1",
			"the %s's %s has %d characters; its upper bound is %d", where, known.name, length, known.max)
	}
}

func isDirectoryString(tag cryptobyte_asn1.Tag) bool {
	switch tag {
	case tagUTF8String, tagPrintableString, tagTeletexString, tagUniversalString, tagBMPString:
		return true
	default:
		return false
	}
}

// characters counts what the upper bounds count.
func characters(tag cryptobyte_asn1.Tag, value []byte) int {
	switch tag {
	case tagUTF8String:
		return utf8.RuneCount(value)
	case tagBMPString:
		return len(value) / 2
	case tagUniversalString:
		return len(value) / 4
	default:
		return len(value)
	}
}

// hasControl tells whether a string of single octets or UTF-8 has a NUL or another control character: readers that end strings at one
// see another name.
func hasControl(tag cryptobyte_asn1.Tag, value []byte) bool {
	if tag != tagUTF8String && tag != tagIA5String && tag != tagTeletexString {
		return false
	}
	for _, c := range value {
		if c < ' ' || c == 0x7f {
			return true
		}
	}
	return false
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }
