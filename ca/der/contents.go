package der

import (
	"encoding/binary"
	"unicode/utf8"
)

// CheckContents holds the contents octets of a primitive value of the given universal tag number against DER. Parsers use it for
// implicitly tagged values, whose type the walker cannot know. Offsets of its errors are 0.
func CheckContents(tag uint8, contents []byte) error {
	if err := checkContents(tag, contents, 0); err != nil {
		return err
	}
	return nil
}

// checkContents is CheckContents for an element at offset at.
func checkContents(tag byte, c []byte, at int) *Error {
	switch tag {
	case tagBoolean:
		return checkBoolean(c, at)
	case tagInteger, tagEnumerated:
		return checkInteger(c, at)
	case tagBitString:
		return checkBitString(c, at)
	case tagOctetString:
		return nil
	case tagNull:
		if len(c) != 0 {
			return &Error{at, "§8.8.2", "a NULL has contents"}
		}
		return nil
	case tagOID, tagRelativeOID:
		return checkOID(c, at)
	case tagUTCTime:
		return checkUTCTime(c, at)
	case tagGeneralizedTime:
		return checkGeneralizedTime(c, at)
	case 0:
		return &Error{at, "§8.1.5", "end-of-contents octets stand in a definite length"}
	}
	return checkString(tag, c, at)
}

func checkBoolean(c []byte, at int) *Error {
	if len(c) != 1 {
		return &Error{at, "§8.2.1", "a BOOLEAN has to be one octet"}
	}
	if c[0] != 0 && c[0] != 0xff {
		return &Error{at, "§11.1", "a BOOLEAN is neither 00 nor FF"}
	}
	return nil
}

func checkInteger(c []byte, at int) *Error {
	if len(c) == 0 {
		return &Error{at, "§8.3.1", "an INTEGER is empty"}
	}
	if len(c) > 1 && (c[0] == 0 && c[1] < 0x80 || c[0] == 0xff && c[1] >= 0x80) {
		return &Error{at, "§8.3.2", "an INTEGER is not in its shortest form"}
	}
	return nil
}

func checkBitString(c []byte, at int) *Error {
	if len(c) == 0 {
		return &Error{at, "§8.6.2.3", "a BIT STRING lacks the octet that counts unused bits"}
	}
	unused := c[0]
	if unused > 7 || unused > 0 && len(c) == 1 {
		return &Error{at, "§8.6.2.2", "a BIT STRING has more unused bits than it can have"}
	}
	if c[len(c)-1]&(1<<unused-1) != 0 {
		return &Error{at, "§11.2.1", "unused bits of a BIT STRING are not zero"}
	}
	return nil
}

func checkOID(c []byte, at int) *Error {
	if len(c) == 0 || c[len(c)-1] >= 0x80 {
		return &Error{at, "§8.19.2", "an OBJECT IDENTIFIER is empty or cut short"}
	}
	first := true
	for _, octet := range c {
		if first && octet == 0x80 {
			return &Error{at, "§8.19.2", "a component of an OBJECT IDENTIFIER is not in its shortest form"}
		}
		first = octet < 0x80
	}
	return nil
}

// checkString checks the character set of a string type (X.680 §41, X.690 §8.23).
func checkString(tag byte, c []byte, at int) *Error {
	ok, name := false, ""
	switch tag {
	case tagUTF8String:
		ok, name = utf8.Valid(c), "UTF8String"
	case tagNumericString:
		ok, name = all(c, isNumeric), "NumericString"
	case tagPrintableString:
		ok, name = all(c, isPrintable), "PrintableString"
	case tagIA5String:
		ok, name = all(c, func(c byte) bool { return c < 0x80 }), "IA5String"
	case tagVisibleString:
		ok, name = all(c, func(c byte) bool { return ' ' <= c && c < 0x7f }), "VisibleString"
	case tagT61String:
		ok = true // eight bits with escape sequences; what they mean is not checked
	case tagBMPString:
		ok, name = isBMP(c), "BMPString"
	case tagUniversalString:
		ok, name = isUniversal(c), "UniversalString"
	default:
		return &Error{at, "§8.1.2", "the universal type has no use in certificates and is not accepted"}
	}
	if !ok {
		return &Error{at, "§8.23", "a " + name + " holds something that is not of its character set"}
	}
	return nil
}

func all(c []byte, in func(byte) bool) bool {
	for _, octet := range c {
		if !in(octet) {
			return false
		}
	}
	return true
}

func isNumeric(c byte) bool { return '0' <= c && c <= '9' || c == ' ' }

// isPrintable is PrintableString without "*", "@", "&" and "_", which many readers let through (X.680 §41.4).
func isPrintable(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	case c == ' ', '\'' <= c && c <= ')', '+' <= c && c <= '/', c == ':', c == '=', c == '?':
		return true
	}
	return false
}

func isBMP(c []byte) bool {
	if len(c)%2 != 0 {
		return false
	}
	for ; len(c) > 0; c = c[2:] {
		if !isCharacter(rune(binary.BigEndian.Uint16(c))) {
			return false
		}
	}
	return true
}

func isUniversal(c []byte) bool {
	if len(c)%4 != 0 {
		return false
	}
	for ; len(c) > 0; c = c[4:] {
		if code := binary.BigEndian.Uint32(c); code > utf8.MaxRune || !isCharacter(rune(code)) {
			return false
		}
	}
	return true
}

// isCharacter refuses surrogates and noncharacters.
func isCharacter(r rune) bool {
	return utf8.ValidRune(r) && r&0xfffe != 0xfffe && (r < 0xfdd0 || r > 0xfdef)
}
