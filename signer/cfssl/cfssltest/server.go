// Package cfssltest is a stand-in for a CFSSL server, for tests that need one to misbehave or cannot build the real one.
//
// It speaks authsign and info as cfssl serve v1.6.5 does, with its peculiarities: dates come from the profile alone, an unknown profile is the default
// profile, a serial number is taken only by a profile that says so, and an empty subject is filled from the request. The e2e tests of signer/cfssl
// hold the backend against the real server.
package cfssltest

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chancery-ca/chancery/ca/chain"
	"github.com/chancery-ca/chancery/ca/identity"
)

// Authority is the issuing certificate of a server and its key.
type Authority struct {
	Certificate *x509.Certificate
	Key         crypto.Signer
}

// Profile is a signing profile of the server's configuration. Every one is authenticated by the server's one key.
type Profile struct {
	ExtKeyUsage      []x509.ExtKeyUsage
	Expiry, Backdate time.Duration
	// ClientSerials is ClientProvidesSerialNumbers.
	ClientSerials bool
	// DropsSubject is a CSRWhitelist without subject.
	DropsSubject bool
}

// Order is what the server was asked for and would certify.
type Order struct {
	Leaf    chain.Leaf
	Profile string // as asked for
	Label   string
}

// Refusal is an error of the server's in its own words.
type Refusal struct {
	Status, Code int
	Message      string
}

// Config says how a server behaves.
type Config struct {
	Authority Authority
	Profiles  map[string]Profile
	Default   Profile
	// Now is the server's clock; nil means time.Now.
	Now func() time.Time
	// Key is the authentication key in hexadecimal; empty means a random one.
	Key string
	// ClientCAs make the server ask for a client certificate.
	ClientCAs *x509.CertPool
	// Socket is the path of a unix socket to listen on without TLS; empty means TLS on a free port of 127.0.0.1.
	Socket string
	// TLS changes the server's certificate before it is signed; nil for none.
	TLS func(*x509.Certificate)
}

// Server is a running server.
type Server struct {
	// Address is what signer.cfssl.server is set to, CA what verifies the server's certificate, Key the authentication key in hexadecimal.
	Address, Key string
	CA           *x509.Certificate

	config   Config
	http     *httptest.Server
	key      []byte
	answer   atomic.Pointer[func(Order) ([]byte, *Refusal)]
	fault    atomic.Pointer[http.HandlerFunc]
	requests atomic.Int64

	mu       sync.Mutex
	open     map[net.Conn]bool
	most     int
	accepted int
}

// New starts a server that runs until the test ends.
func New(t testing.TB, config Config) *Server {
	t.Helper()
	if config.Now == nil {
		config.Now = time.Now
	}
	s := &Server{config: config, open: make(map[net.Conn]bool)}
	if s.Key = config.Key; s.Key == "" {
		s.Key = hex.EncodeToString(randomOctets(sha256.Size))
	}
	var err error
	s.key, err = hex.DecodeString(s.Key)
	must(t, err)
	mux := http.NewServeMux()
	mux.HandleFunc("/api/v1/cfssl/authsign", s.authsign)
	mux.HandleFunc("/api/v1/cfssl/info", s.info)
	s.http = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		if fault := s.fault.Load(); fault != nil {
			_, _ = io.Copy(io.Discard, r.Body) // only then does net/http notice a caller that goes
			(*fault)(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	s.http.Config.ConnState = s.connection
	s.http.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // broken handshakes are what tests make
	if config.Socket != "" {
		listener, err := net.Listen("unix", config.Socket)
		must(t, err)
		_ = s.http.Listener.Close() // the one that httptest chose
		s.http.Listener = listener
		s.http.Start()
		s.Address = "unix://" + config.Socket
	} else {
		s.http.TLS = s.tls(t)
		s.http.StartTLS()
		s.Address = s.http.URL
	}
	t.Cleanup(s.Stop)
	return s
}

// Stop closes the listener and every connection.
func (s *Server) Stop() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// Answer replaces what the server signs: the function returns a DER certificate or a refusal. Nil brings the right answers back.
func (s *Server) Answer(answer func(Order) ([]byte, *Refusal)) {
	if answer == nil {
		s.answer.Store(nil)
		return
	}
	s.answer.Store(&answer)
}

// Fault replaces the whole handler. Nil brings the right one back.
func (s *Server) Fault(fault http.HandlerFunc) {
	if fault == nil {
		s.fault.Store(nil)
		return
	}
	s.fault.Store(&fault)
}

// Requests returns how many requests have come.
func (s *Server) Requests() int { return int(s.requests.Load()) }

// Connections returns how many are open, how many were at most, and how many were accepted in all.
func (s *Server) Connections() (open, most, accepted int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open), s.most, s.accepted
}

func (s *Server) connection(c net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch state {
	case http.StateNew:
		s.open[c] = true
		s.accepted++
		s.most = max(s.most, len(s.open))
	case http.StateClosed, http.StateHijacked:
		delete(s.open, c)
	default: // it stays open
	}
}

func (s *Server) tls(t testing.TB) *tls.Config {
	t.Helper()
	material := NewTLS(t, s.config.Now(), s.config.TLS)
	s.CA = material.CA
	config := &tls.Config{Certificates: []tls.Certificate{material.Certificate}, MinVersion: tls.VersionTLS12, Time: s.config.Now}
	if s.config.ClientCAs != nil {
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, s.config.ClientCAs
	}
	return config
}

func (s *Server) authsign(w http.ResponseWriter, r *http.Request) {
	var outer struct {
		Token, Request []byte
	}
	var inner struct {
		Hosts   []string
		Request string `json:"certificate_request"`
		Subject *struct {
			CN string
		}
		Profile, Label string
		Serial         *big.Int
	}
	if r.Method != http.MethodPost {
		refuse(w, Refusal{http.StatusMethodNotAllowed, http.StatusMethodNotAllowed, "Method is not allowed"})
		return
	}
	if json.NewDecoder(r.Body).Decode(&outer) != nil || json.Unmarshal(outer.Request, &inner) != nil {
		refuse(w, Refusal{http.StatusBadRequest, http.StatusBadRequest, "Unable to parse authenticated sign request"})
		return
	}
	mac := hmac.New(sha256.New, s.key)
	mac.Write(outer.Request)
	if !hmac.Equal(mac.Sum(nil), outer.Token) {
		refuse(w, Refusal{http.StatusBadRequest, http.StatusBadRequest, "invalid token"})
		return
	}
	profile, ok := s.config.Profiles[inner.Profile]
	if !ok {
		profile = s.config.Default
	}
	block, _ := pem.Decode([]byte(inner.Request))
	if block == nil {
		refuse(w, Refusal{http.StatusBadRequest, 9002, "Failed to decode certificate request"})
		return
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil || request.CheckSignature() != nil {
		refuse(w, Refusal{http.StatusBadRequest, 9003, "Failed to parse certificate request"})
		return
	}
	leaf, refusal := s.leaf(profile, request, inner.Hosts, inner.Serial)
	var der []byte
	if refusal == nil {
		sign := s.sign
		if answer := s.answer.Load(); answer != nil {
			sign = *answer
		}
		der, refusal = sign(Order{Leaf: leaf, Profile: inner.Profile, Label: inner.Label})
	}
	if refusal != nil {
		refuse(w, *refusal)
		return
	}
	succeed(w, der)
}

// leaf says what the server would certify.
func (s *Server) leaf(p Profile, request *x509.CertificateRequest, hosts []string, serial *big.Int) (chain.Leaf, *Refusal) {
	backdate := p.Backdate
	if backdate == 0 {
		backdate = 5 * time.Minute
	}
	leaf := chain.Leaf{SPKI: request.RawSubjectPublicKeyInfo, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: slices.Clone(p.ExtKeyUsage)}
	leaf.NotBefore = s.config.Now().UTC().Round(time.Minute).Add(-backdate)
	leaf.NotAfter = leaf.NotBefore.Add(p.Expiry)
	if !p.DropsSubject {
		leaf.Subject = request.RawSubject
	}
	for _, host := range hosts {
		if ip, err := netip.ParseAddr(host); err == nil {
			leaf.Names.IPs = append(leaf.Names.IPs, ip)
		} else if _, err := url.ParseRequestURI(host); err == nil {
			leaf.Names.URIs = append(leaf.Names.URIs, host)
		} else {
			leaf.Names.DNS = append(leaf.Names.DNS, host)
		}
	}
	if hosts == nil {
		leaf.Names = identity.Names{DNS: request.DNSNames}
		for _, uri := range request.URIs {
			leaf.Names.URIs = append(leaf.Names.URIs, uri.String())
		}
	}
	leaf.Serial = serial
	if !p.ClientSerials {
		octets := randomOctets(20)
		octets[0] &= 0x7f
		leaf.Serial = new(big.Int).SetBytes(octets)
	} else if serial == nil {
		return leaf, &Refusal{http.StatusBadRequest, 1400, "Missing serial number in request"}
	}
	return leaf, nil
}

func (s *Server) sign(order Order) ([]byte, *Refusal) {
	unknown := &Refusal{http.StatusBadRequest, 1000, "Unknown certificate error"}
	algorithm, err := chain.AlgorithmFor(s.config.Authority.Key.Public())
	if err != nil {
		return nil, unknown
	}
	tbs, err := order.Leaf.TBS(s.config.Authority.Certificate, algorithm)
	if err != nil {
		return nil, unknown
	}
	der, err := algorithm.Certificate(tbs, s.config.Authority.Key, rand.Reader)
	if err != nil {
		return nil, unknown
	}
	return der, nil
}

func (s *Server) info(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		refuse(w, Refusal{http.StatusMethodNotAllowed, http.StatusMethodNotAllowed, "Method is not allowed"})
		return
	}
	_, _ = io.Copy(io.Discard, r.Body) // its label is that of the one key there is
	succeed(w, s.config.Authority.Certificate.Raw)
}

func succeed(w http.ResponseWriter, der []byte) {
	text := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	write(w, http.StatusOK, map[string]any{
		"success": true, "result": map[string]any{"certificate": text, "usages": []string{"signing"}, "expiry": "1h"}, "errors": []any{}, "messages": []any{},
	})
}

func refuse(w http.ResponseWriter, r Refusal) {
	write(w, r.Status, map[string]any{
		"success": false, "result": nil, "errors": []any{map[string]any{"code": r.Code, "message": r.Message}}, "messages": []any{},
	})
}

func write(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // the caller may be gone
}

func randomOctets(n int) []byte {
	octets := make([]byte, n)
	_, _ = rand.Read(octets) // it never fails
	return octets
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
