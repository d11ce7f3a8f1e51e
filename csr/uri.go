package csr

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/chancery-ca/chancery/ca/errkind"
)

// maxURI is the longest URI that is read: that of a SPIFFE ID (SPIFFE-ID §2.3).
const maxURI = 2048

const spiffeScheme = "spiffe"

// checkURI checks a uniformResourceIdentifier: absolute, in the characters of RFC 3986, and with a host that is one (RFC 5280 §4.2.1.6).
// A SPIFFE ID is held to its own, stricter rules.
func checkURI(text string) error {
	if len(text) > maxURI {
		return invalid("subjectAltName: a URI is longer than %d octets (SPIFFE-ID §2.3)", maxURI)
	}
	if strings.ContainsFunc(text, notURI) {
		return invalid("subjectAltName: the URI %.80q has characters that a URI may not hold; percent-encode them (RFC 3986 §2)", text)
	}
	uri, err := url.Parse(text)
	if err != nil {
		return invalid("subjectAltName: the URI %.80q is malformed (RFC 3986)", text)
	}
	if !uri.IsAbs() || uri.Opaque == "" && uri.Host == "" && uri.Path == "" {
		return invalid("subjectAltName: the URI %.80q is not absolute (RFC 5280 §4.2.1.6); write its scheme and what follows", text)
	}
	if uri.Scheme == spiffeScheme {
		return checkSPIFFEID(text)
	}
	if uri.User != nil {
		return invalid("subjectAltName: a URI names a user or a password before its host (RFC 3986 §3.2.1); leave these out")
	}
	if uri.Host == "" {
		return nil
	}
	host := uri.Hostname()
	if address, err := netip.ParseAddr(host); err == nil && address.Zone() == "" {
		return nil
	}
	if reason := checkHost(host); reason != "" {
		return invalid("subjectAltName: the host of the URI %.80q %s", text, reason)
	}
	return nil
}

func checkSPIFFEID(text string) error {
	id, err := spiffeid.FromString(text)
	if err != nil {
		return invalid("subjectAltName: the SPIFFE ID %.80q is malformed: %v (SPIFFE-ID §2)", text, err)
	}
	if slices.Contains(strings.Split(id.TrustDomain().Name(), "."), "") {
		return invalid("subjectAltName: the trust domain of %.80q has an empty label (SPIFFE-ID §2.1)", text)
	}
	return nil
}

// checkSPIFFE refuses a SPIFFE ID beside another URI, since an X.509-SVID holds exactly one (X509-SVID §2).
func (r *Request) checkSPIFFE() error {
	isSPIFFE := func(uri string) bool { return strings.HasPrefix(uri, spiffeScheme+":") }
	if len(r.names.URIs) > 1 && slices.ContainsFunc(r.names.URIs, isSPIFFE) {
		return refused(errkind.NamesMismatch, "subjectAltName: a SPIFFE ID and another URI are asked for, and an X.509-SVID has one URI (X509-SVID §2); ask for one")
	}
	return nil
}

// checkEmail checks an rfc822Name: a Mailbox of RFC 2821 without quoting, in ASCII (RFC 5280 §4.2.1.6).
func checkEmail(email string) error {
	local, host, found := strings.Cut(email, "@")
	wrong := !found || len(local) > 64 || checkHost(host) != ""
	for atom := range strings.SplitSeq(local, ".") {
		wrong = wrong || atom == "" || strings.ContainsFunc(atom, notAtom)
	}
	if wrong {
		return invalid("subjectAltName: the email address %.80q is not of the form local@host in ASCII (RFC 5280 §4.2.1.6)", email)
	}
	return nil
}

func notURI(c rune) bool { return notLDH(c) && !strings.ContainsRune("._~:/?#[]@!$&'()*+,;=%", c) }

func notAtom(c rune) bool { return notLDH(c) && !strings.ContainsRune("!#$%&'*+/=?^_`{|}~", c) }
