package tokenreview

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
)

// Entry is one kind of credential that a Chain takes.
type Entry struct {
	// Accepts is the kind in words, for a caller whose credential nobody knows: "a Kubernetes service-account token".
	Accepts string
	// Authenticator decides about credentials of the kind.
	Authenticator identity.Authenticator
}

// Chain is an Authenticator that asks others in order. The first that handles a credential decides; there is no second opinion.
type Chain struct {
	entries  []Entry
	accepted string
}

// NewChain returns a Chain of at least one entry.
func NewChain(entries ...Entry) (*Chain, error) {
	if len(entries) == 0 {
		return nil, errors.New("tokenreview: no authenticator is configured, so nobody could call: configure at least one")
	}
	kinds := make([]string, len(entries))
	for i, entry := range entries {
		if entry.Authenticator == nil || entry.Accepts == "" {
			return nil, fmt.Errorf("tokenreview: authenticator %d of the chain needs both a value and the words for what it accepts", i)
		}
		kinds[i] = entry.Accepts
	}
	return &Chain{entries: append([]Entry(nil), entries...), accepted: strings.Join(kinds, ", or ")}, nil
}

// Authenticate always handles the credential: one that nobody knows is Unauthenticated.
func (c *Chain) Authenticate(ctx context.Context, credential identity.Credential) (*identity.Principal, bool, error) {
	if credential.Bearer == "" && len(credential.PeerChain) == 0 {
		return nil, true, errkind.New(errkind.Unauthenticated, "no credential: send authorization: Bearer with %s", c.accepted).Because(errkind.NoCredential)
	}
	for _, entry := range c.entries {
		principal, handled, err := entry.Authenticator.Authenticate(ctx, credential)
		switch {
		case err != nil:
			return nil, true, err
		case !handled && principal == nil:
			continue
		case !handled || principal == nil:
			return nil, true, errkind.New(errkind.Internal, "the authenticator of %s broke its contract", entry.Accepts)
		default:
			return principal, true, nil
		}
	}
	return nil, true, errkind.New(errkind.Unauthenticated, "credential is of no kind known here: send authorization: Bearer with %s", c.accepted).
		Because(errkind.UnknownCredential)
}
