package authorize

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/chancery-ca/chancery/ca/identity"
)

// Grant is a configured rule: principals of an identity may hold DNS names and IP addresses under a profile.
type Grant struct {
	Name    string
	Profile string
	// Identity is a SPIFFE ID, or one that ends in "/*" and stands for every ID that has at least one segment more.
	Identity string
	// DNS are exact names, or "*.SUFFIX", which stands for every name with exactly one label before the suffix.
	DNS []string
	// IPs are CIDR prefixes; a single address is a prefix of full length.
	IPs []netip.Prefix
}

// Granted checks a Grant and returns its Rule. It allows a request only if every name in it is covered.
func Granted(grant Grant) (Rule, error) {
	matches, err := identityMatcher(grant.Identity)
	if err != nil {
		return nil, fmt.Errorf("rule %s: %w", grant.Name, err)
	}
	prefixes := make([]netip.Prefix, 0, len(grant.IPs))
	for _, prefix := range grant.IPs {
		prefixes = append(prefixes, prefix.Masked())
	}
	patterns := make([]string, 0, len(grant.DNS))
	for _, pattern := range grant.DNS {
		patterns = append(patterns, strings.ToLower(pattern))
	}
	return func(_ context.Context, request Request) (string, bool, error) {
		if request.Principal.Method == identity.MethodServer || request.Profile != grant.Profile || !matches(request.Principal.ID) {
			return "", false, nil
		}
		if len(request.Names.URIs) > 0 || request.Names.Empty() {
			return "", false, nil
		}
		for _, name := range request.Names.DNS {
			if !coveredDNS(patterns, name) {
				return "", false, nil
			}
		}
		for _, ip := range request.Names.IPs {
			if !coveredIP(prefixes, ip) {
				return "", false, nil
			}
		}
		return grant.Name, true, nil
	}, nil
}

func identityMatcher(text string) (func(spiffeid.ID) bool, error) {
	base, wildcard := strings.CutSuffix(text, "/*")
	id, err := spiffeid.FromString(base)
	if err != nil {
		return nil, fmt.Errorf("identity %q is neither a SPIFFE ID nor one that ends in /*: %w", text, err)
	}
	if !wildcard {
		return func(other spiffeid.ID) bool { return other == id }, nil
	}
	prefix := id.String() + "/"
	return func(other spiffeid.ID) bool { return strings.HasPrefix(other.String(), prefix) }, nil
}

// coveredDNS compares a normalized name. A wildcard name is covered only by the same pattern: "*.a.b" asks for the right to be anything
// below a.b, which is just what the pattern grants.
func coveredDNS(patterns []string, name string) bool {
	_, rest, _ := strings.Cut(name, ".")
	for _, pattern := range patterns {
		if pattern == name {
			return true
		}
		if suffix, wildcard := strings.CutPrefix(pattern, "*."); wildcard && rest == suffix && !strings.HasPrefix(name, "*.") {
			return true
		}
	}
	return false
}

func coveredIP(prefixes []netip.Prefix, ip netip.Addr) bool {
	for _, prefix := range prefixes {
		if prefix.Contains(ip) {
			return true
		}
	}
	return false
}
