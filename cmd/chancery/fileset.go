package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// prepareSet makes a directory, unless it is there, and proves that a set of files with these names can be put in it.
func prepareSet(dir string, names []string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // G301: the certificates are public; the key has its own mode
		return err
	}
	for _, name := range append([]string{dataLink}, names...) {
		path := filepath.Join(dir, name)
		if info, err := os.Lstat(path); err == nil && info.IsDir() {
			return fmt.Errorf("%s is a directory, where a file has to be; remove it or choose another --out", path)
		}
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
	var names []string
	for _, file := range files {
		names = append(names, file.name)
		path, target := filepath.Join(dir, file.name), filepath.Join(dataLink, file.name)
		if existing, err := os.Readlink(path); err == nil && existing == target {
			continue
		}
		if err := replaceLink(target, path); err != nil {
			return err
		}
	}
	return errors.Join(syncDirectory(dir), removeOldSets(dir, current, names))
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

// removeOldSets removes the folders of earlier sets: those that hold nothing but files of the set's names. What somebody else put there stays.
func removeOldSets(dir, current string, names []string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var failed error
	for _, entry := range entries {
		folder := filepath.Join(dir, entry.Name())
		if !entry.IsDir() || !strings.HasPrefix(entry.Name(), setPrefix) || entry.Name() == current || !holdsOnly(folder, names) {
			continue
		}
		failed = errors.Join(failed, os.RemoveAll(folder))
	}
	return failed
}

func holdsOnly(folder string, names []string) bool {
	entries, err := os.ReadDir(folder)
	return err == nil && !slices.ContainsFunc(entries, func(entry os.DirEntry) bool {
		// a write that was interrupted has left a file of the form .NAME-NUMBER
		return !slices.ContainsFunc(names, func(name string) bool { return entry.Name() == name || strings.HasPrefix(entry.Name(), "."+name+"-") })
	})
}
