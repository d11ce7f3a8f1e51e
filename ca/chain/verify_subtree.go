package chain

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
)

// matcher tells whether a name lies in the subtree of a base. Where specifications leave a doubt, it is larger when the subtree is excluded.
type matcher func(base generalName, excluded bool) bool

// matcherOf returns how a name is matched, or nil if a name of its kind or form cannot be: then it must not pass any constraint
// on its kind (RFC 5280 §4.2.1.10).
func matcherOf(name generalName) matcher {
	switch name.tag {
	case tagDirectoryName:
		return func(base generalName, _ bool) bool { return name.directory.within(base.directory) }
	case tagIPAddress:
		if len(name.value) != 4 && len(name.value) != 16 {
			return nil
		}
		return func(base generalName, _ bool) bool { return inNetwork(name.value, base.value) }
	case tagDNSName:
		domain := strings.ToLower(string(name.value))
		if !isDomain([]byte(strings.TrimPrefix(domain, "*."))) {
			return nil
		}
		return func(base generalName, excluded bool) bool {
			return inDomain(domain, strings.ToLower(string(base.value)), excluded)
		}
	case tagRFC822Name:
		local, host, ok := splitMailbox(string(name.value))
		if !ok {
			return nil
		}
		return func(base generalName, _ bool) bool { return mailboxWithin(local, host, string(base.value)) }
	case tagURI:
		host, ok := uriHost(string(name.value))
		if !ok {
			return nil
		}
		return func(base generalName, _ bool) bool { return hostWithin(host, strings.ToLower(string(base.value))) }
	default:
		return nil
	}
}

// inNetwork matches an address against an address with a mask. A mapped IPv4 address is an IPv6 address like any other.
func inNetwork(address, network []byte) bool {
	if len(network) != 2*len(address) {
		return false
	}
	for i, octet := range address {
		if (octet^network[i])&network[len(address)+i] != 0 {
			return false
		}
	}
	return true
}

// inDomain matches a dNSName: it is the base, or the base with labels before it. A base that begins with a period is not of RFC 5280, but
// there are some: it means the domains below, so excluded it is read like the base without.
//
// A wildcard stands for any label. It is permitted if all of them are, and excluded if one of them is.
func inDomain(domain, base string, excluded bool) bool {
	bare, dotted := strings.CutPrefix(base, ".")
	if bare == "" {
		return true
	}
	if !dotted || excluded {
		if domain == bare {
			return true
		}
	}
	if strings.HasSuffix(domain, "."+bare) {
		return true
	}
	parent, wild := strings.CutPrefix(domain, "*.")
	if !excluded || !wild {
		return false
	}
	_, above, _ := strings.Cut(bare, ".")
	return above == parent
}

// splitMailbox returns the local part, in which case matters, without quotes, and the host, in which case does not.
func splitMailbox(mailbox string) (local, host string, ok bool) {
	if !isMailbox([]byte(mailbox)) {
		return "", "", false
	}
	at := strings.LastIndexByte(mailbox, '@')
	local = mailbox[:at]
	if local[0] == '"' {
		// "a\b"@c is the mailbox ab@c (RFC 5321 §4.1.2)
		var plain []byte
		for i := 1; i < len(local)-1; i++ {
			if local[i] == '\\' {
				i++
			}
			plain = append(plain, local[i])
		}
		local = string(plain)
	}
	return local, strings.ToLower(mailbox[at+1:]), true
}

// mailboxWithin matches an rfc822Name: the base is a mailbox, a host, or with a leading period the hosts below a domain.
func mailboxWithin(local, host, base string) bool {
	if strings.Contains(base, "@") {
		baseLocal, baseHost, ok := splitMailbox(base)
		return ok && local == baseLocal && host == baseHost
	}
	return hostWithin(host, strings.ToLower(base))
}

// hostWithin matches a host of a mailbox or a URI. A base without a leading period is that host alone.
func hostWithin(host, base string) bool {
	if strings.HasPrefix(base, ".") {
		return len(host) > len(base) && strings.HasSuffix(host, base)
	}
	return host == base
}

// uriHost returns the host of a URI in lower case, if it is there and is a domain: constraints can be applied to no other
// (RFC 5280 §4.2.1.10).
func uriHost(uri string) (host string, ok bool) {
	_, rest, found := strings.Cut(uri, ":")
	authority, hasAuthority := strings.CutPrefix(rest, "//")
	if !found || !hasAuthority {
		return "", false
	}
	if end := strings.IndexAny(authority, "/?#\\"); end >= 0 {
		authority = authority[:end]
	}
	host = authority[strings.LastIndexByte(authority, '@')+1:]
	if colon := strings.IndexByte(host, ':'); colon >= 0 && isAllDigits([]byte(host[colon+1:])) {
		host = host[:colon]
	}
	host = strings.ToLower(host)
	// trust domains of SPIFFE may have an underscore; what ends with a number is an address in one of its old forms
	if !isDomain(bytes.ReplaceAll([]byte(host), []byte("_"), []byte("x"))) || isAllDigits([]byte(host[strings.LastIndexByte(host, '.')+1:])) {
		return "", false
	}
	return host, true
}

// show returns a name for an error.
func (g generalName) show() string {
	switch g.tag {
	case tagDirectoryName:
		return "its subject or a directoryName"
	case tagIPAddress:
		if address, ok := netip.AddrFromSlice(g.value); ok {
			return "its address " + address.String()
		}
	case tagDNSName, tagRFC822Name, tagURI:
		return fmt.Sprintf("its %s %q", describeKind(g.tag), bounded(string(g.value)))
	default:
	}
	return "its " + describeKind(g.tag)
}
