//go:build e2e

package interop

import (
	"bufio"
	"crypto/x509"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chancery-ca/chancery/ca/pem"
)

const (
	trustDomain = "interop.test"
	identity    = "spiffe://interop.test/ns/web/sa/front"
	otherHost   = "other.interop.test" // that nobody may hold
)

// The names of certificates for servers. localhost is one label, for which some judges have no room.
var (
	dnsNames  = []string{"localhost", "www.interop.test", "a-1.pods.interop.test"}
	addresses = []string{"127.0.0.1", "2001:db8::7"}
)

// grant is the rule by which the identity may hold these names.
const grant = `rules:
  - name: web
    profile: serving
    identity: spiffe://interop.test/ns/web/sa/*
    dns: [localhost, www.interop.test, "*.pods.interop.test"]
    ip: [127.0.0.0/8, "2001:db8::/32"]
`

// bed is a Chancery server of its own, and what it issued.
type bed struct {
	dir     string
	config  string
	address string // of gRPC
	root    *x509.Certificate
}

// binary builds the command once for all tests of the package.
var binary = sync.OnceValues(func() (string, error) {
	var err error
	if binaryFolder, err = os.MkdirTemp("", "chancery-interop-"); err != nil {
		return "", err
	}
	path := filepath.Join(binaryFolder, "chancery")
	build := exec.Command("go", "build", "-o", path, "github.com/chancery-ca/chancery/cmd/chancery")
	build.Stderr = os.Stderr
	return path, build.Run()
})

// binaryFolder is removed after the tests; it is empty if none needed the command.
var binaryFolder string

func TestMain(m *testing.M) {
	code := m.Run()
	if binaryFolder != "" {
		_ = os.RemoveAll(binaryFolder)
	}
	os.Exit(code) //nolint:forbidigo // it is what TestMain is for
}

// newBed makes an authority and serves it until the test ends.
func newBed(t *testing.T) *bed {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatalf("building chancery: %v", err)
	}
	b := &bed{dir: filepath.Join(t.TempDir(), "authority")}
	b.config = filepath.Join(b.dir, "chancery.yaml")
	b.run(t, "init", "--dir", b.dir, "--trust-domain", trustDomain, "--dns", "localhost", "--ip", "127.0.0.1",
		"--listen-grpc", "127.0.0.1:0", "--listen-http", "127.0.0.1:0")
	text, err := os.ReadFile(b.config)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), "\nrules: []\n", "\n"+grant, 1)
	if changed == string(text) {
		t.Fatal("the configuration that chancery init wrote has no empty list of rules to replace")
	}
	writeFile(t, b.config, []byte(changed))
	b.root = readCertificates(t, b.rootFile())[0]
	b.serve(t, path)
	return b
}

func (b *bed) rootFile() string { return filepath.Join(b.dir, "pki", "roots.pem") }

// run runs a command of chancery and returns what it prints.
func (b *bed) run(t *testing.T, args ...string) string {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatalf("building chancery: %v", err)
	}
	return mustRun(t, exec.CommandContext(t.Context(), path, args...))
}

// mustRun returns the standard output of a command that has to succeed.
func mustRun(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", cmd, err, out, stderr.String())
	}
	return string(out)
}

// serve starts the server, learns its address from its log, and stops it when the test ends.
func (b *bed) serve(t *testing.T, path string) {
	t.Helper()
	cmd := exec.Command(path, "serve", "--config", b.config)
	output, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	listening := make(chan string, 1)
	drained := make(chan string, 1)
	go func() {
		var all strings.Builder
		lines := bufio.NewScanner(output)
		for lines.Scan() {
			all.WriteString(lines.Text() + "\n")
			var entry struct{ Msg, Setting, Address string }
			if json.Unmarshal(lines.Bytes(), &entry) == nil && entry.Msg == "listening" && entry.Setting == "listen.grpc" {
				listening <- entry.Address
			}
		}
		drained <- all.String()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
		text := <-drained
		if err := cmd.Wait(); err != nil {
			t.Logf("the server ended with %v; its log:\n%s", err, text)
		}
	})
	select {
	case b.address = <-listening:
	case text := <-drained:
		drained <- text
		t.Fatalf("the server ended before it listened:\n%s", text)
	case <-time.After(time.Minute):
		t.Fatal("the server does not listen after a minute")
	}
}

// token returns a new join token for the identity.
func (b *bed) token(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(b.run(t, "token", "create", "--config", b.config, "--identity", identity))
}

// readCertificates reads PEM by the standard library's parser of certificates: whether ours is right is not asked here.
func readCertificates(t *testing.T, path string) []*x509.Certificate {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := pem.Decode(text, pem.Rules{Labels: []string{"CERTIFICATE"}})
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	certificates := make([]*x509.Certificate, len(blocks))
	for i, block := range blocks {
		if certificates[i], err = x509.ParseCertificate(block.Bytes); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	return certificates
}

// install installs the judges once, and returns the path of Python.
var install = sync.OnceValues(func() (string, error) {
	cmd := exec.Command("./install.sh")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
})

// python returns the Python that has the judges, which are all there when it returns.
func python(t *testing.T) string {
	t.Helper()
	path, err := install()
	if err != nil {
		t.Fatalf("not all judges can be had, so nothing was judged: test/interop/install.sh says: %v (see above)", err)
	}
	return path
}

func writeFile(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
