package signertest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/signer"
)

// remote is a backend like one across a network: it answers, or ends as act says.
type remote struct {
	*Rogue
	act func(ctx context.Context) error
}

func (r *remote) Sign(ctx context.Context, order signer.Order) (chain.Chain, error) {
	if err := errors.Join(ctx.Err(), r.act(ctx)); err != nil {
		return chain.Chain{}, fmt.Errorf("asking the authority: %w", err)
	}
	return r.Rogue.Sign(ctx, order)
}

// TestRun runs the suite, with all of its hooks, on a backend that keeps the contract.
func TestRun(t *testing.T) {
	with := func(act func(ctx context.Context) error) func(testing.TB) signer.Signer {
		return func(t testing.TB) signer.Signer {
			return &remote{NewRogue(t, NewHierarchy(t, now), Forgery{}), act}
		}
	}
	Run(t, Backend{
		New:      with(func(context.Context) error { return nil }),
		Refusing: with(func(context.Context) error { return signer.ErrPermanent }),
		Failing:  with(func(context.Context) error { return errors.New("connection refused") }),
		Hanging: with(func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}),
		Now:     func() time.Time { return now },
		Secrets: []string{"hunter2"},
	})
}
