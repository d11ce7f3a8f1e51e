//go:build e2e

// Package e2e tests Chancery as it runs beside a cluster: the built binary with a configuration file, and a real API server that says
// which tokens are good. The server has an account that may create token reviews and nothing else.
package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/chancery-ca/chancery/test/kubetest"
)

// shared is what all tests of a run use; err says why there is nothing to use.
var shared struct {
	binary  string // chancery
	cluster *kubetest.Cluster
	err     error

	second func() (*kubetest.Cluster, error) // started by the first test that needs it
}

func TestMain(m *testing.M) {
	t := &mainTB{}
	defer t.finish()
	t.run(func() {
		shared.binary = filepath.Join(t.TempDir(), "chancery")
		build := exec.Command("go", "build", "-o", shared.binary, "github.com/chancery-ca/chancery/cmd/chancery")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("building chancery: %v\n%s", err, out)
		}
		shared.cluster = kubetest.Start(t, kubetest.AuditLog())
	})
	shared.err = t.err
	shared.second = sync.OnceValues(func() (c *kubetest.Cluster, err error) {
		t.run(func() { c = kubetest.Start(t, kubetest.AuditLog()) })
		return c, t.err
	})
	m.Run()
}

// kube returns the control plane that the tests share.
func kube(t testing.TB) *kubetest.Cluster {
	t.Helper()
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.cluster
}

// secondKube returns another control plane with another issuer, which the tests that need two share.
func secondKube(t testing.TB) *kubetest.Cluster {
	t.Helper()
	kube(t)
	c, err := shared.second()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// mainTB is the testing.TB of TestMain, which has none. It has the methods that kubetest.Start needs.
type mainTB struct {
	testing.TB // nil
	cleanups   []func()
	err        error
}

// run runs f, which may end itself by Fatal.
func (t *mainTB) run(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

func (t *mainTB) finish() {
	for _, f := range slices.Backward(t.cleanups) {
		t.run(f)
	}
}

func (t *mainTB) Helper()                         {}
func (t *mainTB) Context() context.Context        { return context.Background() }
func (t *mainTB) Cleanup(f func())                { t.cleanups = append(t.cleanups, f) }
func (t *mainTB) Failed() bool                    { return t.err != nil }
func (t *mainTB) Logf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

func (t *mainTB) TempDir() string {
	dir, err := os.MkdirTemp("", "chancery-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("removing %s: %v", dir, err)
		}
	})
	return dir
}

func (t *mainTB) Errorf(format string, args ...any) {
	t.err = fmt.Errorf(format, args...)
	t.Logf("%v", t.err)
}

func (t *mainTB) Fatalf(format string, args ...any) {
	t.Errorf(format, args...)
	runtime.Goexit()
}

func (t *mainTB) Fatal(args ...any) { t.Fatalf("%s", fmt.Sprint(args...)) }
