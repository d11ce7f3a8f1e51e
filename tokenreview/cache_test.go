package tokenreview

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	authv1 "k8s.io/api/authentication/v1"

	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
)

// clock is a clock that tests move by hand.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

func refuseAll(s *authv1.TokenReviewStatus) { *s = authv1.TokenReviewStatus{Error: "unknown"} }

func TestGoodTokenIsRememberedForTenSecondsAtMost(t *testing.T) {
	c := &clock{now: start}
	f := newFixture(t, func(config *Config) { config.Now = c.Now })
	token := goodToken(start).String()
	for _, step := range []struct {
		at    time.Duration
		calls int
	}{
		{0, 1},
		{5 * time.Second, 1},
		{10*time.Second - 1, 1},
		{10 * time.Second, 2},
		{19 * time.Second, 2},
		{20 * time.Second, 3},
	} {
		c.set(start.Add(step.at))
		if _, err := f.ask(t.Context(), token); err != nil {
			t.Fatal(err)
		}
		if got := f.cluster.calls(); got != step.calls {
			t.Errorf("after %s: %d calls, want %d", step.at, got, step.calls)
		}
	}
	if hits, misses := testutil.ToFloat64(f.metrics.lookups.WithLabelValues(lookupHit)),
		testutil.ToFloat64(f.metrics.lookups.WithLabelValues(lookupMiss)); hits != 3 || misses != 3 {
		t.Errorf("%v hits and %v misses", hits, misses)
	}
	c.set(start) // a clock set back ends what is remembered
	if _, err := f.ask(t.Context(), token); err != nil || f.cluster.calls() != 4 {
		t.Errorf("after the clock was set back: %d calls, error %v", f.cluster.calls(), err)
	}
}

func TestGoodTokenIsNotRememberedPastItsExpiry(t *testing.T) {
	c := &clock{now: start}
	f := newFixture(t, func(config *Config) { config.Now = c.Now })
	parts := goodToken(start)
	parts.claims["exp"] = start.Add(3 * time.Second).Unix()
	token := parts.String()
	if _, err := f.ask(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	key := f.online.cache.key(f.online.config.Audiences, token)
	if v, ok := f.online.cache.get(key, start.Add(3*time.Second-1)); !ok || !v.until.Equal(start.Add(3*time.Second)) {
		t.Errorf("remembered until %s", v.until)
	}
	c.set(start.Add(3 * time.Second))
	_, err := f.ask(t.Context(), token)
	wantKind(t, err, errkind.Unauthenticated, "expired at")
	if f.cluster.calls() != 1 {
		t.Errorf("%d calls", f.cluster.calls())
	}
}

func TestTimeToLiveBeginsWithTheCall(t *testing.T) {
	c := &clock{now: start}
	f := newFixture(t, func(config *Config) { config.Now = c.Now })
	f.cluster.edit = func(*authv1.TokenReviewStatus) { c.set(c.Now().Add(4 * time.Second)) } // a slow API server
	token := goodToken(start).String()
	for _, step := range []struct {
		at    time.Duration
		calls int
	}{{0, 1}, {10*time.Second - 1, 1}, {10 * time.Second, 2}} {
		c.set(start.Add(step.at))
		if _, err := f.ask(t.Context(), token); err != nil || f.cluster.calls() != step.calls {
			t.Errorf("after %s: %d calls, error %v", step.at, f.cluster.calls(), err)
		}
	}
}

func TestRememberedPrincipalCannotBeChangedByItsUser(t *testing.T) {
	f := newFixture(t, nil)
	token := goodToken(start).String()
	for range 3 {
		principal, err := f.ask(t.Context(), token)
		if err != nil || principal.Kubernetes.Namespace != "shop" || principal.CredentialID == "" {
			t.Fatalf("principal %+v, error %v", principal, err)
		}
		principal.Kubernetes.Namespace, principal.CredentialID = "kube-system", ""
	}
}

func TestRefusalIsRememberedBriefly(t *testing.T) {
	c := &clock{now: start}
	f := newFixture(t, func(config *Config) { config.Now = c.Now })
	f.cluster.edit = refuseAll
	token := goodToken(start).String()
	for _, at := range []time.Duration{0, time.Second, 2*time.Second - 1} {
		c.set(start.Add(at))
		_, err := f.ask(t.Context(), token)
		wantKind(t, err, errkind.Unauthenticated, "does not accept")
	}
	if f.cluster.calls() != 1 || testutil.ToFloat64(f.metrics.lookups.WithLabelValues(lookupNegativeHit)) != 2 {
		t.Errorf("%d calls", f.cluster.calls())
	}
	c.set(start.Add(2 * time.Second))
	f.cluster.edit = nil // by now the API server has seen the new pod
	if _, err := f.ask(t.Context(), token); err != nil {
		t.Error(err)
	}
}

func TestUniqueBadTokensDoNotEvictGoodOnes(t *testing.T) {
	const remembered, bad = 32, 48
	f := newFixture(t, func(c *Config) { c.CacheSize, c.NegativeSize = 4, remembered })
	good := goodToken(start).String()
	if _, err := f.ask(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	f.cluster.edit = refuseAll
	for n := range bad {
		if _, handled, err := f.online.Authenticate(t.Context(), identity.Credential{Bearer: identity.Secret(numbered(start, n))}); !handled || err == nil {
			t.Fatal(handled, err)
		}
	}
	if n := f.online.cache.bad.Len(); n != remembered {
		t.Errorf("%d bad tokens are remembered", n)
	}
	if _, err := f.ask(t.Context(), good); err != nil {
		t.Error(err)
	}
	if f.cluster.calls() != 1+bad {
		t.Errorf("%d calls", f.cluster.calls())
	}
}

func TestCacheIsBounded(t *testing.T) {
	f := newFixture(t, func(c *Config) { c.CacheSize = 4 })
	for n := range 20 {
		if _, err := f.ask(t.Context(), numbered(start, n)); err != nil {
			t.Fatal(err)
		}
	}
	if n := f.online.cache.good.Len(); n != 4 {
		t.Errorf("%d good tokens are remembered", n)
	}
}

func TestCacheKeys(t *testing.T) {
	one, err := newCache(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	two, err := newCache(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[cacheKey]string{}
	for _, c := range []struct {
		audiences []string
		token     string
	}{
		{[]string{"a"}, "t"}, {[]string{"b"}, "t"}, {[]string{"a"}, "u"}, {[]string{"a", "t"}, ""}, {[]string{"at"}, ""}, {nil, "at"}, {[]string{"", "a"}, "t"},
	} {
		name := fmt.Sprintf("%q %q", c.audiences, c.token)
		key := one.key(c.audiences, c.token)
		if other, twice := seen[key]; twice {
			t.Errorf("%s has the key of %s", name, other)
		}
		seen[key] = name
		if key != one.key(c.audiences, c.token) {
			t.Errorf("%s has two keys", name)
		}
		if key == two.key(c.audiences, c.token) {
			t.Errorf("%s has the same key in two processes", name)
		}
	}
}

func TestRememberedTokensGoOnWhileTheAPIServerIsDown(t *testing.T) {
	c := &clock{now: start}
	f := newFixture(t, func(config *Config) { config.Now = c.Now })
	known, unknown := numbered(start, 1), numbered(start, 2)
	if _, err := f.ask(t.Context(), known); err != nil {
		t.Fatal(err)
	}
	f.cluster.fail = func(string) error { return errors.New("connection refused") }
	c.set(start.Add(9 * time.Second))
	if _, err := f.ask(t.Context(), known); err != nil {
		t.Errorf("a remembered token: %v", err)
	}
	_, err := f.ask(t.Context(), unknown)
	wantKind(t, err, errkind.Unavailable, "could not be asked")
	c.set(start.Add(10 * time.Second))
	_, err = f.ask(t.Context(), known)
	wantKind(t, err, errkind.Unavailable, "could not be asked")

	f.cluster.fail = nil // neither failure was remembered
	for _, token := range []string{known, unknown} {
		if _, err := f.ask(t.Context(), token); err != nil {
			t.Error(err)
		}
	}
}

func TestOneReviewServesAllWhoAskAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(c *Config) { c.Now = time.Now })
		release := make(chan struct{})
		f.cluster.block = release
		token := goodToken(time.Now()).String()

		first, leave := context.WithCancel(t.Context())
		leaver := make(chan error, 1)
		go func() {
			_, err := f.ask(first, token)
			leaver <- err
		}()
		synctest.Wait() // the first has begun the review
		stayers := make(chan error, 9)
		for range 9 {
			go func() {
				_, err := f.ask(t.Context(), token)
				stayers <- err
			}()
		}
		synctest.Wait()
		leave()
		synctest.Wait()
		select {
		case err := <-leaver:
			wantKind(t, err, errkind.Unavailable, "ended before the cluster had answered")
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		default:
			t.Fatal("the caller who left still waits")
		}
		if len(stayers) != 0 {
			t.Fatalf("a caller who stayed got %v", <-stayers)
		}
		close(release)
		for range 9 {
			if err := <-stayers; err != nil {
				t.Error(err)
			}
		}
		if f.cluster.calls() != 1 {
			t.Errorf("%d calls", f.cluster.calls())
		}
	})
}

func TestAReviewThatEverybodyLeftEndsAndIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(c *Config) { c.Now = time.Now })
		release := make(chan struct{})
		f.cluster.block = release
		token := goodToken(time.Now()).String()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		before := time.Now()
		_, err := f.ask(ctx, token)
		wantKind(t, err, errkind.Unavailable, "try again")
		if waited := time.Since(before); waited != time.Second {
			t.Errorf("waited %s", waited)
		}
		close(release)
		synctest.Wait()
		if _, err := f.ask(t.Context(), token); err != nil || f.cluster.calls() != 1 {
			t.Errorf("%d calls, error %v", f.cluster.calls(), err)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if _, err := f.ask(ended, numbered(time.Now(), 1)); err == nil || f.cluster.calls() != 1 {
			t.Errorf("a request that had ended made a call: %d, error %v", f.cluster.calls(), err)
		}
	})
}

func TestReviewsBeyondTheSlotsAreTurnedAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(c *Config) { c.Now, c.MaxInFlight = time.Now, 2 })
		release := make(chan struct{})
		f.cluster.block = release
		begin := time.Now()
		answers := make(chan error, 2)
		for n := range 2 {
			go func() {
				_, err := f.ask(t.Context(), numbered(begin, n))
				answers <- err
			}()
		}
		synctest.Wait()
		if n := testutil.ToFloat64(f.metrics.inFlight); n != 2 {
			t.Errorf("%v in flight", n)
		}
		_, err := f.ask(t.Context(), numbered(begin, 3))
		wantKind(t, err, errkind.Exhausted, "too many tokens")
		if waited := time.Since(begin); waited != 250*time.Millisecond || errkind.RetryAfter(err) != time.Second {
			t.Errorf("waited %s, told to come back after %s", waited, errkind.RetryAfter(err))
		}
		short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err = f.ask(short, numbered(begin, 4))
		wantKind(t, err, errkind.Unavailable, "ended before")
		close(release)
		for range 2 {
			if err := <-answers; err != nil {
				t.Error(err)
			}
		}
		if _, err := f.ask(t.Context(), numbered(begin, 3)); err != nil {
			t.Errorf("after a slot was free: %v", err)
		}
		synctest.Wait() // for the review whose caller has left
		if n := testutil.ToFloat64(f.metrics.inFlight); n != 0 {
			t.Errorf("%v in flight at the end", n)
		}
		if n := testutil.ToFloat64(f.metrics.reviews.WithLabelValues(resultSaturated)); n != 1 {
			t.Errorf("%v counted as saturated", n)
		}
		if ok, _, reason := f.online.Health(); !ok {
			t.Errorf("our own limit made the cluster unwell: %s", reason)
		}
	})
}

func TestAWaitingTokenGetsTheFirstFreeSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(c *Config) { c.Now, c.MaxInFlight = time.Now, 1 })
		release := make(chan struct{})
		f.cluster.block = release
		answers := make(chan error, 2)
		for n := range 2 {
			token := numbered(time.Now(), n)
			go func() {
				_, err := f.ask(t.Context(), token)
				answers <- err
			}()
		}
		synctest.Wait()
		if f.cluster.calls() != 1 {
			t.Errorf("%d calls at once", f.cluster.calls())
		}
		close(release)
		for range 2 {
			if err := <-answers; err != nil {
				t.Error(err)
			}
		}
	})
}
