package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"time"
)

// startAtMost is how long a server of a test may take to start, to log what it should, and to end.
const startAtMost = 30 * time.Second

// raceOptions are for commands that are built with the race detector: without them each sleeps for a second before it ends.
const raceOptions = "atexit_sleep_ms=0"

// running is a server process of a test.
type running struct {
	command    *exec.Cmd
	grpc, http string // where it listens
	exited     chan struct{}

	mu      sync.Mutex
	log     strings.Builder
	changed chan struct{} // closed when the log grows or ends, and then replaced
}

// startServer runs the real binary and waits until it is ready.
func startServer(config, dir string) (*running, error) {
	r := &running{command: exec.Command("chancery", "serve", "--config", config), exited: make(chan struct{}), changed: make(chan struct{})}
	r.command.Dir, r.command.Env = dir, append(os.Environ(), "GORACE="+raceOptions)
	stderr, err := r.command.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := r.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(r.exited)
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			r.note(lines.Text() + "\n")
		}
		_ = r.command.Wait() // its exit code is looked at by whoever asks
		r.note("")
	}()
	if err := r.awaitReady(); err != nil {
		r.kill()
		return nil, err
	}
	return r, nil
}

func (r *running) awaitReady() error {
	for setting, address := range map[string]*string{"listen.grpc": &r.grpc, "listen.http": &r.http} {
		found, err := r.logged(`"setting":"` + setting + `","address":"([^"]+)"`)
		if err != nil {
			return err
		}
		*address = found[1]
	}
	deadline := time.After(startAtMost)
	for {
		answer, err := r.get("/readyz")
		if err == nil {
			return nil
		}
		select {
		case <-r.exited:
			return fmt.Errorf("the server ended:\n%s", r.text())
		case <-deadline:
			return fmt.Errorf("the server is not ready: %w\n%s", err, answer)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (r *running) note(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log.WriteString(line)
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *running) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.String()
}

// logged waits until a pattern is in the log, and returns its groups.
func (r *running) logged(pattern string) ([]string, error) {
	expression, err := regexp.Compile("(?m)" + pattern)
	if err != nil {
		return nil, err
	}
	deadline := time.After(startAtMost)
	for {
		r.mu.Lock()
		text, changed := r.log.String(), r.changed
		r.mu.Unlock()
		if found := expression.FindStringSubmatch(text); found != nil {
			return found, nil
		}
		select {
		case <-changed:
		case <-r.exited:
			if !expression.MatchString(r.text()) {
				return nil, fmt.Errorf("the server ended and %s is not in its log:\n%s", pattern, r.text())
			}
		case <-deadline:
			return nil, fmt.Errorf("%s is not in the log:\n%s", pattern, text)
		}
	}
}

// get returns what the server answers to plain HTTP; another status than 200 is an error.
func (r *running) get(path string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startAtMost)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.http+path, nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(answer.Status)
	}
	return string(body), err
}

// says waits until a page has a text in it: reports of health are a few seconds old.
func (r *running) says(path, text string) error {
	deadline := time.After(startAtMost)
	for {
		body, err := r.get(path)
		if strings.Contains(body, text) {
			return nil
		}
		select {
		case <-deadline:
			return fmt.Errorf("%s says %v:\n%s", path, err, body) //nolint:errorlint // it may be none
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// ends waits until the server has ended, and returns its exit code; -1 if a signal ended it.
func (r *running) ends() (int, error) {
	select {
	case <-r.exited:
		return r.command.ProcessState.ExitCode(), nil
	case <-time.After(startAtMost):
		return 0, fmt.Errorf("the server did not end:\n%s", r.text())
	}
}

func (r *running) signal(signal os.Signal) error { return r.command.Process.Signal(signal) }

// kill ends the server, if it is still there.
func (r *running) kill() {
	_ = r.command.Process.Kill() // it may have ended
	<-r.exited
}
