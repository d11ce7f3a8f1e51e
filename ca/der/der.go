// Package der checks that bytes are DER (X.690), strictly, and turns the little BER that is tolerated around a certificate into DER.
//
// Check is a walker that knows no schema: it holds every element against the rules that give a value exactly one encoding. What a
// certificate has to be made of is for ca/chain and csr. Implicitly tagged primitive values are opaque to the walker; their
// parser checks them with CheckContents.
//
// Both walk without recursion and under bounds, so that a hostile input costs no more than an honest one of its size. The package never
// builds values and never changes a byte that a signature covers. It refuses what PKIX has no use for: tag numbers above 30, REAL,
// EXTERNAL and their like.
package der

import "fmt"

// MaxDepth bounds how deep elements may nest. The deepest structure of RFC 5280, a distribution point with a directory name, needs 9.
const MaxDepth = 16

// The bounds that zero values in Limits stand for. A certificate with a thousand names has about 1,100 elements and 30 KiB.
const (
	DefaultMaxBytes    = 1 << 20
	DefaultMaxElements = 10_000
)

// Limits bounds the work for one input.
type Limits struct {
	MaxBytes    int // 0 means DefaultMaxBytes
	MaxElements int // 0 means DefaultMaxElements
}

func (l Limits) withDefaults() Limits {
	if l.MaxBytes == 0 {
		l.MaxBytes = DefaultMaxBytes
	}
	if l.MaxElements == 0 {
		l.MaxElements = DefaultMaxElements
	}
	return l
}

// Error says which rule an encoding broke and where.
type Error struct {
	Offset  int    // of the element's first octet in the input
	Section string // of X.690, as "§10.1"; empty for a bound of this package
	Detail  string // a sentence without a part of the input
}

// Error returns a sentence with the offset and the section.
func (e *Error) Error() string {
	if e.Section == "" {
		return fmt.Sprintf("octet %d: %s", e.Offset, e.Detail)
	}
	return fmt.Sprintf("octet %d: %s (X.690 %s)", e.Offset, e.Detail, e.Section)
}

// The universal tags, as identifier octets of their only DER form (X.680 §8.6).
const (
	tagBoolean         = 0x01
	tagInteger         = 0x02
	tagBitString       = 0x03
	tagOctetString     = 0x04
	tagNull            = 0x05
	tagOID             = 0x06
	tagEnumerated      = 0x0a
	tagUTF8String      = 0x0c
	tagRelativeOID     = 0x0d
	tagNumericString   = 0x12
	tagPrintableString = 0x13
	tagT61String       = 0x14
	tagIA5String       = 0x16
	tagUTCTime         = 0x17
	tagGeneralizedTime = 0x18
	tagVisibleString   = 0x1a
	tagUniversalString = 0x1c
	tagBMPString       = 0x1e
	tagSequence        = 0x30
	tagSet             = 0x31
)
