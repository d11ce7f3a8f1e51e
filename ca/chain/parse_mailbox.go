package chain

import (
	"bytes"
	"net/netip"
)

const maxLocalPart = 64

// isMailbox tells whether value is a Mailbox of RFC 2821 §4.1.2, as RFC 5280 §4.2.1.6 asks: a dot-string or a quoted string, "@", and
// a domain or an address in brackets.
func isMailbox(value []byte) bool {
	at := bytes.LastIndexByte(value, '@')
	if at < 1 || at > maxLocalPart {
		return false
	}
	local, domain := value[:at], value[at+1:]
	if literal, ok := bytes.CutPrefix(domain, []byte("[")); ok {
		literal, ok := bytes.CutSuffix(literal, []byte("]"))
		_, err := netip.ParseAddr(string(bytes.TrimPrefix(literal, []byte("IPv6:"))))
		if !ok || err != nil {
			return false
		}
	} else if !isDomain(domain) {
		return false
	}
	if local[0] == '"' {
		return isQuoted(local)
	}
	atom := 0
	for _, c := range local {
		switch {
		case c == '.' && atom > 0:
			atom = 0
		case isLetter(c) || isDecimal(c) || c > ' ' && c < 0x7f && bytes.IndexByte([]byte("!#$%&'*+-/=?^_`{|}~"), c) >= 0:
			atom++
		default:
			return false
		}
	}
	return atom > 0
}

// isQuoted tells whether local is one quoted string with something in it.
func isQuoted(local []byte) bool {
	if len(local) < 3 || local[len(local)-1] != '"' {
		return false
	}
	inner := local[1 : len(local)-1]
	for i := 0; i < len(inner); i++ {
		switch c := inner[i]; {
		case c < ' ' || c >= 0x7f || c == '"':
			return false
		case c == '\\':
			if i++; i == len(inner) || inner[i] < ' ' || inner[i] >= 0x7f {
				return false
			}
		}
	}
	return true
}
