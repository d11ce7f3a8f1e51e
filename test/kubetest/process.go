package kubetest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	readyWait = 3 * time.Minute
	stopWait  = 30 * time.Second
)

// build returns the path of the program test/kube, building it only if no earlier run has.
var build = sync.OnceValues(func() (string, error) {
	root, err := repositoryRoot()
	if err != nil {
		return "", err
	}
	cmd := exec.Command("bash", filepath.Join(root, "test", "kube", "build.sh"))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("building the control plane: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
})

// repositoryRoot goes up from the working directory, which in a test is its package's.
func repositoryRoot() (string, error) {
	wd, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the repository: %w", err)
	}
	for dir := wd; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "test", "kube", "build.sh")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("finding the repository: no test/kube/build.sh above %s", wd)
		}
	}
}

// process is a running kubetest up.
type process struct {
	cmd   *exec.Cmd
	log   string
	ready chan struct{} // closed when it has said that it is ready
	done  chan struct{} // closed when it has ended
}

func startProcess(dir, binary string, args []string) (*process, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	p := &process{
		cmd:   exec.Command(binary, args...),
		log:   filepath.Join(dir, "up.log"),
		ready: make(chan struct{}),
		done:  make(chan struct{}),
	}
	f, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p.cmd.Stderr = f
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.cmd.SysProcAttr = dieWithParent()
	started := make(chan error, 1)
	go func() {
		// The parent-death signal follows the thread that forked, so keep that thread.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		// It prints one line, and only when it is ready.
		if _, err := bufio.NewReader(stdout).ReadString('\n'); err == nil {
			close(p.ready)
		}
		_ = p.cmd.Wait() // ProcessState tells what is to be told
		close(p.done)
	}()
	return p, <-started
}

func (p *process) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	select {
	case <-p.ready:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting until it is ready: %w", ctx.Err())
	case <-p.done:
		b, err := os.ReadFile(p.log)
		return errors.Join(fmt.Errorf("it ended: %v\n%s", p.cmd.ProcessState, b), err)
	}
}

// stop ends the process, and says so if it had ended by itself or does not want to.
func (p *process) stop() error {
	select {
	case <-p.done:
		return fmt.Errorf("it ended by itself: %v", p.cmd.ProcessState)
	default:
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	timeout := time.NewTimer(stopWait)
	defer timeout.Stop()
	select {
	case <-p.done:
		if !p.cmd.ProcessState.Success() {
			return errors.New(p.cmd.ProcessState.String())
		}
		return nil
	case <-timeout.C:
		err := p.cmd.Process.Kill()
		<-p.done
		return errors.Join(fmt.Errorf("killed: still running %v after SIGTERM", stopWait), err)
	}
}
