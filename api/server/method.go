package server

import (
	"context"
	"log/slog"
	"runtime/debug"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/chancery-ca/chancery/ca/errkind"
)

// gate is what every method of ours passes: bounded metadata, a deadline, a place among the calls in flight, and no panic that ends the process.
type gate struct {
	slots   chan struct{}
	timeout time.Duration
	logger  *slog.Logger
	track   func() (done func())
}

// admissionWait is how long a call waits for a place before it is told to come back.
const admissionWait = time.Second

// unary makes a unary method. It is registered as a stream, which looks the same on the wire: only so can a message that is too large or does not
// decode be answered as the caller's fault. (As a unary method gRPC answers ResourceExhausted or Internal by itself, which clients retry.)
func unary[Request, Response any](g *gate, name string, call func(context.Context, *Request) (*Response, error)) grpc.StreamDesc {
	return grpc.StreamDesc{
		StreamName: name,
		Handler: func(_ any, stream grpc.ServerStream) error {
			if err := checkMetadata(stream.Context()); err != nil {
				return statusOf(err)
			}
			request := new(Request)
			if err := stream.RecvMsg(request); err != nil {
				return unreadable(err)
			}
			response, err := admit(stream.Context(), g, func(ctx context.Context) (*Response, error) { return call(ctx, request) })
			if err != nil {
				return statusOf(err)
			}
			return stream.SendMsg(response)
		},
	}
}

// admit runs a call in a slot, under the gate's deadline.
func admit[Response any](ctx context.Context, g *gate, call func(context.Context) (*Response, error)) (response *Response, err error) {
	ctx, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	select {
	case g.slots <- struct{}{}:
	default:
		wait := time.NewTimer(admissionWait)
		defer wait.Stop()
		select {
		case g.slots <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-wait.C:
			return nil, errkind.New(errkind.Exhausted, "the server has %d calls in flight, its limit; try again", cap(g.slots)).After(2 * time.Second)
		}
	}
	defer func() { <-g.slots }()
	defer g.track()()
	defer g.recovered(ctx, &err)
	return call(ctx)
}

// recovered turns a panic of a handler into an internal error. A stack holds addresses, not contents.
func (g *gate) recovered(ctx context.Context, err *error) {
	if cause := recover(); cause != nil {
		g.logger.ErrorContext(ctx, "a call panicked", "stack", string(debug.Stack()))
		*err = errkind.New(errkind.Internal, "internal error; the server's log has the cause")
	}
}

// unreadable answers for a message that could not be received.
func unreadable(err error) error {
	switch status.Code(err) {
	case codes.ResourceExhausted:
		return statusOf(errkind.New(errkind.Invalid, "the request is longer than %d bytes; a CSR has at most 16 KiB and the rest is small", maxMessage))
	case codes.Internal:
		return statusOf(errkind.New(errkind.Invalid, "the request does not decode as the message of this method"))
	default:
		return err
	}
}
