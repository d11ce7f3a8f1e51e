package cfssl

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"
)

// server is where a CFSSL server listens.
type server struct {
	base   string // URL before the endpoint's name
	host   string // whose certificate is expected; empty for a unix socket
	socket string // path of a unix socket
	shown  string
}

// parseServer reads the address of one server.
func parseServer(address string) (server, error) {
	const endpoints = "/api/v1/cfssl/"
	u, err := url.Parse(address)
	plain := err == nil && u.User == nil && u.RawQuery == "" && !u.ForceQuery && u.Fragment == "" && u.Opaque == ""
	switch {
	case plain && u.Scheme == "https" && u.Hostname() != "" && (u.Path == "" || u.Path == "/") && !strings.Contains(u.Host, ","):
		return server{base: "https://" + u.Host + endpoints, host: u.Hostname(), shown: "CFSSL server " + u.Host}, nil
	case plain && u.Scheme == "unix" && u.Host == "" && filepath.IsAbs(u.Path):
		return server{base: "http://cfssl" + endpoints, socket: u.Path, shown: "CFSSL server " + u.Path}, nil
	case plain && u.Scheme == "http":
		return server{}, errors.New("plain http shows and lets anyone change what is signed; use https://HOST:PORT or unix:///PATH")
	}
	// not shown: it may hold a password
	return server{}, errors.New("the address is not https://HOST, https://HOST:PORT or unix:///PATH of one server, without user, path and query")
}

// How long connections live, and how much is read before a body.
const (
	idleTimeout = 30 * time.Second
	keepAlive   = 15 * time.Second
	maxHeader   = 16 << 10
)

// client returns a client for the server alone: no proxy of the environment, no redirect, no cookie, no more connections than configured. It speaks
// HTTP/1.1, where a call that is hung holds up no other, and where nothing that was sent is sent again.
func (to server) client(config Config) (*http.Client, error) {
	dialer := &net.Dialer{Timeout: config.Timeout, KeepAlive: keepAlive}
	transport := &http.Transport{
		DialContext: dialer.DialContext, TLSHandshakeTimeout: config.Timeout, ResponseHeaderTimeout: config.Timeout, IdleConnTimeout: idleTimeout,
		MaxConnsPerHost: config.Connections, MaxIdleConns: config.Connections, MaxIdleConnsPerHost: config.Connections,
		MaxResponseHeaderBytes: maxHeader, DisableCompression: true, Protocols: new(http.Protocols),
	}
	transport.Protocols.SetHTTP1(true)
	switch {
	case to.socket != "" && (len(config.ServerCAs) > 0 || config.ServerName != "" || config.Client != nil):
		return nil, errors.New("a unix socket has no TLS; leave the certificates of the server and the client out")
	case to.socket != "":
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", to.socket)
		}
	case len(config.ServerCAs) == 0:
		return nil, errors.New("a server with https needs certificates to verify its own by; the machine's are not used")
	default:
		name := config.ServerName
		if name == "" {
			name = to.host
		}
		pool := x509.NewCertPool()
		for _, certificate := range config.ServerCAs {
			pool.AddCert(certificate)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, ServerName: name, MinVersion: tls.VersionTLS12, Time: config.Now}
		if config.Client != nil {
			transport.TLSClientConfig.Certificates = []tls.Certificate{*config.Client}
		}
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// call sends one request to an endpoint, once, and reads the answer. It waits for a connection as long as ctx allows.
func (s *Signer) call(ctx context.Context, endpoint string, body []byte) (*result, error) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: waiting for one of %d connections: %w", s.shown, cap(s.slots), ctx.Err())
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base+endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.shown, err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		// the server has gone: what else is open leads nowhere, and each connection would cost an order to find out
		s.client.CloseIdleConnections()
		return nil, fmt.Errorf("%s: %s: %w", s.shown, endpoint, failure(ctx, err))
	}
	defer response.Body.Close()
	result, err := readAnswer(response.StatusCode, response.Body, s.config.Key)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", s.shown, endpoint, failure(ctx, err))
	}
	return result, nil
}

// failure says that a context ended where that is why a call failed, and leaves the URL out.
func failure(ctx context.Context, err error) error {
	var inURL *url.Error
	if errors.As(err, &inURL) {
		err = inURL.Err
	}
	if ended := ctx.Err(); ended != nil && !errors.Is(err, ended) {
		return fmt.Errorf("%w (%w)", ended, err)
	}
	return err
}
