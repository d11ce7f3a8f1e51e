package tokenreview

import (
	"context"
	"crypto/subtle"
	"errors"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
	"github.com/chancery-ca/chancery/ca/ledger"
)

// joinTimeout bounds the look-up of a join token.
const joinTimeout = 5 * time.Second

// TokenSource looks join tokens up; every ledger.Ledger is one.
type TokenSource interface {
	// Token returns the token with this hash, or ledger.ErrTokenGone, ledger.ErrTokenUsed or ledger.ErrUnavailable.
	Token(ctx context.Context, hash []byte, now time.Time) (ledger.JoinToken, error)
}

// Join authenticates join tokens. It does not consume them: Principal.JoinToken tells the issuance to, in the transaction of its reservation.
type Join struct {
	source      TokenSource
	trustDomain spiffeid.TrustDomain
	now         func() time.Time
}

// NewJoin returns a Join that takes tokens for identities of trustDomain. A nil now means time.Now.
func NewJoin(source TokenSource, trustDomain spiffeid.TrustDomain, now func() time.Time) (*Join, error) {
	if source == nil {
		return nil, errors.New("tokenreview: join tokens need a ledger: configure one, or turn join tokens off")
	}
	if trustDomain.IsZero() {
		return nil, errors.New("tokenreview: trust domain is empty: name the one that join tokens are made for")
	}
	if now == nil {
		now = time.Now
	}
	return &Join{source: source, trustDomain: trustDomain, now: now}, nil
}

// Authenticate handles every bearer token that is meant to be a join token.
func (j *Join) Authenticate(ctx context.Context, credential identity.Credential) (*identity.Principal, bool, error) {
	if !isJoinToken(credential.Bearer.Reveal()) {
		return nil, false, nil
	}
	principal, err := j.authenticate(ctx, credential.Bearer)
	return principal, true, err
}

func (j *Join) authenticate(ctx context.Context, token identity.Secret) (*identity.Principal, error) {
	id, hash, err := ParseJoinToken(token)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	now := j.now()
	row, err := j.source.Token(ctx, hash, now)
	if err != nil {
		return nil, refuseJoin(err)
	}
	// The ledger has checked all of this; a row that says otherwise is not one to issue on.
	switch {
	case subtle.ConstantTimeCompare(row.Hash, hash) != 1 || row.ID != id:
		return nil, errkind.New(errkind.Internal, "the ledger returned another join token than it was asked for")
	case row.UsedBy != "":
		return nil, refuseJoin(ledger.ErrTokenUsed)
	case !now.Before(row.Expires):
		return nil, refuseJoin(ledger.ErrTokenGone)
	}
	holder, err := spiffeid.FromString(row.Identity)
	if err != nil || !holder.MemberOf(j.trustDomain) || holder.Path() == "" {
		return nil, errkind.Wrap(errkind.Unauthenticated, err,
			"join token is for an identity outside of trust domain %s: make one with `chancery token create` for an identity inside", j.trustDomain).
			Because(errkind.NotMapped)
	}
	return &identity.Principal{
		ID:           holder,
		Method:       identity.MethodJoinToken,
		CredentialID: id,
		Expiry:       row.Expires,
		JoinToken:    hash,
	}, nil
}

// refuseJoin classifies the ledger's error. Unknown and expired look alike, so that nobody learns which tokens there ever were; used is
// told, since its holder has to know that somebody was faster.
func refuseJoin(err error) error {
	switch {
	case errors.Is(err, ledger.ErrTokenUsed):
		return errkind.Wrap(errkind.Unauthenticated, err, "join token was already used, and each is good for one certificate: "+
			"make a new token with `chancery token create`, and find out who used this one if it was not you").Because(errkind.TokenUsed)
	case errors.Is(err, ledger.ErrTokenGone), errors.Is(err, ledger.ErrNotFound):
		return errkind.Wrap(errkind.Unauthenticated, err, "join token is unknown or has expired: make a new token with `chancery token create`").
			Because(errkind.TokenUnknown)
	default:
		return errkind.Wrap(errkind.Unavailable, err, "the join token could not be looked up; try again").Because(errkind.LedgerUnavailable).After(retryAfter)
	}
}
