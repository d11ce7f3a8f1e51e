package server

import (
	"context"
	"encoding/pem"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	chanceryv1 "github.com/chancery-ca/chancery/api/chancery/v1"
	istiov1 "github.com/chancery-ca/chancery/api/istio/v1"
	"github.com/chancery-ca/chancery/ca"
	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
)

// pods lets a bed take every token of the form POD@NODE for that of such a pod.
func (b *bed) pods() {
	b.authenticate(func(_ context.Context, credential identity.Credential) (*identity.Principal, bool, error) {
		pod, node, found := strings.Cut(credential.Bearer.Reveal(), "@")
		if !found {
			return nil, true, errkind.New(errkind.Unauthenticated, "this token is not good")
		}
		p := principal(spiffeid.RequireFromString("spiffe://example.org/ns/shop/sa/" + pod))
		p.Kubernetes.PodUID, p.Kubernetes.NodeUID = pod, node
		return p, true, nil
	})
}

// orderFor is an order of a principal for names.
func orderFor(p *identity.Principal, uris ...string) ca.Order {
	return ca.Order{Principal: p, Names: identity.Names{URIs: uris}}
}

func (b *bed) issueFor(ctx context.Context, token string, uris ...string) error {
	request := &chanceryv1.IssueCertificateRequest{Csr: newCSR(b.t, newKey(b.t), nil)}
	if len(uris) > 0 {
		request.Names = &chanceryv1.Names{Uris: uris}
	}
	_, err := b.chancery().IssueCertificate(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token), request)
	return err
}

// wantRateLimited holds that a caller was told when to come back: not much later than after most.
func wantRateLimited(t *testing.T, err error, most time.Duration) {
	t.Helper()
	got := wantCode(t, err, codes.ResourceExhausted)
	if wait := retryDelay(got); wait <= 0 || wait > most {
		t.Errorf("RetryInfo says %s, want at most %s", wait, most)
	}
	if reason := reasonIn(got); reason != string(errkind.RateLimited) {
		t.Errorf("ErrorInfo says %q", reason)
	}
}

// TestIdentityRate: a caller gets what its bucket has, through whatever door, and others do not notice.
func TestIdentityRate(t *testing.T) {
	b := newBed(t, func(s *setup) { s.config.Limits.IdentityRate, s.config.Limits.IdentityBurst = 0.01, 2 })
	b.pods()
	must(t, b.issueFor(within(t), "a@1"))
	must(t, b.issueFor(within(t), "a@1"))
	wantRateLimited(t, b.issueFor(within(t), "a@1"), 100*time.Second)
	_, err := b.istio().CreateCertificate(b.bearer("a@1"), &istiov1.IstioCertificateRequest{Csr: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: newCSR(t, newKey(t), nil)}))})
	wantRateLimited(t, err, 100*time.Second)
	must(t, b.issueFor(within(t), "b@1"))
	if n := len(b.issued()); n != 3 {
		t.Errorf("%d certificates are in the ledger", n)
	}
	if n := testutil.ToFloat64(b.server.admit.refused.WithLabelValues(string(errkind.RateLimited))); n != 2 {
		t.Errorf("%g refusals are counted", n)
	}
	t.Run("in another name", func(t *testing.T) { // as node proxies ask: it is refused here, but not for the rate
		for range 2 {
			wantCode(t, b.issueFor(within(t), "a@1", "spiffe://example.org/ns/shop/sa/c"), codes.PermissionDenied)
		}
		wantRateLimited(t, b.issueFor(within(t), "a@1", "spiffe://example.org/ns/shop/sa/c"), 100*time.Second)
	})
}

// TestNodeRate: all callers of a node together get what the node's bucket has.
func TestNodeRate(t *testing.T) {
	b := newBed(t, func(s *setup) { s.config.Limits.NodeRate, s.config.Limits.NodeBurst = 0.01, 2 })
	b.pods()
	must(t, b.issueFor(within(t), "a@1"))
	must(t, b.issueFor(within(t), "b@1"))
	wantRateLimited(t, b.issueFor(within(t), "c@1"), 100*time.Second)
	must(t, b.issueFor(within(t), "d@2"))
	must(t, b.issueFor(within(t), "e@")) // bound to no node
	must(t, b.issueFor(within(t), "f@"))
	must(t, b.issueFor(within(t), "g@"))
}

// TestLongNames: what a caller may write is not what the server keeps.
func TestLongNames(t *testing.T) {
	p := principal(cart)
	p.Kubernetes.PodUID, p.Kubernetes.NodeUID = "a", "1"
	order := orderFor(p, "spiffe://example.org/"+strings.Repeat("x", 60_000))
	if key := callerOf(order); len(key) > 200 {
		t.Errorf("a key of %d bytes is kept", len(key))
	}
	if callerOf(order) == callerOf(orderFor(p, "spiffe://example.org/y")) {
		t.Error("two names have one key")
	}
	if callerOf(orderFor(p, cart.String())) != callerOf(orderFor(p)) {
		t.Error("a pod that spells out its own name counts twice")
	}
}

// TestUrgency: whoever has no certificate comes before those who have one, as the server remembers.
func TestUrgency(t *testing.T) {
	b := newBed(t, func(s *setup) { s.config.Limits.InFlight, s.config.Limits.Queue = 1, 10 })
	b.pods()
	must(t, b.issueFor(within(t), "has-one@1"))
	arrived := b.signer.close()
	errs := make(chan error, 3)
	go func() { errs <- b.issueFor(within(t), "first@1") }()
	await(t, arrived, "the first call at the signer")
	for queued, who := range []string{"has-one@1", "new@1"} {
		go func() { errs <- b.issueFor(within(t), who) }()
		for b.server.admit.limiter.State().Queued != queued+1 {
			<-time.After(time.Millisecond)
		}
	}
	b.signer.open()
	for range 3 {
		must(t, await(t, errs, "an answer"))
	}
	text := b.logs.String()
	if again, fresh := strings.LastIndex(text, "sa/has-one"), strings.Index(text, "sa/new"); again < fresh || fresh < 0 {
		t.Errorf("the one with a certificate came before the one without:\n%s", text)
	}
}

// TestDeadlineTooNear: a call that would wait longer than its caller does is refused while the caller is still there.
func TestDeadlineTooNear(t *testing.T) {
	b := newBed(t, func(s *setup) { s.config.Limits.InFlight, s.config.Limits.Queue = 1, 10 })
	b.pods()
	errs := make(chan error, 2)
	arrived := b.signer.close()
	go func() { errs <- b.issueFor(within(t), "a@1") }()
	await(t, arrived, "the first call at the signer")
	<-time.After(time.Second) // so that this is how long a call takes
	b.signer.open()
	must(t, await(t, errs, "the first answer"))
	arrived = b.signer.close()
	go func() { errs <- b.issueFor(within(t), "a@1") }()
	await(t, arrived, "the second call at the signer")
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond) // two seconds are needed
	defer cancel()
	got := wantCode(t, b.issueFor(ctx, "b@1"), codes.ResourceExhausted)
	if reason := reasonIn(got); reason != string(errkind.DeadlineTooNear) || retryDelay(got) <= 0 {
		t.Errorf("ErrorInfo says %q, RetryInfo %s", reason, retryDelay(got))
	}
	b.signer.open()
	must(t, await(t, errs, "the second answer"))
}

// TestSlowAuthentication: callers whose cluster hangs have the places for authentication and nothing else. Whoever finds one does not notice them; for the
// others it is said soon that there is none.
func TestSlowAuthentication(t *testing.T) {
	const places = 3
	b := newBed(t, func(s *setup) { s.config.Limits.Authenticating = places })
	hang, hanging := make(chan struct{}), make(chan struct{}, places)
	good := b.auth
	b.authenticate(func(ctx context.Context, credential identity.Credential) (*identity.Principal, bool, error) {
		if credential.Bearer.Reveal() == "slow" {
			hanging <- struct{}{}
			<-hang
			return nil, true, errors.New("the cluster hung")
		}
		return good(ctx, credential)
	})
	slow := make(chan error, places)
	call := func() { slow <- b.issueFor(within(t), "slow") }
	for range places - 1 {
		go call()
		await(t, hanging, "a slow call")
	}
	began := time.Now()
	must(t, b.issueFor(within(t), goodToken))
	if took := time.Since(began); took > admissionWait/2 {
		t.Errorf("a quick caller took %s", took)
	}
	go call()
	await(t, hanging, "the last slow call")
	began = time.Now()
	got := wantCode(t, b.issueFor(within(t), goodToken), codes.ResourceExhausted)
	if took := time.Since(began); took < admissionWait || took > admissionWait+5*time.Second {
		t.Errorf("it took %s to say so", took)
	}
	if reason := reasonIn(got); reason != string(errkind.Overloaded) || retryDelay(got) <= 0 {
		t.Errorf("ErrorInfo says %q, RetryInfo %s", reason, retryDelay(got))
	}
	_, err := healthpb.NewHealthClient(b.conn).Check(within(t), &healthpb.HealthCheckRequest{})
	must(t, err)
	_, err = b.chancery().GetTrustBundle(within(t), &chanceryv1.GetTrustBundleRequest{})
	must(t, err)
	close(hang)
	for range places {
		wantCode(t, await(t, slow, "a slow call"), codes.Internal)
	}
	must(t, b.issueFor(within(t), goodToken))
}

// TestPlacesAreGivenBack: whatever becomes of a call, its places are free afterwards and its goroutines gone.
func TestPlacesAreGivenBack(t *testing.T) {
	b := newBed(t, func(s *setup) {
		s.config.Limits.InFlight, s.config.Limits.Queue, s.config.Limits.Authenticating = 2, 4, 2
	})
	must(t, b.issueFor(within(t), goodToken))
	before := runtime.NumGoroutine()
	for name, test := range map[string]struct {
		do   func(context.Context) error
		code codes.Code
	}{
		"not authenticated":  {func(ctx context.Context) error { return b.issueFor(ctx, "bad") }, codes.Unauthenticated},
		"not allowed":        {func(ctx context.Context) error { return b.issueFor(ctx, goodToken, "spiffe://example.org/ns/else") }, codes.PermissionDenied},
		"the signer refuses": {func(ctx context.Context) error { return b.issueFor(ctx, goodToken) }, codes.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			if test.code == codes.Unavailable {
				b.signer.failWith(errkind.New(errkind.Unavailable, "the backend is away"))
				defer b.signer.failWith(nil)
			}
			for range 5 {
				wantCode(t, test.do(within(t)), test.code)
			}
		})
	}
	t.Run("the caller leaves", func(t *testing.T) {
		arrived := b.signer.close()
		defer b.signer.open()
		ctx, cancel := context.WithCancel(t.Context())
		errs := make(chan error, 5)
		for range 5 {
			go func() { errs <- b.issueFor(ctx, goodToken) }()
		}
		await(t, arrived, "a call at the signer")
		await(t, arrived, "a call at the signer")
		for b.server.admit.limiter.State().Queued != 3 {
			<-time.After(time.Millisecond)
		}
		cancel()
		for range 5 {
			wantCode(t, await(t, errs, "the caller's end"), codes.Canceled)
		}
	})
	eventually(t, "places and goroutines are free again", func() bool {
		s := b.server.admit.limiter.State()
		return s.InFlight == 0 && s.Queued == 0 && len(b.server.admit.authenticating) == 0 && runtime.NumGoroutine() <= before
	})
	must(t, b.issueFor(within(t), goodToken))
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(waitAtMost); !holds(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}
