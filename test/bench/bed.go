package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// bed is a server with everything that it needs, in a folder that goes away.
type bed struct {
	dir      string
	address  string
	root     *x509.Certificate
	api      *httptest.Server
	server   *exec.Cmd
	reviews  atomic.Int64
	exited   chan struct{}
	exitText error
}

func newBed(ctx context.Context, o options) (b *bed, err error) {
	dir, err := os.MkdirTemp("", "chancery-bench-")
	if err != nil {
		return nil, err
	}
	b = &bed{dir: dir, exited: make(chan struct{})}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	binary := o.binary
	if binary == "" {
		binary = filepath.Join(dir, "chancery")
		build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", binary, "github.com/chancery-ca/chancery/cmd/chancery")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return b, fmt.Errorf("building chancery: %w\n%s", err, out)
		}
	}
	if err := b.startAPI(); err != nil {
		return b, err
	}
	return b, b.startServer(ctx, binary)
}

// startAPI serves TokenReviews: every token of ours is good, and says itself whose it is.
func (b *bed) startAPI() error {
	b.api = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review authv1.TokenReview
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		b.reviews.Add(1)
		w.Header().Set("Content-Type", "application/json")
		review.TypeMeta = metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenReview"}
		var claims tokenClaims
		parts := strings.Split(review.Spec.Token, ".")
		payload, err := base64.RawURLEncoding.DecodeString(parts[len(parts)/2])
		if err != nil || json.Unmarshal(payload, &claims) != nil {
			w.WriteHeader(http.StatusCreated)
			_ = json.NewEncoder(w).Encode(review) // not authenticated: the server's probe
			return
		}
		k := claims.Kubernetes
		review.Status = authv1.TokenReviewStatus{
			Authenticated: true,
			Audiences:     []string{"chancery"},
			User: authv1.UserInfo{
				Username: claims.Subject, UID: k.ServiceAccount.UID,
				Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + k.Namespace, "system:authenticated"},
				Extra: map[string]authv1.ExtraValue{
					"authentication.kubernetes.io/pod-name":      {k.Pod.Name},
					"authentication.kubernetes.io/pod-uid":       {k.Pod.UID},
					"authentication.kubernetes.io/node-name":     {k.Node.Name},
					"authentication.kubernetes.io/node-uid":      {k.Node.UID},
					"authentication.kubernetes.io/credential-id": {"JTI=" + claims.ID},
				},
			},
		}
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(review) // the client has gone if this fails
	}))
	kubeconfig := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}]\n"+
		"users: [{name: u, user: {token: stand-in}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\n",
		b.api.URL, base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: b.api.Certificate().Raw})))
	return os.WriteFile(filepath.Join(b.dir, "kubeconfig"), []byte(kubeconfig), 0o600)
}

func (b *bed) startServer(ctx context.Context, binary string) error {
	grpcAddress, err := freeAddress()
	if err != nil {
		return err
	}
	httpAddress, err := freeAddress()
	if err != nil {
		return err
	}
	ca := filepath.Join(b.dir, "ca")
	init := exec.CommandContext(ctx, binary, "init", "--dir", ca, "--trust-domain", "bench.test", "--ip", "127.0.0.1", "--listen-grpc", grpcAddress, "--listen-http", httpAddress)
	if out, err := init.CombinedOutput(); err != nil {
		return fmt.Errorf("chancery init: %w\n%s", err, out)
	}
	path := filepath.Join(ca, "chancery.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text = []byte(strings.Replace(string(text), "kubeconfig: \"\"", "kubeconfig: "+filepath.Join(b.dir, "kubeconfig"), 1))
	start := strings.Index(string(text), "  kubernetes:\n")
	if start < 0 {
		return errors.New("the configuration has no kubernetes section")
	}
	text = []byte(string(text[:start]) + strings.Replace(string(text[start:]), "enabled: false", "enabled: true", 1))
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return err
	}
	rootText, err := os.ReadFile(filepath.Join(ca, "pki", "roots.pem"))
	if err != nil {
		return err
	}
	block, _ := pem.Decode(rootText)
	if b.root, err = x509.ParseCertificate(block.Bytes); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(b.dir, "server.log"))
	if err != nil {
		return err
	}
	b.address = grpcAddress
	b.server = exec.Command(binary, "serve", "--config", path)
	b.server.Stderr = log
	b.server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := b.server.Start(); err != nil {
		return err
	}
	go func() {
		b.exitText = b.server.Wait()
		close(b.exited)
	}()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		select {
		case <-b.exited:
			out, _ := os.ReadFile(log.Name())
			return fmt.Errorf("the server ended: %w\n%s", b.exitText, out)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
		if answer, err := http.Get("http://" + httpAddress + "/readyz"); err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
	}
	return errors.New("the server did not get ready within 20 s")
}

// serverCPU returns the CPU time that the server has used, user and system.
func (b *bed) serverCPU() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", b.server.Process.Pid))
	if err != nil {
		return 0, err
	}
	// fields 14 and 15, counted after the command's closing parenthesis, in ticks of 10 ms (proc(5))
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	const utime, stime, tick = 11, 12, 10 * time.Millisecond
	user, err := strconv.ParseInt(fields[utime], 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(fields[stime], 10, 64)
	if err != nil {
		return 0, err
	}
	return time.Duration(user+system) * tick, nil
}

func (b *bed) close() {
	if b.server != nil && b.server.Process != nil {
		_ = b.server.Process.Signal(syscall.SIGTERM) // it may have ended by itself
		<-b.exited
	}
	if b.api != nil {
		b.api.Close()
	}
	_ = os.RemoveAll(b.dir) // a temporary folder
}

func (b *bed) tls() *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(b.root)
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func randomSerial() (*big.Int, error) {
	return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 158))
}
