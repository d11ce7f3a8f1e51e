package web

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/chancery-ca/chancery/internal/telemetry"
)

// site is a server with two checks that a test lets pass or fail.
type site struct {
	*httptest.Server
	broken, slow atomic.Bool
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{}
	config := telemetry.HealthConfig{MaxAge: time.Nanosecond}
	live, err := telemetry.NewHealth(config, telemetry.Check{Name: "calls", Run: func(context.Context) error { return nil }})
	must(t, err)
	ready, err := telemetry.NewHealth(config,
		telemetry.Check{Name: "ledger", Run: func(context.Context) error {
			if s.broken.Load() {
				return errors.New("the disk is full")
			}
			return nil
		}},
		telemetry.Check{Name: "cluster", Severity: telemetry.Degraded, Run: func(context.Context) error {
			if s.slow.Load() {
				return errors.New("it does not answer")
			}
			return nil
		}})
	must(t, err)
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "chancery_test"}, func() float64 { return 7 }))
	logger := slog.New(slog.DiscardHandler)
	s.Server = httptest.NewUnstartedServer(nil)
	s.Config = Server(Handler(registry, live, ready, logger), logger)
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// ask returns the answer's status, headers and body.
func (s *site) ask(t *testing.T, method, path, accept string) (int, http.Header, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, nil)
	must(t, err)
	if accept != "" {
		request.Header.Set("Accept", accept)
	}
	answer, err := s.Client().Do(request)
	must(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	must(t, err)
	return answer.StatusCode, answer.Header, string(body)
}

func TestProbes(t *testing.T) {
	s := newSite(t)
	for name, test := range map[string]struct {
		broken, slow bool
		path, accept string
		code         int
		body         string
		kind         string
	}{
		"ready":                  {path: "/readyz", code: 200, body: "[+] ledger: ok\n[+] cluster: ok\n", kind: "text/plain"},
		"not ready":              {broken: true, path: "/readyz", code: 503, body: "[-] ledger: the disk is full\n[+] cluster: ok\n", kind: "text/plain"},
		"ready, not at its best": {slow: true, path: "/readyz", code: 200, body: "[+] ledger: ok\n[!] cluster: it does not answer (degraded)\n", kind: "text/plain"},
		"alive though not ready": {broken: true, path: "/livez", code: 200, body: "[+] calls: ok\n", kind: "text/plain"},
		"for a browser":          {path: "/readyz", accept: "text/html,*/*;q=0.8", code: 200, body: "[+] ledger: ok\n[+] cluster: ok\n", kind: "text/plain"},
		"for a program":          {path: "/readyz", accept: "application/json", code: 200, body: `"status":"ok"`, kind: "application/json"},
		"for a fussy program":    {broken: true, path: "/readyz", accept: "application/json;q=1, */*;q=0.1", code: 503, body: `"status":"failed"`, kind: "application/json"},
	} {
		t.Run(name, func(t *testing.T) {
			s.broken.Store(test.broken)
			s.slow.Store(test.slow)
			code, header, body := s.ask(t, http.MethodGet, test.path, test.accept)
			structured := test.kind == "application/json"
			if code != test.code || !structured && body != test.body || !strings.Contains(body, test.body) {
				t.Errorf("got %d:\n%s", code, body)
			}
			if structured && !json.Valid([]byte(body)) {
				t.Errorf("it is no JSON: %s", body)
			}
			if !strings.HasPrefix(header.Get("Content-Type"), test.kind) || header.Get("Cache-Control") != "no-store" {
				t.Errorf("got the headers %v", header)
			}
		})
	}
}

func TestWhatIsServed(t *testing.T) {
	s := newSite(t)
	for _, test := range []struct {
		method, path string
		code         int
		body         string
	}{
		{http.MethodGet, "/metrics", 200, "chancery_test 7\n"},
		{http.MethodHead, "/readyz", 200, ""},
		{http.MethodPost, "/readyz", 405, ""},
		{http.MethodPost, "/metrics", 405, ""},
		{http.MethodGet, "/", 404, ""},
		{http.MethodGet, "/debug/pprof/", 404, ""},
		{http.MethodGet, "/readyz/more", 404, ""},
	} {
		t.Run(test.method+" "+test.path, func(t *testing.T) {
			code, _, body := s.ask(t, test.method, test.path, "")
			if code != test.code || !strings.Contains(body, test.body) {
				t.Errorf("got %d:\n%s", code, body)
			}
		})
	}
}

// TestCallerThatLeaves: a prober that gives up gets no answer, and its checks do no harm to the next one.
func TestCallerThatLeaves(t *testing.T) {
	release, began := make(chan struct{}), make(chan struct{}, 8)
	health, err := telemetry.NewHealth(telemetry.HealthConfig{}, telemetry.Check{Name: "slow", Run: func(context.Context) error {
		began <- struct{}{}
		<-release
		return nil
	}})
	must(t, err)
	handler := probe(health, slog.New(slog.DiscardHandler))
	first := make(chan int, 1)
	go func() {
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		first <- recorder.Code
	}()
	<-began
	ctx, leave := context.WithCancel(t.Context())
	leave()
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequestWithContext(ctx, http.MethodGet, "/readyz", nil))
	if recorder.Code != http.StatusServiceUnavailable || recorder.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("got %d", recorder.Code)
	}
	close(release)
	if code := <-first; code != http.StatusOK {
		t.Errorf("the first got %d", code)
	}
}

// TestHeadersAreBounded: what is too long is refused and not kept.
func TestHeadersAreBounded(t *testing.T) {
	s := newSite(t)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/readyz", nil)
	must(t, err)
	request.Header.Set("X-Long", strings.Repeat("x", 64<<10))
	answer, err := s.Client().Do(request)
	must(t, err)
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("got %s", answer.Status)
	}
}

// TestSlowClients: who sends a byte a second, or keeps a connection and says nothing, is let go. The clock is a fake one, the network in memory.
func TestSlowClients(t *testing.T) {
	for name, test := range map[string]struct {
		send  func(net.Conn) error
		after time.Duration
	}{
		"nothing is sent":           {func(net.Conn) error { return nil }, 5 * time.Second},
		"a byte a second":           {drip, 5 * time.Second},
		"a connection is kept idle": {whole, 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				logger := slog.New(slog.DiscardHandler)
				server := Server(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), logger)
				ours, theirs := net.Pipe()
				listener := &one{conn: ours, closed: make(chan struct{})}
				ended := make(chan error, 1)
				go func() { ended <- server.Serve(listener) }()
				began := time.Now()
				sent := make(chan struct{})
				go func() {
					defer close(sent)
					_ = test.send(theirs) // it fails when it is let go
				}()
				_, err := io.Copy(io.Discard, theirs) // to the end of the connection
				must(t, err)
				if took := time.Since(began); took > test.after+time.Second {
					t.Errorf("the connection was let go after %s", took)
				}
				must(t, theirs.Close())
				<-sent
				must(t, server.Close())
				if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
					t.Error(err)
				}
			})
		})
	}
}

func drip(conn net.Conn) error {
	for _, octet := range []byte("GET /readyz HTTP/1.1\r\nHost: x\r\nX-Slow: " + strings.Repeat("x", 100)) {
		if _, err := conn.Write([]byte{octet}); err != nil {
			return err
		}
		time.Sleep(time.Second) //nolint:forbidigo // of the fake clock
	}
	return nil
}

func whole(conn net.Conn) error {
	w := bufio.NewWriter(conn)
	fmt.Fprint(w, "GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
	return w.Flush()
}

// one is a listener with one connection.
type one struct {
	conn   net.Conn
	closed chan struct{}
}

func (l *one) Accept() (net.Conn, error) {
	if conn := l.conn; conn != nil {
		l.conn = nil
		return conn, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *one) Close() error {
	close(l.closed)
	return nil
}

func (l *one) Addr() net.Addr { return &net.TCPAddr{} }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
