package chain

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"
	"golang.org/x/text/unicode/norm"
)

// distinguishedName is a Name in a form in which two that match by RFC 5280 §7.1 are equal.
type distinguishedName struct {
	rdns   []string // canonical, outermost first
	key    string   // all of rdns, unambiguously
	emails []string // the values of emailAddress attributes, as they stand
}

func (n distinguishedName) empty() bool { return len(n.rdns) == 0 }

// within tells whether a name lies in the subtree of base: base's relative names are its first ones.
func (n distinguishedName) within(base distinguishedName) bool {
	return len(n.rdns) >= len(base.rdns) && slices.Equal(n.rdns[:len(base.rdns)], base.rdns)
}

var errName = errors.New("a name is malformed")

const oidEmailAddress = "\x2a\x86\x48\x86\xf7\x0d\x01\x09\x01"

// readName reads the DER of a Name.
func readName(encoding cryptobyte.String) (distinguishedName, error) {
	var rdns cryptobyte.String
	if !encoding.ReadASN1(&rdns, cryptobyte_asn1.SEQUENCE) || !encoding.Empty() {
		return distinguishedName{}, errName
	}
	var name distinguishedName
	for !rdns.Empty() {
		var rdn cryptobyte.String
		if !rdns.ReadASN1(&rdn, cryptobyte_asn1.SET) {
			return distinguishedName{}, errName
		}
		canonical, err := name.relative(rdn)
		if err != nil {
			return distinguishedName{}, err
		}
		name.rdns = append(name.rdns, canonical)
	}
	name.key = joined(name.rdns)
	return name, nil
}

// relative returns the canonical form of the contents of a RelativeDistinguishedName and notes the mailboxes in it.
func (n *distinguishedName) relative(rdn cryptobyte.String) (string, error) {
	var attributes []string
	for !rdn.Empty() {
		var pair, oid, value cryptobyte.String
		var tag cryptobyte_asn1.Tag
		if !rdn.ReadASN1(&pair, cryptobyte_asn1.SEQUENCE) || !pair.ReadASN1(&oid, cryptobyte_asn1.OBJECT_IDENTIFIER) ||
			!pair.ReadAnyASN1(&value, &tag) || !pair.Empty() {
			return "", errName
		}
		if string(oid) == oidEmailAddress {
			n.emails = append(n.emails, string(value))
		}
		attributes = append(attributes, joined([]string{string(oid), canonicalValue(tag, value)}))
	}
	// a SET has no order, and the folded forms may sort otherwise than the DER does
	slices.Sort(attributes)
	return joined(attributes), nil
}

// joined concatenates parts so that no two lists yield the same string.
func joined(parts []string) string {
	var out []byte
	for _, part := range parts {
		out = binary.AppendUvarint(out, uint64(len(part)))
		out = append(out, part...)
	}
	return string(out)
}

// canonicalValue returns strings of every type in one form, so that a name cannot leave a subtree by another encoding, and anything else
// with its tag.
func canonicalValue(tag cryptobyte_asn1.Tag, value []byte) string {
	switch tag {
	case tagUTF8String, tagPrintableString, tagIA5String:
		return foldText(string(value))
	case tagTeletexString:
		runes := make([]rune, len(value))
		for i, c := range value {
			runes[i] = rune(c) // Latin-1 in practice
		}
		return foldText(string(runes))
	case tagBMPString:
		units := make([]uint16, len(value)/2)
		for i := range units {
			units[i] = binary.BigEndian.Uint16(value[2*i:])
		}
		return foldText(string(utf16.Decode(units)))
	case tagUniversalString:
		runes := make([]rune, len(value)/4)
		for i := range runes {
			runes[i] = rune(binary.BigEndian.Uint32(value[4*i:])) //nolint:gosec // what is no code point becomes U+FFFD
		}
		return foldText(string(runes))
	default:
		return string(rune(tag)) + "\x00" + string(value)
	}
}

// foldText applies the preparation of RFC 4518 §2 that matters for equality: map, normalise, fold case, and drop insignificant spaces.
func foldText(text string) string {
	if !isASCII(text) {
		text = strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Cf, r) {
				return -1
			}
			return r
		}, norm.NFKC.String(text))
	}
	text = strings.ToLower(text)
	if !isASCII(text) {
		text = norm.NFKC.String(text)
	}
	return strings.Join(strings.Fields(text), " ")
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
