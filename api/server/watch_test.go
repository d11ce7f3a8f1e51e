package server

import (
	"context"
	"runtime"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	chanceryv1 "github.com/chancery-ca/chancery/api/chancery/v1"
)

// watcher is a caller of WatchTrustBundle, with what lets it leave.
type watcher struct {
	chanceryv1.CertificateAuthority_WatchTrustBundleClient
	leave context.CancelFunc
}

func (b *bed) watch() watcher {
	b.t.Helper()
	ctx, leave := context.WithCancel(within(b.t))
	stream, err := b.chancery().WatchTrustBundle(ctx, &chanceryv1.WatchTrustBundleRequest{})
	must(b.t, err)
	return watcher{stream, leave}
}

func next(t *testing.T, stream watcher) *chanceryv1.TrustBundle {
	t.Helper()
	message, err := stream.Recv()
	must(t, err)
	return message.GetBundle()
}

// TestWatchTrustBundle: the bundle comes at once, and again each time it is another; nobody needs a credential.
func TestWatchTrustBundle(t *testing.T) {
	b := newBed(t)
	early := b.watch()
	first := next(t, early)
	if first.GetTrustDomain() != "example.org" || len(first.GetAnchors()) != 2 || first.GetSequence() == 0 {
		t.Fatalf("the first bundle is %v", first)
	}
	current, err := b.chancery().GetTrustBundle(within(t), &chanceryv1.GetTrustBundleRequest{})
	must(t, err)
	if current.GetBundle().GetSequence() != first.GetSequence() {
		t.Errorf("watchers are told sequence %d, others %d", first.GetSequence(), current.GetBundle().GetSequence())
	}

	now := time.Now()
	last := first
	for range 3 {
		// another policy with the same anchors is no news
		must(t, b.authority.Replace(t.Context(), policy(t, b.signer)))
		renewed := hierarchy(t, now)
		b.signer.replace(backend(t, renewed, now, renewed.Root, b.hierarchy.Root))
		must(t, b.authority.Replace(t.Context(), policy(t, b.signer)))
		got := next(t, early)
		if got.GetSequence() != last.GetSequence()+1 || string(got.GetAnchors()[0]) != string(renewed.Root.Raw) {
			t.Errorf("sequence %d came after %d", got.GetSequence(), last.GetSequence())
		}
		last = got
	}
	if got := next(t, b.watch()); got.GetSequence() != last.GetSequence() {
		t.Errorf("who comes late is told sequence %d", got.GetSequence())
	}
	b.server.Drain()
	_, err = early.Recv()
	wantCode(t, err, codes.Unavailable)
}

func TestWatchersAreLimited(t *testing.T) {
	b := newBed(t, func(s *setup) { s.config.Limits.Watchers = 2 })
	first, second := b.watch(), b.watch()
	next(t, first)
	next(t, second)
	_, err := b.watch().Recv()
	got := wantCode(t, err, codes.ResourceExhausted)
	if retryDelay(got) <= 0 {
		t.Error("the caller is not told when to come back")
	}
	first.leave()
	_, err = first.Recv()
	wantCode(t, err, codes.Canceled)
	for err != nil { // the server hears of it a moment later
		_, err = b.watch().Recv()
	}
}

// TestWatcherWithoutAMessage: who opens the stream and says nothing takes a place like any other.
func TestWatcherWithoutAMessage(t *testing.T) {
	b := newBed(t, func(s *setup) { s.config.Limits.Watchers = 1 })
	description := &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}
	silent, err := b.conn.NewStream(within(t), description, chanceryv1.CertificateAuthority_WatchTrustBundle_FullMethodName)
	must(t, err)
	for len(b.server.watch) == 0 {
		runtime.Gosched() // until the silent one's call has arrived
	}
	_, err = b.watch().Recv()
	wantCode(t, err, codes.ResourceExhausted)
	must(t, silent.SendMsg(&chanceryv1.WatchTrustBundleRequest{}))
	must(t, silent.CloseSend())
	must(t, silent.RecvMsg(new(chanceryv1.WatchTrustBundleResponse)))
}

// TestDrainEndsHealthWatchers: gRPC's own health streams would hold up a stop for ever.
func TestDrainEndsHealthWatchers(t *testing.T) {
	b := newBed(t)
	stream, err := healthpb.NewHealthClient(b.conn).Watch(within(t), &healthpb.HealthCheckRequest{})
	must(t, err)
	status, err := stream.Recv()
	must(t, err)
	if status.GetStatus() != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Errorf("before anyone has looked, health is %s", status.GetStatus())
	}
	b.server.SetServing(true)
	status, err = stream.Recv()
	must(t, err)
	if status.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("health is %s", status.GetStatus())
	}
	b.server.Drain()
	b.server.Drain() // once more does no harm
	for err == nil {
		_, err = stream.Recv() // the news that the server stops may come before the end
	}
	wantCode(t, err, codes.Unavailable)
	stopped := make(chan struct{})
	go func() {
		b.grpc.GracefulStop()
		close(stopped)
	}()
	await(t, stopped, "the graceful stop")
}
