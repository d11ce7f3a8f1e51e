package authorize

import (
	"context"
	"errors"
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

// Granted checks a Grant and returns its Rule. It allows a request only if every name in it is covered. A pattern that could never match, or that
// would match more than it seems to, is an error.
func Granted(grant Grant) (Rule, error) {
	rule, err := granted(grant)
	if err != nil {
		return nil, fmt.Errorf("rule %q: %w", grant.Name, err)
	}
	return rule, nil
}

func granted(grant Grant) (Rule, error) {
	switch {
	case grant.Name == "":
		return nil, errors.New("it needs a name, for the audit records")
	case grant.Profile == "":
		return nil, errors.New("it needs a profile")
	case len(grant.DNS)+len(grant.IPs) == 0:
		return nil, errors.New("it grants nothing; it needs DNS names or IP addresses")
	}
	matches, err := identityMatcher(grant.Identity)
	if err != nil {
		return nil, err
	}
	patterns := make([]string, 0, len(grant.DNS))
	for _, pattern := range grant.DNS {
		pattern = strings.ToLower(pattern)
		if err := checkPattern(pattern); err != nil {
			return nil, err
		}
		patterns = append(patterns, pattern)
	}
	prefixes := make([]netip.Prefix, 0, len(grant.IPs))
	for _, prefix := range grant.IPs {
		if !prefix.IsValid() || prefix.Addr().Is4In6() {
			return nil, fmt.Errorf("IP prefix %s is not one of IPv4 or IPv6; write an IPv4 prefix in its own form", prefix)
		}
		prefixes = append(prefixes, prefix.Masked())
	}
	return func(_ context.Context, request Request) (Verdict, bool, error) {
		covered := request.Principal.Method != identity.MethodServer && request.Profile == grant.Profile && matches(request.Principal.ID) &&
			coveredNames(patterns, prefixes, request.Names)
		if !covered {
			return Verdict{}, false, nil
		}
		return Verdict{Rule: grant.Name}, true, nil
	}, nil
}

// checkPattern looks at a lower-case pattern: an exact name, or *. and a name.
func checkPattern(pattern string) error {
	name := strings.TrimPrefix(pattern, "*.")
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return fmt.Errorf("DNS pattern %q is neither a name nor *. before a name", pattern)
		}
	}
	return nil
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

// coveredNames tells whether there are names and the grant covers all of them. It covers no URI.
func coveredNames(patterns []string, prefixes []netip.Prefix, names identity.Names) bool {
	if len(names.URIs) > 0 || names.Empty() {
		return false
	}
	for _, name := range names.DNS {
		if !coveredDNS(patterns, name) {
			return false
		}
	}
	for _, ip := range names.IPs {
		if !coveredIP(prefixes, ip) {
			return false
		}
	}
	return true
}

// coveredDNS compares a normalized name. A wildcard name is covered only by the same pattern: "*.a.b" asks for the right to be anything
// below a.b, which is just what the pattern grants.
func coveredDNS(patterns []string, name string) bool {
	first, rest, _ := strings.Cut(name, ".")
	for _, pattern := range patterns {
		if pattern == name {
			return true
		}
		if suffix, wildcard := strings.CutPrefix(pattern, "*."); wildcard && rest == suffix && first != "" && first != "*" {
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
