package sqlite

import (
	"context"
	"errors"
	"fmt"

	modernc "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/chancery-ca/chancery/ca/ledger"
)

// errDamaged is what only an operator can mend.
var errDamaged = errors.New("the ledger file is damaged; stop the server and restore a copy of it, see docs/operations.md")

// damage tells whether SQLite found the file to be no sound database.
func damage(err error) bool {
	return code(err) == sqlite3.SQLITE_CORRUPT || code(err) == sqlite3.SQLITE_NOTADB
}

// fault classifies an error of SQLite. What passes (a full or read-only disk, a lock, an I/O error) becomes
// ledger.ErrUnavailable; a damaged file and every other error stay what they are, since trying again does not help.
func fault(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %w", doing, err)
	case passes(err):
		return fmt.Errorf("%s: %w: %w", doing, ledger.ErrUnavailable, err)
	case damage(err):
		return fmt.Errorf("%s: %w: %w", doing, errDamaged, err)
	default:
		return fmt.Errorf("%s: %w", doing, err)
	}
}

// passes tells whether the same statement can succeed later with the file as it is.
func passes(err error) bool {
	if errors.Is(err, errLost) {
		return true
	}
	switch code(err) {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY,
		sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PERM, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_INTERRUPT:
		return true
	default:
		return false
	}
}

func busy(err error) bool { return code(err) == sqlite3.SQLITE_BUSY }

// takenID tells whether an insert failed because its row id is taken.
func takenID(err error) bool {
	var e *modernc.Error
	return errors.As(err, &e) && (e.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY || e.Code() == sqlite3.SQLITE_CONSTRAINT_ROWID)
}

// code returns SQLite's primary result code, or zero for another error.
func code(err error) int {
	var e *modernc.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}
