package chain

import (
	"bytes"
	"net/netip"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
)

// uriProblem returns what is wrong with a URI in a certificate (RFC 5280 §4.2.1.6, RFC 3986): it has a scheme and something after it. If
// it names the subject and has an authority, that names a host; an LDAP location may leave the host out (RFC 5280 §4.2.1.13).
func uriProblem(uri []byte, use nameUse) (Severity, string) {
	for i, c := range uri {
		if !isURICharacter(c) || c == '%' && !(len(uri) > i+2 && isHex(uri[i+1]) && isHex(uri[i+2])) {
			return Malformed, "holds a character that a URI has to encode"
		}
	}
	scheme, rest, ok := bytes.Cut(uri, []byte(":"))
	switch {
	case !ok || !isScheme(scheme):
		return Malformed, "is relative; it needs a scheme"
	case len(rest) == 0 || rest[0] == '#' || rest[0] == '?':
		return Malformed, "has nothing after its scheme"
	}
	if authority, ok := bytes.CutPrefix(rest, []byte("//")); ok && use == nameSubject {
		if end := bytes.IndexAny(authority, "/?#"); end >= 0 {
			authority = authority[:end]
		}
		if !hasHost(authority) {
			return Nonconforming, "does not name a host by a domain or an IP address"
		}
	}
	return 0, ""
}

func isScheme(scheme []byte) bool {
	if len(scheme) == 0 || !isLetter(scheme[0]) {
		return false
	}
	for _, c := range scheme {
		if !isLetter(c) && !isDecimal(c) && c != '+' && c != '-' && c != '.' {
			return false
		}
	}
	return true
}

// isURICharacter tells whether c is unreserved, reserved or "%" (RFC 3986 §2).
func isURICharacter(c byte) bool {
	return isLetter(c) || isDecimal(c) || c > ' ' && c < 0x7f && bytes.IndexByte([]byte("-._~:/?#[]@!$&'()*+,;=%"), c) >= 0
}

func isHex(c byte) bool { return isDecimal(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' }

// hasHost looks at an authority, [userinfo@]host[:port]. Trust domains of SPIFFE may have an underscore.
func hasHost(authority []byte) bool {
	host := authority[bytes.LastIndexByte(authority, '@')+1:]
	if literal, ok := bytes.CutPrefix(host, []byte("[")); ok {
		literal, port, ok := bytes.Cut(literal, []byte("]"))
		if !ok || len(port) > 0 && port[0] != ':' {
			return false
		}
		addr, err := netip.ParseAddr(string(literal))
		return err == nil && addr.Is6()
	}
	if colon := bytes.IndexByte(host, ':'); colon >= 0 {
		if !isAllDigits(host[colon+1:]) {
			return false
		}
		host = host[:colon]
	}
	return isDomain(bytes.ReplaceAll(host, []byte("_"), []byte("x")))
}

// maxSPIFFEID is the bound of the SPIFFE ID specification, §2.3.
const maxSPIFFEID = 2048

// subjectURI counts a URI of the subject and holds it against the SPIFFE ID specification if its scheme says that it is one.
func (in *inspection) subjectURI(uri []byte) {
	in.names.uris++
	scheme, _, _ := bytes.Cut(uri, []byte(":"))
	if !bytes.EqualFold(scheme, []byte("spiffe")) {
		return
	}
	in.names.spiffe++
	if len(uri) > maxSPIFFEID {
		in.add(Nonconforming, "spiffe-id", "SPIFFE-ID §2.3", "the SPIFFE ID has more than %d octets", maxSPIFFEID)
		return
	}
	id, err := spiffeid.FromString(string(uri))
	if err != nil {
		in.add(Nonconforming, "spiffe-id", "SPIFFE-ID §2", "the SPIFFE ID is not valid: %s", bounded(err.Error()))
		return
	}
	in.names.noPath = in.names.noPath || id.Path() == ""
}
