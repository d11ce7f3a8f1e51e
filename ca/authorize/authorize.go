// Package authorize decides whether a principal may hold the names that it asks for. What no rule allows is denied.
//
// It never looks at a request's bytes and never changes names: a set of names is allowed whole or not at all.
package authorize

import (
	"context"
	"time"

	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
)

// Request is a question: may this principal hold these names under this profile?
type Request struct {
	Principal *identity.Principal
	Profile   string
	Names     identity.Names // normalized
	// Lifetime is what would be granted: what was asked for, or the profile's default, at most the profile's maximum. Jitter and the end of
	// the issuers can shorten it further.
	Lifetime time.Duration
	// Door is the way in which the request came: a ca.Door.
	Door string
	// Key is the kind of the request's key, by its name in keys.algorithms.
	Key string
}

// Verdict is what a Rule that allows a request says of it.
type Verdict struct {
	// Rule is the name of the rule that decided. It goes into the ledger and the audit record.
	Rule string
	// MaxLifetime caps the certificate's lifetime; zero means that the rule sets no cap.
	MaxLifetime time.Duration
}

// Rule answers a Request: with ok=true and a Verdict that names the rule that allowed it, or with a classified error (errkind.Denied for a refusal),
// beside which the Verdict names the rule that refused, where one did. ok=false without an error means that the rule has nothing to say and
// the next one is asked; a request for which no rule has anything to say is denied. A Rule never changes the request. Rules are immutable and safe
// for concurrent use.
type Rule func(ctx context.Context, request Request) (verdict Verdict, ok bool, err error)

// First returns a Rule that asks rules in order; the first that answers decides. If none does, the request is denied with a
// sentence that says what the principal may have.
func First(rules ...Rule) Rule {
	return func(ctx context.Context, request Request) (Verdict, bool, error) {
		for _, rule := range rules {
			if verdict, ok, err := rule(ctx, request); err != nil || ok {
				return verdict, ok && err == nil, err
			}
		}
		return Verdict{}, false, notAllowed(request)
	}
}

// Names of the rules that are built in.
const (
	ruleSelf   = "self"
	ruleServer = "server"
)

// notAllowed is the refusal of what no rule allows.
func notAllowed(request Request) error {
	return errkind.New(errkind.Denied, "%s may not hold %s under profile %s: it may hold its own SPIFFE ID under a SPIFFE profile, and whatever a rule in the server's configuration grants it",
		request.Principal.ID, request.Names, request.Profile).Because(errkind.NotAllowed)
}

// Self allows a principal its own identity and nothing else.
func Self() Rule {
	return func(_ context.Context, request Request) (Verdict, bool, error) {
		names := request.Names
		own := !request.Principal.ID.IsZero() && len(names.URIs) == 1 && len(names.DNS)+len(names.IPs) == 0 && names.URIs[0] == request.Principal.ID.String()
		return Verdict{Rule: ruleSelf}, own, nil
	}
}

// Server allows the server's own principal the names of its serving certificate, under one profile.
func Server(profile string, names identity.Names) Rule {
	allowed := names.Normalize()
	return func(_ context.Context, request Request) (Verdict, bool, error) {
		ok := request.Principal.Method == identity.MethodServer && request.Profile == profile && request.Names.Equal(allowed)
		return Verdict{Rule: ruleServer}, ok, nil
	}
}
