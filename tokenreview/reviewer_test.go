package tokenreview

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/chancery-ca/chancery/ca/errkind"
)

// apiServer serves handle over TLS and returns the configuration of its clients.
func apiServer(t *testing.T, handle http.HandlerFunc) *rest.Config {
	t.Helper()
	server := httptest.NewTLSServer(handle)
	t.Cleanup(server.Close)
	return &rest.Config{
		Host: server.URL,
		TLSClientConfig: rest.TLSClientConfig{
			CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		},
	}
}

func answer(w http.ResponseWriter, r *http.Request) {
	var review authv1.TokenReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	review.TypeMeta = metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenReview"}
	review.Status = statusOf(review.Spec)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(review)
}

func failure(code int, reason metav1.StatusReason) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason,
		})
	}
}

// busy answers as priority and fairness do: in plain text.
func busy(code int, retryAfter string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", retryAfter)
		http.Error(w, "Too many requests, please try again later.", code)
	}
}

// onServer returns an Online that calls the API server of config.
func onServer(t *testing.T, config *rest.Config, limits ReviewerConfig) *Online {
	t.Helper()
	reviewer, err := NewReviewer(config, limits)
	if err != nil {
		t.Fatal(err)
	}
	online, err := NewOnline(reviewer, Config{
		Cluster: "local", TrustDomain: trustDomain, Audiences: []string{"chancery"}, Now: func() time.Time { return start },
	}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return online
}

func askOnline(t *testing.T, online *Online, token string) error {
	t.Helper()
	f := &fixture{t: t, online: online}
	_, err := f.ask(t.Context(), token)
	return err
}

func TestReviewerPostsToTheAPIServer(t *testing.T) {
	var path, agent atomic.Value
	config := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		path.Store(r.Method + " " + r.URL.Path)
		agent.Store(r.UserAgent())
		answer(w, r)
	})
	config.QPS, config.Burst, config.UserAgent = 1, 1, "somebody"
	online := onServer(t, config, ReviewerConfig{})
	for n := range 20 { // the shared config's QPS of 1 is not ours
		if err := askOnline(t, online, numbered(start, n)); err != nil {
			t.Fatal(err)
		}
	}
	if path.Load() != "POST /apis/authentication.k8s.io/v1/tokenreviews" || agent.Load() != "chancery-tokenreview" {
		t.Errorf("%v by %v", path.Load(), agent.Load())
	}
	if config.UserAgent != "somebody" || config.QPS != 1 || config.Timeout != 0 {
		t.Error("the caller's configuration was changed")
	}
	if err := online.Probe(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestReviewerAnswersOfTheAPIServer(t *testing.T) {
	for _, test := range []struct {
		name   string
		handle http.HandlerFunc
		after  time.Duration
		cause  string
	}{
		{"401", failure(401, metav1.StatusReasonUnauthorized), time.Second, "does not accept the server's own credential"},
		{"403", failure(403, metav1.StatusReasonForbidden), time.Second, "may not create tokenreviews"},
		{"429", busy(429, "7"), 7 * time.Second, "throttles"},
		{"500", failure(500, metav1.StatusReasonInternalError), time.Second, "with an error"},
		{"503 with a delay", busy(503, "2"), 2 * time.Second, "with an error"},
		{"504", failure(504, metav1.StatusReasonTimeout), time.Second, "in time"},
		{"502 of a proxy", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = w.Write([]byte("<html>bad gateway</html>"))
		}, time.Second, "with an error"},
		{"no JSON", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte("{"))
		}, time.Second, "cannot be read"},
		{"another object", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Success"}`))
		}, time.Second, "cannot be read"},
		{"hung up", func(w http.ResponseWriter, _ *http.Request) {
			if connection, _, err := http.NewResponseController(w).Hijack(); err == nil {
				_ = connection.Close()
			}
		}, time.Second, "cannot be reached"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var requests atomic.Int32
			online := onServer(t, apiServer(t, func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				test.handle(w, r)
			}), ReviewerConfig{})
			err := askOnline(t, online, goodToken(start).String())
			if got := errkind.Of(err); got != errkind.Unavailable {
				t.Errorf("kind %s: %v", got, err)
			}
			if errkind.RetryAfter(err) != test.after || !strings.Contains(err.Error(), test.cause) {
				t.Errorf("after %s: %v", errkind.RetryAfter(err), err)
			}
			if requests.Load() != 1 {
				t.Errorf("%d requests", requests.Load())
			}
		})
	}
}

func TestReviewerDoesNotFollowRedirects(t *testing.T) {
	var reached atomic.Bool
	elsewhere := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	defer elsewhere.Close()
	for _, code := range []int{301, 302, 303, 307, 308} {
		online := onServer(t, apiServer(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+r.URL.Path, code)
		}), ReviewerConfig{})
		wantKind(t, askOnline(t, online, goodToken(start).String()), errkind.Unavailable, "could not be asked")
	}
	if reached.Load() {
		t.Error("the token was carried to another host")
	}
}

func TestReviewerTimeout(t *testing.T) {
	done := make(chan struct{})
	config := apiServer(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-done:
		}
	})
	t.Cleanup(func() { close(done) }) // before the server's Close, which waits for the handler
	online := onServer(t, config, ReviewerConfig{Timeout: 50 * time.Millisecond})
	err := askOnline(t, online, goodToken(start).String())
	wantKind(t, err, errkind.Unavailable, "could not be asked")
	if !strings.Contains(err.Error(), "in time") {
		t.Error(err)
	}
}

func TestReviewerOwnLimitIsNotTheClustersFault(t *testing.T) {
	online := onServer(t, apiServer(t, answer), ReviewerConfig{QPS: 0.001, Burst: 1})
	if err := askOnline(t, online, numbered(start, 1)); err != nil {
		t.Fatal(err)
	}
	wantKind(t, askOnline(t, online, numbered(start, 2)), errkind.Exhausted, "too many tokens")
	if ok, _, reason := online.Health(); !ok {
		t.Errorf("unwell: %s", reason)
	}
}

func TestReviewerRefusesServersThatNobodyVerifies(t *testing.T) {
	for name, config := range map[string]*rest.Config{
		"no configuration": nil,
		"insecure":         {Host: "https://10.0.0.1", TLSClientConfig: rest.TLSClientConfig{Insecure: true}},
		"http":             {Host: "http://10.0.0.1:8080"},
		"http by default":  {Host: "kubernetes.default.svc:80"},
		"no address":       {Host: "https://[::1"},
	} {
		if _, err := NewReviewer(config, ReviewerConfig{}); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	for _, host := range []string{"https://10.0.0.1", "http://127.0.0.1:8001", "http://localhost:8001", "http://[::1]:8001"} {
		if _, err := NewReviewer(&rest.Config{Host: host}, ReviewerConfig{}); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	if _, err := NewReviewer(&rest.Config{Host: "https://10.0.0.1"}, ReviewerConfig{QPS: -1}); err == nil {
		t.Error("a negative QPS was accepted")
	}
}

// TestClientGoLogsNoToken turns client-go's log up as far as it goes. An ordinary client shows that the test would notice.
func TestClientGoLogsNoToken(t *testing.T) {
	flags := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(flags)
	state := klog.CaptureState()
	defer state.Restore()
	for name, value := range map[string]string{"v": "10", "logtostderr": "false", "alsologtostderr": "false", "stderrthreshold": "FATAL"} {
		if err := flags.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	var log bytes.Buffer
	klog.SetOutput(writerFunc(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return log.Write(p)
	}))
	text := func() string {
		klog.Flush()
		mu.Lock()
		defer mu.Unlock()
		return log.String()
	}

	config := apiServer(t, answer)
	token := goodToken(start).String()
	online := onServer(t, config, ReviewerConfig{})
	if err := askOnline(t, online, token); err != nil {
		t.Fatal(err)
	}
	noLeak(t, token, nil, text())

	config.ContentType = "application/json" // protobuf would be logged as a hex dump
	ordinary, err := authclient.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ordinary.TokenReviews().Create(t.Context(), &authv1.TokenReview{Spec: authv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text(), token[:40]) {
		t.Error("an ordinary client logs no token either: this test proves nothing")
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestOrdinaryClientIsAReviewer keeps the interface one that client-go's own client satisfies.
func TestOrdinaryClientIsAReviewer(t *testing.T) {
	var _ Reviewer = authclient.TokenReviewInterface(nil)
	if !errors.Is(errors.Join(errPaced, context.DeadlineExceeded), errPaced) || faultOf(errors.Join(errPaced, context.DeadlineExceeded)).result != resultPaced {
		t.Error("our own limit counts as the cluster's timeout")
	}
}
