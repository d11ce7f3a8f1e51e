package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// state is the directory that a control plane lives in. What is there already is kept: keys,
// certificates, the port and etcd's data.
type state struct {
	dir       string
	temporary bool
	lock      *os.File
	port      int // of kube-apiserver; set by prepare
}

// openState opens dir, or makes a temporary directory if dir is empty, and holds it for this
// process alone: two etcds over one directory would destroy it.
func openState(dir string) (*state, error) {
	s := &state{dir: dir, temporary: dir == ""}
	var err error
	if s.temporary {
		s.dir, err = os.MkdirTemp("", "kubetest-")
	} else if s.dir, err = filepath.Abs(dir); err == nil {
		err = os.MkdirAll(s.dir, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("making the state directory: %w", err)
	}
	s.lock, err = os.OpenFile(s.path("lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock: %w", err)
	}
	if err := syscall.Flock(int(s.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("%s is in use: %w", s.dir, err), s.lock.Close())
	}
	return s, nil
}

// close lets go of the directory, and removes it if it is a temporary one.
func (s *state) close() {
	_ = s.lock.Close()
	if s.temporary {
		_ = os.RemoveAll(s.dir)
	}
}

func (s *state) path(name string) string { return filepath.Join(s.dir, name) }

func (s *state) url() string { return "https://127.0.0.1:" + strconv.Itoa(s.port) }

// prepare completes the directory with whatever it lacks. A port of 0 means the last one, or else
// a free one.
func (s *state) prepare(port int) error {
	if err := s.preparePKI(); err != nil {
		return err
	}
	if err := s.preparePort(port); err != nil {
		return err
	}
	for file, pair := range map[string]string{"kubeconfig": "admin", "kcm.kubeconfig": "kcm"} {
		if err := s.writeKubeconfig(file, pair); err != nil {
			return err
		}
	}
	return nil
}

func (s *state) preparePort(port int) error {
	s.port = port
	if s.port == 0 {
		b, err := os.ReadFile(s.path("port"))
		switch {
		case errors.Is(err, os.ErrNotExist):
			s.port, err = freePort()
		case err == nil:
			s.port, err = strconv.Atoi(strings.TrimSpace(string(b)))
		}
		if err != nil {
			return fmt.Errorf("choosing a port: %w", err)
		}
	}
	return writeFile(s.path("port"), []byte(strconv.Itoa(s.port)+"\n"))
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	addr, ok := l.Addr().(*net.TCPAddr)
	if err := l.Close(); err != nil {
		return 0, err
	}
	if !ok {
		return 0, fmt.Errorf("%v is no TCP address", l.Addr())
	}
	return addr.Port, nil
}

// writeKubeconfig writes a kubeconfig for the client certificate called pair.
func (s *state) writeKubeconfig(file, pair string) error {
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- name: kubetest
  cluster: {server: %q, certificate-authority: %q}
users:
- name: %[3]q
  user: {client-certificate: %[4]q, client-key: %[5]q}
contexts:
- name: kubetest
  context: {cluster: kubetest, user: %[3]q}
current-context: kubetest
`, s.url(), s.path("ca.crt"), pair, s.path(pair+".crt"), s.path(pair+".key"))
	return writeFile(s.path(file), []byte(text))
}

// adminClient calls the API server as a member of system:masters.
func (s *state) adminClient() (*http.Client, error) {
	b, err := os.ReadFile(s.path("ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("reading the CA certificate: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(b)
	pair, err := tls.LoadX509KeyPair(s.path("admin.crt"), s.path("admin.key"))
	if err != nil {
		return nil, fmt.Errorf("loading the admin's certificate: %w", err)
	}
	return &http.Client{
		Timeout: 5 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{
			RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13,
		}},
	}, nil
}

// writeFile replaces path in one step.
func writeFile(path string, b []byte) error {
	if err := os.WriteFile(path+".tmp", b, 0o600); err != nil {
		return fmt.Errorf("writing a file: %w", err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return fmt.Errorf("writing a file: %w", err)
	}
	return nil
}
