package tokenreview

import (
	"context"
	"errors"
	"slices"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chancery-ca/chancery/ca/errkind"
)

// probeToken is no token of any cluster: an API server that is well says so.
const probeToken = "chancery-probe"

// review asks the cluster about a token and remembers its verdict. An error means that there is no verdict, and is not remembered.
func (o *Online) review(ctx context.Context, key cacheKey, token string, claimed claims) (verdict, error) {
	if err := o.acquire(); err != nil {
		o.metrics.reviewed(resultSaturated)
		return verdict{}, err
	}
	defer func() { <-o.slots }()

	from := o.config.Now()
	status, err := o.ask(ctx, token)
	if err != nil {
		return verdict{}, err
	}
	v := verdict{from: from}
	switch v.principal, v.err = o.judge(status, claimed, token); {
	case v.err == nil:
		o.metrics.reviewed(resultAuthenticated)
	case status.Authenticated:
		o.metrics.reviewed(resultRefused)
	default:
		o.metrics.reviewed(resultUnauthenticated)
	}
	v.until = o.deadline(v.err != nil, from, claimed.expires)
	o.cache.put(key, v)
	return v, nil
}

// acquire takes a slot, waiting no longer than MaxWait; callers whose own deadline is nearer do not wait for it.
func (o *Online) acquire() error {
	select {
	case o.slots <- struct{}{}:
		return nil
	default:
	}
	wait := time.NewTimer(o.config.MaxWait)
	defer wait.Stop()
	select {
	case o.slots <- struct{}{}:
		return nil
	case <-wait.C:
		return errkind.New(errkind.Exhausted, "too many tokens wait to be reviewed; try again").Because(errkind.Overloaded).After(retryAfter)
	}
}

// ask posts one TokenReview. An error means that there is no answer; it is classified, redacted and noted in the health.
func (o *Online) ask(ctx context.Context, token string) (*authv1.TokenReviewStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, o.config.Timeout)
	defer cancel()

	o.metrics.inFlight.Inc()
	defer o.metrics.inFlight.Dec()
	from := o.config.Now()
	answer, err := o.reviewer.Create(ctx, &authv1.TokenReview{
		Spec: authv1.TokenReviewSpec{Token: token, Audiences: slices.Clone(o.config.Audiences)},
	}, metav1.CreateOptions{})
	o.metrics.answered(o.config.Now().Sub(from))
	if err == nil && answer == nil {
		err = errNoAnswer
	}
	if err == nil {
		o.note(ctx, "", nil)
		return &answer.Status, nil
	}
	fault := faultOf(err)
	cause := errors.New(redact(err.Error(), token))
	o.metrics.reviewed(fault.result)
	if fault.reason != "" {
		o.note(ctx, fault.reason, cause)
	}
	return nil, fault.toCaller(cause)
}

// Probe asks the cluster about a token that cannot be good, so that Health says whether it can be asked at all. It returns nil when the
// cluster has refused the token.
func (o *Online) Probe(ctx context.Context) error {
	status, err := o.ask(ctx, probeToken)
	if err != nil {
		return err
	}
	if status.Authenticated {
		const reason = "the API server accepts tokens that cannot be good"
		err := errkind.New(errkind.Internal, "%s: whatever answers there is no API server that can be trusted; correct its address", reason)
		o.note(ctx, reason, err)
		return err
	}
	return nil
}
