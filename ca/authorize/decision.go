package authorize

import (
	"context"
	"errors"
	"fmt"

	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
	"github.com/chancery-ca/chancery/internal/expression"
)

// Answer is what one rule says of a request.
type Answer string

// The answers.
const (
	Allows  Answer = "allow"
	Denies  Answer = "deny"
	No      Answer = "no"      // nothing: it does not hold, or does not cover every name
	Failed  Answer = "failed"  // it could not be evaluated
	NotHere Answer = "profile" // it is not asked under this profile
)

// Outcome is the answer of one rule.
type Outcome struct {
	Rule   string
	Effect Effect
	Answer Answer
	// Detail says more where there is more to say: why a rule failed, or which names it does not look at.
	Detail string
	// Decided is true for the rule that decided.
	Decided bool
}

// Explanation is a decision and what every rule said, in the order in which they are asked.
type Explanation struct {
	Verdict Verdict
	// Err is the refusal; nil if the request is allowed.
	Err      error
	Outcomes []Outcome
}

// decision is one request on its way past the rules.
type decision struct {
	policy  *Policy
	request Request
	all     bool // go on once it is decided

	values   expression.Values // nil until a condition is asked
	invalid  error             // why there are none
	budget   budget
	faults   []error
	decided  bool
	verdict  Verdict
	err      error
	outcomes []Outcome
}

// decide settles the decision, if nothing has yet, and returns whether it was this.
func (d *decision) decide(verdict Verdict, err error) bool {
	if d.decided {
		return false
	}
	d.decided, d.verdict, d.err = true, verdict, err
	return true
}

// tell notes an outcome, if anyone wants to know.
func (d *decision) tell(o Outcome) {
	if d.all {
		d.outcomes = append(d.outcomes, o)
	}
}

// done tells whether no further rule has to be asked.
func (d *decision) done() bool { return d.decided && !d.all }

func (d *decision) run(ctx context.Context) {
	d.budget.left = expression.MaxTotalCost
	own := d.request.Profile == d.policy.config.ServerProfile || d.request.Principal.Method == identity.MethodServer
	d.builtin(ctx, Named{ruleServer, d.policy.config.Server})
	if !own {
		for _, c := range d.policy.deny {
			if d.done() {
				return
			}
			d.deny(ctx, c)
		}
		d.builtins(ctx, d.policy.config.First)
		for _, m := range d.policy.allow {
			if d.done() {
				return
			}
			d.allow(ctx, m)
		}
		d.builtins(ctx, d.policy.config.Last)
	}
	d.decide(Verdict{}, d.notAllowed())
}

// notAllowed is the refusal of what nothing allows. Rules that could not be evaluated are its cause.
func (d *decision) notAllowed() error {
	refusal := notAllowed(d.request)
	if len(d.faults) == 0 {
		return refusal
	}
	return errkind.Wrap(errkind.Denied, errors.Join(d.faults...), "%s", refusal.Error()).Because(errkind.NotAllowed)
}

// allowed settles a request that a rule allows, within what no rule can grant.
func (d *decision) allowed(verdict Verdict) (decided bool, detail string) {
	if verdict.Rule != ruleServer {
		if err := d.policy.within(d.request.Names); err != nil {
			return d.decide(verdict, errkind.New(errkind.Denied, "%s may not hold %s: %s; no rule can grant that", d.request.Principal.ID, d.request.Names, err).
				Because(errkind.NotAllowed)), "refused: " + err.Error()
		}
	}
	return d.decide(verdict, nil), ""
}

func (d *decision) builtins(ctx context.Context, rules []Named) {
	for _, b := range rules {
		if d.done() {
			return
		}
		d.builtin(ctx, b)
	}
}

func (d *decision) builtin(ctx context.Context, b Named) {
	verdict, ok, err := b.Rule(ctx, d.request)
	o := Outcome{Rule: b.Name, Effect: Allow, Answer: No}
	switch {
	case err != nil:
		verdict.Rule = b.Name
		o.Answer, o.Detail = Denies, err.Error()
		if errkind.Of(err) != errkind.Denied {
			o.Answer = Failed
		}
		o.Decided = d.decide(verdict, err)
	case ok:
		o.Answer = Allows
		o.Decided, o.Detail = d.allowed(verdict)
	}
	d.tell(o)
}

func (d *decision) deny(ctx context.Context, c *condition) {
	o := Outcome{Rule: c.Name, Effect: Deny, Answer: No}
	defer func() { d.tell(o) }()
	if !c.applies(d.request.Profile) {
		o.Answer = NotHere
		return
	}
	holds, err := d.holds(ctx, c)
	switch {
	case ctx.Err() != nil:
		o.Answer, o.Detail = Failed, ctx.Err().Error()
		o.Decided = d.decide(Verdict{Rule: c.Name}, ctx.Err())
	case err != nil:
		o.Answer, o.Detail = Failed, err.Error()
		o.Decided = d.decide(Verdict{Rule: c.Name}, failed(c.Name, d.request, err))
	case holds:
		o.Answer = Denies
		o.Decided = d.decide(Verdict{Rule: c.Name}, errkind.New(errkind.Denied, "%s may not hold %s under profile %s: rule %q denies it", d.request.Principal.ID,
			d.request.Names, d.request.Profile, c.Name).Because(errkind.PolicyDenied))
	}
}

func (d *decision) allow(ctx context.Context, m member) {
	o := Outcome{Rule: m.name, Effect: Allow, Answer: No}
	defer func() { d.tell(o) }()
	if m.condition == nil {
		if verdict, ok, _ := m.grant(ctx, d.request); ok { // a grant has no errors
			o.Answer = Allows
			o.Decided, o.Detail = d.allowed(verdict)
		}
		return
	}
	c := m.condition
	if !c.applies(d.request.Profile) {
		o.Answer = NotHere
		return
	}
	if o.Detail = c.uncovered(d.request); o.Detail != "" {
		return
	}
	holds, err := d.holds(ctx, c)
	switch {
	case ctx.Err() != nil:
		o.Answer, o.Detail = Failed, ctx.Err().Error()
		o.Decided = d.decide(Verdict{Rule: c.Name}, ctx.Err())
	case err != nil:
		o.Answer, o.Detail = Failed, err.Error()
		d.faults = append(d.faults, fmt.Errorf("rule %q: %w", c.Name, err))
	case holds:
		o.Answer = Allows
		o.Decided, o.Detail = d.allowed(Verdict{Rule: c.Name, MaxLifetime: c.MaxLifetime})
	}
}

// holds evaluates a condition.
func (d *decision) holds(ctx context.Context, c *condition) (bool, error) {
	if d.values == nil && d.invalid == nil {
		in, err := newInput(d.request)
		if d.invalid = err; err == nil {
			d.values = in.values()
		}
	}
	if d.invalid != nil {
		return false, d.invalid
	}
	return c.holds(ctx, d.values, &d.budget)
}
