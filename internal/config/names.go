package config

import (
	"strings"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
)

const dnsNameFormat = `a DNS name: lower-case labels of letters, digits and "-", at most 253 characters, no final dot`

// isDNSName tells whether s is a host name as certificates carry it (RFC 1123 §2.1, RFC 5280 §4.2.1.6), without wildcard. A name whose
// last label is a number is refused: readers would take it for an IP address.
func isDNSName(s string) bool {
	if len(s) > 253 {
		return false
	}
	labels := strings.Split(s, ".")
	for _, label := range labels {
		if !isName(label) || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
	}
	return strings.Trim(labels[len(labels)-1], "0123456789") != ""
}

// isDNSPattern tells whether s is an exact name or *.suffix.
func isDNSPattern(s string) bool {
	return isDNSName(strings.TrimPrefix(s, "*."))
}

func (v *checker) profiles() {
	for _, child := range (node{path: "profiles", value: v.config.root().value.FieldByName("Profiles")}).children() {
		v.profile(child.path, v.config.Profiles[child.key])
	}
}

func (v *checker) profile(path string, p Profile) {
	v.oneOf(path+".names", p.Names, "spiffe", "dns")
	v.count(path+".usages", len(p.Usages), 1, 2)
	unique(v, path+".usages", p.Usages, func(at, usage string) { v.oneOf(at, usage, "server_auth", "client_auth") })
	if all := path + ".usages"; p.Names == "spiffe" && len(p.Usages) == 1 && v.trusted(path+".names", all) {
		v.bad(v.latest(all, path+".names"), "certificates with SPIFFE IDs need both server_auth and client_auth (X.509-SVID §4.4)")
	}

	least, usual, most := path+".min_lifetime", path+".default_lifetime", path+".max_lifetime"
	v.duration(least, p.MinLifetime, shortestLifetime, longestLifetime)
	v.duration(usual, p.DefaultLifetime, shortestLifetime, longestLifetime)
	v.duration(most, p.MaxLifetime, shortestLifetime, longestLifetime)
	v.ordered(least, p.MinLifetime, usual, p.DefaultLifetime)
	v.ordered(usual, p.DefaultLifetime, most, p.MaxLifetime)
}

// ordered checks that the shorter duration is not longer than the longer one.
func (v *checker) ordered(shorter string, a time.Duration, longer string, b time.Duration) {
	if a > b && v.trusted(shorter, longer) {
		v.bad(v.latest(longer, shorter), "%s (%s) is longer than %s (%s)", shorter, formatDuration(a), longer, formatDuration(b))
	}
}

// identity checks a SPIFFE ID, or one that ends in /*, of our trust domain: a rule for anyone else would never match.
func (v *checker) identity(path, value string) {
	id, err := spiffeid.FromString(strings.TrimSuffix(value, "/*"))
	if err != nil {
		v.bad(path, "%q is not a SPIFFE ID, or one that ends in /*: %s", value, err)
		return
	}
	if id.TrustDomain() != v.config.TrustDomain && v.trusted("trust_domain") {
		v.bad(path, "%q is not in the trust domain %s", value, v.config.TrustDomain.Name())
	}
	if value == id.TrustDomain().IDString() {
		v.bad(path, "%q is nobody's identity; add a path, or /* for the whole trust domain", value)
	}
}
