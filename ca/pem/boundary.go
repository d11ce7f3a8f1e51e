package pem

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// What boundaries are made of.
const (
	beginPrefix = "-----BEGIN"
	endPrefix   = "-----END"
	dashes      = "-----"
)

func hasPrefix(line []byte, prefix string) bool {
	return len(line) >= len(prefix) && string(line[:len(prefix)]) == prefix
}

// boundaryLabel returns the label of a line that starts with prefix, or false if the line is not exactly a boundary (RFC 7468 §3,
// preeb and posteb; trailing WSP is allowed).
func boundaryLabel(line []byte, prefix string) ([]byte, bool) {
	rest, ok := bytes.CutPrefix(trimRightWSP(line[len(prefix):]), []byte{' '})
	if !ok {
		return nil, false
	}
	label, ok := bytes.CutSuffix(rest, []byte(dashes))
	if !ok || !validLabel(label) {
		return nil, false
	}
	return label, true
}

// validLabel holds a label against RFC 7468 §3: printable characters with single hyphens or spaces between them; it may be empty.
func validLabel(label []byte) bool {
	separated := true // so that a label starts with a labelchar
	for _, c := range label {
		switch {
		case c == '-' || c == ' ':
			if separated {
				return false
			}
			separated = true
		case c > ' ' && c < 0x7f:
			separated = false
		default:
			return false
		}
	}
	return !separated || len(label) == 0
}

// checkText refuses a line outside blocks that is not text or that could be a boundary somebody damaged. A reader that takes
// such a line for explanatory text loses the block.
func checkText(line []byte, number int) error {
	for _, c := range line {
		if c < ' ' && c != '\t' && c != '\v' && c != '\f' || c == 0x7f {
			return &Error{number, "text-control",
				"there is a control character around the PEM blocks; the file may be binary, UTF-16 or damaged (RFC 7468 §5.2)"}
		}
	}
	switch {
	case hasPrefix(line, endPrefix):
		return &Error{number, "stray-end", "END stands where no block is open: its BEGIN is missing or damaged (RFC 7468 §3)"}
	case startsLikeBoundary(line):
		return &Error{number, "damaged-boundary",
			"the line looks like a boundary and is none: BEGIN and END need five hyphens, capitals and the first column," +
				" with nothing before them, not even blanks or a byte order mark (RFC 7468 §3)"}
	case endsLikeBoundary(line):
		return &Error{number, "boundary-not-at-start", "a boundary has to start its line, and other text stands before it (RFC 7468 §3)"}
	}
	return nil
}

// startsLikeBoundary tells whether the first word of the line is BEGIN or END, in any case, right after hyphens: that covers
// four and six hyphens, a byte order mark, indentation, quoting and hyphens that a word processor made into dashes.
func startsLikeBoundary(line []byte) bool {
	i := bytes.IndexFunc(line, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
	if i < 1 {
		return false
	}
	word := line[i:min(i+len("BEGIN"), len(line))]
	if !bytes.EqualFold(word, []byte("BEGIN")) && (len(word) < 3 || !bytes.EqualFold(word[:3], []byte("END"))) {
		return false
	}
	// one hyphen alone makes a list, as "-end of line"; a dash or two hyphens do not
	before, size := utf8.DecodeLastRune(line[:i])
	if before == '-' {
		before, _ = utf8.DecodeLastRune(line[:i-size])
	}
	return unicode.Is(unicode.Pd, before)
}

// endsLikeBoundary tells whether the line ends with a whole boundary: an indented or prefixed BEGIN, or two files joined without a
// line end between them. A sentence that only mentions a boundary goes on after it.
func endsLikeBoundary(line []byte) bool {
	line = trimRightWSP(line)
	return bytes.HasSuffix(line, []byte(dashes)) && (bytes.Contains(line, []byte(beginPrefix)) || bytes.Contains(line, []byte(endPrefix)))
}
