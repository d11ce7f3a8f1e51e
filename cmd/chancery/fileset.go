package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// setFile is one file of a set.
type setFile struct {
	name string
	data []byte
	mode os.FileMode
}

// setPrefix begins the names of the folders that hold sets.
const setPrefix = "..set-"

// dataLink is the link to the folder that holds the current set.
const dataLink = "..data"

// prepareSet makes a directory, unless it is there, and proves that a set can be made in it.
func prepareSet(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // G301: the certificates are public; the key has its own mode
		return err
	}
	folder, err := os.MkdirTemp(dir, setPrefix)
	if err != nil {
		return err
	}
	return os.Remove(folder)
}

// writeSet replaces a set of files in a directory as one step: whoever opens one of them before sees the old set, whoever opens one after sees the
// new, and a crash leaves one of the two. It works as Kubernetes' projected volumes do: each file is a link through "..data", and the
// one rename that counts is that of "..data". Programs that watch the directory for changes of "..data" need not change.
func writeSet(dir string, files []setFile) error {
	folder, err := os.MkdirTemp(dir, setPrefix)
	if err != nil {
		return fmt.Errorf("writing to %s: %w", dir, err)
	}
	current := filepath.Base(folder)
	published := false
	defer func() {
		if !published {
			_ = os.RemoveAll(folder) // nobody refers to it
		}
	}()
	if err := os.Chmod(folder, 0o755); err != nil { //nolint:gosec // G302: the files have modes of their own
		return fmt.Errorf("writing to %s: %w", dir, err)
	}
	for _, file := range files {
		if err := writeFile(filepath.Join(folder, file.name), file.data, file.mode); err != nil {
			return err
		}
	}
	if err := replaceLink(current, filepath.Join(dir, dataLink)); err != nil {
		return err
	}
	published = true
	for _, file := range files {
		path, target := filepath.Join(dir, file.name), filepath.Join(dataLink, file.name)
		if existing, err := os.Readlink(path); err == nil && existing == target {
			continue
		}
		if err := replaceLink(target, path); err != nil {
			return err
		}
	}
	return errors.Join(syncDirectory(dir), removeOldSets(dir, current))
}

// replaceLink lets path be a link to target, as one step.
func replaceLink(target, path string) error {
	temporary := path + ".new"
	if err := os.Remove(temporary); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("linking %s: %w", path, err)
	}
	if err := os.Symlink(target, temporary); err != nil {
		return fmt.Errorf("linking %s: %w", path, err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("linking %s: %w", path, err)
	}
	return nil
}

func removeOldSets(dir, current string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var failed error
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), setPrefix) && entry.Name() != current {
			failed = errors.Join(failed, os.RemoveAll(filepath.Join(dir, entry.Name())))
		}
	}
	return failed
}
