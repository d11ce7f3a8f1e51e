package tokenreview

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	kubecache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
)

// deletionLeeway is how long after its deletionTimestamp an object still counts as alive: what the API server's own authenticator allows. A pod's
// deletionTimestamp is the end of its grace period, so a pod that shuts down in good order can renew until it is gone.
const deletionLeeway = time.Minute

const (
	minStaleness = 10 * time.Second
	maxStaleness = time.Hour
)

// ViewConfig says how one cluster is followed. Zero values of the optional fields mean their defaults.
type ViewConfig struct {
	// Cluster is the name of the cluster in principals, logs and metrics. Required.
	Cluster string
	// Identity makes the identities of the cluster's service accounts, for OnNode. Required.
	Identity identity.Path
	// MaxStaleness is how old the view may be and still be believed. Default 5m, from 10s to 1h. It is a trade: while the API server is away, pods
	// go on renewing for as long without it; if it is this server that is cut off, a pod that was deleted meanwhile can renew for as long.
	MaxStaleness time.Duration
	// QPS and Burst limit the calls a second that begin lists and watches. Defaults 10 and 20.
	QPS   float32
	Burst int
	// UserAgent names us in the API server's audit log. Default "chancery-liveness".
	UserAgent string
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

func (c ViewConfig) complete() (ViewConfig, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	switch {
	case c.Cluster == "":
		return c, errors.New("tokenreview: cluster is empty: give the cluster a name for the audit records")
	case c.Identity.IsZero():
		return c, errors.New("tokenreview: the view needs an identity path: make one with identity.NewPath")
	case c.QPS < 0 || c.Burst < 0:
		return c, errors.New("tokenreview: QPS and burst of the view must not be negative")
	case c.MaxStaleness != 0 && c.MaxStaleness < minStaleness:
		return c, fmt.Errorf("tokenreview: max staleness is %v: it must be at least %v, or every pause of the network would count", c.MaxStaleness, minStaleness)
	}
	c.QPS, c.Burst, c.UserAgent = orDefault(c.QPS, 10), orDefault(c.Burst, 20), orDefault(c.UserAgent, "chancery-liveness")
	return c, complete("max staleness", &c.MaxStaleness, 5*time.Minute, maxStaleness)
}

var _ Liveness = (*View)(nil)

// View is what one cluster's pods, service accounts and nodes look like from here. It follows them by lists and watches of its own and keeps a few
// fields of each. It says yes only while it is complete and at most MaxStaleness old; it never asks the cluster on behalf of a caller. Safe for
// concurrent use. It is a prometheus.Collector of its own metrics.
//
// It stands on client-go's reflectors and not on its informers: what is kept is a record of its own and not an API object, which takes a sixth of the
// memory; a broken watch is taken up again within seconds and not within a minute; and bookmarks, the sign that a quiet watch still lives, are seen.
type View struct {
	config  ViewConfig
	logger  *slog.Logger
	metrics viewMetrics
	health  health

	pods, accounts, nodes *feed

	running atomic.Bool
	order   sync.Mutex // of reports to health, so that the last one is the latest
}

// NewView returns a View of the cluster whose API server access leads to. access is copied. It knows nothing until Run. logger may be nil.
//
// The account that access stands for needs the verbs list and watch on pods, serviceaccounts and nodes of the core API group, in all namespaces.
func NewView(access *rest.Config, config ViewConfig, logger *slog.Logger) (*View, error) {
	config, err := config.complete()
	if err != nil {
		return nil, err
	}
	sources, err := sourcesOf(access, config)
	if err != nil {
		return nil, err
	}
	return newView(sources, config, logger), nil
}

// newView takes a complete config.
func newView(from sources, config ViewConfig, logger *slog.Logger) *View {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	v := &View{config: config, logger: logger, metrics: newViewMetrics(config.Cluster)}
	v.pods, v.accounts, v.nodes = newFeed(from.pods, config, v.report), newFeed(from.accounts, config, v.report), newFeed(from.nodes, config, v.report)
	v.health = health{reason: v.trouble(config.Now()), since: config.Now()}
	return v
}

// Run follows the cluster until ctx ends, and returns nil then. It is called once.
func (v *View) Run(ctx context.Context) error {
	if v.running.Swap(true) {
		return errors.New("tokenreview: the view runs already")
	}
	// client-go would log every failure for itself; here they go through health
	silent := klog.Logger{}
	ctx = klog.NewContext(ctx, silent)
	var feeds sync.WaitGroup
	for _, f := range v.feeds() {
		reflector := kubecache.NewReflectorWithOptions(f, f.source.example, f, kubecache.ReflectorOptions{
			Logger: &silent, Name: "liveness-" + f.source.resource, Backoff: backoff(),
		})
		feeds.Go(func() { reflector.RunWithContext(ctx) })
	}
	feeds.Go(func() { v.keepLooking(ctx) })
	feeds.Wait()
	for _, f := range v.feeds() {
		f.close() // nothing keeps it up to date any more
	}
	return nil
}

// keepLooking reports now and then: growing old is no event.
func (v *View) keepLooking(ctx context.Context) {
	ticker := time.NewTicker(5 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			v.look(ctx, nil)
		}
	}
}

func (v *View) feeds() [3]*feed { return [3]*feed{v.pods, v.accounts, v.nodes} }

// Synced tells whether the view may be believed: each kind of object has been listed, its watch is not forbidden, and there was a sign of life of it
// within MaxStaleness. While it is false the cluster has to be asked.
func (v *View) Synced() bool {
	now := v.config.Now()
	for _, f := range v.feeds() {
		if f.trouble(now).stale {
			return false
		}
	}
	return true
}

// Health tells whether the view follows its cluster, since when that is so, and why not: which verb on which resource is refused, or what else fails.
// A view can be unwell and still Synced, for as long as MaxStaleness allows.
func (v *View) Health() (ok bool, since time.Time, reason string) {
	v.health.mu.Lock()
	defer v.health.mu.Unlock()
	return v.health.ok, v.health.since, v.health.reason
}

// report feeds the health, and the log where it changes. cause is what the last call failed by; nil if it did not.
func (v *View) report(ctx context.Context, cause error) {
	if cause == nil && v.starting() {
		return // that it is not complete yet is no news
	}
	v.look(ctx, cause)
}

// look takes the state of the feeds into the health.
func (v *View) look(ctx context.Context, cause error) {
	v.order.Lock()
	now := v.config.Now()
	reason := v.trouble(now)
	news := v.health.set(reason, now)
	v.order.Unlock()
	if !news {
		return
	}
	attributes := []any{slog.String("cluster", v.config.Cluster), slog.Bool("believed", v.Synced())}
	if reason == "" {
		v.logger.InfoContext(ctx, "the view of the cluster is complete and up to date", attributes...)
		return
	}
	attributes = append(attributes, slog.String("reason", reason))
	if cause != nil {
		attributes = append(attributes, slog.String("cause", cause.Error()))
	}
	v.logger.WarnContext(ctx, "the view of the cluster is not up to date", attributes...)
}

// starting tells whether a first list is on its way.
func (v *View) starting() bool {
	for _, f := range v.feeds() {
		if f.starting() {
			return true
		}
	}
	return false
}

// trouble returns the worst that is wrong with a feed: that it is not believed and why, then that it is not there yet, then what else fails.
func (v *View) trouble(now time.Time) string {
	reason, worst := "", 0
	for _, f := range v.feeds() {
		t, weight := f.trouble(now), 1
		switch {
		case t.reason == "":
			continue
		case t.stale && t.failed:
			weight = 3
		case t.stale:
			weight = 2
		}
		if weight > worst {
			reason, worst = t.reason, weight
		}
	}
	return reason
}

// Alive tells whether the objects that a token is bound to exist: its service account, and its pod, and its node if it names one, each with the UID
// that the token names. The pod has to be the service account's and on the node, and must not have ended. An object that is being deleted is alive
// until a minute after its deletionTimestamp, as for the API server itself.
//
// It is stricter than the API server, which looks neither at a pod's phase nor at the node of a token that is bound to a pod, and it can lag behind it by
// moments: an error of reason errkind.ObjectGone is worth a TokenReview, not a refusal, unless it wraps ErrGone: what was seen and is gone does not come
// back. Errors: errkind.Unavailable while the view is not Synced, otherwise errkind.Unauthenticated, with the cause for the log.
func (v *View) Alive(holder *identity.Kubernetes) error {
	if !v.Synced() {
		return v.unknown()
	}
	_, err := v.alive(holder)
	return err
}

// alive returns the record of the holder's pod, nil for a token that is bound to a node alone.
func (v *View) alive(holder *identity.Kubernetes) (*record, error) {
	switch {
	case holder.Cluster != v.config.Cluster:
		return nil, gone("the token is of cluster %s and the view is of %s", holder.Cluster, v.config.Cluster)
	case holder.PodUID == "" && holder.NodeUID == "":
		return nil, errkind.New(errkind.Unauthenticated, "token is bound to neither a pod nor a node: %s", wayOut).Because(errkind.NotBound)
	}
	if err := v.exists(v.accounts.table, "service account", holder.Namespace, holder.ServiceAccount, holder.ServiceAccountUID); err != nil {
		return nil, err
	}
	var pod *record
	if holder.PodUID != "" {
		if err := v.exists(v.pods.table, "pod", holder.Namespace, holder.PodName, holder.PodUID); err != nil {
			return nil, err
		}
		pod = v.pods.table.get(holder.Namespace, holder.PodName)
		switch {
		case pod == nil || pod.uid != holder.PodUID: // it went between the two looks
			return nil, gone("pod %s/%s is gone", holder.Namespace, holder.PodName)
		case pod.account.Value() != holder.ServiceAccount:
			return nil, gone("pod %s/%s is of service account %s and not %s", holder.Namespace, holder.PodName, pod.account.Value(), holder.ServiceAccount)
		case pod.ended:
			// final (Pod Lifecycle: a phase of Succeeded or Failed never changes), though the API server's authenticator does not look at it
			return nil, gone("pod %s/%s has ended: %w", holder.Namespace, holder.PodName, ErrGone)
		case holder.NodeName != "" && pod.node.Value() != holder.NodeName:
			return nil, gone("pod %s/%s is on node %q and not on %s", holder.Namespace, holder.PodName, pod.node.Value(), holder.NodeName)
		}
	}
	if holder.NodeUID != "" {
		if err := v.exists(v.nodes.table, "node", "", holder.NodeName, holder.NodeUID); err != nil {
			return nil, err
		}
	}
	return pod, nil
}

// exists looks for an object with a UID.
func (v *View) exists(in *table, kind, namespace, name, uid string) error {
	if name == "" || uid == "" {
		return gone("the token lacks the name or the UID of a %s", kind)
	}
	found := in.get(namespace, name)
	if namespace != "" {
		name = namespace + "/" + name
	}
	switch {
	case found == nil && in.went(uid):
		return gone("%s %s does not exist: %w", kind, name, ErrGone)
	case found == nil:
		return gone("%s %s does not exist", kind, name)
	case found.uid != uid && in.went(uid):
		return gone("%s %s has UID %s and not %s: %w", kind, name, found.uid, uid, ErrGone)
	case found.uid != uid:
		return gone("%s %s has UID %s and not %s: it was made anew", kind, name, found.uid, uid)
	case found.deletedBefore(v.config.Now().Add(-deletionLeeway)):
		return gone("%s %s was to be gone by %s", kind, name, stamp(time.Unix(found.deleted, 0)))
	}
	return nil
}

func gone(format string, args ...any) error {
	return errkind.Wrap(errkind.Unauthenticated, fmt.Errorf(format, args...),
		"the token's pod, service account or node does not exist any more, or is another one by now; %s", wayOut).Because(errkind.ObjectGone)
}

func (v *View) unknown() error {
	return errkind.Wrap(errkind.Unavailable, errors.New(v.trouble(v.config.Now())),
		"the server's view of the cluster is not up to date; try again").Because(errkind.ClusterUnavailable).After(retryAfter)
}
