package ca

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/chancery-ca/chancery/ca/authorize"
	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
	"github.com/chancery-ca/chancery/ca/ledger"
	"github.com/chancery-ca/chancery/ca/lint"
	"github.com/chancery-ca/chancery/csr"
	"github.com/chancery-ca/chancery/signer"
)

// settleTimeout bounds the writes that settle a reservation after its caller is gone.
const settleTimeout = 10 * time.Second

// Issue takes an order through the pipeline. It returns a certificate only after the ledger holds it. Errors are classified (errkind); each
// decision leaves one audit record.
func (a *Authority) Issue(ctx context.Context, order Order) (*Issuance, error) {
	began := a.now()
	issuance, err := a.issue(ctx, order, began)
	a.record(ctx, order, issuance, err, began)
	return issuance, err
}

func (a *Authority) issue(ctx context.Context, order Order, now time.Time) (*Issuance, error) {
	s := a.current.Load()
	request, err := csr.Parse(order.CSR, s.requests)
	if err != nil {
		return nil, err
	}
	kind, err := s.profile(order.Profile)
	if err != nil {
		return nil, err
	}
	names, err := wantedNames(order, request)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(kind.CheckNames(names), s.checkKey(request)); err != nil {
		return nil, err
	}
	rule, allowed, err := s.rule(ctx, authorize.Request{Principal: order.Principal, Profile: kind.Name(), Names: names})
	if err != nil || !allowed {
		return nil, denied(err)
	}
	//nolint:gosec // G404: spreads renewals in time, secures nothing
	validity, err := kind.Validity(now, order.Lifetime, order.Jitter, s.window, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
	if err != nil {
		return nil, err
	}
	serial, err := a.newSerial()
	if err != nil {
		return nil, err
	}
	leaf := kind.Leaf(serial.Int(), names, request.SPKI(), validity)
	passed, err := a.linter.Template(leaf, s.issuer(), kind.FixedShape())
	if err != nil {
		return nil, errkind.Wrap(errkind.Invalid, err, "what was asked for would make a certificate that breaks a rule")
	}

	if err := a.ledger.Reserve(ctx, intent(order, request, serial, kind.Name(), rule, names, now)); err != nil {
		return nil, ledgerError(err)
	}
	signed, err := a.sign(ctx, s, signer.Order{Request: request, Leaf: leaf, Profile: kind.Name()}, passed)
	if err != nil {
		a.fail(ctx, serial, err)
		return nil, err
	}
	if err := a.commit(ctx, serial, signed); err != nil {
		return nil, err
	}
	return &Issuance{
		Serial: serial, Chain: signed, Bundle: s.bundle, NotAfter: signed.Leaf().NotAfter, RenewAt: validity.RenewAt, Issued: now,
		Clamp: validity.Clamp, Rule: rule,
	}, nil
}

// sign asks the backend and holds its answer against what was approved.
func (a *Authority) sign(ctx context.Context, s *snapshot, order signer.Order, passed lint.Passed) (chain.Chain, error) {
	signed, err := s.signer.Sign(ctx, order)
	switch {
	case errors.Is(err, signer.ErrPermanent):
		return chain.Chain{}, errkind.Wrap(errkind.Invalid, err, "the signing backend refused this request and will refuse it again")
	case err != nil:
		return chain.Chain{}, errkind.Wrap(errkind.Unavailable, err, "the signing backend is not available; try again")
	}
	// a backend's clock is not ours: its answer is judged by the time at which it came
	if err := s.checker.Check(signed, order.Leaf, a.now()); err != nil {
		return chain.Chain{}, errkind.Wrap(errkind.Unavailable, err, "the signing backend answered with a certificate that was not approved; the server's log says how")
	}
	if err := a.linter.Chain(signed, passed); err != nil {
		return chain.Chain{}, errkind.Wrap(errkind.Unavailable, err, "the signing backend answered with a certificate that breaks a rule; the server's log says which")
	}
	return signed, nil
}

// commit makes the certificate part of the roll. It does not end with the caller: what was signed is worth recording even if nobody waits.
func (a *Authority) commit(ctx context.Context, serial ledger.Serial, signed chain.Chain) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	leaf := signed.Leaf()
	err := a.ledger.Commit(ctx, ledger.Outcome{
		Serial: serial, Certificate: leaf.Raw, IssuerKeyID: leaf.AuthorityKeyId, NotBefore: leaf.NotBefore, NotAfter: leaf.NotAfter,
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

// wantedNames returns the names an order is for. The CSR's names and the order's must agree where both say something; a SPIFFE profile's
// caller that names nothing gets its own identity.
func wantedNames(order Order, request *csr.Request) (identity.Names, error) {
	inRequest, wanted := request.Names(), order.Names.Normalize()
	switch {
	case wanted.Empty() && inRequest.Empty():
		return identity.Names{URIs: []string{order.Principal.ID.String()}}, nil
	case wanted.Empty():
		return inRequest, nil
	case !inRequest.Empty() && !inRequest.Equal(wanted):
		return identity.Names{}, errkind.New(errkind.Invalid, "the CSR names %s and the request asks for %s; ask for the same names in both or in one alone", inRequest,
			wanted)
	default:
		return wanted, nil
	}
}

func denied(err error) error {
	if err != nil {
		return err
	}
	return errkind.New(errkind.Denied, "no rule allows these names")
}

// ledgerError classifies what a ledger answers.
func ledgerError(err error) error {
	switch {
	case errors.Is(err, ledger.ErrTokenUsed):
		return errkind.Wrap(errkind.Unauthenticated, err, "this join token was already used; make a new one with: chancery token create")
	case errors.Is(err, ledger.ErrTokenGone):
		return errkind.Wrap(errkind.Unauthenticated, err, "this join token is unknown or has expired; make a new one with: chancery token create")
	default:
		return errkind.Wrap(errkind.Unavailable, err, "the ledger cannot record this certificate, so it is not issued; try again").After(time.Second)
	}
}

func intent(order Order, request *csr.Request, serial ledger.Serial, kind, rule string, names identity.Names, now time.Time) ledger.Intent {
	principal := order.Principal
	hash := request.KeyHash()
	origin := ledger.Origin{Method: string(principal.Method), CredentialID: principal.CredentialID, Door: string(order.Door), Remote: order.Remote}
	if k := principal.Kubernetes; k != nil {
		origin.Cluster, origin.Namespace, origin.Account, origin.AccountUID = k.Cluster, k.Namespace, k.ServiceAccount, k.ServiceAccountUID
		origin.Pod, origin.PodUID, origin.Node, origin.NodeUID = k.PodName, k.PodUID, k.NodeName, k.NodeUID
	}
	return ledger.Intent{
		Serial: serial, Created: now, Identity: principal.ID.String(), Profile: kind, Rule: rule, Names: names.List(), Origin: origin,
		KeyID: hash[:], JoinToken: principal.JoinToken,
	}
}
