package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	sqlite3 "modernc.org/sqlite/lib"
)

// applicationID marks the file as ours: "CHNC", in the header field that SQLite keeps for it.
const applicationID = 0x43484e43

//go:embed migrations/*.sql
var migrations embed.FS

// steps returns the migrations in order. The n-th, counted from one, brings a file to schema n.
func steps() ([]string, error) {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	texts := make([]string, len(names))
	for i, name := range names {
		text, err := migrations.ReadFile(name)
		if err != nil {
			return nil, err
		}
		texts[i] = string(text)
	}
	return texts, nil
}

// header is what tells whether a file is a ledger, and of which schema.
type header struct {
	application int64
	version     int64
	tables      int64
}

// judge refuses a file that is not a ledger or is newer than this program. It returns how many of the migrations the file has had.
func (h header) judge(known int) (int, error) {
	fresh := h == header{}
	switch {
	case h.application != applicationID && !fresh:
		return 0, errors.New("the file is a SQLite database, but not a Chancery ledger")
	case h.version > int64(known):
		return 0, fmt.Errorf("the ledger has schema %d, written by a newer Chancery; this one knows up to schema %d: upgrade it, or use the newer one",
			h.version, known)
	default:
		return int(h.version), nil
	}
}

// headerOf reads the header with number, which returns the first column of a query.
func headerOf(number func(query string) (int64, error)) (h header, err error) {
	for query, field := range map[string]*int64{
		"PRAGMA application_id":              &h.application,
		"PRAGMA user_version":                &h.version,
		"SELECT count(*) FROM sqlite_schema": &h.tables,
	} {
		if *field, err = number(query); err != nil {
			if code(err) == sqlite3.SQLITE_NOTADB {
				return h, fmt.Errorf("the file is not a Chancery ledger: %w", err)
			}
			return h, fault("reading the header", err)
		}
	}
	return h, nil
}

// create makes an empty file at path, for its owner alone, unless there is one. SQLite gives the files beside it the same mode.
func create(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600) // #nosec G304 -- the operator's own path
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	directory, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer directory.Close()
	return directory.Sync()
}

// narrow takes everyone but the owner off the ledger's files. It does not open them: to close a descriptor of a file that SQLite has
// locked would drop the lock.
func narrow(path string) error {
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Chmod(path+suffix, 0o600); err != nil && (suffix == "" || !errors.Is(err, fs.ErrNotExist)) {
			return err
		}
	}
	return nil
}

// prepareFile brings the file behind c to the latest schema and sets the connection up for writing. Without mayMigrate it
// refuses a file of another schema. It calls inspect before it changes anything, and tells whether the file was empty.
func prepareFile(c *conn, mayMigrate, inspect func() error) (fresh bool, err error) {
	texts, err := steps()
	if err != nil {
		return false, err
	}
	h, err := headerOf(c.number)
	if err != nil {
		return false, err
	}
	version, err := h.judge(len(texts))
	if err != nil {
		return false, err
	}
	fresh = h == header{}
	if version < len(texts) {
		if err := mayMigrate(); err != nil {
			return fresh, err
		}
	}
	if err := inspect(); err != nil {
		return fresh, err
	}
	for _, pragma := range []string{
		// WAL: readers do not wait for the writer. FULL: a commit is on the disk before it returns.
		"PRAGMA journal_mode = WAL",
		"PRAGMA synchronous = FULL",
		// A checkpoint every 8000 pages of 4 KiB: the log is then used again from its start, so it stays near 32 MiB. More often
		// costs more: a page that changed many times meanwhile is copied once.
		"PRAGMA wal_autocheckpoint = 8000",
		"PRAGMA journal_size_limit = 67108864",
		// 8 MiB. SQLite looks at every slot of the cache's table after each commit once an index has been rebalanced, so a larger
		// cache costs more than the reads that it saves, which the kernel's cache answers.
		"PRAGMA cache_size = -8192",
	} {
		if err := c.exec(pragma); err != nil {
			return fresh, fault("setting up", err)
		}
	}
	if version < len(texts) {
		return fresh, migrate(c, texts)
	}
	return fresh, nil
}

// quickCheck reads the whole file, and refuses it at the first page that is damaged.
func quickCheck(c *conn) error {
	s, err := c.prepare("PRAGMA quick_check(1)")
	if err != nil {
		return fault("checking the file", err)
	}
	defer s.close()
	row, err := s.row(1)
	if err != nil {
		return fault("checking the file", err)
	}
	if len(row) == 0 || row[0] != "ok" {
		return fmt.Errorf("checking the file: %w: %v", errDamaged, row)
	}
	return nil
}

// migrate applies what is missing, all in one transaction. It looks at the version again inside it: another process may have been
// faster.
func migrate(c *conn, texts []string) error {
	if err := c.exec("BEGIN IMMEDIATE"); err != nil {
		return fault("starting the migration", err)
	}
	version, err := c.number("PRAGMA user_version")
	script := strings.Builder{}
	for i := int(version); err == nil && i < len(texts); i++ {
		script.WriteString(texts[i])
	}
	fmt.Fprintf(&script, ";\nPRAGMA application_id = %d;\nPRAGMA user_version = %d;\nCOMMIT", applicationID, len(texts))
	if err == nil {
		err = c.exec(script.String())
	}
	if err != nil {
		return fault("migrating the schema", errors.Join(err, ignoreRolledBack(c.exec("ROLLBACK"))))
	}
	return nil
}

// ignoreRolledBack drops the answer of a ROLLBACK whose transaction SQLite had ended by itself.
func ignoreRolledBack(err error) error {
	if code(err) == sqlite3.SQLITE_ERROR {
		return nil
	}
	return err
}

// checkReadable refuses a file that a reader of this program does not understand.
func checkReadable(ctx context.Context, db *sql.DB) error {
	texts, err := steps()
	if err != nil {
		return err
	}
	h, err := headerOf(func(query string) (n int64, err error) {
		err = db.QueryRowContext(ctx, query).Scan(&n)
		return n, err
	})
	if err != nil {
		return err
	}
	version, err := h.judge(len(texts))
	if err == nil && version < len(texts) {
		err = fmt.Errorf("the ledger has schema %d, and this program reads schema %d: start this version's server once to bring it up to date",
			version, len(texts))
	}
	return err
}
