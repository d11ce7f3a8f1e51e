package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

const (
	stopWait = 10 * time.Second
	logTail  = 4000 // bytes of a log that an error shows
)

// child is another subcommand of this executable, running.
type child struct {
	name string
	log  string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// startChild runs this executable with args, and appends what it prints to the file log.
func startChild(log string, args []string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this executable: %w", err)
	}
	f, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening a log: %w", err)
	}
	defer f.Close()
	c := &child{name: args[0], log: log, cmd: exec.Command(self, args...), done: make(chan struct{})}
	c.cmd.Stdout, c.cmd.Stderr = f, f
	c.cmd.SysProcAttr = dieWithParent()
	started := make(chan error, 1)
	go func() {
		// The kernel's parent-death signal follows the thread that forked, not the process, so
		// that thread has to live as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.cmd.Start()
		started <- err
		if err == nil {
			_ = c.cmd.Wait() // ended reports the exit status
			close(c.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.name, err)
	}
	return c, nil
}

// stop asks the child to end, insists after a while, and returns when it has.
func (c *child) stop() {
	_ = c.cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	timeout := time.NewTimer(stopWait)
	defer timeout.Stop()
	select {
	case <-c.done:
	case <-timeout.C:
		_ = c.cmd.Process.Kill()
		<-c.done
	}
}

// ended says how the child ended, with the end of its log. It must have ended.
func (c *child) ended() error {
	b, err := os.ReadFile(c.log)
	if err != nil {
		return fmt.Errorf("%s ended: %v; reading its log: %w", c.name, c.cmd.ProcessState, err)
	}
	return fmt.Errorf("%s ended: %v; the end of %s:\n%s", c.name, c.cmd.ProcessState, c.log, b[max(0, len(b)-logTail):])
}

// waitOK returns when url answers 200, or with an error when the child or ctx ends or limit is over.
func (c *child) waitOK(ctx context.Context, client *http.Client, url string, limit time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		last := get(waiting, client, url)
		if last == nil {
			return nil
		}
		select {
		case <-c.done:
			return c.ended()
		case <-waiting.Done():
			return fmt.Errorf("waiting for %s: %w; its last answer: %w", url, waiting.Err(), last)
		case <-tick.C:
		}
	}
}

func get(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("HTTP status %s", resp.Status)
	}
	return nil
}
