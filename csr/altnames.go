package csr

import (
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/crypto/cryptobyte"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"

	"github.com/chancery-ca/chancery/ca/errkind"
)

// The kinds of GeneralName (RFC 5280 §4.2.1.6) that are read.
const (
	tagEmail = cryptobyte_asn1.Tag(1 | 0x80)
	tagDNS   = cryptobyte_asn1.Tag(2 | 0x80)
	tagURI   = cryptobyte_asn1.Tag(6 | 0x80)
	tagIP    = cryptobyte_asn1.Tag(7 | 0x80)
)

// otherKinds names those that are not, by their number.
var otherKinds = [...]string{0: "otherName", 3: "x400Address", 4: "directoryName", 5: "ediPartyName", 8: "registeredID"}

// readAltNames reads GeneralNames. Each name is of a kind that Chancery knows and well formed, or the request is refused: a name that the reader
// skips is a name that nobody approved.
func (r *Request) readAltNames(value cryptobyte.String, rules *Rules) error {
	var names cryptobyte.String
	if !value.ReadASN1(&names, cryptobyte_asn1.SEQUENCE) || !value.Empty() || names.Empty() {
		return invalid("subjectAltName: malformed (RFC 5280 §4.2.1.6): it is a list of at least one name; ask for names or leave it out")
	}
	for count := 1; !names.Empty(); count++ {
		if count > rules.maxNames() {
			return invalid("subjectAltName: there are more than %d names; split the request", rules.maxNames())
		}
		var contents cryptobyte.String
		var tag cryptobyte_asn1.Tag
		if !names.ReadAnyASN1(&contents, &tag) {
			return malformed("subjectAltName")
		}
		if err := r.readAltName(tag, contents, rules); err != nil {
			return err
		}
	}
	if err := r.checkSPIFFE(); err != nil {
		return err
	}
	r.names = r.names.Normalize()
	return nil
}

func (r *Request) readAltName(tag cryptobyte_asn1.Tag, contents []byte, rules *Rules) error {
	switch tag {
	case tagDNS:
		name := string(contents)
		if err := checkDNS(name, rules); err != nil {
			return err
		}
		r.names.DNS = append(r.names.DNS, name)
	case tagURI:
		uri := string(contents)
		if err := checkURI(uri); err != nil {
			return err
		}
		r.names.URIs = append(r.names.URIs, uri)
	case tagIP:
		address, err := readIP(contents)
		if err != nil {
			return err
		}
		r.names.IPs = append(r.names.IPs, address)
	case tagEmail:
		email := string(contents)
		if !rules.Emails {
			return invalid("subjectAltName: it asks for the email address %.80q, and workloads get none; leave it out", email)
		}
		if err := checkEmail(email); err != nil {
			return err
		}
		r.emails = append(r.emails, email)
	default:
		kind := "unknown"
		if number := int(tag & 0x1f); tag&0x80 != 0 && number < len(otherKinds) && otherKinds[number] != "" {
			kind = otherKinds[number]
		}
		return invalid("subjectAltName: names of the kind %s may not be asked for (RFC 5280 §4.2.1.6); ask for URIs, DNS names and IP addresses only", kind)
	}
	return nil
}

// readIP takes addresses that a peer can have. An IPv4 address is four octets: the same one mapped into IPv6 would be compared as another by
// some, as the same by others.
func readIP(contents []byte) (netip.Addr, error) {
	address, ok := netip.AddrFromSlice(contents)
	switch {
	case !ok:
		return netip.Addr{}, invalid("subjectAltName: an IP address has 4 or 16 octets, not %d (RFC 5280 §4.2.1.6)", len(contents))
	case address.Is4In6():
		return netip.Addr{}, invalid("subjectAltName: %s is an IPv4 address in 16 octets; write it in 4 (RFC 5280 §4.2.1.6)", address)
	case address.IsUnspecified(), address.IsMulticast(), address == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return netip.Addr{}, invalid("subjectAltName: %s is not the address of a host; ask for one at which the workload is reached", address)
	}
	return address, nil
}

// checkCommonName refuses a host name, or an IP address, in the common name that the subject alternative names leave out although they list
// others of its kind: clients that still read common names would see a name that a policy on the alternative names does not.
func (r *Request) checkCommonName(rules *Rules) error {
	if rules.StrayCommonName || r.commonName == "" {
		return nil
	}
	stray := false
	if address, err := netip.ParseAddr(r.commonName); err == nil {
		stray = len(r.names.IPs) > 0 && !slices.Contains(r.names.IPs, address)
	} else if strings.Contains(r.commonName, ".") && checkHost(strings.TrimPrefix(r.commonName, "*.")) == "" {
		stray = len(r.names.DNS) > 0 && !slices.Contains(r.names.DNS, strings.ToLower(r.commonName))
	}
	if stray {
		return refused(errkind.NamesMismatch, "subject: the common name %q is not among the subject alternative names; add it there or leave it out", r.commonName)
	}
	return nil
}
