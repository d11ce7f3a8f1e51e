package chain

import (
	"crypto/x509"
	"net/netip"
	"slices"
	"strings"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
	cryptobyte_asn1 "golang.org/x/crypto/cryptobyte/asn1"
)

// checkLeaf applies what does not depend on a path: the leaf's own rules and the names that it has to have.
func (v *verification) checkLeaf(leaf *member) *Error {
	if refusal := v.checkCertificate(1, leaf); refusal != nil {
		return refusal
	}
	certificate := leaf.certificate
	if missing := v.options.KeyUsage &^ certificate.KeyUsage; missing != 0 && leaf.keyUsage {
		return refuse(1, leaf, "RFC 5280 §4.2.1.3", "its key usage %#x lacks %#x", int(certificate.KeyUsage), int(missing))
	}
	const rule = "RFC 9525 §6, RFC 5280 §4.2.1.6"
	if host := v.options.Host; host != "" && !leaf.coversHost(host) {
		return refuse(1, leaf, rule, "its subject alternative names do not cover %q: %s", bounded(host), leaf.shownNames())
	}
	if uri := v.options.URI; uri != "" && !slices.Contains(leaf.namesOf(tagURI), uri) {
		return refuse(1, leaf, rule, "the URI %q is not one of its subject alternative names: %s", bounded(uri), leaf.shownNames())
	}
	if want := v.options.SPIFFEID; !want.IsZero() {
		return leaf.checkSVID(want)
	}
	return nil
}

// checkSVID holds a leaf against the X.509-SVID specification, §2 and §5.2.
func (m *member) checkSVID(want spiffeid.ID) *Error {
	certificate := m.certificate
	if certificate.IsCA || certificate.KeyUsage&(x509.KeyUsageCertSign|x509.KeyUsageCRLSign) != 0 {
		return refuse(1, m, "X509-SVID §5.2", "it can sign certificates or revocation lists, so its SPIFFE ID is not that of a workload")
	}
	uris := m.namesOf(tagURI)
	if len(uris) != 1 {
		return refuse(1, m, "X509-SVID §2", "a certificate with a SPIFFE ID has to have exactly one URI, this one has %d", len(uris))
	}
	if id, err := spiffeid.FromString(uris[0]); err != nil || id != want {
		return refuse(1, m, "X509-SVID §2", "its SPIFFE ID is %q, not %q", bounded(uris[0]), bounded(want.String()))
	}
	return nil
}

// namesOf returns the subject alternative names of a kind that is a string.
func (m *member) namesOf(tag cryptobyte_asn1.Tag) []string {
	var names []string
	for _, name := range m.names {
		if name.tag == tag {
			names = append(names, string(name.value))
		}
	}
	return names
}

// coversHost matches a host by RFC 9525 §6: an address by its octets, a DNS name by its labels, of which a wildcard stands for the leftmost
// one only.
func (m *member) coversHost(host string) bool {
	if address, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")); err == nil {
		return slices.Contains(m.namesOf(tagIPAddress), string(address.WithZone("").AsSlice()))
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if !isDomain([]byte(host)) {
		return false
	}
	_, parent, _ := strings.Cut(host, ".")
	return slices.ContainsFunc(m.namesOf(tagDNSName), func(name string) bool {
		name = strings.ToLower(name)
		if above, wild := strings.CutPrefix(name, "*."); wild {
			return parent != "" && above == parent
		}
		return name == host
	})
}

// shownNames lists the first names for an error.
func (m *member) shownNames() string {
	const most = 5
	var shown []string
	for _, name := range m.names[:min(most, len(m.names))] {
		shown = append(shown, name.show())
	}
	switch {
	case len(shown) == 0:
		return "it has none"
	case len(m.names) > most:
		shown = append(shown, "…")
	}
	return strings.Join(shown, ", ")
}

// allowsUsage tells whether a certificate allows a usage: by naming it, by anyExtendedKeyUsage, or by not having the extension.
func (m *member) allowsUsage(usage x509.ExtKeyUsage) bool {
	certificate := m.certificate
	return !m.extKeyUsage || usage == x509.ExtKeyUsageAny || slices.Contains(certificate.ExtKeyUsage, usage) || slices.Contains(certificate.ExtKeyUsage, x509.ExtKeyUsageAny)
}

// checkUsages checks that every certificate of a path allows every wanted usage. RFC 5280 §4.2.1.12 says so for the leaf; that issuers
// constrain those below is what everybody does.
func (v *verification) checkUsages(path []*member) *Error {
	for i, m := range path {
		for _, usage := range v.options.Usages {
			if !m.allowsUsage(usage) {
				return refuse(i+1, m, "RFC 5280 §4.2.1.12", "its extended key usage does not allow %s", usage)
			}
		}
	}
	return nil
}
