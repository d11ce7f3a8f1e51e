//go:build e2e

package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
)

// TestIstioAgents has unmodified agents' calls answered.
func TestIstioAgents(t *testing.T) {
	s, w := startServer(t, kubernetesSettings(reviewerAccess(t)).withIstio()), newWorkload(t)
	token := w.token(t, audienceIstio)
	for name, agent := range map[string]*agent{"pilot-agent": s.pilotAgent(t), "ztunnel": s.ztunnel(t)} {
		t.Run(name, func(t *testing.T) {
			got, err := agent.call(t, istioCall{token: token, csr: agent.csr(t, w.id())})
			if err != nil {
				t.Fatal(err)
			}
			if err := got.verify(w.id()); err != nil {
				t.Error(err)
			}
			if want := certificates(t, readFile(t, s.rootFile)); !slices.EqualFunc(got.roots, want, (*x509.Certificate).Equal) {
				t.Errorf("the last element has %d certificates, which are not the server's %d roots", len(got.roots), len(want))
			}
			if len(got.between) != 1 {
				t.Errorf("%d intermediates, want the issuer", len(got.between))
			}
			if life := time.Until(got.leaf.NotAfter); life > time.Hour || life < 56*time.Minute {
				t.Errorf("without a wish it lives %s, want an hour less at most 5%%", life)
			}
			if got.tls.Version != tls.VersionTLS13 || got.tls.NegotiatedProtocol != "h2" {
				t.Errorf("connected by %s and %q", tls.VersionName(got.tls.Version), got.tls.NegotiatedProtocol)
			}
			s.log.await(t, 5*time.Second, `"msg":"audit"`, `"door":"istio"`, `"decision":"issued"`, w.id(), w.pod.Namespace+"/"+w.pod.Name)
		})
	}

	t.Run("ztunnel that asks for its own identity by name", func(t *testing.T) {
		z := s.ztunnel(t)
		if _, err := z.call(t, istioCall{token: token, csr: z.csr(t, w.id()), impersonate: w.id()}); err != nil {
			t.Error(err)
		}
	})

	t.Run("lifetimes", func(t *testing.T) {
		z := s.ztunnel(t)
		for name, test := range map[string]struct {
			seconds     int64
			least, most time.Duration
		}{
			"the largest":      {math.MaxInt64, 22 * time.Hour, 24 * time.Hour},
			"a century":        {100 * 366 * 86400, 22 * time.Hour, 24 * time.Hour},
			"just overflowing": {math.MaxInt64/int64(time.Second) + 1, 22 * time.Hour, 24 * time.Hour},
			"a day":            {86400, 22 * time.Hour, 24 * time.Hour},
			"none":             {0, 56 * time.Minute, time.Hour},
			"below none":       {-1, 56 * time.Minute, time.Hour},
			"the smallest":     {math.MinInt64, 56 * time.Minute, time.Hour},
			"half an hour":     {1800, 28 * time.Minute, 30 * time.Minute},
		} {
			got, err := z.call(t, istioCall{token: token, csr: z.csr(t, w.id()), validity: test.seconds})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if life := time.Until(got.leaf.NotAfter); life < test.least || life > test.most {
				t.Errorf("%s: it lives %s, want %s to %s", name, life, test.least, test.most)
			}
		}
	})
}

// TestIstioRefusals looks at refusals with the agents' eyes: whether they say why, and whether the agents would try again in vain.
func TestIstioRefusals(t *testing.T) {
	s, w := startServer(t, kubernetesSettings(reviewerAccess(t)).withIstio()), newWorkload(t)
	z := s.ztunnel(t)
	token, id := w.token(t, audienceIstio), w.id()
	other := strings.Replace(id, "/cart", "/payments", 1)
	for name, test := range map[string]struct {
		call     istioCall
		code     codes.Code
		sentence string
	}{
		"a token for the other door": {istioCall{token: w.token(t, audience), csr: z.csr(t, id)},
			codes.Unauthenticated, "token is for another audience: request one with audience istio-ca"},
		"a forged token": {istioCall{token: forged(t, w, audienceIstio), csr: z.csr(t, id)},
			codes.Unauthenticated, "the cluster does not accept the token"},
		"another's name": {istioCall{token: token, csr: z.csr(t, other)},
			codes.PermissionDenied, "may not hold URI:" + other},
		"another's name by impersonation": {istioCall{token: token, csr: z.csr(t, other), impersonate: other},
			codes.PermissionDenied, "ImpersonatedIdentity"},
		"a CSR that is none": {istioCall{token: token, csr: "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"},
			codes.InvalidArgument, "certificate request: "},
		"a CSR of 1 MiB": {istioCall{token: token, csr: pemCSR(newCSR(t, manyNames(1<<20)))},
			codes.InvalidArgument, "the request is longer than"},
		"a signer by name": {istioCall{token: token, csr: z.csr(t, id), signer: "example.org/signer"},
			codes.InvalidArgument, `metadata CertSigner: "example.org/signer" is not offered here`},
		"an unknown cluster": {istioCall{token: token, csr: z.csr(t, id), cluster: "west"},
			codes.Unauthenticated, `cluster "west" is not known here`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := z.call(t, test.call)
			if got := status.Code(err); got != test.code || !strings.Contains(status.Convert(err).Message(), test.sentence) {
				t.Errorf("%v; want %s with %q", err, test.code, test.sentence)
			}
			if retried(status.Code(err)) {
				t.Errorf("agents would try again after %s", status.Code(err))
			}
			if err != nil && leaked(err.Error()) {
				t.Errorf("the sentence holds the token: %v", err)
			}
		})
	}

	t.Run("a token for this door at the other one", func(t *testing.T) {
		err := present(t, s.dial(t, s.grpc), token)
		if status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), "another audience: request one with audience chancery") {
			t.Error(err)
		}
	})
	t.Run("the other door's API at this one", func(t *testing.T) {
		err := present(t, s.dial(t, s.istio), w.token(t, audience))
		if status.Code(err) != codes.Unimplemented {
			t.Error(err)
		}
	})
}

// TestIstioRoots has two roots in the bundle, as in a rotation: agents get both in the last element, without a restart.
func TestIstioRoots(t *testing.T) {
	s, w := startServer(t, kubernetesSettings(reviewerAccess(t)).withIstio()), newWorkload(t)
	next := filepath.Join(t.TempDir(), "next")
	mustRun(t, "init", "--dir", next, "--trust-domain", trustDomain)
	both := append(readFile(t, s.rootFile), readFile(t, filepath.Join(next, "pki", "roots.pem"))...)
	if err := os.WriteFile(s.rootFile, both, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.process.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	s.log.await(t, 10*time.Second, `"msg":"reloaded"`)
	z := s.ztunnel(t)
	got, err := z.call(t, istioCall{token: w.token(t, audienceIstio), csr: z.csr(t, w.id())})
	if err != nil {
		t.Fatal(err)
	}
	if want := certificates(t, both); !slices.EqualFunc(got.roots, want, (*x509.Certificate).Equal) {
		t.Errorf("the last element has %d certificates, want both roots", len(got.roots))
	}
	if err := got.verify(w.id()); err != nil {
		t.Error(err)
	}
}

// TestIdleAgent keeps a connection by pings alone, as often as gRPC's clients can. A server that takes them for abuse would end it.
func TestIdleAgent(t *testing.T) {
	t.Parallel() // it waits for most of the time
	s, w := startServer(t, kubernetesSettings(reviewerAccess(t)).withIstio()), newWorkload(t)
	var connections atomic.Int32
	connection := s.dial(t, s.istio,
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 10 * time.Second, PermitWithoutStream: true}),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			connections.Add(1)
			return (&net.Dialer{}).DialContext(ctx, "tcp", address)
		}))
	a := &agent{csr: ztunnelCSR, connection: connection}
	ask := func() {
		if _, err := a.call(t, istioCall{token: w.token(t, audienceIstio), csr: a.csr(t, w.id())}); err != nil {
			t.Error(err)
		}
	}
	ask()
	idle, cancel := context.WithTimeout(t.Context(), 45*time.Second) // four pings; gRPC's servers forgive two
	defer cancel()
	for state := connection.GetState(); connection.WaitForStateChange(idle, state); state = connection.GetState() {
		t.Errorf("the connection went from %s to %s", state, connection.GetState())
	}
	ask()
	if n := connections.Load(); n != 1 {
		t.Errorf("it took %d connections", n)
	}
}
