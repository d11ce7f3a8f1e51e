//go:build e2e

package e2e

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// gate passes connections on to an API server, until it is shut: then it still takes them, and nothing comes through.
type gate struct {
	listener net.Listener
	passing  sync.RWMutex // held for writing while the gate is shut
}

func newGate(t *testing.T, target string) *gate {
	t.Helper()
	address, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{listener: listener}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return // it is closed
			}
			to, err := net.Dial("tcp", address.Host)
			if err != nil {
				_ = from.Close()
				continue
			}
			go g.pass(from, to)
			go g.pass(to, from)
		}
	}()
	return g
}

func (g *gate) url() string { return "https://" + g.listener.Addr().String() }
func (g *gate) shut()       { g.passing.Lock() }
func (g *gate) open()       { g.passing.Unlock() }

func (g *gate) pass(to, from net.Conn) {
	defer to.Close()
	_, _ = io.Copy(to, held{from, &g.passing}) // either side may go at any time
}

// held reads only while the gate is open.
type held struct {
	io.Reader
	passing *sync.RWMutex
}

func (h held) Read(into []byte) (int, error) {
	n, err := h.Reader.Read(into)
	h.passing.RLock()
	defer h.passing.RUnlock()
	return n, err
}
