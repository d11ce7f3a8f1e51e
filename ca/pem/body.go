package pem

import (
	"bytes"
	"encoding/base64"
	"fmt"
)

// body reads base64text of RFC 7468 §3 line by line.
type body struct {
	begin   int // line of BEGIN
	encoded []byte
	discard bool // keep nothing: only whether the lines are good matters
	padding int
	state   bodyState
}

type bodyState uint8

const (
	bodyStart  bodyState = iota // only eolWSP so far
	bodyLines                   // whole base64 lines so far
	bodyPadded                  // one "=" stood at the end of the last line; a second may follow on a line of its own
	bodyDone                    // the final line is over, only END may follow
)

// add reads one line of the body.
func (b *body) add(line []byte, number int) error {
	line = trimRightWSP(line)
	if b.state == bodyStart {
		// *eolWSP stands before base64text, so blanks before the first line are part of it
		if line = trimLeftWSP(line); len(line) == 0 {
			return nil
		}
	}
	data := bytes.TrimRight(line, "=")
	padding := len(line) - len(data)
	for _, c := range data {
		if !isBase64(c) {
			return b.badLine(line, c, number)
		}
	}
	switch {
	case b.state == bodyDone, b.state == bodyPadded && (len(data) > 0 || padding != 1):
		return &Error{number, "body-after-end",
			fmt.Sprintf("the base64 of the block of line %d has ended before this line: only END may follow padding or a blank line (RFC 7468 §3)", b.begin)}
	case b.padding+padding > 2:
		return &Error{number, "padding", "base64 ends with at most two padding characters (RFC 4648 §4)"}
	case b.state == bodyPadded, padding == 2, len(line) == 0:
		b.state = bodyDone
	case padding == 1:
		b.state = bodyPadded
	default:
		b.state = bodyLines
	}
	if !b.discard {
		b.encoded = append(b.encoded, line...)
	}
	b.padding += padding
	return nil
}

// badLine says what is most likely wrong with a line that holds c, which is not of the base64 alphabet.
func (b *body) badLine(line []byte, c byte, number int) error {
	switch {
	case hasPrefix(line, beginPrefix):
		return &Error{number, "begin-in-block",
			fmt.Sprintf("BEGIN stands inside the block of line %d, whose END is missing (RFC 7468 §3)", b.begin)}
	case bytes.Contains(line, []byte(endPrefix)):
		return &Error{number, "end-not-at-start", "END has to stand on a line of its own, and something stands before it (RFC 7468 §3)"}
	case c == '=':
		return &Error{number, "padding", "padding stands inside the base64, not at its end (RFC 4648 §4)"}
	case bytes.IndexByte(line, ':') >= 0:
		return &Error{number, "header", "there is a header in the block; headers are not allowed, take them out (RFC 7468 §2)"}
	case isWSP(c):
		return &Error{number, "body-blank", "base64 lines must not be indented or hold blanks inside (RFC 7468 §3)"}
	default:
		return &Error{number, "body-character", "the block holds a character that is not of the base64 alphabet (RFC 7468 §3, RFC 4648 §4)"}
	}
}

// decode returns the body's octets; end is the line of END, for errors.
func (b *body) decode(end int) ([]byte, error) {
	switch {
	case len(b.encoded) == b.padding:
		return nil, &Error{b.begin, "empty", "the block is empty"}
	case len(b.encoded)%4 != 0:
		return nil, &Error{end, "padding",
			fmt.Sprintf("the base64 of the block of line %d is not a multiple of four characters: the padding is wrong or the block cut short (RFC 4648 §4)", b.begin)}
	}
	decoded := make([]byte, base64.StdEncoding.DecodedLen(len(b.encoded)))
	n, err := base64.StdEncoding.Strict().Decode(decoded, b.encoded)
	if err != nil {
		return nil, &Error{end, "trailing-bits",
			fmt.Sprintf("the base64 of the block of line %d is not canonical: the bits before its padding are not zero (RFC 4648 §3.5)", b.begin)}
	}
	return decoded[:n], nil
}

func isBase64(c byte) bool {
	return 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '+' || c == '/'
}
