package authorize

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/chancery-ca/chancery/internal/expression"
)

// Effect is what a condition does to a request for which it holds.
type Effect string

// The effects.
const (
	Allow Effect = "allow"
	Deny  Effect = "deny"
)

// Condition is a configured rule with a condition: an expression over the principal and the request (docs/policy.md).
type Condition struct {
	Name   string
	Effect Effect
	// Profiles are those under which the condition is asked; empty means all but the server's own.
	Profiles []string
	// When is an expression that yields a bool.
	When string
	// MaxLifetime caps the lifetime of what is allowed; zero means that it does not.
	MaxLifetime time.Duration
}

// condition is a Condition that was compiled.
type condition struct {
	Condition
	when *expression.Expression
}

// kinds of names, by the field of request that holds them.
const (
	fieldURIs = "uris"
	fieldDNS  = "dns_names"
	fieldIPs  = "ip_addresses"
)

func compile(environment *expression.Environment, c Condition) (*condition, error) {
	switch {
	case c.Name == "":
		return nil, errors.New("it needs a name, for the audit records")
	case c.Effect != Allow && c.Effect != Deny:
		return nil, fmt.Errorf("effect %q is not %s or %s", c.Effect, Allow, Deny)
	case c.MaxLifetime < 0 || c.MaxLifetime > 0 && c.Effect == Deny:
		return nil, errors.New("max_lifetime caps what a rule allows; a rule that denies has none")
	}
	when, err := environment.Compile(c.When, expression.Bool)
	if err != nil {
		return nil, fmt.Errorf("when: %w", err)
	}
	if c.Effect == Allow && !slices.ContainsFunc([]string{fieldURIs, fieldDNS, fieldIPs}, func(field string) bool { return when.Reads("request", field) }) {
		return nil, fmt.Errorf("when: it reads none of request.%s, request.%s and request.%s, so it would allow nothing: a rule allows only names of the kinds that it looks at",
			fieldURIs, fieldDNS, fieldIPs)
	}
	c.Profiles = slices.Clone(c.Profiles)
	return &condition{c, when}, nil
}

// applies tells whether the condition is asked under a profile.
func (c *condition) applies(profile string) bool {
	return len(c.Profiles) == 0 || slices.Contains(c.Profiles, profile)
}

// uncovered says why the condition cannot allow the request whatever it yields: it has to look at every kind of name in it. A list of names that is
// empty satisfies all(), so a condition about DNS names alone would otherwise hold for every address.
func (c *condition) uncovered(request Request) string {
	names := request.Names
	if names.Empty() {
		return "the request has no names"
	}
	for _, n := range []struct {
		field string
		count int
	}{{fieldURIs, len(names.URIs)}, {fieldDNS, len(names.DNS)}, {fieldIPs, len(names.IPs)}} {
		if n.count > 0 && !c.when.Reads("request", n.field) {
			return "it does not look at request." + n.field
		}
	}
	return ""
}

// budget is what is left for the expressions of one decision.
type budget struct{ left uint64 }

func (c *condition) holds(ctx context.Context, values expression.Values, b *budget) (bool, error) {
	if b.left == 0 {
		return false, fmt.Errorf("the rules before it have used up the %d units that a decision may cost", expression.MaxTotalCost)
	}
	holds, cost, err := c.when.Holds(ctx, values)
	b.left -= min(b.left, cost)
	return holds, err
}
