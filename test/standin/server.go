package standin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// readyWithin is how long a server may take until it is ready.
const readyWithin = 20 * time.Second

// Server is a running server.
type Server struct {
	authority *Authority
	command   *exec.Cmd
	log       string // file
	exited    chan struct{}
}

// Start starts a server, with its log in server.log. It does not wait until it is ready.
func (a *Authority) Start() (*Server, error) {
	s := &Server{
		authority: a, command: exec.Command(a.Binary, "serve", "--config", a.Config), log: filepath.Join(a.Dir, "server.log"), exited: make(chan struct{}),
	}
	log, err := os.Create(s.log)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the server has it open
	s.command.Stderr = log
	s.command.SysProcAttr = dieWithParent()
	if err := s.command.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = s.command.Wait() // whoever ended it knows how; Log has the rest
		close(s.exited)
	}()
	return s, nil
}

// Pid returns the process's number.
func (s *Server) Pid() int { return s.command.Process.Pid }

// Exited is closed when the process has ended.
func (s *Server) Exited() <-chan struct{} { return s.exited }

// Ready waits until the server says that it is ready.
func (s *Server) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		if s.ready(ctx) {
			return nil
		}
		select {
		case <-s.exited:
			return s.ended()
		case <-ctx.Done():
			return fmt.Errorf("the server did not get ready: %w", ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (s *Server) ready(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.authority.HTTP+"/readyz", nil)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = answer.Body.Close() // nothing is read
	return answer.StatusCode == http.StatusOK
}

// Kill ends the server as a crash does, and waits for its end.
func (s *Server) Kill() error {
	err := s.command.Process.Kill()
	<-s.exited
	if errors.Is(err, os.ErrProcessDone) {
		return s.ended()
	}
	return err
}

// Stop lets the server finish its work and waits for its end, which has to be a good one.
func (s *Server) Stop() error {
	_ = s.command.Process.Signal(syscall.SIGTERM) // it may have ended by itself; its exit code says so
	<-s.exited
	if !s.command.ProcessState.Success() {
		return s.ended()
	}
	return nil
}

// ended says that the server has ended by itself, and what it said last.
func (s *Server) ended() error {
	text, err := os.ReadFile(s.log)
	return errors.Join(fmt.Errorf("the server ended: %s\n%s", s.command.ProcessState, text[max(0, len(text)-4<<10):]), err)
}
