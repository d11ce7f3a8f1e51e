package cfssl_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chancery-ca/chancery/signer"
	"github.com/chancery-ca/chancery/signer/cfssl"
	"github.com/chancery-ca/chancery/signer/cfssl/cfssltest"
)

// write answers with a status and a body.
func write(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// hijack answers with octets and then resets the connection.
func hijack(octets string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		hijacker, ok := w.(http.Hijacker)
		if !ok {
			return
		}
		connection, _, err := hijacker.Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(connection, octets)
		_ = connection.Close()
	}
}

// drip answers a byte at a time for as long as anyone listens.
func drip(w http.ResponseWriter, r *http.Request) {
	_, _ = io.WriteString(w, `{"success":true,"result":{"certificate":"`)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
		if _, err := io.WriteString(w, "-"); err != nil {
			return
		}
		if http.NewResponseController(w).Flush() != nil {
			return
		}
	}
}

// TestFaults has a server fail in each way: the caller gets an error in time that is neither permanent nor shows the key, nothing stays behind, and the
// same backend signs as soon as the server is well.
func TestFaults(t *testing.T) {
	for name, test := range map[string]struct {
		fault http.HandlerFunc
		want  string // in the error
	}{
		"no answer":                  {nil, "deadline exceeded"},
		"a slow drip":                {drip, "deadline exceeded"},
		"reset before the answer":    {hijack(""), "EOF"},
		"reset within the header":    {hijack("HTTP/1.1 200 O"), "EOF"},
		"reset within the body":      {hijack("HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{\"success\":true"), "unexpected EOF"},
		"no HTTP":                    {hijack("SSH-2.0-OpenSSH\r\n\r\n"), "malformed HTTP"},
		"500 by the server":          {write(500, `{"success":false,"result":null,"errors":[{"code":0,"message":"database is locked"}],"messages":[]}`), "database is locked"},
		"500 with a permanent code":  {write(500, `{"success":false,"result":null,"errors":[{"code":9003,"message":"x"}],"messages":[]}`), "status 500, code 9003"},
		"502 by a proxy":             {write(502, "<html>bad gateway</html>"), "status 502 and no JSON"},
		"503 with success":           {write(503, `{"success":true,"result":{"certificate":"x"},"errors":[],"messages":[]}`), "status 503"},
		"403 by a proxy":             {write(403, "Invalid CN"), "status 403"},
		"nothing":                    {write(200, ""), "no JSON"},
		"no JSON":                    {write(200, "hello"), "no JSON"},
		"JSON and more":              {write(200, `{"success":true,"result":{"certificate":"x"}} {}`), "no JSON"},
		"another JSON":               {write(200, `[1]`), "no JSON"},
		"no success":                 {write(200, `{"success":false,"result":{"certificate":"x"}}`), "without success"},
		"success with errors":        {write(200, `{"success":true,"result":{"certificate":"x"},"errors":[{"code":1000,"message":"y"}]}`), `"y"`},
		"no result":                  {write(200, `{"success":true,"result":null}`), "no certificate"},
		"an empty certificate":       {write(200, `{"success":true,"result":{"certificate":""}}`), "no certificate"},
		"a certificate that is none": {write(200, `{"success":true,"result":{"certificate":"hello"}}`), "its certificate"},
		"an answer without end": {func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := io.WriteString(w, strings.Repeat(" ", 4096)); err != nil {
					return
				}
			}
		}, "longer than"},
		"a header without end": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("a", 1<<20)) }, "header"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path+"?again", http.StatusTemporaryRedirect)
		}, "status 307"},
		"the key in a sentence": {write(400, `{"success":false,"errors":[{"code":400,"message":"the key is `+strings.ToUpper(secret)+`"}]}`), "withheld"},
		"a long sentence":       {write(400, `{"success":false,"errors":[{"code":400,"message":"`+strings.Repeat("long", 1000)+`"}]}`), "…"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, nil)
			s := b.open(t)
			must(t, signAndCheck(t, s, order(t, 1)))
			fault := test.fault
			if fault == nil {
				fault = hang(t)
			}
			before := runtime.NumGoroutine()
			b.server.Fault(fault)
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			_, err := s.Sign(ctx, order(t, 2))
			if took := time.Since(began); took > 3*time.Second {
				t.Errorf("it took %s", took)
			}
			switch {
			case err == nil || !strings.Contains(err.Error(), test.want):
				t.Fatalf("got %v, want an error with %q", err, test.want)
			case errors.Is(err, signer.ErrPermanent):
				t.Errorf("it is permanent: %v", err)
			case strings.Contains(strings.ToLower(fmt.Sprintf("%v %+v %#v", err, err, err)), secret):
				t.Error("the error shows the key")
			case len(err.Error()) > 600:
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			b.server.Fault(nil)
			must(t, signAndCheck(t, s, order(t, 3)))
			settles(t, b, before, 1)
		})
	}
}

// settles waits until no more goroutines and connections are there than before.
func settles(t testing.TB, b *bed, goroutines, connections int) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	for {
		open, _, _ := b.server.Connections()
		running := runtime.NumGoroutine()
		if open <= connections && running <= goroutines+2 { // a connection that was opened anew ends and begins
			return
		}
		select {
		case <-deadline:
			t.Fatalf("%d connections and %d goroutines are left, %d and %d were there\n%s", open, running, connections, goroutines, stacks())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func stacks() string {
	text := make([]byte, 1<<20)
	return string(text[:runtime.Stack(text, true)])
}

// TestStrangers: what answers is not the server. It gets nothing: no order, no token.
func TestStrangers(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts, nobody answers
	must(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	must(t, gone.Close())
	other := newBed(t, nil)
	for name, test := range map[string]struct {
		change func(*cfssl.Config)
		want   string
	}{
		"nobody listens":              {func(c *cfssl.Config) { c.Server = "https://" + gone.Addr().String() }, "connection refused"},
		"nobody answers the hello":    {func(c *cfssl.Config) { c.Server = "https://" + silent.Addr().String() }, "deadline exceeded"},
		"a server of another CA":      {func(c *cfssl.Config) { c.Server = other.server.Address }, "unknown authority"},
		"a server of another name":    {func(c *cfssl.Config) { c.ServerName = "other.example.org" }, "not other.example.org"},
		"a server whose time is over": {func(c *cfssl.Config) { c.Now = func() time.Time { return now.Add(13 * time.Hour) } }, "expired"},
		"no socket":                   {func(c *cfssl.Config) { c.Server, c.ServerCAs = "unix:///nowhere/cfssl.sock", nil }, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, nil)
			test.change(&b.config)
			s := b.open(t)
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			for _, ask := range []func() error{
				func() error { _, err := s.Sign(ctx, order(t, 1)); return err },
				func() error {
					prober, ok := s.(signer.Prober)
					if !ok {
						t.Fatal("it does not probe")
					}
					return prober.Probe(ctx, now)
				},
			} {
				if err := ask(); err == nil || !strings.Contains(err.Error(), test.want) && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v, want an error with %q", err, test.want)
				}
			}
			if n := b.server.Requests() + other.server.Requests(); n != 0 {
				t.Errorf("%d requests reached a server", n)
			}
		})
	}
}

// TestOwnTimeout bounds a call whose caller waits for ever.
func TestOwnTimeout(t *testing.T) {
	b := newBed(t, nil)
	b.config.Timeout = 150 * time.Millisecond
	s := b.open(t)
	b.server.Fault(hang(t))
	began := time.Now()
	_, err := s.Sign(t.Context(), order(t, 1))
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, signer.ErrPermanent) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
	if n := b.server.Requests(); n != 1 {
		t.Errorf("the order was sent %d times", n)
	}
}

// TestEnvironmentProxy: a proxy of the environment gets no order.
func TestEnvironmentProxy(t *testing.T) {
	b := newBed(t, nil)
	for _, name := range []string{"HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"} {
		t.Setenv(name, "http://127.0.0.1:1")
	}
	b.config.Server = strings.Replace(b.server.Address, "127.0.0.1", "localhost", 1)
	b.config.ServerName = "cfssl.example.org"
	must(t, signAndCheck(t, b.open(t), order(t, 1)))
}

// TestConnections: callers share no more connections than configured, keep them, and wait their turn only as long as they may.
func TestConnections(t *testing.T) {
	b := newBed(t, nil)
	b.config.Connections = 3
	s := b.open(t)
	var group sync.WaitGroup
	errs := make([]error, 60)
	for n := range errs {
		group.Go(func() { _, errs[n] = s.Sign(t.Context(), order(t, n)) })
	}
	group.Wait()
	must(t, errors.Join(errs...))
	if _, most, accepted := b.server.Connections(); most > 3 || accepted > 3 {
		t.Errorf("%d connections at once and %d in all, want at most 3", most, accepted)
	}

	b.server.Fault(hang(t))
	ctx, cancel := context.WithCancel(t.Context())
	before := runtime.NumGoroutine()
	for n := range 12 {
		group.Go(func() { _, errs[n] = s.Sign(ctx, order(t, n)) })
	}
	short, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	if _, err := s.Sign(short, order(t, 99)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a caller without a connection got %v", err)
	}
	cancel()
	group.Wait()
	for n := range 12 {
		if !errors.Is(errs[n], context.Canceled) {
			t.Errorf("a cancelled caller got %v", errs[n])
		}
	}
	settles(t, b, before, 3)
	b.server.Fault(nil)
	must(t, signAndCheck(t, s, order(t, 1)))
}

// TestRestart: a server that was away, and whose connections are dead, is used again without a new backend.
func TestRestart(t *testing.T) {
	socket := t.TempDir() + "/s"
	first := newBed(t, func(c *cfssltest.Config) { c.Socket = socket })
	s := first.open(t)
	must(t, signAndCheck(t, s, order(t, 1)))
	first.server.Stop()
	if err := signAndCheck(t, s, order(t, 2)); err == nil || errors.Is(err, signer.ErrPermanent) {
		t.Errorf("while it is away: %v", err)
	}
	newBed(t, func(c *cfssltest.Config) { c.Socket = socket })
	must(t, signAndCheck(t, s, order(t, 3)))
}
