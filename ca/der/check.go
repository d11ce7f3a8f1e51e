package der

import "bytes"

// Check returns nil if der is exactly one DER element within the default Limits, and an error of type *Error if not.
func Check(der []byte) error { return CheckWithin(der, Limits{}) }

// CheckWithin is Check with other bounds.
func CheckWithin(der []byte, limits Limits) error {
	if err := check(der, limits.withDefaults()); err != nil {
		return err
	}
	return nil
}

// open is an element whose contents are being walked.
type open struct {
	start, end int
	// previous is the last element seen in a SET OF, to hold the next one against
	previous []byte
}

func check(der []byte, limits Limits) *Error {
	if len(der) > limits.MaxBytes {
		return &Error{0, "", "the input is larger than allowed"}
	}
	var stack [MaxDepth]open
	depth, at := 0, 0
	for elements := 0; ; elements++ {
		if elements == limits.MaxElements {
			return &Error{at, "", "the input has more elements than allowed"}
		}
		limit := len(der)
		if depth > 0 {
			limit = stack[depth-1].end //nolint:gosec // depth is from 1 to MaxDepth
		}
		h, err := readStrict(der, at, limit)
		if err != nil {
			return err
		}
		if h.constructed() {
			if depth == MaxDepth {
				return &Error{at, "", "elements nest deeper than 16 levels"}
			}
			stack[depth] = open{start: at, end: h.end()}
			depth++
			at = h.contents
		} else {
			if h.universal() {
				if err := checkContents(h.tag, der[h.contents:h.end()], at); err != nil {
					return err
				}
			}
			at = h.end()
			if err := closed(der, stack[:depth], h.start, at); err != nil {
				return err
			}
		}
		for depth > 0 && stack[depth-1].end == at {
			depth--
			if err := closed(der, stack[:depth], stack[depth].start, at); err != nil {
				return err
			}
		}
		if depth == 0 {
			break
		}
	}
	if at != len(der) {
		return &Error{at, "§8.1", "there are octets after the element"}
	}
	return nil
}

// closed holds the element der[start:end], which has just ended, against its predecessor if it stands in a SET OF. PKIX has no
// SET with elements of different types, so the order is that of SET OF.
func closed(der []byte, stack []open, start, end int) *Error {
	if len(stack) == 0 {
		return nil
	}
	parent := &stack[len(stack)-1]
	if der[parent.start] != tagSet {
		return nil
	}
	element := der[start:end]
	if bytes.Compare(parent.previous, element) > 0 {
		return &Error{start, "§11.6", "the elements of a SET OF are not in ascending order"}
	}
	parent.previous = element
	return nil
}

// readStrict reads a header and refuses what DER does not allow in it.
func readStrict(der []byte, at, limit int) (header, *Error) {
	h, err := readHeader(der, at, limit)
	switch {
	case err != nil:
		return h, err
	case h.indefinite:
		return h, &Error{at, "§10.1", "the length is indefinite; DER needs a definite one"}
	case !h.minimal:
		return h, &Error{at, "§10.1", "the length is not in its shortest form"}
	case !h.universal():
		return h, nil
	}
	switch {
	case h.tag == tagSequence, h.tag == tagSet:
		return h, nil
	case h.constructed():
		return h, &Error{at, "§10.2", "the value is constructed; in DER only SEQUENCE, SET and tagged values are"}
	case h.tag == tagSequence&0x1f, h.tag == tagSet&0x1f:
		return h, &Error{at, "§8.9.1", "a SEQUENCE or SET is primitive; it has to be constructed"}
	}
	return h, nil
}
