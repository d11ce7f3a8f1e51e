// Package kubetest gives a test a Kubernetes control plane of its own: etcd, the API server and its
// controllers, all real, and ready in a few seconds. The program that it runs is test/kube.
//
// There is no kubelet and no scheduler, so nothing here ever starts a container: Pod writes the
// status of a running pod itself. Tests that use this package carry the build tag e2e.
package kubetest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Cluster is a control plane that lives as long as the test that started it.
type Cluster struct {
	Dir        string               // all state: keys, certificates, etcd's data, logs
	Kubeconfig string               // path of the kubeconfig of a member of system:masters
	Config     *rest.Config         // the same, and without a client-side rate limit; copy it before a change
	Client     kubernetes.Interface // made from Config
	Issuer     string               // of service account tokens
	Binary     string               // path of the program; a link to it called kubectl is kubectl

	args    []string
	running *process // nil while stopped
}

// Option changes how Start starts a control plane.
type Option func(*options)

type options struct {
	up             []string // flags of kubetest up
	issuer         string   // empty: the API server's URL
	apiServerFlags []string
	audit          bool
}

// APIServerFlags adds command-line flags of kube-apiserver.
func APIServerFlags(flags ...string) Option {
	return func(o *options) { o.apiServerFlags = append(o.apiServerFlags, flags...) }
}

// EmulatedVersion makes the control plane behave like an older one, for example "1.36".
func EmulatedVersion(version string) Option {
	return func(o *options) { o.up = append(o.up, "--emulated-version="+version) }
}

// Issuer sets the issuer of service account tokens, which is the API server's URL otherwise.
func Issuer(url string) Option {
	return func(o *options) {
		o.up = append(o.up, "--issuer="+url)
		o.issuer = url
	}
}

// Controllers replaces the list of controllers that kube-controller-manager runs.
func Controllers(names ...string) Option {
	return func(o *options) { o.up = append(o.up, "--controllers="+strings.Join(names, ",")) }
}

// AuditLog has the API server write down what service accounts ask it, for Requests.
func AuditLog() Option {
	return func(o *options) { o.audit = true }
}

// WithoutControllers runs no kube-controller-manager.
func WithoutControllers() Option {
	return func(o *options) { o.up = append(o.up, "--kcm=false") }
}

// Start runs a control plane until the test ends, and returns when it is ready. The first time ever
// on a machine it builds one, which takes about ten minutes: `make e2e` does that beforehand.
func Start(t testing.TB, opts ...Option) *Cluster {
	t.Helper()
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	binary, err := build()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "kube")
	c := &Cluster{
		Dir:        dir,
		Kubeconfig: filepath.Join(dir, "kubeconfig"),
		Binary:     binary,
	}
	c.args = append([]string{"up", "--dir=" + dir}, o.up...)
	// Without it an API server that has watches waits for them when it is to stop.
	c.args = append(append(c.args, "--", "--shutdown-watch-termination-grace-period=1s"), o.apiServerFlags...)
	if o.audit {
		flags, err := c.auditFlags()
		if err != nil {
			t.Fatalf("preparing the audit log: %v", err)
		}
		c.args = append(c.args, flags...)
	}
	t.Cleanup(func() {
		c.Stop(t)
		if t.Failed() {
			c.logTails(t)
		}
	})
	c.StartAgain(t)

	c.Config, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		t.Fatalf("loading the kubeconfig: %v", err)
	}
	c.Config.QPS = -1 // the default of 5 requests a second would slow tests down
	c.Client, err = kubernetes.NewForConfig(c.Config)
	if err != nil {
		t.Fatalf("making a client: %v", err)
	}
	if c.Issuer = o.issuer; c.Issuer == "" {
		c.Issuer = c.Config.Host
	}
	return c
}

// Stop ends the control plane, as an outage would, and keeps its state. It does nothing if it is
// stopped already.
func (c *Cluster) Stop(t testing.TB) {
	t.Helper()
	if c.running == nil {
		return
	}
	if err := c.running.stop(); err != nil {
		t.Errorf("stopping the control plane: %v", err)
	}
	c.running = nil
}

// StartAgain runs a stopped control plane with the state that it had: the same URL, keys and objects.
func (c *Cluster) StartAgain(t testing.TB) {
	t.Helper()
	if c.running != nil {
		t.Fatal("the control plane runs already")
	}
	p, err := startProcess(c.Dir, c.Binary, c.args)
	if err != nil {
		t.Fatalf("starting a control plane: %v", err)
	}
	c.running = p
	if err := p.waitReady(t.Context()); err != nil {
		t.Fatalf("starting a control plane: %v", err)
	}
}

// Kubectl runs kubectl as a member of system:masters and returns what it prints. A command that
// fails fails the test.
func (c *Cluster) Kubectl(t testing.TB, args ...string) string {
	t.Helper()
	cmd := c.KubectlCommand(t.Context(), args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

// KubectlCommand is for what Kubectl cannot do: standard input, and commands that are to fail.
func (c *Cluster) KubectlCommand(ctx context.Context, args ...string) *exec.Cmd {
	all := append([]string{"kubectl", "--kubeconfig=" + c.Kubeconfig, "--cache-dir=" + filepath.Join(c.Dir, "kubectl")}, args...)
	return exec.CommandContext(ctx, c.Binary, all...)
}

func (c *Cluster) logTails(t testing.TB) {
	logs, err := filepath.Glob(filepath.Join(c.Dir, "*.log"))
	if err != nil {
		t.Logf("looking for logs: %v", err)
	}
	for _, log := range logs {
		b, err := os.ReadFile(log)
		if err != nil {
			t.Logf("reading a log: %v", err)
			continue
		}
		t.Logf("the end of %s:\n%s", filepath.Base(log), b[max(0, len(b)-2000):])
	}
}
