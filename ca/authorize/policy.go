package authorize

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
	"github.com/chancery-ca/chancery/internal/expression"
)

// reserved is the first segment of the SPIFFE IDs that are for the authority's own use.
const reserved = "/chancery"

// Named is a rule that is built in.
type Named struct {
	Name string
	Rule Rule
}

// Entry is one configured rule: a Grant or a Condition, and not both.
type Entry struct {
	Grant     *Grant
	Condition *Condition
}

// PolicyConfig is every rule of a server.
type PolicyConfig struct {
	// TrustDomain is the only one in which a URI is allowed.
	TrustDomain spiffeid.TrustDomain
	// ServerProfile is the profile of the server's own certificate, and Server the rule that allows it. Nothing else allows or denies under it.
	ServerProfile string
	Server        Rule
	// First are built-in rules that are asked after the conditions that deny and before everything else that is configured.
	First []Named
	// Rules are the configured ones. Their order is that in which they are asked, but that all that deny are asked first.
	Rules []Entry
	// Last are built-in rules that are asked after all others.
	Last []Named
}

// Policy decides by every rule of a server. It is immutable and safe for concurrent use.
type Policy struct {
	config PolicyConfig
	deny   []*condition
	allow  []member
}

// member is a configured rule that allows.
type member struct {
	name      string
	grant     Rule       // of a Grant
	condition *condition // of a Condition
}

// RuleError says which of PolicyConfig.Rules is wrong.
type RuleError struct {
	Index int
	Name  string
	Err   error
}

// Error returns the rule's name and what is wrong with it.
func (e *RuleError) Error() string { return fmt.Sprintf("rule %q: %s", e.Name, e.Err) }

// Unwrap returns what is wrong.
func (e *RuleError) Unwrap() error { return e.Err }

// NewPolicy checks and compiles the rules. The error is a *RuleError if one of the configured ones is at fault.
func NewPolicy(config PolicyConfig) (*Policy, error) {
	if config.TrustDomain.IsZero() || config.Server == nil || config.ServerProfile == "" {
		return nil, errors.New("a policy needs a trust domain, and the server's own profile and rule")
	}
	environment, err := expression.NewEnvironment(variables()...)
	if err != nil {
		return nil, err
	}
	p := &Policy{config: config}
	p.config.First, p.config.Last = slices.Clone(config.First), slices.Clone(config.Last)
	taken := map[string]bool{ruleServer: true}
	for _, b := range slices.Concat(p.config.First, p.config.Last) {
		taken[b.Name] = true
	}
	for i, entry := range config.Rules {
		name, err := p.add(environment, entry)
		if err == nil && taken[name] {
			err = errors.New("there is another rule of this name; audit records must not confuse them")
		}
		if err != nil {
			return nil, &RuleError{Index: i, Name: name, Err: err}
		}
		taken[name] = true
	}
	return p, nil
}

func (p *Policy) add(environment *expression.Environment, entry Entry) (name string, err error) {
	switch {
	case (entry.Grant == nil) == (entry.Condition == nil):
		return "", errors.New("it has to be a grant or a condition")
	case entry.Grant != nil:
		rule, err := granted(*entry.Grant)
		p.allow = append(p.allow, member{name: entry.Grant.Name, grant: rule})
		return entry.Grant.Name, err
	}
	c, err := compile(environment, *entry.Condition)
	if err == nil && entry.Condition.Effect == Deny {
		p.deny = append(p.deny, c)
		return c.Name, nil
	}
	p.allow = append(p.allow, member{name: entry.Condition.Name, condition: c})
	return entry.Condition.Name, err
}

// Decide is the policy's Rule: it always answers. The server's own certificate is allowed by its rule alone. For everyone else the conditions that deny
// are asked first: one that holds denies, and so does one that cannot be evaluated. Then the others are asked in order; the first that allows, and
// a built-in one that refuses, decides. A condition that allows and cannot be evaluated does not allow, and its fault is in the cause of the
// refusal if nothing else allows. Whatever allowed it, a URI has to be a SPIFFE ID of the trust domain that is not the authority's own.
func (p *Policy) Decide(ctx context.Context, request Request) (Verdict, bool, error) {
	d := decision{policy: p, request: request}
	d.run(ctx)
	return d.verdict, d.err == nil, d.err
}

// Explain decides as Decide does, and goes on to ask every rule that Decide would not have reached.
func (p *Policy) Explain(ctx context.Context, request Request) Explanation {
	d := decision{policy: p, request: request, all: true}
	d.run(ctx)
	return Explanation{Verdict: d.verdict, Err: d.err, Outcomes: d.outcomes}
}

// within refuses URIs that no rule can grant.
func (p *Policy) within(names identity.Names) error {
	for _, uri := range names.URIs {
		id, err := spiffeid.FromString(uri)
		switch {
		case err != nil:
			return fmt.Errorf("%s is not a SPIFFE ID", identity.Names{URIs: []string{uri}})
		case !id.MemberOf(p.config.TrustDomain):
			return fmt.Errorf("%s is not in the trust domain %s", identity.Names{URIs: []string{uri}}, p.config.TrustDomain.Name())
		case id.Path() == "":
			return fmt.Errorf("%s is a whole trust domain", identity.Names{URIs: []string{uri}})
		case id.Path() == reserved || strings.HasPrefix(id.Path(), reserved+"/"):
			return fmt.Errorf("%s is below %s, which is the authority's own", identity.Names{URIs: []string{uri}}, reserved)
		}
	}
	return nil
}

// failed is the refusal of a request that a rule could not be asked about.
func failed(name string, request Request, cause error) error {
	return errkind.Wrap(errkind.Denied, fmt.Errorf("rule %q: %w", name, cause),
		"%s may not hold %s under profile %s: a rule that can deny it, %q, could not be evaluated; the server's log says why", request.Principal.ID, request.Names,
		request.Profile, name).Because(errkind.PolicyFailed)
}
