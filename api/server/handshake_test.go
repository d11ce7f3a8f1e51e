package server

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// one lets a bed compute one handshake at a time.
func one(s *setup) { s.config.Limits.Handshakes = 1 }

// wantFree waits until no handshake has a place.
func (b *bed) wantFree() {
	b.t.Helper()
	eventually(b.t, "no handshake has a place", func() bool { return len(b.server.shake.first) == 0 && len(b.server.shake.later) == 0 })
}

// raw opens a connection without saying anything.
func (b *bed) raw() net.Conn {
	b.t.Helper()
	conn, err := net.Dial("tcp", b.address)
	must(b.t, err)
	b.t.Cleanup(func() { _ = conn.Close() }) // a test may have closed it
	must(b.t, conn.SetDeadline(time.Now().Add(waitAtMost)))
	return conn
}

// hello returns the bytes of a client's first flight.
func (b *bed) hello(change func(*tls.Config)) []byte {
	b.t.Helper()
	config := b.tls()
	if change != nil {
		change(config)
	}
	var sent recorder
	if err := tls.Client(&sent, config).HandshakeContext(b.t.Context()); !errors.Is(err, io.EOF) {
		b.t.Fatalf("got %v", err)
	}
	return sent.Bytes()
}

// recorder is a connection that keeps what is sent and has ended.
type recorder struct {
	net.Conn
	bytes.Buffer
}

func (r *recorder) Write(p []byte) (int, error)    { return r.Buffer.Write(p) }
func (*recorder) Read([]byte) (int, error)         { return 0, io.EOF }
func (*recorder) Close() error                     { return nil }
func (*recorder) SetWriteDeadline(time.Time) error { return nil }

// withoutShare makes of a hello with the one group X25519 one that has no share of it, so that the server asks for another (RFC 8446 §4.1.4).
func withoutShare(t *testing.T, hello []byte) []byte {
	t.Helper()
	before := []byte{0, 0x33, 0, 0x26, 0, 0x24, 0, 0x1d, 0, 0x20} // key_share, lengths, X25519, length of the share
	after := []byte{0, 0x33, 0, 0x26, 0, 0x24, 0x0a, 0x0a, 0, 0x20}
	if bytes.Count(hello, before) != 1 {
		t.Fatalf("there is no share of X25519 in %x", hello)
	}
	return bytes.Replace(hello, before, after, 1)
}

// retryRandom marks a ServerHello that is a HelloRetryRequest (RFC 8446 §4.1.3).
var retryRandom = []byte{0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91}

// TestFailedHandshakes: whatever a client makes of a handshake, the one place there is is free again.
func TestFailedHandshakes(t *testing.T) {
	b := newBed(t, one)
	must(t, b.issueFor(within(t), goodToken))
	b.wantFree()
	before := runtime.NumGoroutine()
	refused := func(change func(*tls.Config)) func(*testing.T) {
		return func(t *testing.T) {
			config := b.tls()
			change(config)
			if err := preface(t, b.address, config); err == nil {
				t.Error("the handshake succeeded")
			}
		}
	}
	cut := func(sent []byte) func(*testing.T) {
		return func(t *testing.T) {
			conn := b.raw()
			_, err := conn.Write(sent)
			must(t, err)
			must(t, conn.Close())
		}
	}
	hello := b.hello(nil)
	for name, do := range map[string]func(*testing.T){
		"nothing":                    cut(nil),
		"not TLS":                    cut([]byte("GET / HTTP/1.1\r\n\r\n")),
		"half a hello":               cut(hello[:len(hello)/2]),
		"a hello and no more":        cut(hello),
		"a hello and nonsense":       cut(append(bytes.Clone(hello), "nonsense"...)),
		"TLS 1.1":                    refused(func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }),
		"HTTP/1.1":                   refused(func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }),
		"the server is not believed": refused(func(c *tls.Config) { c.ServerName = "elsewhere.example.org" }),
		"nor with TLS 1.2":           refused(func(c *tls.Config) { c.ServerName, c.MaxVersion = "elsewhere.example.org", tls.VersionTLS12 }),
		"no group in common":         refused(func(c *tls.Config) { c.CurvePreferences = []tls.CurveID{30} }),
		"no suite in common (TLS 1.2)": refused(func(c *tls.Config) {
			c.MaxVersion, c.CipherSuites = tls.VersionTLS12, []uint16{tls.TLS_RSA_WITH_AES_128_CBC_SHA}
		}),
		"a good one, TLS 1.2":           func(t *testing.T) { must(t, preface(t, b.address, withMax(b.tls(), tls.VersionTLS12))) },
		"a good one, TLS 1.3":           func(t *testing.T) { must(t, preface(t, b.address, b.tls())) },
		"a good one with a certificate": func(t *testing.T) { must(t, preface(t, b.address, b.withCertificate())) },
	} {
		t.Run(name, func(t *testing.T) {
			for range 3 {
				do(t)
			}
			b.wantFree()
		})
	}
	must(t, b.issueFor(within(t), goodToken))
	eventually(t, "goroutines are gone", func() bool { return runtime.NumGoroutine() <= before })
}

func withMax(config *tls.Config, version uint16) *tls.Config {
	config.MaxVersion = version
	return config
}

// withCertificate shows a client certificate.
func (b *bed) withCertificate() *tls.Config {
	config := b.tls()
	own, err := b.serving.Certificate(nil)
	must(b.t, err)
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return own, nil }
	return config
}

// TestStallingClients: clients that stop halfway keep no place, so that with one place others shake hands at once.
func TestStallingClients(t *testing.T) {
	const clients = 10
	for name, test := range map[string]struct {
		sends   func(*bed) []byte
		answers []byte // wanted in what the server sends
	}{
		"before the hello":            {func(*bed) []byte { return nil }, nil},
		"in the hello":                {func(b *bed) []byte { return b.hello(nil)[:100] }, nil},
		"after the hello":             {func(b *bed) []byte { return b.hello(nil) }, []byte{22, 3, 3}},
		"after the hello, TLS 1.2":    {func(b *bed) []byte { return b.hello(func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }) }, []byte{22, 3, 3}},
		"when asked for another one":  {func(b *bed) []byte { return withoutShare(b.t, b.hello(x25519)) }, retryRandom},
		"in another one, as it seems": {func(b *bed) []byte { return append(withoutShare(b.t, b.hello(x25519)), 22, 3, 3, 2, 0, 1) }, retryRandom},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, one)
			sent := test.sends(b)
			for range clients {
				conn := b.raw()
				_, err := conn.Write(sent)
				must(t, err)
				if test.answers == nil {
					continue
				}
				answer := make([]byte, 64)
				_, err = io.ReadFull(conn, answer)
				must(t, err)
				if !bytes.Contains(answer, test.answers) {
					t.Fatalf("the server answered %x", answer)
				}
			}
			began := time.Now()
			must(t, preface(t, b.address, b.tls()))
			must(t, preface(t, b.address, withMax(b.tls(), tls.VersionTLS12)))
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("two handshakes took %s", took)
			}
			b.wantFree()
		})
	}
}

func x25519(c *tls.Config) { c.CurvePreferences = []tls.CurveID{tls.X25519} }

// TestHandshakesInTurn: while all places are taken new connections wait, and everything that is connected goes on.
func TestHandshakesInTurn(t *testing.T) {
	b := newBed(t, one)
	must(t, b.issueFor(within(t), goodToken))
	b.server.SetServing(true)
	for _, places := range []chan struct{}{b.server.shake.first, b.server.shake.later} {
		places <- struct{}{}
		shaken := make(chan error, 1)
		go func() { shaken <- preface(t, b.address, b.tls()) }()
		for range 20 {
			health, err := healthpb.NewHealthClient(b.conn).Check(within(t), &healthpb.HealthCheckRequest{})
			must(t, err)
			if health.GetStatus() != healthpb.HealthCheckResponse_SERVING {
				t.Errorf("health is %s", health.GetStatus())
			}
			must(t, b.issueFor(within(t), goodToken))
		}
		select {
		case err := <-shaken:
			t.Errorf("a handshake had no place and ended with %v", err)
		default:
		}
		<-places
		must(t, await(t, shaken, "the handshake"))
	}
	b.wantFree()
}

// TestManyHandshakes: never more are computed at once than there are places, and all get through.
func TestManyHandshakes(t *testing.T) {
	b := newBed(t, func(s *setup) { s.config.Limits.Handshakes = 2 })
	var all sync.WaitGroup
	errs := make(chan error, 200)
	for i := range cap(errs) {
		all.Go(func() {
			config := b.tls()
			if i%2 == 0 {
				config.MaxVersion = tls.VersionTLS12
			}
			errs <- preface(t, b.address, config)
		})
	}
	all.Wait()
	for range cap(errs) {
		must(t, <-errs)
	}
	b.wantFree()
}
