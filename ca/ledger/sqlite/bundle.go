package sqlite

import (
	"bytes"
	"context"
)

// BundleSequence implements ledger.Ledger.
func (l *Ledger) BundleSequence(ctx context.Context, hash []byte) (uint64, error) {
	hash = bytes.Clone(hash)
	var sequence int64
	r := &request{write: func(g *group) (answer, broken error) { //nolint:contextcheck // what the writer has begun does not end early
		row, err := g.statements.bundle.row(2)
		if err != nil {
			return nil, err
		}
		var latest int64
		if row != nil {
			latest, _ = row[0].(int64)
			if bytes.Equal(blob(row[1]), hash) {
				sequence = latest
				return nil, nil
			}
		}
		sequence = latest + 1
		_, err = g.statements.addBundle.exec(sequence, hash, g.now().UnixMilli())
		return nil, err
	}}
	// On an error the writer may still be at it, so the number must not be read.
	if err := l.submit(ctx, "numbering the bundle", r, false); err != nil {
		return 0, err
	}
	return uint64(sequence), nil // #nosec G115 -- the file counts up from one
}

// Probe implements ledger.Ledger. Once a write has found the file damaged it fails until the ledger is opened again.
func (l *Ledger) Probe(ctx context.Context) error {
	return l.submit(ctx, "probing", &request{write: func(g *group) (answer, broken error) {
		if g.damaged != nil {
			return g.damaged, nil
		}
		_, err := g.statements.probe.exec(g.now().UnixMilli())
		return nil, err
	}}, false)
}
