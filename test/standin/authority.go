package standin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
)

// Build builds the real binary from this tree into a directory, as releases are built, and returns its path.
func Build(ctx context.Context, dir string) (string, error) {
	binary := filepath.Join(dir, "chancery")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", binary, "github.com/chancery-ca/chancery/cmd/chancery")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building chancery: %w\n%s", err, out)
	}
	return binary, nil
}

// Authority is a new authority on disk. Its servers, one at a time, listen on the same addresses.
type Authority struct {
	Binary string
	Dir    string
	Config string // file, for --config
	GRPC   string // address
	HTTP   string // address
	Root   *x509.Certificate
}

// Unlimited is the limits section of a bed whose few callers ask as often as they can.
const Unlimited = "limits:\n  identity_rate: 0\n  node_rate: 0\n"

// Init makes an authority in a directory with chancery init, and lets it take tokens that an API reviews. limits is the configuration's section of that name,
// or empty.
func Init(ctx context.Context, binary, dir, limits string, api *API) (*Authority, error) {
	a := &Authority{Binary: binary, Dir: dir, Config: filepath.Join(dir, "standin.yaml")}
	for _, address := range []*string{&a.GRPC, &a.HTTP} {
		var err error
		if *address, err = freeAddress(); err != nil {
			return nil, err
		}
	}
	if out, err := exec.CommandContext(ctx, binary, "init", "--dir", dir, "--trust-domain", "standin.test").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("chancery init: %w\n%s", err, out)
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	config := fmt.Sprintf("trust_domain: standin.test\nlisten:\n  grpc: %s\n  http: %s\n%s"+
		"authentication:\n  kubernetes:\n    enabled: true\n    kubeconfig: %s\n", a.GRPC, a.HTTP, limits, kubeconfig)
	if err := errors.Join(os.WriteFile(kubeconfig, api.Kubeconfig(), 0o600), os.WriteFile(a.Config, []byte(config), 0o600)); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "pki", "roots.pem"))
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("chancery init wrote no root")
	}
	a.Root, err = x509.ParseCertificate(block.Bytes)
	return a, err
}

// TLS returns the configuration of a client that believes the authority alone.
func (a *Authority) TLS() *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(a.Root)
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
