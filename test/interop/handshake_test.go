//go:build e2e

package interop

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestHandshakes lets programs of others speak TLS with what was issued, on both sides and with both sides' certificates.
func TestHandshakes(t *testing.T) {
	python(t)
	b := newBed(t)
	var workloads, servers []*issued
	for _, c := range b.issueAll(t) {
		if c.serving {
			servers = append(servers, c)
		} else {
			workloads = append(workloads, c)
		}
	}
	for i, server := range servers {
		t.Run("openssl with openssl, "+server.name, func(t *testing.T) { opensslWithOpenSSL(t, server, workloads[i]) })
		t.Run("go serves, "+server.name, func(t *testing.T) { goServes(t, server, workloads[i]) })
	}
	for _, workload := range workloads {
		t.Run("openssl with openssl, "+workload.name, func(t *testing.T) { opensslWithOpenSSL(t, workload, workloads[0]) })
	}
	t.Run("openssl serves go", func(t *testing.T) { opensslServesGo(t, servers[0], workloads[0]) })
}

// opensslServer starts openssl s_server with mutual TLS and returns its address.
func opensslServer(t *testing.T, c *issued) string {
	t.Helper()
	cmd := exec.Command("openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", c.file("leaf.pem"), "-cert_chain", c.file("intermediates.pem"), "-key", c.file("key.pem"),
		"-CAfile", c.file("root.pem"), "-no-CApath", "-no-CAstore", "-Verify", "4", "-verify_return_error", "-purpose", "sslclient", "-x509_strict", "-rev")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	accepts := make(chan string, 1)
	ended := make(chan string, 1)
	go func() {
		var all strings.Builder
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			all.WriteString(lines.Text() + "\n")
			if address, ok := strings.CutPrefix(lines.Text(), "ACCEPT "); ok {
				select {
				case accepts <- address:
				default: // it says so again
				}
			}
		}
		ended <- all.String()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it serves until it is ended
		text := <-ended
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("openssl s_server said:\n%s", text)
		}
	})
	select {
	case address := <-accepts:
		return address
	case text := <-ended:
		ended <- text
		t.Fatalf("openssl s_server ended:\n%s", text)
	case <-time.After(time.Minute):
		t.Fatal("openssl s_server does not listen after a minute")
	}
	return ""
}

// hostOf is the name that a client looks for in a server's certificate; a workload has none.
func hostOf(c *issued) string {
	if c.serving {
		return "www.interop.test"
	}
	return ""
}

// opensslClient returns openssl s_client with mutual TLS, that says "hello" and reads the answer.
func opensslClient(t *testing.T, address string, c *issued, host string, more ...string) (string, error) {
	t.Helper()
	args := []string{"s_client", "-connect", address, "-cert", c.file("leaf.pem"), "-cert_chain", c.file("intermediates.pem"), "-key", c.file("key.pem"),
		"-CAfile", c.file("root.pem"), "-no-CApath", "-no-CAstore", "-verify", "4", "-verify_return_error", "-purpose", "sslserver", "-x509_strict", "-quiet"}
	if host != "" {
		args = append(args, "-servername", host, "-verify_hostname", host)
	}
	cmd := exec.CommandContext(t.Context(), "openssl", append(args, more...)...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(in, "hello\n") // a refused connection shows below
	line, _ := bufio.NewReader(out).ReadString('\n')
	_ = in.Close()
	if strings.TrimSpace(line) != "" {
		_ = cmd.Process.Kill() // the answer is here; s_client would wait for the server to close
	}
	err = cmd.Wait()
	if strings.TrimSpace(line) != "" {
		return line, nil
	}
	return stderr.String(), err
}

func opensslWithOpenSSL(t *testing.T, server, workload *issued) {
	t.Helper()
	address := opensslServer(t, server)
	for _, version := range []string{"-tls1_3", "-tls1_2"} {
		if answer, err := opensslClient(t, address, workload, hostOf(server), version); err != nil || strings.TrimSpace(answer) != "olleh" {
			t.Errorf("%s: %v: %s", version, err, answer)
		}
	}
	if server.serving {
		if answer, err := opensslClient(t, address, workload, otherHost); err == nil {
			t.Errorf("s_client takes the certificate for %s: %s", otherHost, answer)
		}
		// a certificate for servers alone is none for a client
		if answer, err := opensslClient(t, address, server, hostOf(server)); err == nil {
			t.Errorf("s_server takes %s from a client: %s", server.name, answer)
		}
	}
}

// goServes has crypto/tls serve HTTP with mutual TLS to curl, openssl and GnuTLS.
func goServes(t *testing.T, server, workload *issued) {
	t.Helper()
	https := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.TLS.PeerCertificates[0].URIs[0].String()) // a failed write shows at the client
	}))
	https.Config.ErrorLog = slog.NewLogLogger(slog.NewTextHandler(t.Output(), nil), slog.LevelInfo) // some clients are meant to fail
	https.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair(server)}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool(t, server)}
	https.StartTLS()
	t.Cleanup(https.Close)
	address := https.Listener.Addr().String()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	curl := []string{"--silent", "--show-error", "--max-time", "20", "--cacert", server.file("root.pem"), "--cert", workload.file("chain.pem"), "--key", workload.file("key.pem")}
	resolve := []string{"--resolve", "www.interop.test:" + port + ":127.0.0.1", "https://www.interop.test:" + port}
	for name, args := range map[string][]string{"TLS 1.3": {"--tlsv1.3"}, "TLS 1.2": {"--tls-max", "1.2"}} {
		if answer := mustRun(t, exec.CommandContext(t.Context(), "curl", append(append(append([]string(nil), curl...), args...), resolve...)...)); answer != identity {
			t.Errorf("curl with %s: %s", name, answer)
		}
	}
	if answer := verdictOf(t, "curl", append(curl, "--resolve", otherHost+":"+port+":127.0.0.1", "https://"+otherHost+":"+port)...); answer == "" {
		t.Errorf("curl takes the certificate for %s", otherHost)
	}
	gnutls := []string{"--x509cafile", server.file("root.pem"), "--x509certfile", workload.file("chain.pem"), "--x509keyfile", workload.file("key.pem"),
		"--port", port, "--sni-hostname", "www.interop.test", "127.0.0.1"}
	for host, good := range map[string]bool{"www.interop.test": true, otherHost: false} {
		cmd := exec.CommandContext(t.Context(), "gnutls-cli", append([]string{"--verify-hostname", host}, gnutls...)...)
		cmd.Stdin = strings.NewReader("GET / HTTP/1.0\r\n\r\n")
		out, err := cmd.CombinedOutput()
		if accepted := err == nil && strings.Contains(string(out), identity); accepted != good {
			t.Errorf("gnutls-cli for %s: %v\n%s", host, err, out)
		}
	}
}

// opensslServesGo has crypto/tls as the client of openssl s_server.
func opensslServesGo(t *testing.T, server, workload *issued) {
	t.Helper()
	address := opensslServer(t, server)
	for _, c := range []struct {
		certificate *issued
		host        string
		good        bool
	}{{workload, "www.interop.test", true}, {workload, otherHost, false}, {server, "www.interop.test", false}} {
		connection, err := tls.Dial("tcp", address, &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.host, RootCAs: pool(t, server), Certificates: []tls.Certificate{pair(c.certificate)}})
		answer := ""
		if err == nil {
			if _, err = io.WriteString(connection, "hello\n"); err == nil {
				answer, err = bufio.NewReader(connection).ReadString('\n')
			}
			_ = connection.Close() // the answer is here
		}
		if accepted := err == nil && strings.TrimSpace(answer) == "olleh"; accepted != c.good {
			t.Errorf("%s for %s: %q, %v", c.certificate.name, c.host, answer, err)
		}
	}
}

func pair(c *issued) tls.Certificate {
	certificate := tls.Certificate{PrivateKey: c.key, Leaf: c.chain[0]}
	for _, each := range c.chain {
		certificate.Certificate = append(certificate.Certificate, each.Raw)
	}
	return certificate
}

func pool(t *testing.T, c *issued) *x509.CertPool {
	t.Helper()
	roots := x509.NewCertPool()
	for _, root := range readCertificates(t, c.file("root.pem")) {
		roots.AddCert(root)
	}
	return roots
}

// TestServerByOthers looks at the server's own TLS port.
func TestServerByOthers(t *testing.T) {
	python(t)
	b := newBed(t)
	_, port, err := net.SplitHostPort(b.address)
	if err != nil {
		t.Fatal(err)
	}
	stranger := filepath.Join(t.TempDir(), "stranger.pem")
	writeFile(t, stranger, strangerRoot(t))
	format := "%{http_version} %{http_code} %{ssl_verify_result}"
	for _, host := range []string{"localhost", "127.0.0.1"} {
		args := []string{"--silent", "--show-error", "--max-time", "20", "--cacert", b.rootFile(), "--output", "/dev/null", "--write-out", format, "https://" + host + ":" + port + "/"}
		// no gRPC is spoken, so the answer is HTTP's for that; what matters is that it came by a certificate that curl trusts
		if answer := mustRun(t, exec.CommandContext(t.Context(), "curl", args...)); !strings.HasPrefix(answer, "2 ") || !strings.HasSuffix(answer, " 0") {
			t.Errorf("curl to %s: %s", host, answer)
		}
	}
	for name, args := range map[string][]string{
		"another root":  {"--cacert", stranger, "https://localhost:" + port + "/"},
		"no root":       {"https://localhost:" + port + "/"},
		"another name":  {"--cacert", b.rootFile(), "--resolve", otherHost + ":" + port + ":127.0.0.1", "https://" + otherHost + ":" + port + "/"},
		"plain HTTP":    {"http://localhost:" + port + "/"},
		"HTTP/1.1 only": {"--http1.1", "--cacert", b.rootFile(), "https://localhost:" + port + "/"},
	} {
		if answer := verdictOf(t, "curl", append([]string{"--silent", "--show-error", "--max-time", "20"}, args...)...); answer == "" {
			t.Errorf("curl with %s is content", name)
		}
	}
	for version, good := range map[string]bool{"-tls1_3": true, "-tls1_2": true, "-tls1_1": false, "-tls1": false} {
		out, err := exec.CommandContext(t.Context(), "openssl", "s_client", "-connect", b.address, "-servername", "localhost", "-verify_hostname", "localhost", "-CAfile", b.rootFile(),
			"-no-CApath", "-no-CAstore", "-verify_return_error", "-x509_strict", "-purpose", "sslserver", "-alpn", "h2", "-cipher", "DEFAULT@SECLEVEL=0", version).CombinedOutput()
		if accepted := err == nil && strings.Contains(string(out), "ALPN protocol: h2") && strings.Contains(string(out), "Verify return code: 0 (ok)"); accepted != good {
			t.Errorf("openssl s_client %s: %v\n%s", version, err, out)
		}
	}
	if answer := verdictOf(t, "gnutls-cli", "--x509cafile", b.rootFile(), "--alpn", "h2", "--port", port, "--verify-hostname", "localhost", "--logfile", "/dev/null", "127.0.0.1"); answer != "" {
		t.Errorf("gnutls-cli: %s", answer)
	}
}
