package ca

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
	"github.com/chancery-ca/chancery/ca/ledger"
	"github.com/chancery-ca/chancery/ca/lint"
	"github.com/chancery-ca/chancery/ca/profile"
	"github.com/chancery-ca/chancery/csr"
)

// Refused records the refusal of an order that did not reach Issue: its caller was not authenticated, or the door refused it. The order's
// principal may be nil. Where too many callers whom nobody knows are refused, some of the records are summed up: see Dependencies.
func (a *Authority) Refused(ctx context.Context, order Order, err error, began time.Time) {
	a.record(ctx, order, &decision{began: began}, err)
}

// decision is an order on its way through the pipeline, as far as it came. The audit record tells of it.
type decision struct {
	began    time.Time // the time of issuance
	request  *csr.Request
	profile  *profile.Profile
	names    identity.Names // what it is for
	rule     string         // that allowed it
	limit    time.Duration  // the longest lifetime by the rule; zero for none
	validity profile.Validity
	serial   ledger.Serial // once it was approved
	leaf     chain.Leaf
	passed   lint.Passed
	issuance *Issuance
}

// verdict is a decision in words from fixed lists.
type verdict struct {
	result  string // issued, or the kind of the refusal
	reason  errkind.Reason
	profile string
	level   slog.Level
}

func (a *Authority) verdict(order Order, err error) verdict {
	v := verdict{result: issued, reason: issued, profile: order.profile(), level: slog.LevelInfo}
	if _, ok := a.current.Load().profiles[v.profile]; !ok {
		v.profile = unknown
	}
	if err != nil {
		kind := errkind.Of(err)
		v.result, v.reason = kind.String(), a.metrics.reasonOf(err)
		if kind.Retryable() || kind == errkind.Internal {
			v.level = slog.LevelError // ours to mend
		}
	}
	return v
}

// record writes the one audit record of a decision, and counts it. The cause of a refusal goes here and not to the caller.
func (a *Authority) record(ctx context.Context, order Order, d *decision, err error) {
	v := a.verdict(order, err)
	a.metrics.decided(order.Door, v, a.now().Sub(d.began))
	if err != nil && order.Principal == nil && !a.refusals.admit(order, v.reason) {
		a.metrics.summarised.Inc()
		return
	}
	if !a.audit.Enabled(ctx, v.level) {
		return
	}
	r := make(fields, 0, 32)
	r.text("decision", v.result)
	r.text("reason", string(v.reason))
	r.text("door", string(order.Door))
	r.text("profile", v.profile)
	r.text("remote", order.Remote)
	r.principal(order.Principal)
	r.asked(order, d, v)
	r.text("rule", d.rule)
	r.text("serial", d.serial.String())
	r.granted(d)
	if err != nil {
		r.text("error", cut(err.Error()))
	}
	a.audit.LogAttrs(ctx, v.level, "audit", r...)
}

// fields are those of an audit record. Their names are fixed: docs/operations.md lists them, and whoever reads the log relies on them.
type fields []slog.Attr

// text adds a text, unless it is empty.
func (f *fields) text(key, value string) {
	if value != "" {
		*f = append(*f, slog.String(key, value))
	}
}

// maxText is how many bytes are kept of a text that a caller has chosen, or that stands in its credential.
const maxText = 256

// from adds what others wrote.
func (f *fields) from(key, value string) { f.text(key, bounded(value, maxText)) }

// principal adds who calls, and how that was found out.
func (f *fields) principal(p *identity.Principal) {
	if p == nil {
		return
	}
	f.text("spiffe_id", p.ID.String())
	f.text("method", string(p.Method))
	f.from("credential_id", p.CredentialID)
	if k := p.Kubernetes; k != nil {
		f.text("cluster", k.Cluster)
		f.from("namespace", k.Namespace)
		f.from("service_account", k.ServiceAccount)
		f.from("service_account_uid", k.ServiceAccountUID)
		if k.PodName != "" {
			f.from("pod", k.Namespace+"/"+k.PodName)
		}
		f.from("pod_uid", k.PodUID)
		f.from("node", k.NodeName)
		f.from("node_uid", k.NodeUID)
		f.text("verification", string(k.Verification))
	}
	if o := p.OIDC; o != nil {
		f.text("oidc_provider", o.Provider)
		f.from("oidc_issuer", o.Issuer)
		f.from("oidc_subject", o.Subject)
	}
	if held := p.Certificate; held != nil {
		f.text("renews", held.Serial)
		f.text("origin", string(held.Origin))
		*f = append(*f, slog.Time("renews_not_after", held.NotAfter), slog.Bool("grace", held.Grace))
	}
}

// asked adds what was asked for: whatever a caller wrote, cut and escaped.
func (f *fields) asked(order Order, d *decision, v verdict) {
	if v.profile == unknown {
		f.from("asked_profile", order.Profile)
	}
	var inRequest identity.Names
	if d.request != nil {
		inRequest = d.request.Names()
	}
	wanted := order.Names.Normalize()
	switch {
	case wanted.Empty() && inRequest.Empty():
		f.names("asked_names", d.names) // its own identity, if it came so far
	case wanted.Empty():
		f.names("asked_names", inRequest)
	default:
		f.names("asked_names", wanted)
		if !inRequest.Empty() && !inRequest.Equal(wanted) {
			f.names("csr_names", inRequest)
		}
	}
	if order.Lifetime > 0 {
		f.text("asked_lifetime", order.Lifetime.String())
	}
}

// names adds the first few names, and how many more there are.
func (f *fields) names(key string, names identity.Names) {
	if !names.Empty() {
		f.text(key, names.String())
	}
}

// granted adds what the certificate says; nothing if there is none.
func (f *fields) granted(d *decision) {
	issuance := d.issuance
	if issuance == nil {
		return
	}
	const most = 2048 + len("URI:") // SPIFFE-ID §2.3
	names := d.names.List()
	for i, name := range names {
		names[i] = bounded(name, most)
	}
	f.text("names", strings.Join(names, ", ")) // all of them
	leaf := issuance.Chain.Leaf()
	// what an authority elsewhere has chosen itself is never unseen
	if leaf.SerialNumber.Cmp(d.serial.Int()) != 0 {
		f.text("certificate_serial", leaf.SerialNumber.Text(16))
	}
	if leaf.NotAfter.After(d.leaf.NotAfter) {
		*f = append(*f, slog.Time("approved_not_after", d.leaf.NotAfter))
	}
	*f = append(*f, slog.Time("not_after", issuance.NotAfter))
	f.text("lifetime", issuance.NotAfter.Sub(d.validity.Issued).String())
	f.text("clamp", issuance.Clamp.Reason)
	*f = append(*f, slog.Time("renew_at", issuance.RenewAt), slog.Uint64("bundle_sequence", issuance.Bundle.Sequence()))
}

// cut returns the beginning of an error's text, which is ours but for what it quotes.
func cut(text string) string {
	const most = 4096
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// bounded returns the beginning of a text, in printing ASCII. What does not print is escaped.
func bounded(text string, most int) string {
	rest := ""
	if len(text) > most {
		text, rest = text[:most], "…"
	}
	quoted := strconv.QuoteToASCII(text)
	return quoted[1:len(quoted)-1] + rest
}
