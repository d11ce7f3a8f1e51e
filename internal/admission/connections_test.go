package admission_test

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"testing"

	"github.com/chancery-ca/chancery/internal/admission"
)

// arriving is a listener whose connections come from the addresses that a test names.
type arriving struct {
	net.Listener
	queue chan net.Conn
}

func (a arriving) Accept() (net.Conn, error) {
	conn, ok := <-a.queue
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

type from struct {
	net.Conn
	remote string
	closed chan struct{}
	once   *sync.Once
}

func (f from) RemoteAddr() net.Addr { return address(f.remote) }

func (f from) Close() error {
	f.once.Do(func() { close(f.closed) })
	return nil
}

type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

func TestConnections(t *testing.T) {
	type refusal struct {
		from string
		all  bool
	}
	var refusals []refusal
	connections, err := admission.NewConnections(4, 2, func(from netip.Prefix, all bool) { refusals = append(refusals, refusal{from.String(), all}) })
	if err != nil {
		t.Fatal(err)
	}
	queue := make(chan net.Conn, 1)
	listener := connections.Listener(arriving{queue: queue})
	// a connection that is let in ends the call of Accept; one that is not is seen closed, before another comes that is
	var open []net.Conn
	come := func(remote string) bool {
		t.Helper()
		conn := from{remote: remote, closed: make(chan struct{}), once: new(sync.Once)}
		accepted := make(chan net.Conn, 1)
		go func() {
			if c, err := listener.Accept(); err == nil {
				accepted <- c
			}
			close(accepted)
		}()
		queue <- conn
		select {
		case c := <-accepted:
			open = append(open, c)
			return true
		case <-conn.closed:
			close(queue) // ends the Accept that waits; no more come in this test
			<-accepted
			return false
		}
	}
	for _, step := range []struct {
		remote string
		ok     bool
	}{
		{"192.0.2.1:1000", true}, {"192.0.2.1:1001", true}, {"192.0.2.2:1000", true},
	} {
		if got := come(step.remote); got != step.ok {
			t.Errorf("%s is let in: %t", step.remote, got)
		}
	}
	if n := connections.Open(); n != 3 {
		t.Errorf("%d are open", n)
	}
	if come("[::ffff:192.0.2.1]:1002") {
		t.Error("a third of one address is let in")
	}
	if len(refusals) != 1 || refusals[0] != (refusal{"192.0.2.1/32", false}) {
		t.Errorf("told of %v", refusals)
	}
	for _, c := range open {
		for range 2 { // counted once
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestConnectionsOverRealSockets(t *testing.T) {
	told := make(chan bool, 100)
	connections, err := admission.NewConnections(3, 3, func(_ netip.Prefix, all bool) { told <- all })
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener := connections.Listener(l)
	accepted := make(chan net.Conn, 10)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			accepted <- conn
		}
	})
	dial := func() net.Conn {
		t.Helper()
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	var clients, servers []net.Conn
	for range 3 {
		clients, servers = append(clients, dial()), append(servers, <-accepted)
	}
	fourth, err := net.Dial("tcp", l.Addr().String())
	<-told
	if err == nil { // the reset can be faster
		clients = append(clients, fourth)
		if _, err := fourth.Read(make([]byte, 1)); err == nil { // it is told, and does not hang
			t.Error("a connection above the bound reads something")
		}
	}
	if err := servers[0].Close(); err != nil {
		t.Error(err)
	}
	clients = append(clients, dial())
	servers = append(servers, <-accepted) // the place is used again
	if n := connections.Open(); n != 3 {
		t.Errorf("%d are open", n)
	}
	for _, c := range append(clients, servers...) {
		if err := c.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	}
	if n := connections.Open(); n != 0 {
		t.Errorf("%d are open at the end", n)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	serving.Wait()
}

func TestNetwork(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.1": "192.0.2.1/32", "::ffff:192.0.2.1": "192.0.2.1/32", "2001:db8:0:1:2:3:4:5": "2001:db8:0:1::/64", "fe80::1%eth0": "fe80::/64",
	} {
		if got := admission.Network(netip.MustParseAddr(text)).String(); got != want {
			t.Errorf("%s counts as %s, want %s", text, got, want)
		}
	}
	if admission.Network(netip.Addr{}).IsValid() {
		t.Error("no address counts as one")
	}
}
