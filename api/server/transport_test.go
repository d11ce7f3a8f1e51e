package server

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/test/bufconn"

	chanceryv1 "github.com/chancery-ca/chancery/api/chancery/v1"
	"github.com/chancery-ca/chancery/ca"
	"github.com/chancery-ca/chancery/ca/ledger/sqlite"
	"github.com/chancery-ca/chancery/internal/telemetry"
)

func TestTLS(t *testing.T) {
	b := newBed(t)
	for name, test := range map[string]struct {
		change func(*tls.Config)
		ok     bool
	}{
		"TLS 1.3":           {func(c *tls.Config) { c.MinVersion = tls.VersionTLS13 }, true},
		"TLS 1.2":           {func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }, true},
		"TLS 1.1":           {func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }, false},
		"TLS 1.0":           {func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS10 }, false},
		"h2 among others":   {func(c *tls.Config) { c.NextProtos = []string{"http/1.1", "h2"} }, true},
		"HTTP/1.1 alone":    {func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }, false},
		"no protocol named": {func(c *tls.Config) { c.NextProtos = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			config := b.tls()
			test.change(config)
			err := preface(t, b.address, config)
			if (err == nil) != test.ok {
				t.Errorf("got %v", err)
			}
		})
	}
}

// preface gets as far as the server's first HTTP/2 frame.
func preface(t *testing.T, address string, config *tls.Config) error {
	t.Helper()
	dialer := &tls.Dialer{Config: config}
	conn, err := dialer.DialContext(within(t), "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	must(t, conn.SetDeadline(time.Now().Add(waitAtMost)))
	if _, err := conn.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 9))
	return err
}

// TestPlainTextIsRefused: nothing is served without TLS.
func TestPlainTextIsRefused(t *testing.T) {
	b := newBed(t)
	conn, err := net.Dial("tcp", b.address)
	must(t, err)
	defer conn.Close()
	must(t, conn.SetDeadline(time.Now().Add(waitAtMost)))
	_, err = conn.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"))
	must(t, err)
	answer := make([]byte, 64)
	n, _ := conn.Read(answer)
	// a TLS alert record at most (RFC 8446 §5.1)
	if n > 0 && answer[0] != 21 {
		t.Errorf("the server answered %q", answer[:n])
	}
}

// TestPings: a client that pings as often as gRPC lets it, with nothing else to say, keeps its connection for hours. The clock is a fake one; the
// network is in memory, and TLS and HTTP/2 are real.
func TestPings(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		roll, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(dir, "ledger.db")})
		must(t, err)
		defer func() { must(t, roll.Close()) }()
		logger, registry, now := slog.New(slog.DiscardHandler), prometheus.NewRegistry(), time.Now()
		b := &bed{t: t, registry: registry, hierarchy: hierarchy(t, now)}
		b.authority, err = ca.New(t.Context(), ca.Dependencies{Ledger: roll, Logger: logger, Registerer: registry, Now: time.Now},
			policy(t, backend(t, b.hierarchy, now, b.hierarchy.Root)))
		must(t, err)
		serving := newServing(t, b, subject, logger)
		s, err := New(Config{
			Authority: b.authority, Chancery: b, Certificate: serving.Certificate, RequestTimeout: time.Minute,
			Limits: Limits{InFlight: 1, Authenticating: 1, Callers: 10, Watchers: 1},
			Track:  telemetry.NewInFlight(time.Now).Begin, Logger: logger, Registerer: registry, Now: time.Now,
		})
		must(t, err)
		listener := bufconn.Listen(1 << 20)
		server := s.GRPC(Door{Chancery: true})
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(listener) }()

		conn, err := grpc.NewClient("passthrough:///memory",
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
			grpc.WithTransportCredentials(credentials.NewTLS(b.tls())),
			grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: time.Second, PermitWithoutStream: true}),
			grpc.WithIdleTimeout(0),
		)
		must(t, err)
		client := chanceryv1.NewCertificateAuthorityClient(conn)
		watch, err := client.WatchTrustBundle(t.Context(), &chanceryv1.WatchTrustBundleRequest{})
		must(t, err)
		_, err = watch.Recv()
		must(t, err)
		time.Sleep(2 * time.Hour) //nolint:forbidigo // of the fake clock
		if state := conn.GetState(); state != connectivity.Ready {
			t.Errorf("after two hours of pings with an open stream the connection is %s", state)
		}
		// the stream that was open is still the same one, so that the connection was not made anew
		s.Drain()
		_, err = watch.Recv()
		if got := wantUnavailable(t, err); got != "the server is stopping; call again" {
			t.Errorf("the stream ended with %q", got)
		}
		must(t, conn.Close())
		server.Stop()
		must(t, <-ended)
	})
}
