package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"

	"github.com/chancery-ca/chancery/ca/ledger"
)

// Revoke implements ledger.Ledger.
func (l *Ledger) Revoke(ctx context.Context, serial ledger.Serial, revocation ledger.Revocation) error {
	doing := "revoking " + serial.String()
	if err := revocation.Check(); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if len(revocation.By) > maxIntent {
		return fmt.Errorf("%s: who revokes it is a text of %d bytes", doing, len(revocation.By))
	}
	return l.submit(ctx, doing, &request{write: func(g *group) (answer, broken error) { //nolint:contextcheck // what the writer has begun does not end early
		row, err := g.statements.state.row(2, []byte(serial))
		switch {
		case err != nil:
			return nil, err
		case row == nil:
			return ledger.ErrNotFound, nil
		case row[0] != issued:
			return ledger.ErrNotIssued, nil
		}
		_, err = g.statements.revoke.exec(row[1], revocation.At.UnixMilli(), int64(revocation.Reason), revocation.By)
		return nil, err
	}}, true)
}

// byLeafSerial finds the entries whose certificates may have a serial number.
const byLeafSerial = "SELECT " + columns + " WHERE c.serial = ?1 OR c.serial IN (SELECT serial FROM leaf_serials WHERE leaf = ?1)"

// Certificate implements ledger.Ledger.
func (l *Ledger) Certificate(ctx context.Context, leaf ledger.Serial, der []byte) (entry ledger.Entry, err error) {
	doing := "looking up certificate " + leaf.String()
	err = l.view(ctx, doing, func(v *view) error {
		entries, err := v.rows(byLeafSerial, []byte(leaf))
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.State == ledger.Issued && bytes.Equal(e.Outcome.Certificate, der) {
				entry = e.Entry
				return nil
			}
		}
		return ledger.ErrNotFound
	})
	return entry, err
}

// revocation reads the columns of a revocation, nil if there is none.
func revocation(revoked, reason sql.NullInt64, by sql.NullString) *ledger.Revocation {
	if !revoked.Valid {
		return nil
	}
	return &ledger.Revocation{At: fromMillis(revoked.Int64), Reason: ledger.RevocationReason(reason.Int64), By: by.String} // #nosec G115 -- checked when written
}
