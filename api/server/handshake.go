package server

import (
	"crypto/tls"
	"errors"
	"net"
	"runtime"
	"time"

	"google.golang.org/grpc/credentials"
)

// handshakes are TLS credentials that bound how many handshakes are computed at once. So a thousand new connections at once wait in a line and not on
// the processors, where everything else would wait behind them.
//
// A handshake has a place only while it computes: not while it waits for what the client sends, so that no client can keep a place by being slow. Places
// for what answers a client's first flight, and for what comes after, are apart: a handshake that has begun does not wait behind all that have not.
type handshakes struct {
	credentials.TransportCredentials // for all but ServerHandshake

	first, later chan struct{} // an element for each that is computed
}

// newHandshakes returns credentials of config; limit 0 means two handshakes for each processor.
func newHandshakes(config *tls.Config, limit int) *handshakes {
	if limit == 0 {
		limit = 2 * runtime.GOMAXPROCS(0)
	}
	return &handshakes{TransportCredentials: credentials.NewTLS(config), first: make(chan struct{}, limit), later: make(chan struct{}, limit)}
}

// ServerHandshake shakes hands on a connection, in its turn.
func (h *handshakes) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	c := &inTurn{Conn: raw, next: h.first, later: h.later}
	defer c.over()
	return h.TransportCredentials.ServerHandshake(c)
}

// Clone returns a copy, which shares the places.
func (h *handshakes) Clone() credentials.TransportCredentials {
	return &handshakes{TransportCredentials: h.TransportCredentials.Clone(), first: h.first, later: h.later}
}

// inTurn is a connection whose handshake gets a place when something has been read, and gives it back before it waits for the network. One goroutine
// has it until the handshake is over; then it is a connection like any other.
type inTurn struct {
	net.Conn

	next, later chan struct{} // next is nil when the handshake is over
	has         chan struct{} // where the place is from; nil without one
}

func (c *inTurn) Read(p []byte) (int, error) {
	if c.next == nil {
		return c.Conn.Read(p)
	}
	c.giveBack()
	n, err := c.Conn.Read(p)
	if err != nil {
		return n, err
	}
	if err := c.take(); err != nil {
		return 0, err
	}
	return n, nil
}

// Write ends the turn: what is computed for one flight is sent with one call, and then it is the client's turn.
func (c *inTurn) Write(p []byte) (int, error) {
	if c.next != nil {
		c.giveBack()
		c.next = c.later
	}
	return c.Conn.Write(p)
}

func (c *inTurn) over() {
	c.giveBack()
	c.next = nil
}

func (c *inTurn) take() error {
	select {
	case c.next <- struct{}{}:
	default:
		limit := time.NewTimer(handshakeTimeout)
		defer limit.Stop()
		select {
		case c.next <- struct{}{}:
		case <-limit.C:
			return errors.New("the connection waited too long for its turn to shake hands")
		}
	}
	c.has = c.next
	return nil
}

func (c *inTurn) giveBack() {
	if c.has != nil {
		<-c.has
		c.has = nil
	}
}
