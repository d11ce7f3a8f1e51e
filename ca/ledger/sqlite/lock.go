//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package sqlite

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// lock is held by the one process that reserves and settles, for as long as its ledger is open: it alone knows which reservations
// are still open, so a second one would take them for the leavings of a crash. The kernel drops the lock with the process. It
// is on a file of its own, since SQLite's locks on the ledger would be lost with any other descriptor of it that is closed.
type lock struct {
	file *os.File
}

// acquire takes the lock for the ledger at path, or refuses at once.
func acquire(path string) (*lock, error) {
	for range 100 {
		l, err := acquireOnce(path)
		if err != nil {
			return nil, err
		}
		if l.current() {
			return l, nil
		}
		l.release()
	}
	return nil, fmt.Errorf("%s is being replaced all the time", lockPath(path))
}

func acquireOnce(path string) (*lock, error) {
	file, err := os.OpenFile(lockPath(path), os.O_RDWR|os.O_CREATE, 0o600) // #nosec G304 -- the operator's own path
	if err != nil {
		return nil, fmt.Errorf("opening the lock file: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer file.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("locking %s: %w", file.Name(), err)
		}
		return nil, fmt.Errorf("%s is in use by another server%s: only one may write a ledger file", path, holder(file))
	}
	l := &lock{file: file}
	if err := l.sign(); err != nil {
		l.release()
		return nil, fmt.Errorf("writing %s: %w", file.Name(), err)
	}
	return l, nil
}

// current tells whether the locked file still is the one that the next server would lock.
func (l *lock) current() bool {
	ours, err := l.info()
	if err != nil {
		return false
	}
	theirs, err := os.Stat(l.file.Name())
	return err == nil && os.SameFile(ours, theirs)
}

func (l *lock) info() (os.FileInfo, error) { return l.file.Stat() }

// sign writes who holds the lock, for the one that is refused.
func (l *lock) sign() error {
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err := l.file.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0)
	return err
}

// release gives the lock up. The file stays: to remove it would let two processes lock two files of one name.
func (l *lock) release() {
	if l != nil {
		_ = l.file.Close() // nothing that was written matters
	}
}

// held tells whether a process holds the lock for the ledger at path.
func held(path string) bool {
	file, err := os.Open(lockPath(path)) // #nosec G304 -- the operator's own path
	if err != nil {
		return false
	}
	defer file.Close()
	return syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) != nil
}

func holder(file *os.File) string {
	pid, err := io.ReadAll(io.LimitReader(file, 16))
	if err != nil || len(pid) == 0 {
		return ""
	}
	return " (process " + strings.TrimSpace(string(pid)) + ")"
}
