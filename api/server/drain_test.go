package server

import (
	"net"
	"testing"

	"google.golang.org/grpc/codes"

	chanceryv1 "github.com/chancery-ca/chancery/api/chancery/v1"
)

// TestGracefulStopDuringASignature: what is being signed when the server stops still reaches its caller.
func TestGracefulStopDuringASignature(t *testing.T) {
	b := newBed(t)
	arrived := b.signer.close()
	answer := make(chan *chanceryv1.IssueCertificateResponse, 1)
	failed := make(chan error, 1)
	go func() {
		response, err := b.issue()
		failed <- err
		answer <- response
	}()
	await(t, arrived, "the call at the signer")

	watch := b.watch()
	next(t, watch)
	stopped := make(chan struct{})
	go func() {
		b.server.Drain()
		b.grpc.GracefulStop()
		close(stopped)
	}()
	_, err := watch.Recv()
	wantCode(t, err, codes.Unavailable)
	for { // until the listener is closed, so that the stop is under way
		conn, err := net.Dial("tcp", b.address)
		if err != nil {
			break
		}
		must(t, conn.Close())
	}
	select {
	case <-stopped:
		t.Fatal("the server stopped with a call under way")
	default:
	}
	b.signer.open()
	must(t, await(t, failed, "the answer"))
	if n := len(await(t, answer, "the answer").GetChain()); n != 2 {
		t.Errorf("the chain has %d certificates", n)
	}
	await(t, stopped, "the stop")
	if n := len(b.issued()); n != 1 {
		t.Errorf("%d certificates are in the ledger", n)
	}
}

// TestStopWaitsForHandlers: a stop that does not let calls finish still waits for their handlers, since the ledger is closed after it.
func TestStopWaitsForHandlers(t *testing.T) {
	b := newBed(t)
	arrived := b.signer.close()
	failed := make(chan error, 1)
	go func() {
		_, err := b.issue()
		failed <- err
	}()
	await(t, arrived, "the call at the signer")
	b.grpc.Stop()
	if n := b.server.admit.limiter.State().InFlight; n != 0 {
		t.Errorf("%d calls are still at work after the stop", n)
	}
	if err := await(t, failed, "the answer"); err == nil {
		t.Error("the call succeeded")
	}
	if n := len(b.issued()); n != 0 {
		t.Errorf("%d certificates are in the ledger", n)
	}
}
