package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"

	modernc "modernc.org/sqlite"
)

// conn is one connection to the file, for one goroutine. It talks to the driver without database/sql, whose locks and
// conversions would cost the writer about as much again as SQLite's own work. Its calls do not end early: the writer's
// statements are short, and an interrupted one would leave the group's fate unknown.
type conn struct {
	raw  driver.Conn
	args []driver.NamedValue
}

// stmt is a prepared statement of a conn.
type stmt struct {
	conn  *conn
	text  string
	inner driver.Stmt
}

// connect opens path, which must exist, for reading and writing.
func connect(path string) (*conn, error) {
	raw, err := new(modernc.Driver).Open(dsn(path, "rw"))
	if err != nil {
		return nil, err
	}
	return &conn{raw: raw}, nil
}

// dsn names path for SQLite. The mode is "rw" or "ro"; neither creates a file.
func dsn(path, mode string) string {
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	query := url.Values{
		"mode":          {mode},
		"_busy_timeout": {"5000"},
		"_foreign_keys": {"1"},
		"_defensive":    {"1"},
		"_dqs":          {"0"},
		"_error_rc":     {"1"},
	}
	if mode == "ro" {
		query.Set("_query_only", "1")
	}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}).String()
}

func (c *conn) prepare(text string) (*stmt, error) {
	inner, err := c.raw.Prepare(text)
	if err != nil {
		return nil, fmt.Errorf("preparing %q: %w", text, err)
	}
	return &stmt{conn: c, text: text, inner: inner}, nil
}

// exec runs a statement that nobody prepared.
func (c *conn) exec(text string) error {
	execer, ok := c.raw.(driver.ExecerContext)
	if !ok {
		return errors.New("the SQLite driver has no ExecContext")
	}
	_, err := execer.ExecContext(context.Background(), text, nil)
	return err
}

// number returns the first column of the first row of a query that nobody prepared, or zero if there is no row.
func (c *conn) number(text string) (int64, error) {
	s, err := c.prepare(text)
	if err != nil {
		return 0, err
	}
	defer s.close()
	row, err := s.row(1)
	if err != nil || row == nil {
		return 0, err
	}
	n, _ := row[0].(int64)
	return n, nil
}

func (c *conn) close() error { return c.raw.Close() }

func (s *stmt) close() error { return s.inner.Close() }

func (s *stmt) bind(values []any) []driver.NamedValue {
	args := s.conn.args[:0]
	for i, v := range values {
		args = append(args, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	s.conn.args = args
	return args
}

// exec runs the statement and returns how many rows it changed. Values are int64, string, []byte or nil.
func (s *stmt) exec(values ...any) (int64, error) {
	execer, ok := s.inner.(driver.StmtExecContext)
	if !ok {
		return 0, errors.New("the SQLite driver has no ExecContext")
	}
	result, err := execer.ExecContext(context.Background(), s.bind(values))
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// row returns the first row of a query of so many columns, or nil if there is none.
func (s *stmt) row(columns int, values ...any) ([]driver.Value, error) {
	var first []driver.Value
	err := s.rows(columns, func(row []driver.Value) error {
		if first == nil {
			first = append(first, row...)
		}
		return nil
	}, values...)
	return first, err
}

// rows calls each for every row of a query of so many columns; the row is valid until each returns.
func (s *stmt) rows(columns int, each func([]driver.Value) error, values ...any) (err error) {
	queryer, ok := s.inner.(driver.StmtQueryContext)
	if !ok {
		return errors.New("the SQLite driver has no QueryContext")
	}
	rows, err := queryer.QueryContext(context.Background(), s.bind(values))
	if err != nil {
		return err
	}
	defer func() {
		if e := rows.Close(); err == nil {
			err = e
		}
	}()
	row := make([]driver.Value, columns)
	for {
		switch err := rows.Next(row); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := each(row); err != nil {
			return err
		}
	}
}
