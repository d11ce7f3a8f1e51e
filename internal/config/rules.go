package config

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// Effects of a rule that is a condition.
const (
	effectAllow = "allow"
	effectDeny  = "deny"
)

func (v *checker) rules() {
	first := make(map[string]int)
	for i, r := range v.config.Rules {
		path := fmt.Sprintf("rules[%d]", i)
		if v.trusted(path + ".name") {
			v.name(path+".name", r.Name)
			if j, twice := first[r.Name]; twice {
				v.bad(path+".name", "%q is the name of rules[%d] already", r.Name, j)
			}
			first[r.Name] = i
			if slices.Contains([]string{"self", "server", "node-proxy"}, r.Name) {
				v.bad(path+".name", "%q is the name of a rule that is built in; audit records must not confuse them", r.Name)
			}
		}
		if r.IsCondition() || v.found.has(path+".when") {
			v.condition(path, r)
		} else {
			v.grant(path, r)
		}
	}
}

// grant checks a rule that grants names to an identity.
func (v *checker) grant(path string, r Rule) {
	for _, key := range []struct {
		name  string
		given bool
	}{{"effect", r.Effect != ""}, {"profiles", len(r.Profiles) > 0}, {"max_lifetime", r.MaxLifetime != 0}} {
		if key.given {
			v.bad(path+"."+key.name, "goes with when, which this rule lacks")
		}
	}
	if r.Identity == "" {
		v.bad(path+".identity", "missing")
	} else {
		v.identity(path+".identity", r.Identity)
	}
	switch p, ok := v.config.Profiles[r.Profile]; {
	case r.Profile == "":
		v.bad(path+".profile", "missing")
	case !ok:
		v.bad(path+".profile", "there is no profile %q", r.Profile)
	case p.Names == "spiffe":
		v.bad(path+".profile", "profile %s is for SPIFFE IDs; a rule grants names under a profile with names: dns", r.Profile)
	}
	if len(r.DNS)+len(r.IP) == 0 && v.trusted(path) {
		v.bad(path, "needs dns or ip; it grants nothing")
	}
	unique(v, path+".dns", r.DNS, func(at, pattern string) {
		switch {
		case isDNSPattern(pattern):
		case strings.Contains(pattern, "*"):
			v.bad(at, "%q: a wildcard is *. before a name, such as *.example.org", pattern)
		default:
			v.bad(at, "%q is not %s", pattern, dnsNameFormat)
		}
	})
	unique(v, path+".ip", r.IP, func(string, netip.Prefix) {})
}

// condition checks a rule with an expression, but for the expression itself: that is compiled where its variables are known.
func (v *checker) condition(path string, r Rule) {
	for _, key := range []struct {
		name  string
		given bool
	}{{"profile", r.Profile != ""}, {"identity", r.Identity != ""}, {"dns", len(r.DNS) > 0}, {"ip", len(r.IP) > 0}} {
		switch {
		case key.given && key.name == "profile":
			v.bad(path+".profile", "does not go with when; write profiles: [%s]", printable(r.Profile))
		case key.given:
			v.bad(path+"."+key.name, "does not go with when; a rule has either, and the expression can say the same")
		}
	}
	if r.Effect != "" {
		v.oneOf(path+".effect", r.Effect, effectAllow, effectDeny)
	}
	if strings.TrimSpace(r.When) == "" && v.trusted(path+".when") {
		v.bad(path+".when", "is empty")
	}
	unique(v, path+".profiles", r.Profiles, func(at, name string) {
		if _, ok := v.config.Profiles[name]; !ok {
			v.bad(at, "there is no profile %q", name)
		}
	})
	if r.MaxLifetime != 0 && v.trusted(path+".max_lifetime", path+".profiles") {
		v.maxLifetime(path+".max_lifetime", r)
	}
}

// maxLifetime checks a rule's cap: under no profile may it lie below the minimum.
func (v *checker) maxLifetime(path string, r Rule) {
	if r.Denies() {
		v.bad(path, "caps what a rule allows; this one denies")
		return
	}
	v.duration(path, r.MaxLifetime, shortestLifetime, longestLifetime)
	names := r.Profiles
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(v.config.Profiles))
	}
	for _, name := range names {
		if p := v.config.Profiles[name]; r.MaxLifetime < p.MinLifetime && v.trusted("profiles."+name) {
			v.bad(path, "%s is below the minimum of profile %s, %s; choose more, or profiles with shorter lifetimes", formatDuration(r.MaxLifetime), name,
				formatDuration(p.MinLifetime))
		}
	}
}
