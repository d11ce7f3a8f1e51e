package tokenreview

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
)

// decider is an Authenticator that counts its calls and returns what a test sets.
type decider struct {
	calls     int
	principal *identity.Principal
	err       error
}

func (d *decider) Authenticate(context.Context, identity.Credential) (*identity.Principal, bool, error) {
	d.calls++
	return d.principal, true, d.err
}

// counted returns how often a KeySet has counted one of verifiedResults.
func counted(k *KeySet, result string) float64 {
	return testutil.ToFloat64(k.metrics.verified.WithLabelValues(k.config.Name, result))
}

// TestOfflineAndTheCluster holds when the view of the cluster decides, when the cluster itself does, and that the signature comes before both.
func TestOfflineAndTheCluster(t *testing.T) {
	good, forged := theKeys().rsa.token(nil), theKeys().stranger.token(nil)
	for name, test := range map[string]struct {
		objects func(*objects)
		noKeys  bool
		token   string
		asked   int
		want    errkind.Reason // accepted means by the view
		counted string
	}{
		"all is there":                    {nil, false, good, 0, accepted, verifiedGood},
		"the pod is unknown":              {func(o *objects) { delete(o.uids, "pod shop/cart-7d9f-x2x4z") }, false, good, 1, errkind.ClusterRefused, verifiedAskedForObject},
		"the pod is another":              {func(o *objects) { o.uids["pod shop/cart-7d9f-x2x4z"] = "pod-uid-2" }, false, good, 1, errkind.ClusterRefused, verifiedAskedForObject},
		"the account is another":          {func(o *objects) { o.uids["account shop/cart"] = "sa-uid-2" }, false, good, 1, errkind.ClusterRefused, verifiedAskedForObject},
		"the pod went":                    {func(o *objects) { o.uids, o.gone = nil, []string{"sa-uid-1"} }, false, good, 0, errkind.ObjectGone, verifiedGone},
		"the view is not complete":        {func(o *objects) { o.unsynced = true }, false, good, 1, errkind.ClusterRefused, verifiedAskedForView},
		"there are no keys":               {nil, true, good, 1, errkind.ClusterRefused, verifiedAskedForKeys},
		"forged":                          {nil, false, forged, 0, errkind.BadSignature, verifiedRefused},
		"forged, without a complete view": {func(o *objects) { o.unsynced = true }, false, forged, 0, errkind.BadSignature, verifiedRefused},
		"forged, of an unknown pod":       {func(o *objects) { o.uids = nil }, false, forged, 0, errkind.BadSignature, verifiedRefused},
		"forged, of a pod that went":      {func(o *objects) { o.uids, o.gone = nil, []string{"sa-uid-1"} }, false, forged, 0, errkind.BadSignature, verifiedRefused},
		"of another audience, no keys":    {nil, true, claim("aud", `"vault"`)(), 0, errkind.WrongAudience, verifiedRefused},
		"bound to nothing, no keys": {nil, true, private(func(k map[string]any) { delete(k, "pod"); delete(k, "node") })(), 0, errkind.NotBound,
			verifiedRefused},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVerifiers(t, nil)
			if test.objects != nil {
				test.objects(v.objects)
			}
			if test.noKeys {
				source := newFakeSource(nil)
				source.set(nil, errors.New("no route to host"))
				var err error
				if v.live.keys, err = NewKeySet(source.source(), KeySetConfig{Name: "local"}, nil, nil); err != nil {
					t.Fatal(err)
				}
			}
			cluster := &decider{err: errkind.New(errkind.Unauthenticated, "no").Because(errkind.ClusterRefused)}
			v.live.fallback = cluster
			principal, err := present(t, v.live, test.token)
			got := accepted
			if err != nil {
				got = errkind.ReasonOf(err)
			} else if principal.Kubernetes.Verification != identity.VerifiedLive {
				t.Errorf("verified by %s", principal.Kubernetes.Verification)
			}
			if got != test.want || cluster.calls != test.asked {
				t.Errorf("%s after %d calls, want %s after %d: %v", got, cluster.calls, test.want, test.asked, err)
			}
			if n := counted(v.live.keys, test.counted); n != 1 {
				t.Errorf("%s was counted %v times", test.counted, n)
			}
		})
	}
}

// TestTheClusterDecidesForOffline holds that the cluster's answer is taken as it is, good or bad.
func TestTheClusterDecidesForOffline(t *testing.T) {
	v := newVerifiers(t, nil)
	v.objects.unsynced = true
	token := theKeys().p256.token(nil)
	principal, err := present(t, v.live, token)
	if err != nil || principal.Kubernetes.Verification != identity.VerifiedReview || v.api.count() != 1 {
		t.Fatalf("%+v %v after %d calls", principal, err, v.api.count())
	}
	down := errkind.New(errkind.Unavailable, "away").Because(errkind.ClusterUnavailable).After(time.Second)
	v.live.fallback = &decider{err: down}
	if _, err := present(t, v.live, token); !errors.Is(err, down) {
		t.Errorf("%v", err)
	}
}

// TestOfflineWithoutKeys holds that nobody is turned away for good for a fault of ours.
func TestOfflineWithoutKeys(t *testing.T) {
	v := newVerifiers(t, nil)
	source := newFakeSource(nil)
	source.set(nil, errors.New("dial tcp: secret-host refused"))
	var err error
	if v.offline.keys, err = NewKeySet(source.source(), KeySetConfig{Name: "local"}, nil, nil); err != nil {
		t.Fatal(err)
	}
	token := theKeys().rsa.token(nil)
	_, err = present(t, v.offline, token)
	wantKind(t, err, errkind.Unavailable, "could not be read; try again")
	if errkind.ReasonOf(err) != errkind.IssuerUnavailable || strings.Contains(errkind.Message(err), "secret-host") {
		t.Errorf("%v", err)
	}
	if n := counted(v.offline.keys, verifiedUnavailable); n != 1 {
		t.Errorf("counted %v times", n)
	}
	source.set(setOf(theKeys().published()...), nil)
	if err := v.offline.keys.fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := present(t, v.offline, token); err != nil {
		t.Error(err)
	}
}

// TestOfflineRules holds the settings that widen or narrow what is accepted.
func TestOfflineRules(t *testing.T) {
	nodeBound := private(func(k map[string]any) { delete(k, "pod") })
	warned := func(at time.Time) func() string {
		return private(func(k map[string]any) { k["warnafter"] = at.Unix() })
	}
	for name, test := range map[string]struct {
		edit  func(*OfflineConfig)
		token func() string
		want  errkind.Reason
	}{
		"a node's, accepted":           {func(c *OfflineConfig) { c.AcceptNodeBound = true }, nodeBound, accepted},
		"a node's":                     {nil, nodeBound, errkind.NotBound},
		"a node without UID, accepted": {func(c *OfflineConfig) { c.AcceptNodeBound = true }, private(func(k map[string]any) { delete(k, "pod"); k["node"] = map[string]any{"name": "node-a"} }), errkind.NotBound},
		"a node's and a secret's": {func(c *OfflineConfig) { c.AcceptNodeBound = true }, private(func(k map[string]any) {
			delete(k, "pod")
			delete(k, "node")
			k["secret"] = map[string]any{"name": "s", "uid": "u"}
		}), errkind.NotBound},
		"warned a second ago":           {func(c *OfflineConfig) { c.EnforceWarnAfter = true }, warned(start.Add(-time.Second)), errkind.CredentialExpired},
		"warned now":                    {func(c *OfflineConfig) { c.EnforceWarnAfter = true }, warned(start), errkind.CredentialExpired},
		"warned in a second":            {func(c *OfflineConfig) { c.EnforceWarnAfter = true }, warned(start.Add(time.Second)), accepted},
		"warned, not enforced":          {nil, warned(start.Add(-time.Hour)), accepted},
		"without a warning, enforced":   {func(c *OfflineConfig) { c.EnforceWarnAfter = true }, with(nil), accepted},
		"a warning that is no time":     {func(c *OfflineConfig) { c.EnforceWarnAfter = true }, private(func(k map[string]any) { k["warnafter"] = "soon" }), errkind.MalformedCredential},
		"an algorithm that is not ours": {func(c *OfflineConfig) { c.Algorithms = []string{"ES256", "ES384"} }, with(nil), errkind.BadSignature},
		"one that is":                   {func(c *OfflineConfig) { c.Algorithms = []string{"ES256", "ES384"} }, func() string { return theKeys().p384.token(nil) }, accepted},
		"a longer path": {func(c *OfflineConfig) {
			c.Identity = must(identity.NewPath(trustDomain, "local", "/k8s/{cluster}/{namespace}/{service_account}"))
		},
			with(nil), accepted},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVerifiers(t, test.edit)
			for _, to := range []*Offline{v.offline, v.live} {
				_, err := present(t, to, test.token())
				got := accepted
				if err != nil {
					got = errkind.ReasonOf(err)
				}
				if got != test.want {
					t.Errorf("%s, want %s: %v", got, test.want, err)
				}
			}
			if v.api.count() > 0 {
				t.Error("the cluster was asked")
			}
		})
	}
}

// TestTokenThatExpiresWhileKeysAreFetchedIsRefused has the clock move on during a look at the source.
func TestTokenThatExpiresWhileKeysAreFetchedIsRefused(t *testing.T) {
	c := &clock{now: start}
	v := newVerifiers(t, func(config *OfflineConfig) { config.Now = c.Now })
	source := newFakeSource(nil)
	source.answer = func() ([]byte, error) {
		c.set(start.Add(2 * time.Hour))
		return setOf(theKeys().rsa), nil
	}
	v.offline.keys = must(NewKeySet(source.source(), KeySetConfig{Name: "local", Now: c.Now}, nil, nil))
	_, err := present(t, v.offline, theKeys().rsa.token(nil))
	if errkind.ReasonOf(err) != errkind.CredentialExpired {
		t.Error(err)
	}
}

// TestOfflineLeavesOtherCredentialsAlone holds that join tokens and callers without a token are for others.
func TestOfflineLeavesOtherCredentialsAlone(t *testing.T) {
	v := newVerifiers(t, nil)
	for _, token := range []string{"", "opaque", joinPrefix + "abc.def"} {
		for _, to := range []identity.Authenticator{v.live, v.offline} {
			if principal, handled, err := to.Authenticate(t.Context(), identity.Credential{Bearer: identity.Secret(token)}); handled || principal != nil || err != nil {
				t.Errorf("%q: %v %v %v", token, principal, handled, err)
			}
		}
	}
}

func TestNewOfflineRefuses(t *testing.T) {
	keys := keySetOf(t, nil, theKeys().p256)
	for name, test := range map[string]struct {
		edit func(*OfflineConfig)
		want string
	}{
		"no cluster":           {func(c *OfflineConfig) { c.Cluster = "" }, "cluster is empty"},
		"no identity path":     {func(c *OfflineConfig) { c.Identity = identity.Path{} }, "identity path"},
		"no issuer":            {func(c *OfflineConfig) { c.Issuer = "" }, "issuer is empty"},
		"no audience":          {func(c *OfflineConfig) { c.Audiences = nil }, "audiences"},
		"an empty audience":    {func(c *OfflineConfig) { c.Audiences = []string{"chancery", ""} }, "audiences"},
		"algorithm none":       {func(c *OfflineConfig) { c.Algorithms = []string{"none"} }, "algorithm"},
		"a shared-key one":     {func(c *OfflineConfig) { c.Algorithms = []string{"RS256", "HS256"} }, "algorithm"},
		"one that is not ours": {func(c *OfflineConfig) { c.Algorithms = []string{"PS256"} }, "algorithm"},
	} {
		t.Run(name, func(t *testing.T) {
			config := OfflineConfig{
				Cluster: "local", Identity: must(identity.NewPath(trustDomain, "local", identity.DefaultPath)), Issuer: testIssuer, Audiences: []string{"chancery"},
			}
			if _, err := NewOffline(config, keys, nil, nil, nil); err != nil {
				t.Fatal(err)
			}
			test.edit(&config)
			if _, err := NewOffline(config, keys, nil, nil, nil); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
	config := OfflineConfig{
		Cluster: "local", Identity: must(identity.NewPath(trustDomain, "local", identity.DefaultPath)), Issuer: testIssuer, Audiences: []string{"chancery"},
	}
	if _, err := NewOffline(config, nil, nil, nil, nil); err == nil {
		t.Error("without keys")
	}
	if _, err := NewOffline(config, keys, goodObjects(), nil, nil); err == nil {
		t.Error("with liveness and nobody to ask")
	}
	if _, err := NewOffline(config, keys, nil, &decider{}, nil); err == nil {
		t.Error("with somebody to ask and no liveness")
	}
}

// TestOfflineLogsNoToken looks through the log at its loudest.
func TestOfflineLogsNoToken(t *testing.T) {
	v := newVerifiers(t, nil)
	var log bytes.Buffer
	v.live.logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	v.objects.uids = nil
	token := theKeys().rsa.token(nil)
	if _, err := present(t, v.live, token); err == nil {
		t.Error("accepted")
	}
	if !strings.Contains(log.String(), "does not confirm") {
		t.Errorf("the log says %q", log.String())
	}
	noLeak(t, token, nil, log.String())
}

// TestADeletedPodIsRefusedAtOnceWhateverIsRemembered has a view that has seen a pod go, an API server that has not, and a cache of ours that holds the
// pod's token as a good one.
func TestADeletedPodIsRefusedAtOnceWhateverIsRemembered(t *testing.T) {
	v := newVerifiers(t, nil)
	behind := newVerifyingCluster(t, goodObjects(), theKeys().published()...)
	v.online.reviewer = behind
	path := must(identity.NewPath(trustDomain, "local", identity.DefaultPath))
	config := must(ViewConfig{Cluster: "local", Identity: path, Now: func() time.Time { return start }}.complete())
	view := newView(sources{pods: source{resource: "pods"}, accounts: source{resource: "serviceaccounts"}, nodes: source{resource: "nodes"}}, config, nil)
	v.live.liveness = view
	token := theKeys().rsa.token(nil)
	expect := func(when string, want identity.Verification, reason errkind.Reason) {
		t.Helper()
		principal, err := present(t, v.live, token)
		if reason != "" && errkind.ReasonOf(err) == reason && err != nil {
			return
		}
		if reason != "" || err != nil || principal.Kubernetes.Verification != want {
			t.Errorf("%s: %+v %v, want %s %s", when, principal, err, want, reason)
		}
	}
	pod := aPod("cart-7d9f-x2x4z", "pod-uid-1", "cart", "node-a")
	do := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	expect("before the first list", identity.VerifiedReview, "")
	do(view.pods.Replace(nil, "1"), view.accounts.Replace([]any{aMeta("shop", "cart", "sa-uid-1")}, "1"),
		view.nodes.Replace([]any{aMeta("", "node-a", "node-uid-1")}, "1"))
	for _, f := range view.feeds() {
		f.live()
	}
	expect("before the pod is in the view", identity.VerifiedReview, "")
	do(view.pods.Add(pod))
	expect("alive", identity.VerifiedLive, "")
	do(view.pods.Delete(pod))
	expect("deleted", "", errkind.ObjectGone)
	do(view.pods.Add(aPod("cart-7d9f-x2x4z", "pod-uid-2", "cart", "node-a")))
	expect("made anew", "", errkind.ObjectGone)
	calls := behind.count()
	do(view.accounts.Delete(aMeta("shop", "cart", "sa-uid-1")))
	expect("without its account", "", errkind.ObjectGone)
	if behind.count() != calls {
		t.Error("the API server was asked about what is gone")
	}
}
