//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	trustDomain = "cluster.local"
	// serviceName is how workloads in a cluster would reach the server.
	serviceName = "chancery.chancery-system.svc"
)

// settings are changes of a configuration file, by dotted key.
type settings map[string]any

// server is a running chancery serve.
type server struct {
	config            string // path of its configuration file
	rootFile          string // path of its trust anchors
	roots             *x509.CertPool
	grpc, istio, http string // addresses; istio is empty if that door is closed
	log               *journal
	process           *exec.Cmd
}

// startServer makes an authority, changes its configuration and serves until the test ends.
func startServer(t *testing.T, changes settings) *server {
	t.Helper()
	kube(t) // without it there is no binary either
	dir := filepath.Join(t.TempDir(), "authority")
	mustRun(t, "init", "--dir", dir, "--trust-domain", trustDomain, "--dns", "localhost", "--dns", serviceName, "--ip", "127.0.0.1",
		"--listen-grpc", "127.0.0.1:0", "--listen-http", "127.0.0.1:0")
	s := &server{
		config: filepath.Join(dir, "chancery.yaml"), rootFile: filepath.Join(dir, "pki", "roots.pem"), roots: x509.NewCertPool(), log: newJournal(),
	}
	// tests ask more often than workloads do
	configure(t, s.config, settings{"limits.identity_rate": 0, "limits.node_rate": 0})
	configure(t, s.config, changes)
	s.roots.AppendCertsFromPEM(readFile(t, s.rootFile))

	s.process = exec.Command(shared.binary, "serve", "--config", s.config)
	stderr, err := s.process.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		s.log.read(stderr)
	}()
	t.Cleanup(func() { s.stop(t, read) })
	s.grpc, s.http = s.address(t, "listen.grpc"), s.address(t, "listen.http")
	if changes["istio.listen"] != nil {
		s.istio = s.address(t, "istio.listen")
	}
	return s
}

// stop ends the server as a supervisor does, and looks for tokens in all that it shows and keeps.
func (s *server) stop(t *testing.T, read <-chan struct{}) {
	if s.http != "" { // it got as far as that
		if code, text, err := s.get("/metrics"); err != nil || code != http.StatusOK || leaked(text) {
			t.Errorf("/metrics answers %d (%v), or holds a token", code, err)
		}
	}
	if err := s.process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("stopping the server: %v", err)
	}
	overdue := time.AfterFunc(30*time.Second, func() { _ = s.process.Process.Kill() })
	<-read
	if err := s.process.Wait(); err != nil {
		t.Errorf("the server ended with: %v", err)
	}
	overdue.Stop()
	lines := s.log.all()
	for _, line := range lines {
		if leaked(line) {
			t.Errorf("the log holds a token: %s", line)
		}
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(s.config), "chancery.db*"))
	if err != nil || len(files) == 0 {
		t.Errorf("the ledger has no file: %v", err)
	}
	for _, file := range files {
		if leakedWhole(string(readFile(t, file))) {
			t.Errorf("%s holds a token", file)
		}
	}
	if t.Failed() {
		t.Logf("the end of the server's log:\n%s", strings.Join(lines[max(0, len(lines)-25):], "\n"))
	}
}

// configure changes settings in a configuration file.
func configure(t *testing.T, path string, changes settings) {
	t.Helper()
	var config map[string]any
	if err := yaml.Unmarshal(readFile(t, path), &config); err != nil {
		t.Fatal(err)
	}
	for key, value := range changes {
		section, keys := config, strings.Split(key, ".")
		for _, name := range keys[:len(keys)-1] {
			section = section[name].(map[string]any)
		}
		section[keys[len(keys)-1]] = value
	}
	text, err := yaml.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// address returns the address that the server got for a setting.
func (s *server) address(t *testing.T, setting string) string {
	t.Helper()
	line := s.log.await(t, 20*time.Second, `"msg":"listening"`, `"setting":"`+setting+`"`)
	var entry struct{ Address string }
	if err := json.Unmarshal([]byte(line), &entry); err != nil {
		t.Fatalf("%v in the log line %s", err, line)
	}
	return entry.Address
}

// ready returns the answer of /readyz.
func (s *server) ready(t *testing.T) (code int, body string) {
	t.Helper()
	code, body, err := s.get("/readyz")
	if err != nil {
		t.Fatal(err)
	}
	return code, body
}

func (s *server) get(path string) (code int, body string, err error) {
	client := http.Client{Timeout: 10 * time.Second}
	response, err := client.Get("http://" + s.http + path)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// result is what a command did.
type result struct {
	stdout, stderr string
	code           int
}

// runCommand runs chancery.
func runCommand(t *testing.T, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, shared.binary, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); cmd.ProcessState == nil || ctx.Err() != nil {
		t.Fatalf("chancery %s: %v", args[0], err)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// mustRun runs chancery and returns what it printed.
func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	r := runCommand(t, args...)
	if r.code != 0 {
		t.Fatalf("chancery %s ended with %d:\n%s", strings.Join(args, " "), r.code, r.stderr)
	}
	return r.stdout
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// eventually waits until a condition holds.
func eventually(t *testing.T, within time.Duration, condition func() bool) bool {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, within, true, func(context.Context) (bool, error) { return condition(), nil })
	return err == nil
}
