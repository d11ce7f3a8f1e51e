package main

import (
	"context"
	"time"

	"github.com/chancery-ca/chancery/ca"
	"github.com/chancery-ca/chancery/ca/authorize"
	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
	"github.com/chancery-ca/chancery/ca/profile"
	"github.com/chancery-ca/chancery/internal/config"
)

// policyDesk answers questions by the rules of a configuration, as the server would, without its keys.
type policyDesk struct {
	cfg      *config.Config
	profiles map[string]*profile.Profile
	rules    *authorize.Policy
}

func newPolicyDesk(cfg *config.Config) (*policyDesk, error) {
	profiles, err := newProfiles(cfg)
	if err != nil {
		return nil, usageError{err}
	}
	rules, err := newRules(cfg)
	if err != nil {
		return nil, usageError{err}
	}
	return &policyDesk{cfg: cfg, profiles: profiles, rules: rules}, nil
}

// request returns the question that the Authority would ask its rules. The error is the refusal of what it would not ask them about.
func (d *policyDesk) request(principal *identity.Principal, asked caseRequest) (authorize.Request, error) {
	order := asked.order(principal)
	if order.Profile == "" {
		order.Profile = ca.DefaultProfile
	}
	p, ok := d.profiles[order.Profile]
	if !ok {
		return authorize.Request{}, errkind.New(errkind.Invalid, "profile %.64q does not exist", order.Profile).Because(errkind.UnknownProfile)
	}
	names := order.Names.Normalize()
	if names.Empty() && p.FixedShape() {
		names.URIs = []string{principal.ID.String()}
	}
	key := asked.Key
	if key == "" {
		key = "ecdsa-p256"
	}
	request := authorize.Request{
		Principal: principal, Profile: p.Name(), Names: names, Lifetime: p.Lifetime(order.Lifetime), Door: string(order.Door), Key: key,
	}
	return request, p.CheckNames(names)
}

// answer is what a caller would learn, and what the log would.
type answer struct {
	Decision    string `json:"decision"` // allow or deny
	Rule        string `json:"rule,omitempty"`
	Reason      string `json:"reason,omitempty"`
	MaxLifetime string `json:"max_lifetime,omitempty"`
	Lifetime    string `json:"lifetime,omitempty"` // at most
	Message     string `json:"message,omitempty"`  // for the caller
	Cause       string `json:"cause,omitempty"`    // for the log

	max time.Duration
}

func newAnswer(request authorize.Request, verdict authorize.Verdict, err error) answer {
	if err != nil {
		return answer{
			Decision: decisionDeny, Rule: verdict.Rule, Reason: string(errkind.ReasonOf(err)), Message: errkind.Message(err), Cause: err.Error(),
		}
	}
	a := answer{Decision: decisionAllow, Rule: verdict.Rule, max: verdict.MaxLifetime}
	lifetime := request.Lifetime
	if a.max > 0 {
		a.MaxLifetime, lifetime = a.max.String(), min(lifetime, a.max)
	}
	a.Lifetime = lifetime.String()
	return a
}

// decide asks the rules as the Authority does.
func (d *policyDesk) decide(ctx context.Context, principal *identity.Principal, asked caseRequest) answer {
	request, err := d.request(principal, asked)
	if err != nil {
		return newAnswer(request, authorize.Verdict{}, err)
	}
	verdict, _, err := d.rules.Decide(ctx, request)
	return newAnswer(request, verdict, err)
}
