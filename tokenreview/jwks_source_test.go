package tokenreview

import (
	"compress/gzip"
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// issuerServer is an https server of an issuer, with its trust anchor.
func issuerServer(t *testing.T, handler http.Handler) (*httptest.Server, *x509.CertPool) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // what clients break off is no news
	server.StartTLS()
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	return server, roots
}

func write(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

// TestKeysByURL holds what is taken of a server, and what is not.
func TestKeysByURL(t *testing.T) {
	good := string(setOf(theKeys().rsa))
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		elsewhere.Add(1)
		_, _ = io.WriteString(w, good)
	}))
	t.Cleanup(other.Close)
	for name, test := range map[string]struct {
		handler http.HandlerFunc
		want    string // of the error; empty for none
	}{
		"good":         {write(good), ""},
		"with padding": {write(good + strings.Repeat(" ", maxJWKS-len(good))), ""},
		"a byte more":  {write(good + strings.Repeat(" ", maxJWKS+1-len(good))), "longer than"},
		"without an end": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, strings.Repeat(" ", 1<<16)); err != nil {
					return
				}
			}
		}, "longer than"},
		"compressed": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			compressed := gzip.NewWriter(w)
			_, _ = io.WriteString(compressed, good)
			_ = compressed.Close()
		}, ""},
		"a bomb": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			compressed := gzip.NewWriter(w)
			for range 1000 {
				_, _ = compressed.Write(make([]byte, 1<<16))
			}
			_ = compressed.Close()
		}, "longer than"},
		"headers of 1 MB": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X", strings.Repeat("x", 1<<20))
			_, _ = io.WriteString(w, good)
		}, "asking for the keys"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) }, "answers 302"},
		"a redirect for good": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusPermanentRedirect)
		}, "answers 308"},
		"not found":  {http.NotFound, "answers 404"},
		"forbidden":  {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, good, http.StatusForbidden) }, "answers 403"},
		"no content": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, "answers 204"},
		"cut": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9999")
			_, _ = io.WriteString(w, good)
		}, "reading the keys"},
		"cut at once": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "asking for the keys"}, //nolint:forbidigo // how net/http aborts
	} {
		t.Run(name, func(t *testing.T) {
			server, roots := issuerServer(t, test.handler)
			source, err := KeysFromURL(server.URL, roots)
			if err != nil {
				t.Fatal(err)
			}
			text, err := source.fetch(t.Context())
			switch {
			case test.want == "" && (err != nil || len(must(parseKeySet(text))) != 1):
				t.Error(err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || text != nil):
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
	if elsewhere.Load() != 0 {
		t.Error("a redirect was followed")
	}
}

// TestKeysByAServerThatIsNotTheIssuers holds that TLS says whose keys they are.
func TestKeysByAServerThatIsNotTheIssuers(t *testing.T) {
	server, _ := issuerServer(t, write(string(setOf(theKeys().rsa))))
	foreign, roots := issuerServer(t, http.NotFoundHandler())
	_ = foreign
	for name, pool := range map[string]*x509.CertPool{"the machine's anchors": nil, "no anchors": x509.NewCertPool()} {
		source := must(KeysFromURL(server.URL, pool))
		if _, err := source.fetch(t.Context()); err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("%s: %v", name, err)
		}
	}
	// httptest's servers share a certificate: the name is what is wrong
	source := must(KeysFromURL(strings.Replace(server.URL, "127.0.0.1", "localhost", 1), roots))
	if _, err := source.fetch(t.Context()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("another name: %v", err)
	}
}

// TestKeysByAServerThatHangs holds that each step of a look ends by its deadline.
func TestKeysByAServerThatHangs(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	hanging, roots := issuerServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			_, _ = io.WriteString(w, `{"keys":[`)
			_ = http.NewResponseController(w).Flush()
		}
		select {
		case <-r.Context().Done():
		case <-over:
		}
		panic(http.ErrAbortHandler) //nolint:forbidigo // how net/http aborts; returning would end the answer in good order
	}))
	for name, address := range map[string]string{
		"before the handshake": "https://" + silent.Addr().String(), "before the answer": hanging.URL, "inside of the answer": hanging.URL + "/body",
	} {
		t.Run(name, func(t *testing.T) {
			source := must(KeysFromURL(address, roots))
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			began := time.Now()
			if _, err := source.fetch(ctx); err == nil || time.Since(began) > 3*time.Second {
				t.Errorf("after %s: %v", time.Since(began), err)
			}
		})
	}
	if client := issuerClient(nil); client.Timeout != fetchTimeout {
		t.Errorf("a look without a deadline may take %s", client.Timeout)
	}
}

// TestDiscovery holds that only the issuer's own document leads to keys, and only by https.
func TestDiscovery(t *testing.T) {
	good := string(setOf(theKeys().p256))
	plain := httptest.NewServer(write(good))
	t.Cleanup(plain.Close)
	for name, test := range map[string]struct {
		document func(issuer string) any
		path     string // of the issuer
		want     string
	}{
		"good":         {func(i string) any { return map[string]any{"issuer": i, "jwks_uri": i + "/keys"} }, "", ""},
		"with a path":  {func(i string) any { return map[string]any{"issuer": i, "jwks_uri": i + "/keys"} }, "/tenant/a", ""},
		"with a slash": {func(i string) any { return map[string]any{"issuer": i, "jwks_uri": i + "keys"} }, "/", ""},
		"200 members": {func(i string) any {
			m := map[string]any{"issuer": i, "jwks_uri": i + "/keys"}
			for n := range 198 {
				m[fmt.Sprint(n)] = n
			}
			return m
		}, "", ""},
		"1000 members": {func(i string) any {
			m := map[string]any{"issuer": i, "jwks_uri": i + "/keys"}
			for n := range 998 {
				m[fmt.Sprint(n)] = n
			}
			return m
		}, "", "too many members"},
		"of another issuer": {func(i string) any {
			return map[string]any{"issuer": "https://accounts.example", "jwks_uri": i + "/keys"}
		}, "", "of another issuer"},
		"issuer and a slash": {func(i string) any { return map[string]any{"issuer": i + "/", "jwks_uri": i + "/keys"} }, "", "of another issuer"},
		"issuer missing":     {func(i string) any { return map[string]any{"jwks_uri": i + "/keys"} }, "", "of another issuer"},
		"issuer a list":      {func(i string) any { return map[string]any{"issuer": []string{i}, "jwks_uri": i + "/keys"} }, "", "of another issuer"},
		"jwks_uri missing":   {func(i string) any { return map[string]any{"issuer": i} }, "", "no https URL"},
		"jwks_uri relative":  {func(i string) any { return map[string]any{"issuer": i, "jwks_uri": "/keys"} }, "", "no https URL"},
		"jwks_uri a file":    {func(i string) any { return map[string]any{"issuer": i, "jwks_uri": "file:///etc/keys"} }, "", "no https URL"},
		"jwks_uri by http":   {func(i string) any { return map[string]any{"issuer": i, "jwks_uri": "http://keys.example/keys"} }, "", "no https URL"},
		"by http, loopback":  {func(i string) any { return map[string]any{"issuer": i, "jwks_uri": plain.URL} }, "", "no https URL"},
		"with a password": {func(i string) any {
			return map[string]any{"issuer": i, "jwks_uri": strings.Replace(i, "https://", "https://u:p@", 1) + "/keys"}
		}, "", "no https URL"},
		"twice":   {func(i string) any { return json.RawMessage(`{"issuer":"` + i + `","issuer":"` + i + `"}`) }, "", "a member twice"},
		"no JSON": {nil, "", "is not JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			var issuer string
			mux := http.NewServeMux()
			server, roots := issuerServer(t, mux)
			issuer = server.URL + test.path
			base := strings.TrimSuffix(test.path, "/")
			mux.HandleFunc(base+"/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
				if test.document == nil {
					_, _ = io.WriteString(w, "<html>")
					return
				}
				_ = json.NewEncoder(w).Encode(test.document(issuer))
			})
			mux.HandleFunc(base+"/keys", write(good))
			source, err := KeysFromDiscovery(issuer, roots)
			if err != nil {
				t.Fatal(err)
			}
			text, err := source.fetch(t.Context())
			switch {
			case test.want == "" && (err != nil || len(must(parseKeySet(text))) != 1):
				t.Error(err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

func TestAddressesOfKeys(t *testing.T) {
	for address, good := range map[string]bool{
		"https://issuer.example/keys":   true,
		"https://issuer.example:8443":   true,
		"http://127.0.0.1:8080/keys":    true,
		"http://[::1]:8080/keys":        true,
		"http://localhost/keys":         true,
		"http://issuer.example/keys":    false,
		"http://127.0.0.1.example/keys": false,
		"http://localhost.example/keys": false,
		"https://user@issuer.example":   false,
		"file:///etc/keys":              false,
		"//issuer.example/keys":         false,
		"issuer.example/keys":           false,
		"https:///keys":                 false,
		"https://issuer.example/\x00":   false,
		"":                              false,
	} {
		if _, err := KeysFromURL(address, nil); (err == nil) != good {
			t.Errorf("URL %q: %v", address, err)
		}
		if _, err := KeysFromDiscovery(address, nil); (err == nil) != good {
			t.Errorf("issuer %q: %v", address, err)
		}
	}
}

// TestKeysFromAFile holds that a file is read again, and that nobody waits for one.
func TestKeysFromAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.json")
	set := must(NewKeySet(KeysFromFile(path), KeySetConfig{Name: "local"}, nil, nil))
	if err := set.fetch(t.Context()); err == nil {
		t.Error("a file that is not there")
	}
	for _, key := range []*testKey{theKeys().rsa, theKeys().p384} {
		if err := os.WriteFile(path, setOf(key), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := set.fetch(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := key.verdict(t, set); err != nil {
			t.Error(err)
		}
	}
	if err := os.WriteFile(path, make([]byte, maxJWKS+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := set.fetch(t.Context()); err == nil || !strings.Contains(err.Error(), "longer") {
		t.Errorf("a long file: %v", err)
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := KeysFromFile(pipe).fetch(t.Context()); err == nil {
		t.Error("a pipe")
	}
	if err := theKeys().p384.verdict(t, set); err != nil {
		t.Errorf("the last good keys: %v", err)
	}
}

// TestKeysFromTheCluster asks an API server with the credential of the client configuration.
func TestKeysFromTheCluster(t *testing.T) {
	var asked atomic.Pointer[http.Request]
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.Clone(context.Background()))
		switch r.URL.Path {
		case "/openid/v1/jwks", "/k8s/clusters/c-1/openid/v1/jwks":
			w.Header().Set("Content-Type", "application/jwk-set+json")
			_, _ = w.Write(setOf(theKeys().p256))
		default:
			http.NotFound(w, r)
		}
	})
	server, _ := issuerServer(t, handler)
	access := func() *rest.Config {
		return &rest.Config{Host: server.URL, BearerToken: "our-own", TLSClientConfig: rest.TLSClientConfig{CAData: pemOf(server)}}
	}
	for name, host := range map[string]string{"at the root": server.URL, "below a path": server.URL + "/k8s/clusters/c-1"} {
		config := access()
		config.Host = host
		source, err := KeysFromCluster(config)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		text, err := source.fetch(t.Context())
		if err != nil || len(must(parseKeySet(text))) != 1 {
			t.Errorf("%s: %v", name, err)
		}
		if r := asked.Load(); r.Method != http.MethodGet || r.Header.Get("Authorization") != "Bearer our-own" || r.UserAgent() != "chancery-keys" {
			t.Errorf("%s: %s by %q", name, r.Method, r.UserAgent())
		}
	}
	for name, edit := range map[string]func(*rest.Config){
		"insecure":     func(c *rest.Config) { c.Insecure, c.CAData = true, nil },
		"in the clear": func(c *rest.Config) { c.Host = "http://cluster.example" },
		"no address":   func(c *rest.Config) { c.Host = "https://%zz" },
		"bad anchors":  func(c *rest.Config) { c.CAData = []byte("none") },
	} {
		config := access()
		edit(config)
		if _, err := KeysFromCluster(config); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if _, err := KeysFromCluster(nil); err == nil {
		t.Error("no configuration: taken")
	}
	config := access()
	config.CAData = nil
	if _, err := must(KeysFromCluster(config)).fetch(t.Context()); err == nil {
		t.Error("the API server's certificate was not verified")
	}
	redirecting, _ := issuerServer(t, http.RedirectHandler(server.URL+"/openid/v1/jwks", http.StatusFound))
	config = access()
	config.Host = redirecting.URL
	if _, err := must(KeysFromCluster(config)).fetch(t.Context()); err == nil || !strings.Contains(err.Error(), "answers 302") {
		t.Errorf("a redirect: %v", err)
	}
}
