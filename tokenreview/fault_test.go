package tokenreview

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	authv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/chancery-ca/chancery/ca/errkind"
)

var tokenReviews = schema.GroupResource{Group: "authentication.k8s.io", Resource: "tokenreviews"}

func TestFaultsAreNeverTheCallers(t *testing.T) {
	post := func(err error) error { return &url.Error{Op: "Post", URL: "https://10.96.0.1/apis", Err: err} }
	for _, test := range []struct {
		name   string
		fail   func(token string) error
		kind   errkind.Kind
		result string
		reason string // in health and log
		after  time.Duration
	}{
		{"refused", func(string) error {
			return post(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)})
		},
			errkind.Unavailable, resultUnreachable, "cannot be reached", time.Second},
		{"reset", func(string) error { return post(syscall.ECONNRESET) }, errkind.Unavailable, resultUnreachable, "cannot be reached", time.Second},
		{"no such host", func(string) error { return post(&net.DNSError{Err: "no such host", IsNotFound: true}) },
			errkind.Unavailable, resultUnreachable, "cannot be reached", time.Second},
		{"deadline", func(string) error { return post(context.DeadlineExceeded) }, errkind.Unavailable, resultTimeout, "in time", time.Second},
		{"network timeout", func(string) error { return post(os.ErrDeadlineExceeded) }, errkind.Unavailable, resultTimeout, "in time", time.Second},
		{"504", func(string) error { return apierrors.NewTimeoutError("slow", 3) }, errkind.Unavailable, resultTimeout, "in time", 3 * time.Second},
		{"server timeout", func(string) error { return apierrors.NewServerTimeout(tokenReviews, "create", 2) },
			errkind.Unavailable, resultTimeout, "in time", 2 * time.Second},
		{"500", func(string) error { return apierrors.NewInternalError(errors.New("Failed to authenticate")) },
			errkind.Unavailable, resultFailed, "with an error", time.Second},
		{"503", func(string) error { return apierrors.NewServiceUnavailable("etcd") }, errkind.Unavailable, resultFailed, "with an error", time.Second},
		{"429", func(string) error { return apierrors.NewTooManyRequests("slow down", 7) },
			errkind.Unavailable, resultThrottled, "throttles", 7 * time.Second},
		{"429 for an hour", func(string) error { return apierrors.NewTooManyRequests("slow down", 3600) },
			errkind.Unavailable, resultThrottled, "throttles", 30 * time.Second},
		{"429 without a word", func(string) error { return apierrors.NewTooManyRequestsError("slow down") },
			errkind.Unavailable, resultThrottled, "throttles", time.Second},
		{"401", func(string) error { return apierrors.NewUnauthorized("Unauthorized") },
			errkind.Unavailable, resultForbidden, "may not create tokenreviews", time.Second},
		{"403", func(string) error { return apierrors.NewForbidden(tokenReviews, "", errors.New("RBAC")) },
			errkind.Unavailable, resultForbidden, "the server's own account may not create tokenreviews", time.Second},
		{"404", func(string) error { return apierrors.NewNotFound(tokenReviews, "") }, errkind.Unavailable, resultFailed, "with an error", time.Second},
		{"422 that quotes the token", func(token string) error {
			return apierrors.NewInvalid(schema.GroupKind{Kind: "TokenReview"}, "", field.ErrorList{field.Invalid(field.NewPath("spec", "token"), token, "bad")})
		}, errkind.Unavailable, resultFailed, "with an error", time.Second},
		{"error that quotes the token", func(token string) error { return fmt.Errorf("cannot post %q", token) },
			errkind.Unavailable, resultFailed, "cannot be read", time.Second},
		{"our own limit", func(string) error { return errors.Join(errPaced, errors.New("rate: would exceed context deadline")) },
			errkind.Exhausted, resultPaced, "", time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t, nil)
			f.cluster.fail = test.fail
			token := goodToken(start).String()
			_, err := f.ask(t.Context(), token)
			wantKind(t, err, test.kind, "try again")
			if errkind.RetryAfter(err) != test.after {
				t.Errorf("told to come back after %s", errkind.RetryAfter(err))
			}
			for _, inside := range []string{"10.96", "RBAC", "etcd", "account"} {
				if strings.Contains(errkind.Message(err), inside) {
					t.Errorf("the caller is told %q", errkind.Message(err))
				}
			}
			if n := testutil.ToFloat64(f.metrics.reviews.WithLabelValues(test.result)); n != 1 {
				t.Errorf("%v counted as %s", n, test.result)
			}
			ok, since, reason := f.online.Health()
			if ok != (test.reason == "") || !strings.Contains(reason, test.reason) || !since.Equal(start) {
				t.Errorf("health %t since %s: %q", ok, since, reason)
			}
			if log := f.log.String(); !strings.Contains(log, test.reason) || (test.reason != "") != strings.Contains(log, "level=ERROR") {
				t.Errorf("log %q", log)
			}
			noLeak(t, token, nil, f.log.String(), reason)

			f.cluster.fail = nil
			if _, err := f.ask(t.Context(), token); err != nil {
				t.Errorf("the fault was remembered: %v", err)
			}
		})
	}
}

func TestEmptyAnswerIsAFault(t *testing.T) {
	f := newFixture(t, nil)
	f.cluster.empty = true
	_, err := f.ask(t.Context(), goodToken(start).String())
	wantKind(t, err, errkind.Unavailable, "try again")
}

func TestASilentAPIServerIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(c *Config) { c.Now, c.Timeout = time.Now, 3*time.Second })
		f.cluster.block = make(chan struct{})
		begin := time.Now()
		_, err := f.ask(t.Context(), goodToken(begin).String())
		wantKind(t, err, errkind.Unavailable, "try again")
		if waited := time.Since(begin); waited != 3*time.Second {
			t.Errorf("waited %s", waited)
		}
		if ok, since, reason := f.online.Health(); ok || !since.Equal(time.Now()) || !strings.Contains(reason, "in time") {
			t.Errorf("health %t since %s: %q", ok, since, reason)
		}
		if n := testutil.CollectAndCount(f.metrics.duration); n != 1 {
			t.Errorf("%d histograms", n)
		}
	})
}

func TestHealthAndItsLog(t *testing.T) {
	c := &clock{now: start}
	f := newFixture(t, func(config *Config) { config.Now = c.Now })
	down := func(string) error { return errors.New("connection refused") }
	forbidden := func(string) error { return apierrors.NewForbidden(tokenReviews, "", errors.New("RBAC")) }
	for n, step := range []struct {
		at    time.Duration
		fail  func(string) error
		ok    bool
		since time.Duration
		logs  int // lines so far
	}{
		{0, nil, true, 0, 0},
		{5 * time.Second, down, false, 5 * time.Second, 1},
		{6 * time.Second, down, false, 5 * time.Second, 1},
		{7 * time.Second, forbidden, false, 5 * time.Second, 1}, // too soon for another line
		{16 * time.Second, forbidden, false, 5 * time.Second, 2},
		{17 * time.Second, nil, true, 17 * time.Second, 2},
		{18 * time.Second, forbidden, false, 18 * time.Second, 2}, // coming and going does not fill the log
		{77 * time.Second, forbidden, false, 18 * time.Second, 3}, // but what lasts is said again
		{90 * time.Second, nil, true, 90 * time.Second, 4},
		{200 * time.Second, nil, true, 90 * time.Second, 4},
	} {
		c.set(start.Add(step.at))
		f.cluster.fail = step.fail
		_, err := f.ask(t.Context(), numbered(start, n))
		if (err == nil) != step.ok {
			t.Fatal(err)
		}
		ok, since, reason := f.online.Health()
		if ok != step.ok || !since.Equal(start.Add(step.since)) || (reason == "") != step.ok {
			t.Errorf("step %d: health %t since %s: %q", n, ok, since, reason)
		}
		if lines := strings.Count(f.log.String(), "\n"); lines != step.logs {
			t.Errorf("step %d: %d lines of log, want %d:\n%s", n, lines, step.logs, f.log)
		}
	}
}

func TestProbe(t *testing.T) {
	f := newFixture(t, nil)
	f.cluster.fail = func(string) error { return errors.New("connection refused") }
	wantKind(t, f.online.Probe(t.Context()), errkind.Unavailable, "could not be asked")
	if ok, _, _ := f.online.Health(); ok {
		t.Error("well after a failed probe")
	}
	f.cluster.fail = nil
	if err := f.online.Probe(t.Context()); err != nil {
		t.Error(err)
	}
	if ok, _, _ := f.online.Health(); !ok {
		t.Error("unwell after a good probe")
	}
	if sent := f.cluster.sent[1]; sent.Token != probeToken || len(sent.Audiences) != 2 {
		t.Errorf("sent %+v", sent)
	}
	f.cluster.edit = func(s *authv1.TokenReviewStatus) { s.Authenticated, s.Error = true, "" }
	if err := f.online.Probe(t.Context()); err == nil || errkind.Of(err) != errkind.Internal {
		t.Errorf("an API server that accepts everything: %v", err)
	}
	if ok, _, reason := f.online.Health(); ok || !strings.Contains(reason, "cannot be good") {
		t.Errorf("health %t: %q", ok, reason)
	}
}

func TestMetricsAreRegisteredOnceAndComplete(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	if _, err := NewMetrics(registry); err != nil {
		t.Fatal(err)
	}
	if _, err := NewMetrics(registry); err == nil {
		t.Error("registered twice")
	}
	n, err := testutil.GatherAndCount(registry)
	if want := len(reviewResults) + len(lookupResults) + 3; err != nil || n != want {
		t.Errorf("%d series, want %d, error %v", n, want, err)
	}
}
