// Package regularfile reads the files that a server is configured with: regular files, up to a limit, without ever waiting for one.
//
// A pipe, a device or a directory in the place of a file is refused: reading it could take for ever, or all memory.
package regularfile

import (
	"fmt"
	"io"
	"os"
	"syscall"
)

// Read returns the content of the regular file at path. Errors name the path. A file of more than limit bytes is refused after limit+1 were read.
func Read(path string, limit int64) ([]byte, error) {
	file, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s is longer than the %d bytes that are read", path, limit)
	}
	return data, nil
}

// Open opens the regular file at path for reading. The caller closes it.
func Open(path string) (*os.File, error) {
	// without waiting: the opening of a pipe lasts until somebody writes to it
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file but %s", path, info.Mode().Type())
	}
	if err != nil {
		_ = file.Close() // nothing was read
		return nil, err
	}
	return file, nil
}
