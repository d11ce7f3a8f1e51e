package server

import (
	"context"
	"crypto"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
)

// handshakes are TLS credentials that bound how many handshakes are computed at once: from the time when the client's hello has been read to the
// server's signature, between which nothing is waited for. So a thousand new connections at once wait in a line and not on the processors, where
// everything else would wait behind them.
type handshakes struct {
	credentials.TransportCredentials // for all but ServerHandshake

	config *tls.Config
	places chan struct{}
}

// longestTurn bounds how long a handshake keeps its place: a client that is asked for another hello and does not send it must not.
const longestTurn = time.Second

// newHandshakes returns credentials of config; limit 0 means two handshakes for each processor.
func newHandshakes(config *tls.Config, limit int) *handshakes {
	if limit == 0 {
		limit = 2 * runtime.GOMAXPROCS(0)
	}
	return &handshakes{TransportCredentials: credentials.NewTLS(config), config: config, places: make(chan struct{}, limit)}
}

// ServerHandshake shakes hands on a connection, in its turn.
func (h *handshakes) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	t := &turn{places: h.places}
	defer t.end()
	config := h.config.Clone()
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) { return nil, t.begin(hello.Context()) }
	config.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		certificate, err := h.config.GetCertificate(hello)
		if err != nil {
			return nil, err
		}
		key, ok := certificate.PrivateKey.(crypto.Signer)
		if !ok {
			return nil, errors.New("the serving certificate's key cannot sign")
		}
		own := *certificate
		own.PrivateKey = signingTurn{key, t}
		return &own, nil
	}
	return credentials.NewTLS(config).ServerHandshake(raw)
}

// Clone returns a copy, which shares the places.
func (h *handshakes) Clone() credentials.TransportCredentials {
	return &handshakes{TransportCredentials: h.TransportCredentials.Clone(), config: h.config.Clone(), places: h.places}
}

// turn is a handshake's place among those that are computed.
type turn struct {
	places chan struct{}

	mu    sync.Mutex // guards what follows
	has   bool
	limit *time.Timer
}

func (t *turn) begin(ctx context.Context) error {
	wait := time.NewTimer(handshakeTimeout)
	defer wait.Stop()
	select {
	case t.places <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-wait.C:
		return errors.New("the connection waited too long for its turn to shake hands")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.has = true
	t.limit = time.AfterFunc(longestTurn, t.end)
	return nil
}

func (t *turn) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.has {
		t.has = false
		t.limit.Stop()
		<-t.places
	}
}

// signingTurn ends the turn with the server's signature: what remains of the handshake is the client's.
type signingTurn struct {
	crypto.Signer
	turn *turn
}

// Sign implements crypto.Signer.
func (s signingTurn) Sign(random io.Reader, digest []byte, options crypto.SignerOpts) ([]byte, error) {
	defer s.turn.end()
	return s.Signer.Sign(random, digest, options)
}
