package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// maxInput bounds what is read of a file or of standard input.
const maxInput = 4 << 20

// readInput reads a file, or standard input for "-".
func readInput(path string, stdin io.Reader) ([]byte, error) {
	in := stdin
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, usageError{err}
		}
		defer file.Close()
		in = file
	}
	data, err := io.ReadAll(io.LimitReader(in, maxInput+1))
	if err != nil {
		return nil, usageError{fmt.Errorf("reading %s: %w", path, err)}
	}
	if len(data) > maxInput {
		return nil, refusedError{fmt.Errorf("%s is longer than %d bytes", path, maxInput)}
	}
	return data, nil
}

// writeFile writes a new or replaced file as one step: who reads it sees the old content or the new, never a part.
func writeFile(path string, data []byte, mode os.FileMode) error {
	dir := filepath.Dir(path)
	file, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer os.Remove(file.Name()) // it is gone if all went well
	_, writeErr := file.Write(data)
	if err := errors.Join(writeErr, file.Chmod(mode), file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return syncDirectory(dir)
}

func syncDirectory(dir string) error {
	directory, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("writing to %s: %w", dir, err)
	}
	return errors.Join(directory.Sync(), directory.Close())
}
