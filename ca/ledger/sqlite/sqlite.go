// Package sqlite keeps the ledger in one SQLite file, for an authority that runs as a single server.
//
// One process, the server, reserves and settles; a lock beside the file keeps a second one out. Other processes may read the file
// and add join tokens while it runs. Everything that is written goes through one goroutine, which takes all that waits
// into one transaction with one flush to the disk: many callers at once cost little more than one.
//
// Nothing else in a process that has a ledger open may open its file, be it to copy it: closing that descriptor would drop SQLite's
// locks (POSIX locks belong to the process). Take backups from another process, with SQLite's own means.
//
// What was acknowledged survives a crash of the process and, on a disk that flushes when it is told to, of the machine. The package
// never acknowledges a write before it is durable, never repairs a damaged file and never removes a certificate from the roll.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/chancery-ca/chancery/ca/ledger"
)

// Config says how to open a ledger file.
type Config struct {
	// Path is the file, which is made unless it is there; its directory must be. SQLite keeps two more files beside it (-wal,
	// -shm), and the ledger a lock (.lock). It has to be on a local disk.
	Path string
	// ReadOnly opens the file for Get, Find and Token alone, beside whoever else has it open. The file must be there.
	ReadOnly bool
	// Shared opens the file beside its server for everything but Reserve, Commit and Fail: an operator's command adds join tokens so.
	Shared bool
	// Queue is how many writes may wait before new ones are refused as unavailable; zero means 4096. As many Commits and Fails
	// again may wait.
	Queue int
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Logger is told what no caller gets to know; nil means nobody is.
	Logger *slog.Logger
	// Flushed is called by the writer after every transaction, for metrics, and must return at once; nil means nobody is told.
	Flushed func(Flush)
}

// Ledger is a ledger.Ledger in a SQLite file.
type Ledger struct {
	shared  bool
	now     func() time.Time
	readers *sql.DB

	closing chan struct{} // closed by the first Close
	closed  atomic.Bool

	// What follows is nil when the ledger was opened for reading.
	queue    chan *request
	stopped  chan struct{} // closed when the writer has ended and everything is released
	closeErr error         // set before stopped is closed
	counter  atomic.Int64
	writer   *writer
	lock     *lock
}

var _ ledger.Ledger = (*Ledger)(nil)

// Open opens the ledger file, brings its schema up to date and reads back what a crash has left open. The caller closes it.
// When ctx ends, the opening does, not the ledger.
func Open(ctx context.Context, config Config) (*Ledger, error) {
	if config.Queue == 0 {
		config.Queue = 4096
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if config.Flushed == nil {
		config.Flushed = func(Flush) {}
	}
	l, err := open(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("opening ledger %s: %w", config.Path, err)
	}
	return l, nil
}

func open(ctx context.Context, config Config) (*Ledger, error) {
	if config.ReadOnly && config.Shared {
		return nil, errors.New("it is either read-only or shared")
	}
	l := &Ledger{shared: config.Shared, now: config.Now, closing: make(chan struct{})}
	if !config.ReadOnly {
		if err := l.openWriter(config); err != nil { //nolint:contextcheck // a migration does not end early
			return nil, err
		}
	}
	if err := l.openReaders(ctx, config.Path); err != nil {
		return nil, errors.Join(err, l.release())
	}
	if !config.ReadOnly {
		l.queue = make(chan *request, 2*config.Queue)
		l.stopped = make(chan struct{})
		l.writer.queue, l.writer.closing = l.queue, l.closing
		go func() { //nolint:contextcheck // the writer outlives the opening; Close ends it
			defer close(l.stopped)
			l.writer.run()
			l.closeErr = l.release()
		}()
	}
	return l, nil
}

// openWriter takes the lock, opens the writing connection and reads back what is open. On an error it has released everything.
func (l *Ledger) openWriter(config Config) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, l.release())
		}
	}()
	mayMigrate := func() error { return nil }
	patience := serverPatience
	if config.Shared {
		patience = toolPatience
		mayMigrate = func() error {
			if held(config.Path) {
				return errors.New("the server that has it open is older than this program: use that server's version, or upgrade the server")
			}
			return nil
		}
	} else if l.lock, err = acquire(config.Path); err != nil {
		return err
	}
	if err := create(config.Path); err != nil {
		return err
	}
	if err := narrow(config.Path); err != nil {
		return err
	}
	guard, err := newGuard(config.Path, l.lock)
	if err != nil {
		return err
	}
	c, err := connect(config.Path)
	if err != nil {
		return fault("connecting", err)
	}
	l.writer = &writer{conn: c, now: config.Now, log: config.Logger, guard: guard, flushed: config.Flushed,
		patience: patience, timer: time.NewTimer(0)}
	<-l.writer.timer.C
	if err := guard.check(); err != nil {
		return fault("opening the file", err)
	}
	inspect := func() error { return nil } // a tool does not read all of a ledger to add a token
	if !config.Shared {
		inspect = func() error {
			began := time.Now()
			err := quickCheck(c)
			config.Logger.Info("checked the ledger file for damage", "path", config.Path, "took", time.Since(began), "sound", err == nil)
			return err
		}
	}
	fresh, err := prepareFile(c, mayMigrate, inspect)
	if err != nil {
		return err
	}
	if fresh {
		config.Logger.Warn("made a new, empty ledger", "path", config.Path)
	}
	if l.writer.statements, err = prepareAll(c); err != nil {
		return fault("preparing", err)
	}
	if !config.Shared {
		last, err := l.writer.recover()
		if err != nil {
			return fault("reading back what was open", err)
		}
		l.counter.Store(last)
	}
	if err := guard.addLog(config.Path); err != nil {
		return err
	}
	// From here on the writer waits for locks by itself.
	return fault("setting up", c.exec("PRAGMA busy_timeout = 0"))
}

// maxReaders bounds the connections that read.
const maxReaders = 4

func (l *Ledger) openReaders(ctx context.Context, path string) error {
	if _, err := os.Stat(path); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", dsn(path, "ro"))
	if err != nil {
		return fault("connecting", err)
	}
	db.SetMaxOpenConns(maxReaders)
	db.SetMaxIdleConns(maxReaders)
	l.readers = db
	return checkReadable(ctx, db)
}

// Stuck returns how long the oldest write that is not answered has been waiting at now; zero if none is. A server whose disk
// hangs answers nothing, so nothing fails: this is how its liveness check finds out.
func (l *Ledger) Stuck(now time.Time) time.Duration {
	if l.writer == nil {
		return 0
	}
	oldest := l.writer.oldest.Load()
	if oldest == 0 {
		return 0
	}
	return max(now.Sub(time.Unix(0, oldest)), 0)
}

// Close implements ledger.Ledger. Reservations that were not settled stay in the file, and are read back by the next Open.
func (l *Ledger) Close() error {
	first := l.closed.CompareAndSwap(false, true)
	if first {
		close(l.closing)
	}
	switch {
	case l.stopped != nil:
		<-l.stopped
		return l.closeErr
	case first:
		return l.release()
	default:
		return nil
	}
}

// check refuses what comes after Close.
func (l *Ledger) check() error {
	select {
	case <-l.closing:
		return fmt.Errorf("%w: it is closed", ledger.ErrUnavailable)
	default:
		return nil
	}
}

// release closes the connections, and gives the lock up last.
func (l *Ledger) release() error {
	var errs []error
	if l.readers != nil {
		errs = append(errs, l.readers.Close())
	}
	if l.writer != nil {
		l.writer.statements.close()
		errs = append(errs, l.writer.conn.close())
	}
	l.lock.release()
	return errors.Join(errs...)
}
