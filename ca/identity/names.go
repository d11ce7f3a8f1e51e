package identity

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Names are the subject alternative names of a certificate (RFC 5280 §4.2.1.6), as far as Chancery issues them: URIs, DNS names in
// lower case and IP addresses. Each list is sorted and free of duplicates once Normalize has run. Names say nothing about whether their
// syntax is right: csr, ca/profile and ca/lint do.
type Names struct {
	URIs []string
	DNS  []string
	IPs  []netip.Addr
}

// Normalize returns the names in lower case (DNS only; a URI's path has a case), sorted, duplicates dropped and IPv4-mapped addresses unmapped.
func (n Names) Normalize() Names {
	out := Names{URIs: slices.Clone(n.URIs), DNS: make([]string, 0, len(n.DNS)), IPs: make([]netip.Addr, 0, len(n.IPs))}
	for _, name := range n.DNS {
		out.DNS = append(out.DNS, lower(name))
	}
	for _, ip := range n.IPs {
		out.IPs = append(out.IPs, ip.Unmap())
	}
	slices.Sort(out.URIs)
	slices.Sort(out.DNS)
	slices.SortFunc(out.IPs, netip.Addr.Compare)
	out.URIs = slices.Compact(out.URIs)
	out.DNS = slices.Compact(out.DNS)
	out.IPs = slices.Compact(out.IPs)
	return out
}

// lower changes ASCII letters only, as RFC 4343 §3 compares names: Unicode would fold the Kelvin sign to a k, and so make one name of another.
func lower(name string) string {
	octets := []byte(name)
	for i, c := range octets {
		if 'A' <= c && c <= 'Z' {
			octets[i] = c - 'A' + 'a'
		}
	}
	return string(octets)
}

// Empty tells whether there is no name at all.
func (n Names) Empty() bool { return len(n.URIs)+len(n.DNS)+len(n.IPs) == 0 }

// Equal compares two normalized sets.
func (n Names) Equal(other Names) bool {
	return slices.Equal(n.URIs, other.URIs) && slices.Equal(n.DNS, other.DNS) && slices.Equal(n.IPs, other.IPs)
}

// List returns every name with its kind: "URI:…", "DNS:…", "IP:…".
func (n Names) List() []string {
	out := make([]string, 0, len(n.URIs)+len(n.DNS)+len(n.IPs))
	for _, uri := range n.URIs {
		out = append(out, "URI:"+uri)
	}
	for _, name := range n.DNS {
		out = append(out, "DNS:"+name)
	}
	for _, ip := range n.IPs {
		out = append(out, "IP:"+ip.String())
	}
	return out
}

// String returns the first few names for a sentence. Names may be any bytes that a caller sent: long ones are cut, and what does not print
// is escaped.
func (n Names) String() string {
	const most = 5
	list := n.List()
	if len(list) == 0 {
		return "no name"
	}
	rest := max(len(list)-most, 0)
	list = list[:len(list)-rest]
	for i, name := range list {
		list[i] = shown(name)
	}
	text := strings.Join(list, ", ")
	if rest > 0 {
		text += fmt.Sprintf(" and %d more", rest)
	}
	return text
}

// shown returns a name as a sentence may hold it.
func shown(name string) string {
	const most = 128
	cut := ""
	if len(name) > most {
		name, cut = name[:most], "…"
	}
	quoted := strconv.QuoteToASCII(name)
	return quoted[1:len(quoted)-1] + cut
}
