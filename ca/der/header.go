package der

// header is the identifier and length octets of an element.
type header struct {
	tag        byte // the identifier octet, with class and constructed bit
	start      int  // of the identifier octet
	contents   int  // offset of the first octet after the length
	length     int  // of the contents; zero if indefinite
	indefinite bool
	minimal    bool // the length is definite and in its shortest form
}

func (h header) constructed() bool { return h.tag&0x20 != 0 }
func (h header) universal() bool   { return h.tag&0xc0 == 0 }
func (h header) end() int          { return h.contents + h.length }

// maxLengthOctets bounds the long form: four octets reach 4 GiB.
const maxLengthOctets = 4

// readHeader reads the header at offset at of an element that has to end within in[:limit], in BER: whether the length is one
// that DER allows is in the result.
func readHeader(in []byte, at, limit int) (header, *Error) {
	h := header{start: at}
	if limit-at < 2 {
		return h, &Error{at, "§8.1", "the input ends within an element's tag and length; it is cut short"}
	}
	h.tag = in[at]
	if h.tag&0x1f == 0x1f {
		return h, &Error{at, "§8.1.2.4", "tag numbers above 30 have no use in certificates and are not accepted"}
	}
	first := in[at+1]
	h.contents = at + 2
	switch {
	case first < 0x80:
		h.length, h.minimal = int(first), true
	case first == 0x80:
		h.indefinite = true
	case first == 0xff:
		return h, &Error{at, "§8.1.3.5", "the length octet FF is reserved"}
	case int(first&0x7f) > maxLengthOctets:
		return h, &Error{at, "§8.1.3.5", "the length has more than 4 octets"}
	default:
		octets := int(first & 0x7f)
		if limit-h.contents < octets {
			return h, &Error{at, "§8.1.3.5", "the input ends within an element's length; it is cut short"}
		}
		var length uint64
		for _, octet := range in[h.contents : h.contents+octets] {
			length = length<<8 | uint64(octet)
		}
		h.contents += octets
		if length > uint64(limit-h.contents) { //nolint:gosec // not negative, as limit was held against octets
			return h, &Error{at, "§8.1.3", "the element is longer than what holds it"}
		}
		h.length = int(length)
		// one octet is for 128 to 255, and more octets do not start with zero
		h.minimal = length >= 0x80 && in[h.contents-octets] != 0
	}
	if h.length > limit-h.contents {
		return h, &Error{at, "§8.1.3", "the element is longer than what holds it"}
	}
	return h, nil
}
