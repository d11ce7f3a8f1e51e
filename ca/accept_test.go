package ca_test

import (
	"context"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/chancery-ca/chancery/ca"
	"github.com/chancery-ca/chancery/ca/authorize"
	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/ledger"
	"github.com/chancery-ca/chancery/signer"
	"github.com/chancery-ca/chancery/signer/signertest"
)

// chooser is a backend whose authority changes what is ordered, and that declares what it may choose.
type chooser struct {
	*signertest.Rogue
	change  func(*chain.Leaf)
	choices signer.Choices
	err     error
}

func (c *chooser) Choices() signer.Choices { return c.choices }

func (c *chooser) Sign(ctx context.Context, order signer.Order) (chain.Chain, error) {
	if c.err != nil {
		return chain.Chain{}, c.err
	}
	c.change(&order.Leaf)
	return c.Rogue.Sign(ctx, order)
}

// TestChoices: what a backend declares to choose passes, within what it declared and what policy allows. All else is refused as ever.
func TestChoices(t *testing.T) {
	const asked = time.Hour
	later := func(d time.Duration) func(*chain.Leaf) {
		return func(l *chain.Leaf) { l.NotAfter = l.NotAfter.Add(d) }
	}
	earlier := func(l *chain.Leaf) { l.NotBefore = l.NotBefore.Add(-4 * time.Minute) }
	serial := func(l *chain.Leaf) { l.Serial = big.NewInt(4711) }
	for name, test := range map[string]struct {
		change  func(*chain.Leaf)
		choices signer.Choices
		limit   time.Duration // of the rule
		want    string        // in the cause of the refusal; empty if it is issued
	}{
		"a serial":                              {serial, signer.Choices{Serial: true}, 0, ""},
		"a serial, not declared":                {serial, signer.Choices{Earlier: time.Hour, Later: time.Hour}, 0, "reserved"},
		"a serial of zero":                      {func(l *chain.Leaf) { l.Serial = big.NewInt(0) }, signer.Choices{Serial: true}, 0, "4.1.2.2"},
		"an earlier beginning":                  {earlier, signer.Choices{Earlier: 4 * time.Minute}, 0, ""},
		"an earlier beginning, not declared":    {earlier, signer.Choices{Serial: true, Later: time.Hour}, 0, "notBefore"},
		"an earlier beginning than declared":    {earlier, signer.Choices{Earlier: 4*time.Minute - time.Second}, 0, "notBefore"},
		"a longer life":                         {later(23 * time.Hour), signer.Choices{Later: 23 * time.Hour}, 0, ""},
		"a longer life, not declared":           {later(time.Second), signer.Choices{Serial: true, Earlier: time.Hour}, 0, "notAfter"},
		"a longer life than declared":           {later(23 * time.Hour), signer.Choices{Later: 23*time.Hour - time.Second}, 0, "notAfter"},
		"as long as the profile":                {later(167 * time.Hour), signer.Choices{Later: 1000 * time.Hour}, 0, ""},
		"longer than the profile":               {later(167*time.Hour + time.Second), signer.Choices{Later: 1000 * time.Hour}, 0, "notAfter"},
		"as long as the rule":                   {later(time.Hour), signer.Choices{Later: 1000 * time.Hour}, 2 * time.Hour, ""},
		"longer than the rule":                  {later(time.Hour + time.Second), signer.Choices{Later: 1000 * time.Hour}, 2 * time.Hour, "notAfter"},
		"as approved, with a negative latitude": {func(*chain.Leaf) {}, signer.Choices{Earlier: -time.Hour, Later: -time.Hour}, 0, ""},
		"another name, with all declared": {func(l *chain.Leaf) { l.Names.URIs = []string{"spiffe://example.org/admin"} },
			signer.Choices{Serial: true, Earlier: time.Hour, Later: time.Hour}, 0, "names"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, func(b *bed) {
				b.config.Signer = &chooser{Rogue: signertest.NewRogue(t, b.hierarchy, signertest.Forgery{}), change: test.change, choices: test.choices}
				if test.limit > 0 {
					inner := b.config.Rule
					b.config.Rule = func(ctx context.Context, request authorize.Request) (authorize.Verdict, bool, error) {
						verdict, allowed, err := inner(ctx, request)
						verdict.MaxLifetime = test.limit
						return verdict, allowed, err
					}
				}
			})
			o := order(t)
			o.Lifetime = asked
			issuance, err := b.authority.Issue(t.Context(), o)
			entries := b.entries(t)
			if len(entries) != 1 {
				t.Fatalf("the ledger has %d entries", len(entries))
			}
			if test.want != "" {
				wantKind(t, err, errkind.Unavailable, "not approved")
				if errkind.ReasonOf(err) != errkind.SignerWrong || !strings.Contains(err.Error(), test.want) || entries[0].State != ledger.Failed {
					t.Errorf("got %v for %s, want %q; the ledger has %s", err, errkind.ReasonOf(err), test.want, entries[0].State)
				}
				return
			}
			must(t, err)
			b.wantChoices(t, issuance, entries[0])
		})
	}
}

// wantChoices wants an issuance told as it is: in the reply, in the ledger under the reserved serial, and in the audit record.
func (b *bed) wantChoices(t *testing.T, issuance *ca.Issuance, entry ledger.Entry) {
	t.Helper()
	leaf := issuance.Chain.Leaf()
	if !issuance.NotAfter.Equal(leaf.NotAfter) || !issuance.RenewAt.After(start) || issuance.RenewAt.After(start.Add(leaf.NotAfter.Sub(start)*2/3+time.Second)) {
		t.Errorf("it ends at %s and is renewed at %s; the certificate ends at %s", issuance.NotAfter, issuance.RenewAt, leaf.NotAfter)
	}
	if entry.State != ledger.Issued || entry.Serial != issuance.Serial || string(entry.Outcome.Certificate) != string(leaf.Raw) {
		t.Errorf("the ledger has %+v", entry)
	}
	record := b.logs.records(t, "audit")[0]
	if other := leaf.SerialNumber.Cmp(entry.Serial.Int()) != 0; other != (record["certificate_serial"] == fmt.Sprintf("%x", leaf.SerialNumber)) {
		t.Errorf("the record says %v of serial %x", record["certificate_serial"], leaf.SerialNumber)
	}
	if longer := leaf.NotAfter.After(start.Add(time.Hour)); longer != (record["approved_not_after"] != nil) {
		t.Errorf("the record says %v of a certificate until %s", record["approved_not_after"], leaf.NotAfter)
	}
}

// TestErrWrong: a backend that finds out itself that the answer is wrong is believed, and nobody else is blamed.
func TestErrWrong(t *testing.T) {
	for name, test := range map[string]struct {
		err    error
		kind   errkind.Kind
		reason errkind.Reason
	}{
		"a wrong answer": {fmt.Errorf("%w: an hour", signer.ErrWrong), errkind.Unavailable, errkind.SignerWrong},
		"an outage":      {context.DeadlineExceeded, errkind.Unavailable, errkind.SignerUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, func(b *bed) {
				b.config.Signer = &chooser{Rogue: signertest.NewRogue(t, b.hierarchy, signertest.Forgery{}), err: test.err}
			})
			_, err := b.authority.Issue(t.Context(), order(t))
			if errkind.Of(err) != test.kind || errkind.ReasonOf(err) != test.reason || strings.Contains(errkind.Message(err), "hour") {
				t.Errorf("got %v (%s)", err, errkind.ReasonOf(err))
			}
			if entries := b.entries(t); len(entries) != 1 || entries[0].State != ledger.Failed || !strings.Contains(entries[0].Outcome.Reason, test.err.Error()) {
				t.Errorf("the ledger has %+v", entries)
			}
		})
	}
}
