package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// errLost says that what is written would be in files that nobody finds again, or beside another server.
var errLost = errors.New("the ledger file was removed or replaced under the server; put it back or restart")

// guard knows the files that a ledger was opened with. A file that was removed can still be written for as long as it is open, and
// a lock that was removed can be taken a second time: both look like success from the inside.
type guard struct {
	files []guarded
}

type guarded struct {
	path string
	info os.FileInfo
}

// newGuard is called before the file is opened for SQLite, and check after it. A tool has no lock.
func newGuard(path string, l *lock) (*guard, error) {
	g := &guard{}
	if l != nil {
		info, err := l.info()
		if err != nil {
			return nil, err
		}
		g.files = append(g.files, guarded{lockPath(path), info})
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	g.files = append(g.files, guarded{path, info})
	return g, nil
}

// addLog has the guard look after SQLite's files beside the ledger too. SQLite keeps them beside what a symbolic link names.
func (g *guard) addLog(path string) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		info, err := os.Stat(path + suffix)
		if errors.Is(err, fs.ErrNotExist) {
			continue // not yet there, so not open
		}
		if err != nil {
			return err
		}
		g.files = append(g.files, guarded{path + suffix, info})
	}
	return nil
}

// check refuses unless every path still is the file that is open. Inside a transaction that holds the write lock this keeps a
// second server out even when the lock file is removed: it takes a new lock before it writes, so that either its first
// transaction comes after this one, or this one finds the new lock.
func (g *guard) check() error {
	for _, f := range g.files {
		info, err := os.Stat(f.path)
		if err != nil {
			return fmt.Errorf("%w: %w", errLost, err)
		}
		if !os.SameFile(info, f.info) {
			return fmt.Errorf("%w: %s is another file", errLost, f.path)
		}
	}
	return nil
}

func lockPath(path string) string { return path + ".lock" }
