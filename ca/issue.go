package ca

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/chancery-ca/chancery/ca/authorize"
	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
	"github.com/chancery-ca/chancery/ca/ledger"
	"github.com/chancery-ca/chancery/ca/lint"
	"github.com/chancery-ca/chancery/ca/profile"
	"github.com/chancery-ca/chancery/csr"
	"github.com/chancery-ca/chancery/internal/telemetry"
	"github.com/chancery-ca/chancery/signer"
)

// settleTimeout bounds the writes that settle a reservation after its caller is gone.
const settleTimeout = 10 * time.Second

// When a caller may come back.
const (
	retryLedger  = time.Second
	retryBackend = 2 * time.Second
)

// Issue takes an order through the pipeline. It returns a certificate only after the ledger holds it. Errors are classified (errkind); each
// decision leaves one audit record.
func (a *Authority) Issue(ctx context.Context, order Order) (*Issuance, error) {
	d := &decision{began: a.now()}
	issuance, err := a.issue(ctx, order, d)
	a.record(ctx, order, d, err)
	return issuance, err
}

func (a *Authority) issue(ctx context.Context, order Order, d *decision) (*Issuance, error) {
	s := a.current.Load()
	if err := a.approve(ctx, s, order, d); err != nil {
		return nil, err
	}
	if err := a.ledger.Reserve(ctx, intent(order, d)); err != nil {
		return nil, ledgerError(err)
	}
	signed, err := a.sign(ctx, s, d)
	if err != nil {
		a.fail(ctx, d.serial, err)
		return nil, err
	}
	if err := a.commit(ctx, d.serial, signed); err != nil {
		return nil, err
	}
	d.issuance = &Issuance{
		Serial: d.serial, Chain: signed, Bundle: s.bundle, NotAfter: d.validity.NotAfter, RenewAt: a.renewAt(order.Door, d.validity), Issued: d.began,
		Clamp: d.validity.Clamp, Rule: d.rule,
	}
	return d.issuance, nil
}

// approve decides, without using the issuing key or writing anything, what the certificate would say and whether it may.
func (a *Authority) approve(ctx context.Context, s *snapshot, order Order, d *decision) (err error) {
	if err := s.checkPrincipal(order.Principal); err != nil {
		return err
	}
	if d.request, err = csr.Parse(order.CSR, s.requests); err != nil {
		return err
	}
	if d.profile, err = s.profile(order.profile()); err != nil {
		return err
	}
	if err := checkRenewal(order.Principal, d.profile.Name()); err != nil {
		return err
	}
	if d.names, err = wantedNames(order, d.request, d.profile.FixedShape()); err != nil {
		return err
	}
	if err := d.profile.CheckNames(d.names); err != nil {
		return err
	}
	if err := s.checkKey(d.request); err != nil {
		return err
	}
	verdict, allowed, err := s.rule(ctx, authorize.Request{
		Principal: order.Principal, Profile: d.profile.Name(), Names: d.names, Lifetime: d.profile.Lifetime(order.Lifetime), Door: string(order.Door),
		Key: keyName(d.request.PublicKey()),
	})
	d.rule, d.limit = verdict.Rule, verdict.MaxLifetime
	switch {
	case err != nil:
		return err
	case !allowed:
		return errkind.New(errkind.Denied, "no rule allows %s to hold %s", order.Principal.ID, d.names).Because(errkind.NotAllowed)
	}
	if err := s.checkGranted(order.Principal, d.names); err != nil {
		return err
	}
	wanted := profile.Wanted{
		Lifetime: order.Lifetime, Jitter: order.Jitter, Cap: verdict.MaxLifetime, CapReason: "rule " + verdict.Rule,
		Shorten: func(shortest, longest time.Duration) time.Duration {
			return a.pacer.Lifetime(d.began, shortest, longest)
		},
	}
	if d.validity, err = d.profile.Validity(d.began, wanted, s.window); err != nil {
		return err
	}
	serial, err := a.newSerial()
	if err != nil {
		return err
	}
	d.leaf = d.profile.Leaf(serial.Int(), d.names, d.request.SPKI(), d.validity)
	if d.passed, err = a.linter.Template(d.leaf, s.issuer(), d.profile.FixedShape()); err != nil {
		return templateError(err)
	}
	d.serial = serial
	return nil
}

// checkGranted refuses URIs that no rule can grant, whatever the rules say: those outside of the trust domain.
func (s *snapshot) checkGranted(principal *identity.Principal, names identity.Names) error {
	for _, uri := range names.URIs {
		if id, err := spiffeid.FromString(uri); err != nil || !id.MemberOf(s.bundle.TrustDomain()) {
			return errkind.New(errkind.Denied, "%s may not hold %s: this authority certifies SPIFFE IDs of the trust domain %s alone, and no rule can change that", principal.ID,
				names, s.bundle.TrustDomain().Name()).Because(errkind.NotAllowed)
		}
	}
	return nil
}

// unsecret returns a text of others as the log would show it: without what looks like a token or a key.
func unsecret(text string) string {
	return telemetry.Redact(nil, slog.String("text", text)).Value.String()
}

// checkRenewal keeps a certificate that is no client's from becoming one: the key of a web server's certificate does not stand for its holder anywhere
// else, and so renews that certificate and nothing more.
func checkRenewal(principal *identity.Principal, profile string) error {
	held := principal.Certificate
	if held == nil || held.ClientAuth || held.Profile == profile {
		return nil
	}
	return errkind.New(errkind.Denied, "a certificate of profile %s without the usage client_auth renews under that profile alone, not under %s: "+
		"use the same profile, or another credential", held.Profile, profile).Because(errkind.NotRenewable)
}

// sign asks the backend and holds its answer against what was approved.
func (a *Authority) sign(ctx context.Context, s *snapshot, d *decision) (chain.Chain, error) {
	signed, err := s.signer.Sign(ctx, signer.Order{Request: d.request, Leaf: d.leaf, Profile: d.profile.Name()})
	switch {
	case errors.Is(err, signer.ErrWrong):
		return chain.Chain{}, errkind.Wrap(errkind.Unavailable, err,
			"the signing backend answered with something that was not approved; the server's log says how").Because(errkind.SignerWrong).After(retryBackend)
	case errors.Is(err, signer.ErrPermanent):
		return chain.Chain{}, errkind.Wrap(errkind.Invalid, err, "the signing backend refused this request and will refuse it again").
			Because(errkind.SignerRefused)
	case err != nil:
		return chain.Chain{}, errkind.Wrap(errkind.Unavailable, err, "the signing backend is not available; try again").
			Because(errkind.SignerUnavailable).After(retryBackend)
	}
	// a backend's clock is not ours: its answer is judged by the time at which it came
	if err := s.checker.Check(signed, s.accepted(d), a.now()); err != nil {
		return chain.Chain{}, errkind.Wrap(errkind.Unavailable, err,
			"the signing backend answered with a certificate that was not approved; the server's log says how").Because(errkind.SignerWrong).After(retryBackend)
	}
	if err := a.linter.Chain(signed, d.passed); err != nil {
		return chain.Chain{}, errkind.Wrap(errkind.Unavailable, err,
			"the signing backend answered with a certificate that breaks a rule; the server's log says which").Because(errkind.SignerWrong).After(retryBackend)
	}
	leaf := signed.Leaf()
	d.validity, err = d.profile.Signed(d.validity, leaf.NotBefore, leaf.NotAfter)
	return signed, err
}

// commit makes the certificate part of the roll. It does not end with the caller: what was signed is worth recording even if nobody waits.
func (a *Authority) commit(ctx context.Context, serial ledger.Serial, signed chain.Chain) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	leaf := signed.Leaf()
	own, err := ledger.SerialFromInt(leaf.SerialNumber)
	if err != nil {
		return errkind.Wrap(errkind.Internal, err, "the certificate cannot be recorded")
	}
	err = a.ledger.Commit(ctx, ledger.Outcome{
		Serial: serial, LeafSerial: own, Certificate: leaf.Raw, IssuerKeyID: leaf.AuthorityKeyId, NotBefore: leaf.NotBefore, NotAfter: leaf.NotAfter,
	})
	if err != nil {
		return ledgerError(err)
	}
	return nil
}

// fail settles a reservation that yields nothing. If that cannot be written, the reservation stays visible as it is.
func (a *Authority) fail(ctx context.Context, serial ledger.Serial, cause error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	if err := a.ledger.Fail(ctx, ledger.Outcome{Serial: serial, Reason: cause.Error()}); err != nil {
		a.logger.ErrorContext(ctx, "reservation stays open: its failure could not be recorded", "serial", serial.String(), "error", err)
	}
}

// wantedNames returns the names an order is for. The CSR's names and the order's must agree where both say something; a caller that names
// nothing asks for its own identity, if the profile certifies identities. Nobody is entitled to anything by asking: the rules decide.
func wantedNames(order Order, request *csr.Request, identities bool) (identity.Names, error) {
	inRequest, wanted := request.Names(), order.Names.Normalize()
	switch {
	case wanted.Empty() && inRequest.Empty() && identities:
		return identity.Names{URIs: []string{order.Principal.ID.String()}}, nil
	case wanted.Empty():
		return inRequest, nil
	case !inRequest.Empty() && !inRequest.Equal(wanted):
		return identity.Names{}, errkind.New(errkind.Invalid, "the CSR names %s and the request asks for %s; ask for the same names in both or in one alone", inRequest,
			wanted).Because(errkind.NamesMismatch)
	default:
		return wanted, nil
	}
}

// templateError classifies what the linter says of a certificate-to-be. That the issuer can make good ones was found out when the config was taken
// into use, so what breaks a rule now is what was asked for.
func templateError(err error) error {
	var refusal *lint.Refusal
	if errors.As(err, &refusal) {
		return errkind.Wrap(errkind.Invalid, err, "what was asked for would make a certificate that breaks a rule: %s", refusal.Findings[0]).
			Because(errkind.LintRefused)
	}
	return errkind.Wrap(errkind.Internal, err, "the certificate could not be examined; the server's log says why")
}

// ledgerError classifies what a ledger answers.
func ledgerError(err error) error {
	switch {
	case errors.Is(err, ledger.ErrTokenUsed):
		return errkind.Wrap(errkind.Unauthenticated, err, "this join token was already used; make a new one with: chancery token create").Because(errkind.TokenUsed)
	case errors.Is(err, ledger.ErrTokenGone):
		return errkind.Wrap(errkind.Unauthenticated, err, "this join token is unknown or has expired; make a new one with: chancery token create").Because(errkind.TokenUnknown)
	default:
		return errkind.Wrap(errkind.Unavailable, err, "the ledger cannot record this certificate, so it is not issued; try again").
			Because(errkind.LedgerUnavailable).After(retryLedger)
	}
}

func intent(order Order, d *decision) ledger.Intent {
	principal := order.Principal
	hash := d.request.KeyHash()
	origin := ledger.Origin{Method: string(principal.Method), CredentialID: principal.CredentialID, Door: string(order.Door), Remote: order.Remote}
	if k := principal.Kubernetes; k != nil {
		origin.Cluster, origin.Namespace, origin.Account, origin.AccountUID = k.Cluster, k.Namespace, k.ServiceAccount, k.ServiceAccountUID
		origin.Pod, origin.PodUID, origin.Node, origin.NodeUID = k.PodName, k.PodUID, k.NodeName, k.NodeUID
	}
	if o := principal.OIDC; o != nil {
		// an issuer's tokens say whatever it lets their holders say, a credential among it
		origin.Issuer, origin.Subject, origin.CredentialID = o.Issuer, unsecret(o.Subject), unsecret(origin.CredentialID)
	}
	if held := principal.Certificate; held != nil {
		origin.Renews, origin.FirstMethod = held.Serial, string(held.Origin)
	}
	return ledger.Intent{
		Serial: d.serial, Created: d.began, Identity: principal.ID.String(), Profile: d.profile.Name(), Rule: d.rule, Names: d.names.List(), Origin: origin,
		KeyID: hash[:], JoinToken: principal.JoinToken,
	}
}
