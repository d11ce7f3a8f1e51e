//go:build e2e

package e2e

import (
	"bufio"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// journal keeps the lines of a server's log.
type journal struct {
	mu    sync.Mutex // guards everything below
	lines []string
	ended bool
	more  chan struct{} // closed when something changes
}

func newJournal() *journal { return &journal{more: make(chan struct{})} }

// read takes lines until there are no more.
func (j *journal) read(from io.Reader) {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadString('\n')
		j.mu.Lock()
		if line != "" {
			j.lines = append(j.lines, strings.TrimSuffix(line, "\n"))
		}
		j.ended = err != nil
		close(j.more)
		j.more = make(chan struct{})
		j.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (j *journal) all() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.lines)
}

// with returns the lines that hold all fragments, whether there will be no others, and a channel that is closed when there are more.
func (j *journal) with(fragments ...string) (found []string, ended bool, more <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, line := range j.lines {
		if !slices.ContainsFunc(fragments, func(fragment string) bool { return !strings.Contains(line, fragment) }) {
			found = append(found, line)
		}
	}
	return found, j.ended, j.more
}

// await waits for a line with all fragments and returns the first.
func (j *journal) await(t *testing.T, within time.Duration, fragments ...string) string {
	t.Helper()
	late := time.NewTimer(within)
	defer late.Stop()
	for {
		found, ended, more := j.with(fragments...)
		if len(found) > 0 {
			return found[0]
		}
		if ended {
			t.Fatalf("the server ended and never logged a line with %q:\n%s", fragments, strings.Join(j.all(), "\n"))
		}
		select {
		case <-more:
		case <-late.C:
			t.Fatalf("the server did not log a line with %q within %s:\n%s", fragments, within, strings.Join(j.all(), "\n"))
		}
	}
}
