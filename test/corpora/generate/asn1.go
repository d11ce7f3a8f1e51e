package main

import (
	"bytes"
	"encoding/hex"
	"math/big"
	"strconv"
	"strings"
)

// Identifier octets.
const (
	tagBoolean         = 0x01
	tagInteger         = 0x02
	tagBits            = 0x03
	tagOctets          = 0x04
	tagOID             = 0x06
	tagEnumerated      = 0x0a
	tagUTF8            = 0x0c
	tagPrintable       = 0x13
	tagTeletex         = 0x14
	tagIA5             = 0x16
	tagUTCTime         = 0x17
	tagGeneralizedTime = 0x18
	tagVisible         = 0x1a
	tagUniversal       = 0x1c
	tagBMP             = 0x1e
	tagSequence        = 0x30
	tagSet             = 0x31
)

var (
	null    = unhex("0500")
	isTrue  = unhex("0101ff")
	isFalse = unhex("010100")
)

// unhex reads hexadecimal with blanks.
func unhex(digits string) []byte {
	out, _ := hex.DecodeString(strings.ReplaceAll(digits, " ", "")) // a slip shows as a case that differs from its verdict
	return out
}

// join returns the parts one after the other, in memory of their own.
func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// tlv returns an element in DER whose contents are the parts.
func tlv(tag byte, parts ...[]byte) []byte {
	contents := join(parts...)
	return join([]byte{tag}, length(len(contents)), contents)
}

// length returns length octets in the shortest form.
func length(n int) []byte {
	if n < 0x80 {
		return []byte{byte(n)}
	}
	octets := big.NewInt(int64(n)).Bytes()
	return append([]byte{0x80 | byte(len(octets))}, octets...)
}

func seq(parts ...[]byte) []byte { return tlv(tagSequence, parts...) }

func set(parts ...[]byte) []byte { return tlv(tagSet, parts...) }

func text(tag byte, value string) []byte { return tlv(tag, []byte(value)) }

func octets(parts ...[]byte) []byte { return tlv(tagOctets, parts...) }

func bits(unused byte, value ...byte) []byte { return tlv(tagBits, []byte{unused}, value) }

// explicit returns a constructed context-specific element, which is also how an implicitly tagged SEQUENCE looks.
func explicit(number byte, parts ...[]byte) []byte { return tlv(0xa0|number, parts...) }

// implicit returns a primitive context-specific element.
func implicit(number byte, contents ...byte) []byte { return tlv(0x80|number, contents) }

// number returns an INTEGER in its shortest form.
func number(n int64) []byte { return integer(big.NewInt(n)) }

func integer(n *big.Int) []byte {
	if n.Sign() < 0 {
		// only small ones are needed
		return tlv(tagInteger, []byte{byte(n.Int64())})
	}
	octets := n.Bytes()
	if len(octets) == 0 || octets[0] >= 0x80 {
		octets = append([]byte{0}, octets...)
	}
	return tlv(tagInteger, octets)
}

// oid returns an OBJECT IDENTIFIER of its dotted form.
func oid(dotted string) []byte { return tlv(tagOID, arcs(dotted)) }

// arcs returns the contents of an OBJECT IDENTIFIER.
func arcs(dotted string) []byte {
	var out []byte
	var first uint64
	for i, part := range strings.Split(dotted, ".") {
		arc, _ := strconv.ParseUint(part, 10, 64)
		switch i {
		case 0:
			first = arc
			continue
		case 1:
			arc += 40 * first
		}
		digits := []byte{byte(arc & 0x7f)}
		for arc >>= 7; arc > 0; arc >>= 7 {
			digits = append([]byte{0x80 | byte(arc&0x7f)}, digits...)
		}
		out = append(out, digits...)
	}
	return out
}

// attribute is an AttributeTypeAndValue.
func attribute(id string, value []byte) []byte { return seq(oid(id), value) }

// rdn is a RelativeDistinguishedName of one attribute.
func rdn(id string, value []byte) []byte { return set(attribute(id, value)) }

func utf8String(value string) []byte { return text(tagUTF8, value) }

func printable(value string) []byte { return text(tagPrintable, value) }

// commonName is a Name of a common name alone.
func commonName(value string) []byte { return seq(rdn(idCommonName, utf8String(value))) }

// The forms of GeneralName (RFC 5280 §4.2.1.6).
func email(value string) []byte        { return text(0x81, value) }
func dns(value string) []byte          { return text(0x82, value) }
func uri(value string) []byte          { return text(0x86, value) }
func ip(address ...byte) []byte        { return tlv(0x87, address) }
func directory(name []byte) []byte     { return tlv(0xa4, name) }
func otherName(parts ...[]byte) []byte { return tlv(0xa0, parts...) }

// times is a Validity.
func times(notBefore, notAfter string) []byte {
	return seq(text(tagUTCTime, notBefore), text(tagUTCTime, notAfter))
}
