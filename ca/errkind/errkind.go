// Package errkind classifies errors by whose fault they are and whether trying again can help.
//
// An error is classified once, where its cause is known, and translated once, in a front end: into a gRPC code, a
// Kubernetes condition, an exit status or an HTTP status. The sentence that an Error carries is safe for the caller; its cause
// is for the log. The package never logs and never decides what a front end answers.
package errkind

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Kind says whose fault an error is. The zero Kind is Internal, so that an error nobody classified is never shown to a caller.
type Kind uint8

// The kinds. Invalid to Conflict are the requester's fault and terminal: the same request will fail again. Exhausted and Unavailable are
// ours and worth another try. Internal is a bug or an unclassified failure of ours.
const (
	Internal Kind = iota
	Invalid
	Unauthenticated
	Denied
	NotFound
	Conflict
	Exhausted
	Unavailable
)

var names = [...]string{"internal", "invalid", "unauthenticated", "denied", "not_found", "conflict", "exhausted", "unavailable"}

// String returns the kind's name as metrics and audit records show it.
func (k Kind) String() string {
	if int(k) < len(names) {
		return names[k]
	}
	return names[Internal]
}

// Retryable tells whether the same request can succeed later without the requester changing it.
func (k Kind) Retryable() bool { return k == Exhausted || k == Unavailable }

// Error is a classified error.
type Error struct {
	kind       Kind
	message    string
	cause      error
	retryAfter time.Duration
	reason     Reason
}

// New returns an error of the given kind. The formatted message is shown to the caller: it names the field, the rule and the way
// out, and holds no secret.
func New(kind Kind, format string, args ...any) *Error {
	return &Error{kind: kind, message: fmt.Sprintf(format, args...)}
}

// Wrap classifies cause. The formatted message is shown to the caller, the cause only to the log.
func Wrap(kind Kind, cause error, format string, args ...any) *Error {
	return &Error{kind: kind, message: fmt.Sprintf(format, args...), cause: cause}
}

// After returns a copy of the error that tells the caller not to come back earlier than d.
func (e *Error) After(d time.Duration) *Error {
	c := *e
	c.retryAfter = d
	return &c
}

// Error returns the message and the cause: the text for the log.
func (e *Error) Error() string {
	if e.cause == nil {
		return e.message
	}
	return e.message + ": " + e.cause.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.cause }

// Of returns the kind of err: that of the outermost classified error in its chain. A context that ended is Unavailable, since the
// work may succeed with more time; anything else that was not classified is Internal.
func Of(err error) Kind {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e.kind
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return Unavailable
	default:
		return Internal
	}
}

// Message returns the sentence for the caller. Errors that were not classified yield a fixed sentence, so that nothing internal leaks.
func Message(err error) string {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e.message
	case errors.Is(err, context.DeadlineExceeded):
		return "the request's deadline passed before it was done; try again"
	case errors.Is(err, context.Canceled):
		return "the request was cancelled before it was done"
	default:
		return "internal error; the server's log has the cause"
	}
}

// RetryAfter returns how long the caller should wait, or zero if nobody said.
func RetryAfter(err error) time.Duration {
	var e *Error
	if errors.As(err, &e) {
		return e.retryAfter
	}
	return 0
}
