package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/chancery-ca/chancery/ca/ledger"
)

const (
	defaultLimit = 100
	maxLimit     = 1000
)

const (
	values = `c.id, c.serial, i.name, c.state, c.settled, c.not_before, c.not_after, c.issuer, c.reason, c.detail, c.certificate,
	r.revoked, r.reason, r.by`
	columns = values + `
	FROM certificates c JOIN identities i ON i.id = c.identity LEFT JOIN revocations r ON r.certificate = c.id`
	// revokedColumns goes through the revocations, which are few: CROSS keeps SQLite from another order.
	revokedColumns = values + `
	FROM revocations r CROSS JOIN certificates c ON c.id = r.certificate JOIN identities i ON i.id = c.identity`
)

// Get implements ledger.Ledger.
func (l *Ledger) Get(ctx context.Context, serial ledger.Serial) (entry ledger.Entry, err error) {
	doing := "looking up " + serial.String()
	err = l.view(ctx, doing, func(v *view) error {
		entries, err := v.rows("SELECT "+columns+" WHERE c.serial = ?", []byte(serial))
		if err == nil && len(entries) == 0 {
			entries, err = v.open(func(l *line) bool { return l.serial == serial })
		}
		if err == nil && len(entries) == 0 {
			err = ledger.ErrNotFound
		}
		if err == nil {
			entry = entries[0].Entry
		}
		return err
	})
	return entry, err
}

// Find implements ledger.Ledger. Its times select to the millisecond.
func (l *Ledger) Find(ctx context.Context, query ledger.Query) (found []ledger.Entry, err error) {
	switch {
	case query.Limit == 0:
		query.Limit = defaultLimit
	case query.Limit < 0 || query.Limit > maxLimit:
		return nil, fmt.Errorf("looking entries up: a limit of %d is out of range", query.Limit)
	}
	err = l.view(ctx, "looking entries up", func(v *view) error {
		entries, err := v.find(query)
		for _, e := range entries {
			found = append(found, e.Entry)
		}
		return err
	})
	return found, err
}

// view is one unchanging state of the file: a reservation that is settled meanwhile is seen once.
type view struct {
	ctx context.Context
	tx  *sql.Tx
}

// placed is an entry with its place in the order of the roll.
type placed struct {
	ledger.Entry
	id int64
}

func (l *Ledger) view(ctx context.Context, doing string, look func(*view) error) error {
	if err := l.check(); err != nil {
		return wrap(doing, err)
	}
	tx, err := l.readers.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return fault(doing, err)
	}
	err = look(&view{ctx: ctx, tx: tx})
	_ = tx.Rollback() // nothing was written
	if err != nil && l.check() != nil {
		err = l.check() // whatever it is, the closing is why
	}
	return fault(doing, err)
}

// bounds is a query in the terms of the file.
type bounds struct {
	ledger.Query
	from, below int64 // ids: from ≤ id < below
}

// idAt is the lowest id of what was created at t.
func idAt(t time.Time) int64 { return idAtMillis(t.UnixMilli()) }

func idAtMillis(ms int64) int64 { return min(max(ms, 0), 1<<(63-counterBits)-1) << counterBits }

func (v *view) find(query ledger.Query) ([]placed, error) {
	b := bounds{Query: query, below: 1<<63 - 1}
	if !query.Since.IsZero() {
		b.from = idAt(query.Since)
	}
	if !query.Until.IsZero() {
		b.below = idAt(query.Until)
	}
	if query.After != "" {
		id, err := v.place(query.After)
		if err != nil {
			return nil, err
		}
		b.below = min(b.below, id)
	}
	entries, err := v.settled(b)
	if err != nil {
		return nil, err
	}
	if !query.Revoked && len(query.IssuerKeyID) == 0 && query.ValidAt.IsZero() && (query.State == "" || query.State == ledger.Reserved) {
		open, err := v.open(func(l *line) bool {
			return b.from <= l.id && l.id < b.below && (query.Identity == "" || query.Identity == l.identity)
		})
		if err != nil {
			return nil, err
		}
		entries = append(entries, open...)
	}
	slices.SortFunc(entries, func(a, b placed) int { return int(min(max(b.id-a.id, -1), 1)) })
	return entries[:min(len(entries), query.Limit)], nil
}

// place returns the id of a serial.
func (v *view) place(serial ledger.Serial) (id int64, err error) {
	err = v.tx.QueryRowContext(v.ctx, "SELECT id FROM certificates WHERE serial = ?", []byte(serial)).Scan(&id)
	if !errors.Is(err, sql.ErrNoRows) {
		return id, err
	}
	open, err := v.open(func(l *line) bool { return l.serial == serial })
	if err == nil && len(open) == 0 {
		err = fmt.Errorf("the page's last serial %s: %w", serial, ledger.ErrNotFound)
	}
	if err != nil {
		return 0, err
	}
	return open[0].id, nil
}

// settled finds rows by the index that fits.
func (v *view) settled(b bounds) ([]placed, error) {
	c, err := b.conditions()
	if err != nil {
		return nil, err
	}
	if b.ValidAt.IsZero() || b.Identity != "" || b.Revoked {
		return v.rows(c.query(), append(c.args, b.Limit)...)
	}
	// What is valid at a time is found without reading everything that was ever issued: certificates of one span that are
	// valid at t were created after t - 2^span seconds, so that of what is read at most about half has expired.
	spans, err := v.spans()
	if err != nil {
		return nil, err
	}
	var entries []placed
	for _, span := range spans {
		// The second more is for what the division has cut off.
		from := max(b.from, idAtMillis(b.ValidAt.UnixMilli()-1000-1000<<span))
		ofSpan := c.and("c.span = ? AND c.span IS NOT NULL AND c.id >= ?", span, from)
		more, err := v.rows(ofSpan.query(), append(ofSpan.args, b.Limit)...)
		if err != nil {
			return nil, err
		}
		entries = append(entries, more...)
	}
	return entries, nil
}

// conditions are what a row must meet, and the values of their parameters.
type conditions struct {
	from  string // columns and tables
	order string // the column that holds the place in the roll
	where string
	args  []any
}

func (b bounds) conditions() (conditions, error) {
	c := conditions{from: columns, order: "c.id"}
	if b.Revoked {
		c = conditions{from: revokedColumns, order: "r.certificate"}
	}
	c = c.and(c.order+" >= ? AND "+c.order+" < ?", b.from, b.below)
	if b.Identity != "" {
		c = c.and("c.identity = (SELECT id FROM identities WHERE name = ?)", b.Identity)
	}
	if len(b.IssuerKeyID) > 0 {
		// without an index, which each issuance would pay for: what matters of an issuer is what is still valid or what it signed last
		c = c.and("c.issuer = ? AND +c.state = 1", b.IssuerKeyID)
	}
	switch b.State {
	case "":
	case ledger.Issued:
		c = c.and("+c.state = 1") // nearly all are: no index helps
	case ledger.Failed:
		c = c.and("c.state = 2 AND c.state <> 1") // the second half tells SQLite that the index of the unissued will do
	case ledger.Reserved:
		c = c.and("c.state = 0 AND c.state <> 1")
	default:
		return c, fmt.Errorf("there is no state %q", b.State)
	}
	if !b.ValidAt.IsZero() {
		at := b.ValidAt.UnixMilli()
		c = c.and("+c.state = 1 AND c.not_before <= ? AND c.not_after >= ?", at, at)
	}
	return c, nil
}

func (c conditions) and(condition string, values ...any) conditions {
	if c.where != "" {
		c.where += " AND "
	}
	c.where += condition
	c.args = append(slices.Clone(c.args), values...)
	return c
}

func (c conditions) query() string {
	return "SELECT " + c.from + " WHERE " + c.where + " ORDER BY " + c.order + " DESC LIMIT ?"
}

// spans returns the few spans that occur, by one look into the index each.
func (v *view) spans() (spans []int64, err error) {
	last := sql.NullInt64{Int64: -1}
	for {
		err := v.tx.QueryRowContext(v.ctx, "SELECT min(span) FROM certificates WHERE span > ? AND span IS NOT NULL", last.Int64).Scan(&last)
		if err != nil || !last.Valid {
			return spans, err
		}
		spans = append(spans, last.Int64)
	}
}

// rows reads settled entries.
func (v *view) rows(query string, args ...any) (entries []placed, err error) {
	rows, err := v.tx.QueryContext(v.ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var (
			l                            line
			serial, issuer, certificate  []byte
			state                        int64
			settled, notBefore, notAfter sql.NullInt64
			reason, by                   sql.NullString
			revoked, why                 sql.NullInt64
		)
		err := rows.Scan(&l.id, &serial, &l.identity, &state, &settled, &notBefore, &notAfter, &issuer, &reason, &l.detail, &certificate,
			&revoked, &why, &by)
		if err != nil {
			return nil, err
		}
		l.serial = ledger.Serial(serial)
		e := placed{id: l.id}
		if e.Intent, err = l.intent(); err != nil {
			return nil, err
		}
		if e.State, err = stateOf(state); err != nil {
			return nil, err
		}
		e.Revoked = revocation(revoked, why, by)
		e.Outcome = ledger.Outcome{Serial: l.serial, Certificate: certificate, IssuerKeyID: issuer, Reason: reason.String}
		for from, to := range map[*sql.NullInt64]*time.Time{
			&settled: &e.Settled, &notBefore: &e.Outcome.NotBefore, &notAfter: &e.Outcome.NotAfter,
		} {
			if from.Valid {
				*to = fromMillis(from.Int64)
			}
		}
		entries = append(entries, e)
	}
	return entries, rows.Err()
}

func stateOf(state int64) (ledger.State, error) {
	switch state {
	case reserved:
		return ledger.Reserved, nil
	case issued:
		return ledger.Issued, nil
	case failed:
		return ledger.Failed, nil
	default:
		return "", fmt.Errorf("the file has an entry of the unknown state %d", state)
	}
}

// open reads the open reservations that pass. They are few: the server has them in flight.
func (v *view) open(pass func(*line) bool) (entries []placed, err error) {
	rows, err := v.tx.QueryContext(v.ctx, "SELECT payload FROM intents")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var lines []*line
	for rows.Next() {
		var payload sql.RawBytes
		if err := rows.Scan(&payload); err != nil {
			return nil, err
		}
		for text := range bytes.Lines(payload) {
			l, err := decode(text)
			if err != nil {
				return nil, err
			}
			if pass(l) {
				lines = append(lines, l)
			}
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	for _, l := range lines {
		var settled bool
		err := v.tx.QueryRowContext(v.ctx, "SELECT EXISTS (SELECT 1 FROM certificates WHERE serial = ?)", []byte(l.serial)).Scan(&settled)
		if err != nil {
			return nil, err
		}
		if settled {
			continue
		}
		e := placed{id: l.id, Entry: ledger.Entry{State: ledger.Reserved, Outcome: ledger.Outcome{Serial: l.serial}}}
		if e.Intent, err = l.intent(); err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}
