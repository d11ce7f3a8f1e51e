//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package sqlite

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

// lock is not to be had here: without flock, nothing would keep a second server from the file.
type lock struct{}

func acquire(string) (*lock, error) {
	return nil, fmt.Errorf("a SQLite ledger cannot be served on %s: it has no flock", runtime.GOOS)
}

func (*lock) info() (os.FileInfo, error) { return nil, errors.ErrUnsupported }

func (*lock) release() {}

func held(string) bool { return true }
