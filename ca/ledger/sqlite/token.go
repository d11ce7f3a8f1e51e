package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/chancery-ca/chancery/ca/ledger"
)

// keepTokens is how long a token is remembered after it has expired, so that its late use is still told from a guess.
const keepTokens = 30 * 24 * time.Hour

// AddToken implements ledger.Ledger. It also forgets the tokens that expired long ago.
func (l *Ledger) AddToken(ctx context.Context, token ledger.JoinToken) error {
	doing := "adding join token " + token.ID
	if len(token.Hash) == 0 || len(token.UsedBy) > 0 {
		return fmt.Errorf("%s: a new token has a hash and no user", doing)
	}
	hash := bytes.Clone(token.Hash)
	return l.submit(ctx, doing, &request{write: func(g *group) (answer, broken error) { //nolint:contextcheck // what the writer has begun does not end early
		if _, err := g.statements.pruneTokens.exec(g.now().Add(-keepTokens).UnixMilli()); err != nil {
			return nil, err
		}
		added, err := g.statements.addToken.exec(hash, token.ID, token.Identity, token.Created.UnixMilli(), token.Expires.UnixMilli())
		if err == nil && added == 0 {
			answer = ledger.ErrDuplicate
		}
		return answer, err
	}}, false)
}

// Token implements ledger.Ledger. Of a token that was used and has expired it says that it was used.
func (l *Ledger) Token(ctx context.Context, hash []byte, now time.Time) (ledger.JoinToken, error) {
	if err := l.check(); err != nil {
		return ledger.JoinToken{}, wrap("reading a join token", err)
	}
	var created, expires int64
	var usedBy []byte
	token := ledger.JoinToken{Hash: bytes.Clone(hash)}
	err := l.readers.QueryRowContext(ctx, "SELECT id, identity, created, expires, used_by FROM join_tokens WHERE hash = ?", hash).
		Scan(&token.ID, &token.Identity, &created, &expires, &usedBy)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return ledger.JoinToken{}, ledger.ErrTokenGone
	case err != nil:
		return ledger.JoinToken{}, fault("reading a join token", err)
	case usedBy != nil:
		return ledger.JoinToken{}, ledger.ErrTokenUsed
	case expires <= now.UnixMilli():
		return ledger.JoinToken{}, ledger.ErrTokenGone
	}
	token.Created, token.Expires = fromMillis(created), fromMillis(expires)
	return token, nil
}

// consume marks the token of a reservation as used by it. The token must not have expired when the reservation was created.
func (g *group) consume(r *line) (answer, broken error) {
	consumed, err := g.statements.consume.exec([]byte(r.serial), r.token, r.id>>counterBits)
	if err != nil || consumed == 1 {
		return nil, err
	}
	row, err := g.statements.token.row(1, r.token)
	if err != nil {
		return nil, err
	}
	if row != nil && row[0] == int64(1) {
		return ledger.ErrTokenUsed, nil
	}
	return ledger.ErrTokenGone, nil
}
