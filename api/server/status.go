package server

import (
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/chancery-ca/chancery/ca/errkind"
)

// statusOf is the one place where the kinds of errors become gRPC codes. Terminal kinds get codes that no Istio or gRPC client retries,
// retryable kinds get codes that all of them retry.
func statusOf(err error) error {
	if err == nil {
		return nil
	}
	out := status.New(codeOf(errkind.Of(err)), errkind.Message(err))
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: string(errkind.ReasonOf(err)), Domain: errorDomain}}
	if wait := errkind.RetryAfter(err); wait > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(wait)})
	}
	if detailed, detailErr := out.WithDetails(details...); detailErr == nil {
		out = detailed
	}
	return out.Err()
}

// errorDomain says whose reasons those of errors are (google.rpc.ErrorInfo).
const errorDomain = "chancery.dev"

func codeOf(kind errkind.Kind) codes.Code {
	switch kind {
	case errkind.Invalid:
		return codes.InvalidArgument
	case errkind.Unauthenticated:
		return codes.Unauthenticated
	case errkind.Denied:
		return codes.PermissionDenied
	case errkind.NotFound:
		return codes.NotFound
	case errkind.Conflict:
		return codes.FailedPrecondition
	case errkind.Exhausted:
		return codes.ResourceExhausted
	case errkind.Unavailable:
		return codes.Unavailable
	case errkind.Internal:
		return codes.Internal
	default:
		return codes.Internal
	}
}
