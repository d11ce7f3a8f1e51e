package sqlite

import (
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/chancery-ca/chancery/ca/ledger"
)

// recover turns what an earlier process has left open into rows that stay reserved for ever, and gives their join tokens back. It
// returns the counter of the latest row, after which the next reservation of the same millisecond is to be counted.
func (w *writer) recover() (int64, error) {
	w.open = map[ledger.Serial]*reservation{}
	w.identities = map[string]int64{}
	if _, err := w.statements.begin.exec(); err != nil {
		return 0, err
	}
	last, err := w.closeOpen()
	if err == nil {
		_, err = w.statements.commit.exec()
	}
	if err != nil {
		_, e := w.statements.rollback.exec()
		return 0, errors.Join(err, ignoreRolledBack(e))
	}
	return last & (1<<counterBits - 1), nil
}

// closeOpen is the transaction of recover.
func (w *writer) closeOpen() (last int64, err error) {
	if err := w.guard.check(); err != nil {
		return 0, err
	}
	lines, err := w.leftOpen()
	if err != nil {
		return 0, err
	}
	g := &group{writer: w}
	for _, l := range lines {
		if err := g.addCertificate(l, &ledger.Outcome{Reason: reasonStopped}, reserved); err != nil {
			return 0, err
		}
		if len(l.token) == 0 {
			continue
		}
		if _, err := w.statements.giveBack.exec(l.token, []byte(l.serial)); err != nil {
			return 0, err
		}
	}
	if len(lines) > 0 {
		w.log.Warn("reservations were left open by a server that stopped; they stay in the ledger as reserved", "count", len(lines))
	}
	if err := w.conn.exec("DELETE FROM intents"); err != nil {
		return 0, err
	}
	return w.conn.number("SELECT max(id) FROM certificates")
}

// leftOpen reads the intents that have no row among the certificates.
func (w *writer) leftOpen() (open []*line, err error) {
	payloads, err := w.conn.prepare("SELECT payload FROM intents ORDER BY id")
	if err != nil {
		return nil, err
	}
	defer payloads.close()
	var lines []*line
	err = payloads.rows(1, func(row []driver.Value) error {
		payload, _ := row[0].(string)
		more, err := decodeAll(payload)
		lines = append(lines, more...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading intents: %w", err)
	}
	for _, l := range lines {
		row, err := w.statements.has.row(1, []byte(l.serial))
		if err != nil {
			return nil, err
		}
		if row == nil {
			open = append(open, l)
		}
	}
	return open, nil
}
