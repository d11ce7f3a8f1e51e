package server

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/chancery-ca/chancery/ca/errkind"
)

// gate is what every unary method of ours passes: a place among the calls in flight.
type gate struct {
	slots chan struct{}
	track func() (done func())
}

// admissionWait is how long a call waits for a place before it is told to come back.
const admissionWait = time.Second

// message is a protobuf message of type T, by its pointer.
type message[T any] interface {
	*T
	proto.Message
}

// unary makes a unary method of a service. It is registered as a stream, which looks the same on the wire, so that it reads its message itself; see
// receive.
func unary[Request any, Pointer message[Request], Response proto.Message](s *Server, service, name string, call func(context.Context, Pointer) (Response, error)) grpc.StreamDesc {
	method := "/" + service + "/" + name
	return grpc.StreamDesc{
		StreamName: name,
		Handler: func(_ any, stream grpc.ServerStream) error {
			// gRPC calls no interceptor for a stream that streams nothing
			return s.calls.answer(method, stream, func(stream grpc.ServerStream) error {
				if err := checkMetadata(stream.Context()); err != nil {
					return statusOf(err)
				}
				request := Pointer(new(Request))
				if err := receive(stream, request); err != nil {
					return err
				}
				response, err := admit(stream.Context(), s.gate, func(ctx context.Context) (Response, error) { return call(ctx, request) })
				if err != nil {
					return statusOf(err)
				}
				return stream.SendMsg(response)
			})
		},
	}
}

// admit runs a call in a slot.
func admit[Response any](ctx context.Context, g *gate, call func(context.Context) (Response, error)) (response Response, err error) {
	select {
	case g.slots <- struct{}{}:
	default:
		wait := time.NewTimer(admissionWait)
		defer wait.Stop()
		select {
		case g.slots <- struct{}{}:
		case <-ctx.Done():
			return response, ctx.Err()
		case <-wait.C:
			return response, errkind.New(errkind.Exhausted, "the server has %d calls in flight, its limit; try again", cap(g.slots)).After(2 * time.Second)
		}
	}
	defer func() { <-g.slots }()
	defer g.track()()
	return call(ctx)
}
