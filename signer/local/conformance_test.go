package local_test

import (
	"testing"
	"time"

	"github.com/chancery-ca/chancery/signer"
	"github.com/chancery-ca/chancery/signer/local"
	"github.com/chancery-ca/chancery/signer/signertest"
)

var now = time.Date(2027, 1, 15, 12, 0, 0, 0, time.UTC)

func TestConformance(t *testing.T) {
	open := func(t testing.TB, key func(*signertest.Hierarchy) *failing) signer.Signer {
		h := signertest.NewHierarchy(t, now)
		private := key(h)
		s, err := local.New(local.Config{Key: private, Chain: h.Issuers()[:2], Roots: h.Bundle(t)}, now)
		if err != nil {
			t.Fatal(err)
		}
		private.broken.Store(private.breaks)
		return s
	}
	signertest.Run(t, signertest.Backend{
		New: func(t testing.TB) signer.Signer {
			return open(t, func(h *signertest.Hierarchy) *failing { return &failing{Signer: h.Issuer.Key} })
		},
		Failing: func(t testing.TB) signer.Signer {
			return open(t, func(h *signertest.Hierarchy) *failing { return &failing{Signer: h.Issuer.Key, breaks: true} })
		},
		Now:   func() time.Time { return now },
		Exact: true,
	})
}
