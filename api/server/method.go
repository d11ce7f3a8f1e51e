package server

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

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
				defer s.config.Track()()
				response, err := call(stream.Context(), request)
				if err != nil {
					return statusOf(err)
				}
				return stream.SendMsg(response)
			})
		},
	}
}
