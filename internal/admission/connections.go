package admission

import (
	"errors"
	"net"
	"net/netip"
	"sync"
)

// Network returns what counts as one address of a caller: an IPv4 address, or the /64 of an IPv6 address, of which everyone has all. It is the zero
// Prefix for what is no address.
func Network(address netip.Addr) netip.Prefix {
	address = address.Unmap().WithZone("")
	length := address.BitLen()
	if address.Is6() {
		length = 64
	}
	return netip.PrefixFrom(address, length).Masked()
}

// Connections bounds the open connections of all listeners that it makes, and those of one address. A connection above a bound is closed at once: to let
// it wait, as a full backlog does, would tell its owner nothing, and a few who open connections and do nothing would hold up everybody. Safe for
// concurrent use.
type Connections struct {
	most, share int
	refused     func(from netip.Prefix, all bool)

	mu        sync.Mutex // guards what follows
	open      int
	byNetwork map[netip.Prefix]int
}

// NewConnections returns Connections that lets most be open, and share of them from one Network. refused is told of each connection that is closed,
// with whether that is because most are open; it has to return at once.
func NewConnections(most, share int, refused func(from netip.Prefix, all bool)) (*Connections, error) {
	if most < 1 || share < 1 || refused == nil {
		return nil, errors.New("admission: connections need bounds of at least one and somebody who is told what was refused")
	}
	return &Connections{most: most, share: share, refused: refused, byNetwork: make(map[netip.Prefix]int)}, nil
}

// Open returns how many connections are open.
func (c *Connections) Open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open
}

// Listener returns l, which accepts within the bounds.
func (c *Connections) Listener(l net.Listener) net.Listener { return &bounded{Listener: l, all: c} }

func (c *Connections) add(from netip.Prefix) bool {
	c.mu.Lock()
	full, greedy := c.open >= c.most, c.byNetwork[from] >= c.share
	if !full && !greedy {
		c.open++
		c.byNetwork[from]++
	}
	c.mu.Unlock()
	if full || greedy {
		c.refused(from, !greedy)
		return false
	}
	return true
}

func (c *Connections) remove(from netip.Prefix) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
	if c.byNetwork[from]--; c.byNetwork[from] == 0 {
		delete(c.byNetwork, from)
	}
}

type bounded struct {
	net.Listener
	all *Connections
}

// Accept implements net.Listener.
func (b *bounded) Accept() (net.Conn, error) {
	for {
		conn, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		var from netip.Prefix
		if address, err := netip.ParseAddrPort(conn.RemoteAddr().String()); err == nil {
			from = Network(address.Addr())
		}
		if b.all.add(from) {
			return &counted{Conn: conn, leave: sync.OnceFunc(func() { b.all.remove(from) })}, nil
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset, of which nothing stays behind; should it fail, closing does
		}
		_ = conn.Close() // its owner learns it, or is gone
	}
}

type counted struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (c *counted) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
