package tokenreview

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/chancery-ca/chancery/ca/errkind"
)

// errPaced is what a Reviewer of this package returns when our own limit of requests to the cluster was reached before ctx ended.
var errPaced = errors.New("the client's own limit of token reviews a second is reached")

// errNoAnswer stands for a Reviewer that returned neither an answer nor an error.
var errNoAnswer = errors.New("the API server returned an empty answer")

const (
	retryAfter    = time.Second
	maxRetryAfter = 30 * time.Second
)

// fault is a review that brought no verdict. It is never the caller's.
type fault struct {
	result string // for the metric
	reason string // for health and log; empty if it says nothing about the cluster
	after  time.Duration
}

// faultOf classifies the error of a Reviewer.
func faultOf(err error) fault {
	var status apierrors.APIStatus
	var network net.Error
	var transport *url.Error // what net/http wraps all of its errors in
	switch {
	case errors.Is(err, errPaced):
		return fault{result: resultPaced, after: retryAfter}
	case errors.Is(err, context.DeadlineExceeded), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err),
		errors.As(err, &network) && network.Timeout():
		return fault{resultTimeout, "the API server did not answer in time", delayOf(err)}
	case errors.Is(err, errNoAnswer):
		return fault{resultFailed, "the API server returned an empty answer", retryAfter}
	case network != nil, errors.As(err, &transport):
		return fault{resultUnreachable, "the API server cannot be reached", retryAfter}
	case !errors.As(err, &status):
		return fault{resultFailed, "the API server's answer cannot be read", retryAfter}
	}
	switch code := status.Status().Code; {
	case code == http.StatusUnauthorized:
		return fault{resultForbidden, "the API server does not accept the server's own credential, so it may not create tokenreviews: " +
			"give it a valid service-account token or kubeconfig", delayOf(err)}
	case code == http.StatusForbidden:
		return fault{resultForbidden, "the server's own account may not create tokenreviews: " +
			"bind it to a ClusterRole with the verb create on tokenreviews.authentication.k8s.io, which is all that it needs", delayOf(err)}
	case code == http.StatusTooManyRequests:
		return fault{resultThrottled, "the API server throttles token reviews", delayOf(err)}
	default:
		return fault{resultFailed, "the API server answers token reviews with an error", delayOf(err)}
	}
}

// delayOf returns how long the API server asks us to stay away, within bounds.
func delayOf(err error) time.Duration {
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok && seconds > 0 {
		return min(time.Duration(min(seconds, 3600))*time.Second, maxRetryAfter)
	}
	return retryAfter
}

// toCaller returns the error that the caller of Authenticate gets. cause is already fit for the log.
func (f fault) toCaller(cause error) error {
	if f.result == resultPaced {
		return errkind.Wrap(errkind.Exhausted, cause, "too many tokens wait to be reviewed; try again").Because(errkind.Overloaded).After(f.after)
	}
	if f.reason != "" {
		cause = reviewError{reason: f.reason, text: cause.Error()}
	}
	return errkind.Wrap(errkind.Unavailable, cause, "the cluster could not be asked about the token; try again").
		Because(errkind.ClusterUnavailable).After(f.after)
}

// reviewError is the cause of a fault as the log shows it: text is redacted, and nothing is left to unwrap.
type reviewError struct{ reason, text string }

func (e reviewError) Error() string { return e.reason + ": " + e.text }
