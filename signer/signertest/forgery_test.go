package signertest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/chancery-ca/chancery/ca/chain"
)

var now = time.Date(2027, 1, 15, 12, 0, 0, 0, time.UTC)

// TestForgeries holds the checker against each forgery, and each forgery against its description.
func TestForgeries(t *testing.T) {
	h := NewHierarchy(t, now)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	order := NewOrder(t, 1, key, now)
	checker, err := chain.NewChecker(h.Bundle(t).Anchors())
	must(t, err)
	none := Forgery{}
	if err := checker.Check(none.Answer(t, *h, order.Leaf), order.Leaf, now); err != nil {
		t.Fatalf("the answer without a forgery: %v", err)
	}
	seen := make(map[string]bool)
	for _, forgery := range Forgeries() {
		if seen[forgery.Name] {
			t.Errorf("two forgeries have the name %q", forgery.Name)
		}
		seen[forgery.Name] = true
		t.Run(forgery.Name, func(t *testing.T) {
			err := checker.Check(forgery.Answer(t, *h, order.Leaf), order.Leaf, now)
			var broken *chain.Error
			if !errors.As(err, &broken) {
				t.Fatalf("got %v, want a chain.Error", err)
			}
			if broken.Position != forgery.Position || broken.Rule != forgery.Rule || broken.Detail == "" {
				t.Errorf("got %v\nwant position %d and rule %s", err, forgery.Position, forgery.Rule)
			}
		})
	}
}
