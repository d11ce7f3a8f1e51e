package errkind_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/chancery-ca/chancery/ca/errkind"
)

var all = []errkind.Kind{
	errkind.Internal, errkind.Invalid, errkind.Unauthenticated, errkind.Denied, errkind.NotFound, errkind.Conflict, errkind.Exhausted, errkind.Unavailable,
}

func TestKinds(t *testing.T) {
	names := map[errkind.Kind]string{
		errkind.Internal: "internal", errkind.Invalid: "invalid", errkind.Unauthenticated: "unauthenticated", errkind.Denied: "denied",
		errkind.NotFound: "not_found", errkind.Conflict: "conflict", errkind.Exhausted: "exhausted", errkind.Unavailable: "unavailable",
		errkind.Unavailable + 1: "internal", 255: "internal",
	}
	for kind, want := range names {
		if got := kind.String(); got != want {
			t.Errorf("kind %d is called %q, want %q", kind, got, want)
		}
	}
	for _, kind := range all {
		if got, want := kind.Retryable(), kind == errkind.Exhausted || kind == errkind.Unavailable; got != want {
			t.Errorf("%s is retryable: %t", kind, got)
		}
	}
	var zero errkind.Kind
	if zero != errkind.Internal {
		t.Error("an error that nobody classified is not Internal")
	}
}

func TestOfAndMessage(t *testing.T) {
	const hidden = "dial tcp 10.0.0.1: secret"
	cause := errors.New(hidden)
	for _, test := range []struct {
		name    string
		err     error
		kind    errkind.Kind
		message string
	}{
		{"new", errkind.New(errkind.Invalid, "no %s", "key"), errkind.Invalid, "no key"},
		{"wrapping a cause", errkind.Wrap(errkind.Denied, cause, "not %d", 1), errkind.Denied, "not 1"},
		{"wrapped in context", fmt.Errorf("doing: %w", errkind.Wrap(errkind.NotFound, cause, "gone")), errkind.NotFound, "gone"},
		{"the outermost of two", errkind.Wrap(errkind.Unavailable, errkind.New(errkind.Invalid, "inner"), "outer"), errkind.Unavailable, "outer"},
		{"joined", errors.Join(cause, errkind.New(errkind.Conflict, "twice")), errkind.Conflict, "twice"},
		{"classified although a context ended", errkind.Wrap(errkind.Invalid, context.Canceled, "bad"), errkind.Invalid, "bad"},
		{"a deadline", fmt.Errorf("reading: %w", context.DeadlineExceeded), errkind.Unavailable, "the request's deadline passed before it was done; try again"},
		{"cancelled", fmt.Errorf("reading: %w", context.Canceled), errkind.Unavailable, "the request was cancelled before it was done"},
		{"not classified", cause, errkind.Internal, "internal error; the server's log has the cause"},
		{"not classified, wrapped", fmt.Errorf("%s: %w", hidden, io.EOF), errkind.Internal, "internal error; the server's log has the cause"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := errkind.Of(test.err); got != test.kind {
				t.Errorf("it is %s, want %s", got, test.kind)
			}
			if got := errkind.Message(test.err); got != test.message {
				t.Errorf("the caller gets %q, want %q", got, test.message)
			}
		})
	}
}

func TestErrorForTheLog(t *testing.T) {
	cause := errors.New("disk full")
	err := errkind.Wrap(errkind.Unavailable, cause, "the ledger is away")
	if got := err.Error(); got != "the ledger is away: disk full" {
		t.Errorf("the log gets %q", got)
	}
	if !errors.Is(err, cause) {
		t.Error("the cause is lost")
	}
	if got := errkind.New(errkind.Invalid, "no cause").Error(); got != "no cause" {
		t.Errorf("the log gets %q", got)
	}
}

func TestRetryAfter(t *testing.T) {
	plain := errkind.New(errkind.Exhausted, "too many")
	later := plain.After(3 * time.Second)
	for name, test := range map[string]struct {
		err  error
		want time.Duration
	}{
		"said":             {later, 3 * time.Second},
		"said, wrapped":    {fmt.Errorf("doing: %w", later), 3 * time.Second},
		"not said":         {plain, 0}, // After returns a copy
		"not classified":   {io.EOF, 0},
		"nothing happened": {nil, 0},
	} {
		if got := errkind.RetryAfter(test.err); got != test.want {
			t.Errorf("%s: retry after %s, want %s", name, got, test.want)
		}
	}
	if errkind.Of(later) != errkind.Exhausted || errkind.Message(later) != "too many" {
		t.Error("After changes the kind or the message")
	}
}
