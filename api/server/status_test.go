package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
)

// TestKindsBecomeCodes holds every value that a Kind can have against the code that a caller gets over the wire.
func TestKindsBecomeCodes(t *testing.T) {
	want := map[errkind.Kind]codes.Code{
		errkind.Invalid:         codes.InvalidArgument,
		errkind.Unauthenticated: codes.Unauthenticated,
		errkind.Denied:          codes.PermissionDenied,
		errkind.NotFound:        codes.NotFound,
		errkind.Conflict:        codes.FailedPrecondition,
		errkind.Exhausted:       codes.ResourceExhausted,
		errkind.Unavailable:     codes.Unavailable,
		errkind.Internal:        codes.Internal,
	}
	// what clients repeat by themselves: Istio's agents, and gRPC's own retry policies as people write them
	repeated := map[codes.Code]bool{codes.Unavailable: true, codes.ResourceExhausted: true, codes.Aborted: true, codes.DeadlineExceeded: true, codes.Canceled: true}
	b := newBed(t)
	for number := range math.MaxUint8 + 1 {
		kind := errkind.Kind(number)
		code, listed := want[kind]
		if !listed {
			if kind.String() != errkind.Internal.String() {
				t.Fatalf("kind %s is new: say in this table what callers get", kind)
			}
			code = codes.Internal
		}
		if kind.Retryable() != repeated[code] {
			t.Errorf("%s becomes %s: terminal kinds must not be repeated, retryable ones must", kind, code)
		}
		if !listed && number > len(want)+2 && number != math.MaxUint8 {
			continue // out of range like its neighbours
		}
		b.authenticate(func(context.Context, identity.Credential) (*identity.Principal, bool, error) {
			return nil, true, errkind.Wrap(kind, errors.New("the cause"), "sentence for %d", number).After(3 * time.Second)
		})
		_, err := b.issue()
		got := wantCode(t, err, code)
		if got.Message() != fmt.Sprintf("sentence for %d", number) {
			t.Errorf("%s: the caller got %q", kind, got.Message())
		}
		if wait := retryDelay(got); wait != 3*time.Second {
			t.Errorf("%s: RetryInfo says %s", kind, wait)
		}
	}
}

func TestUnclassifiedErrors(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		code codes.Code
	}{
		"nobody classified it":         {errors.New("dial tcp 10.0.0.7: the secret cause"), codes.Internal},
		"a deadline":                   {fmt.Errorf("the secret cause: %w", context.DeadlineExceeded), codes.Unavailable},
		"a cancellation":               {fmt.Errorf("the secret cause: %w", context.Canceled), codes.Unavailable},
		"a gRPC status of another hop": {status.Error(codes.NotFound, "the secret cause"), codes.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			got := wantCode(t, statusOf(test.err), test.code)
			if strings.Contains(got.Message(), "secret") || got.Message() == "" {
				t.Errorf("the caller is told %q", got.Message())
			}
			if len(got.Details()) != 1 || reasonIn(got) != string(errkind.ReasonOf(test.err)) {
				t.Errorf("its details are %v", got.Details())
			}
		})
	}
	if statusOf(nil) != nil {
		t.Error("no error became one")
	}
}

// retryDelay returns what a status's RetryInfo says, or zero.
func retryDelay(s *status.Status) time.Duration {
	for _, detail := range s.Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return info.GetRetryDelay().AsDuration()
		}
	}
	return 0
}

// reasonIn returns what a status's ErrorInfo says, or nothing.
func reasonIn(s *status.Status) string {
	for _, detail := range s.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.GetDomain() == errorDomain {
			return info.GetReason()
		}
	}
	return ""
}
