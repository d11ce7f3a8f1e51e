package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/bits"

	"github.com/chancery-ca/chancery/ca/ledger"
)

// Reserve implements ledger.Ledger.
func (l *Ledger) Reserve(ctx context.Context, intent ledger.Intent) error {
	doing := "reserving " + intent.Serial.String()
	if err := l.mayIssue(doing); err != nil {
		return err
	}
	encoded, err := encode(&intent, l.counter.Add(1))
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return l.submit(ctx, doing, &request{
		line:  encoded,
		write: func(g *group) (error, error) { return g.reserve(encoded) }, //nolint:contextcheck // what the writer has begun does not end early
	}, false)
}

// Commit implements ledger.Ledger.
func (l *Ledger) Commit(ctx context.Context, outcome ledger.Outcome) error {
	doing := "committing " + outcome.Serial.String()
	if n := len(outcome.Certificate); n == 0 || n > maxCertificate {
		return fmt.Errorf("%s: a certificate of %d bytes", doing, n)
	}
	return l.settle(ctx, doing, outcome, issued)
}

// Fail implements ledger.Ledger.
func (l *Ledger) Fail(ctx context.Context, outcome ledger.Outcome) error {
	doing := "failing " + outcome.Serial.String()
	outcome = ledger.Outcome{Serial: outcome.Serial, Reason: outcome.Reason}
	if len(outcome.Reason) > maxIntent {
		outcome.Reason = outcome.Reason[:maxIntent]
	}
	return l.settle(ctx, doing, outcome, failed)
}

func (l *Ledger) settle(ctx context.Context, doing string, outcome ledger.Outcome, state int64) error {
	if err := l.mayIssue(doing); err != nil {
		return err
	}
	// The caller may be gone, and use its buffers, before the writer has read them.
	outcome.Certificate = bytes.Clone(outcome.Certificate)
	outcome.IssuerKeyID = bytes.Clone(outcome.IssuerKeyID)
	return l.submit(ctx, doing, &request{
		write: func(g *group) (error, error) { return g.settle(&outcome, state) }, //nolint:contextcheck // what the writer has begun does not end early
	}, true)
}

func (l *Ledger) mayIssue(doing string) error {
	if l.shared {
		return fmt.Errorf("%s: the ledger was opened beside its server, which alone reserves and settles", doing)
	}
	return nil
}

// reserve takes an encoded intent into the group, and consumes its join token.
func (g *group) reserve(encoded *line) (answer, broken error) {
	if g.known[encoded.serial] || g.open[encoded.serial] != nil {
		return ledger.ErrDuplicate, nil
	}
	if len(encoded.token) > 0 {
		if answer, broken := g.consume(encoded); answer != nil || broken != nil {
			return answer, broken
		}
	}
	if g.intents == nil {
		g.intents = &intents{}
	}
	g.intents.open++
	r := &reservation{line: encoded, intents: g.intents}
	g.open[encoded.serial] = r
	g.reserved = append(g.reserved, r)
	return nil, nil
}

// settle writes the one row of a reservation.
func (g *group) settle(outcome *ledger.Outcome, state int64) (answer, broken error) {
	r := g.open[outcome.Serial]
	switch {
	case r == nil:
		return g.whyNotOpen(outcome.Serial)
	case !r.durable:
		return ledger.ErrNotFound, nil
	case r.settling:
		return ledger.ErrSettled, nil
	}
	if state != issued && len(r.token) > 0 {
		if _, err := g.statements.giveBack.exec(r.token, []byte(r.serial)); err != nil {
			return nil, err
		}
	}
	if err := g.addCertificate(r.line, outcome, state); err != nil {
		return nil, err
	}
	r.settling = true
	r.intents.open--
	g.settled = append(g.settled, r)
	if r.intents.open == 0 {
		_, broken = g.statements.dropIntents.exec(r.intents.id)
	}
	return nil, broken
}

// whyNotOpen says why a serial has no open reservation.
func (g *group) whyNotOpen(serial ledger.Serial) (answer, broken error) {
	row, err := g.statements.has.row(1, []byte(serial))
	switch {
	case err != nil:
		return nil, err
	case row == nil:
		return ledger.ErrNotFound, nil
	default:
		return ledger.ErrSettled, nil
	}
}

// addCertificate adds the row of a reservation. If another of the same millisecond and counter has its place in the order, it
// takes the next.
func (g *group) addCertificate(r *line, outcome *ledger.Outcome, state int64) error {
	identity, err := g.identify(r.identity)
	if err != nil {
		return err
	}
	var settled, span, notBefore, notAfter, issuer, reason, certificate any
	if state != reserved {
		settled = g.now().UnixMilli()
	}
	if state == issued {
		notBefore, notAfter = outcome.NotBefore.UnixMilli(), outcome.NotAfter.UnixMilli()
		span = spanOf(outcome.NotAfter.UnixMilli() - r.id>>counterBits)
		issuer, certificate = outcome.IssuerKeyID, outcome.Certificate
	} else {
		reason = outcome.Reason
	}
	if leaf := outcome.LeafSerial; state == issued && leaf != "" && leaf != r.serial {
		if _, err := g.statements.addLeafSerial.exec([]byte(leaf), []byte(r.serial)); err != nil {
			return err
		}
	}
	for {
		_, err := g.statements.addCertificate.exec(r.id, []byte(r.serial), identity, state, settled, span, notBefore, notAfter, issuer,
			reason, r.detail, certificate)
		if !takenID(err) {
			return err
		}
		r.id++
	}
}

// spanOf is the smallest n with lifetime < 2^n seconds: the valid certificates at a time t were created after t - 2^n seconds.
func spanOf(lifetimeMillis int64) int64 {
	return int64(bits.Len64(uint64(max(lifetimeMillis, 0) / 1000))) // #nosec G115 -- not negative
}

// identify returns the number that stands for an identity.
func (g *group) identify(name string) (int64, error) {
	if id, ok := g.identities[name]; ok {
		return id, nil
	}
	row, err := g.statements.identity.row(1, name)
	if err != nil {
		return 0, err
	}
	if row == nil {
		if _, err := g.statements.addIdentity.exec(name); err != nil {
			return 0, err
		}
		if row, err = g.statements.identity.row(1, name); err != nil {
			return 0, err
		}
	}
	if row == nil {
		return 0, errors.New("an identity that was just added is not there")
	}
	id, _ := row[0].(int64)
	g.identities[name] = id
	g.identified = append(g.identified, name)
	return id, nil
}
