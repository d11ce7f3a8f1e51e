package identity

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Names are the subject alternative names of a certificate (RFC 5280 §4.2.1.6), as far as Chancery issues them: URIs, DNS names in
// lower case and IP addresses. Each list is sorted and free of duplicates once Normalize has run.
type Names struct {
	URIs []string
	DNS  []string
	IPs  []netip.Addr
}

// Normalize returns the names in lower case (DNS only), sorted, duplicates dropped and IPv4-mapped addresses unmapped.
func (n Names) Normalize() Names {
	out := Names{URIs: slices.Clone(n.URIs), DNS: make([]string, 0, len(n.DNS)), IPs: make([]netip.Addr, 0, len(n.IPs))}
	for _, name := range n.DNS {
		out.DNS = append(out.DNS, strings.ToLower(name))
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

// String returns the first few names, for a sentence.
func (n Names) String() string {
	const shown = 5
	list := n.List()
	if len(list) == 0 {
		return "no name"
	}
	if len(list) > shown {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:shown], ", "), len(list)-shown)
	}
	return strings.Join(list, ", ")
}
