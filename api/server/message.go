package server

import (
	"encoding/binary"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/chancery-ca/chancery/ca/errkind"
)

// frames is what gRPC's transport offers its own reader of messages.
type frames interface {
	ReadMessageHeader(header []byte) error
	Read(n int) (mem.BufferSlice, error)
}

// receive reads the one message of a call, and the end of the caller's side. Errors are statuses.
//
// It reads the transport and does not call RecvMsg. That answers the caller by itself, before it returns, with ResourceExhausted for a message
// that is too long and Internal for one that does not decode: clients, Istio's agents among them, repeat both for ever. Should a later gRPC hide
// its transport, calls still work, and the tests of these codes fail.
func receive(stream grpc.ServerStream, message proto.Message) error {
	source, ok := grpc.ServerTransportStreamFromContext(stream.Context()).(frames)
	if !ok {
		return stream.RecvMsg(message)
	}
	data, err := readFrame(source)
	if err != nil {
		return unreadable(err)
	}
	if err := proto.Unmarshal(data, message); err != nil {
		return unreadable(errNotOne)
	}
	var header [5]byte
	switch err := source.ReadMessageHeader(header[:]); {
	case errors.Is(err, io.EOF):
		return nil
	case err == nil:
		return unreadable(errNotOne)
	default:
		return unreadable(err)
	}
}

// What is wrong with a message.
var (
	errNotOne = errkind.New(errkind.Invalid, "the call does not carry one message that decodes as this method's request").
			Because(errkind.BadRequest)
	errTooBig = errkind.New(errkind.Invalid, "the request is longer than %d bytes; a CSR has at most 16 KiB and the rest is small", maxMessage).
			Because(errkind.BadRequest)
	errPacked = errkind.New(errkind.Invalid, "the request is compressed; send it as it is").Because(errkind.BadRequest)
)

// readFrame reads a length-prefixed message (gRPC over HTTP/2: Compressed-Flag Message-Length Message). Nothing of one that is too long is read.
func readFrame(source frames) ([]byte, error) {
	var header [5]byte
	if err := source.ReadMessageHeader(header[:]); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(header[1:])
	switch {
	case length > maxMessage:
		return nil, errTooBig
	case header[0] != 0:
		return nil, errPacked
	}
	data, err := source.Read(int(length))
	if err != nil {
		return nil, err
	}
	defer data.Free()
	return data.Materialize(), nil
}

// unreadable returns the status for a message that could not be received.
func unreadable(err error) error {
	if _, ours := errors.AsType[*errkind.Error](err); ours {
		return statusOf(err)
	}
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF): // none, or one that breaks off
		return statusOf(errNotOne)
	case status.Code(err) == codes.DeadlineExceeded:
		return statusOf(errkind.New(errkind.Unavailable, "the request did not arrive in time; try again"))
	default:
		return err // the caller or its connection is gone
	}
}
