package pem

import "bytes"

// lines cuts a text at CRLF, CR and LF alike (RFC 7468 §3, eol).
type lines struct {
	rest   []byte
	line   []byte // without its eol
	number int    // of line, from 1
}

// next moves to the next line and tells whether there is one. Every byte is looked at once: searching for CR and LF apart would
// be quadratic in a text that has only one of them.
func (l *lines) next() bool {
	if len(l.rest) == 0 {
		return false
	}
	l.number++
	for i, c := range l.rest {
		switch c {
		case '\r':
			l.line = l.rest[:i]
			l.rest = bytes.TrimPrefix(l.rest[i+1:], []byte{'\n'})
			return true
		case '\n':
			l.line, l.rest = l.rest[:i], l.rest[i+1:]
			return true
		}
	}
	l.line, l.rest = l.rest, nil
	return true
}

// trimRightWSP cuts trailing WSP, which is SP and HTAB only.
func trimRightWSP(line []byte) []byte {
	for len(line) > 0 && isWSP(line[len(line)-1]) {
		line = line[:len(line)-1]
	}
	return line
}

// trimLeftWSP cuts leading WSP.
func trimLeftWSP(line []byte) []byte {
	for len(line) > 0 && isWSP(line[0]) {
		line = line[1:]
	}
	return line
}

func isWSP(c byte) bool { return c == ' ' || c == '\t' }
