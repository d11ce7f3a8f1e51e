package server

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	chanceryv1 "github.com/chancery-ca/chancery/api/chancery/v1"
	"github.com/chancery-ca/chancery/ca/errkind"
)

// calls sees every call of every service, ours and gRPC's own: each has a deadline, is counted, and cannot end the process by a panic.
type calls struct {
	timeout time.Duration
	logger  *slog.Logger
	stop    <-chan struct{} // closed when the server drains
	total   *prometheus.CounterVec
}

func newCalls(config Config, stop <-chan struct{}) *calls {
	c := &calls{timeout: config.RequestTimeout, logger: config.Logger, stop: stop, total: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "chancery_grpc_calls_total", Help: "gRPC calls answered, by method and code. Calls of methods that do not exist are not counted.",
	}, []string{"method", "code"})}
	config.Registerer.MustRegister(c.total)
	return c
}

func (c *calls) options() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.InTapHandle(c.limit), grpc.UnaryInterceptor(c.unary), grpc.StreamInterceptor(c.stream)}
}

// lasting are the streams that live for as long as their callers want.
var lasting = map[string]bool{
	chanceryv1.CertificateAuthority_WatchTrustBundle_FullMethodName: true,
	healthpb.Health_Watch_FullMethodName:                            true,
}

// limit gives a call its deadline before anything of it is read but the headers: only here does it also bound a caller who opens a call and
// then sends nothing, or a byte a minute. (It runs in the transport, and has to return at once.)
func (c *calls) limit(ctx context.Context, info *tap.Info) (context.Context, error) {
	if lasting[info.FullMethodName] {
		return ctx, nil
	}
	limited, cancel := context.WithTimeout(ctx, c.timeout) //nolint:gosec // G118: the transport ends the parent with the call, and this with it
	_ = cancel
	return limited, nil
}

func (c *calls) unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (response any, err error) {
	defer c.count(info.FullMethod, &err)
	defer c.recovered(ctx, &err)
	return handler(ctx, request)
}

func (c *calls) stream(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	return c.answer(info.FullMethod, stream, func(stream grpc.ServerStream) error { return handler(service, stream) })
}

// answer runs a call.
func (c *calls) answer(method string, stream grpc.ServerStream, call func(grpc.ServerStream) error) (err error) {
	defer c.count(method, &err)
	defer c.recovered(stream.Context(), &err)
	if method == healthpb.Health_Watch_FullMethodName {
		return c.untilStop(stream, call)
	}
	return call(stream)
}

// untilStop ends a stream of gRPC's health service, which would not end by itself, when the server drains: otherwise one watcher would hold
// up every stop for the whole drain timeout.
func (c *calls) untilStop(stream grpc.ServerStream, call func(grpc.ServerStream) error) error {
	ctx, cancel := context.WithCancel(stream.Context())
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	watching.Go(func() {
		select {
		case <-c.stop:
			cancel()
		case <-ctx.Done():
		}
	})
	err := call(ending{stream, ctx})
	select {
	case <-c.stop:
		return statusOf(stopping())
	default:
		return err
	}
}

// ending is a stream with another context.
type ending struct {
	grpc.ServerStream
	ctx context.Context
}

func (e ending) Context() context.Context { return e.ctx }

func stopping() error {
	return errkind.New(errkind.Unavailable, "the server is stopping; call again")
}

func (c *calls) count(method string, err *error) {
	c.total.WithLabelValues(method, status.Code(*err).String()).Inc()
}

// recovered turns a panic of a handler into an internal error. What was panicked with is shown only if the runtime made it: other
// values may hold anything. A stack holds addresses, not contents.
func (c *calls) recovered(ctx context.Context, err *error) {
	if cause := recover(); cause != nil {
		text := fmt.Sprintf("%T", cause)
		if made, ok := cause.(runtime.Error); ok {
			text = made.Error()
		}
		c.logger.ErrorContext(ctx, "a call panicked", "cause", text, "stack", string(debug.Stack()))
		*err = statusOf(errkind.New(errkind.Internal, "internal error; the server's log has the cause"))
	}
}
