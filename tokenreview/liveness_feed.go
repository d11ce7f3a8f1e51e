package tokenreview

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	kubecache "k8s.io/client-go/tools/cache"
)

const (
	// settled is how long a watch has to be open before that is a sign of life: one that is taken and dropped at once is none.
	settled = time.Second
	// hangingGrace is how long after its end a watch may still be open before it is taken for a dead connection and cut.
	hangingGrace = 30 * time.Second
	// listTimeout bounds a list, or a page of one.
	listTimeout = 2 * time.Minute
)

// backoff is how a broken feed comes back: within 4 s of the API server's return. For as long a deleted pod can stay in the view.
func backoff() *wait.Backoff {
	return &wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 1, Cap: 2 * time.Second, Steps: 16}
}

// The verbs by which an API server is followed.
type verb int

const (
	verbList verb = iota
	verbWatch
)

func (b verb) String() string { return [...]string{"list", "watch"}[b] }

// feed follows one kind of object into a table, as the list-watcher and the store of a reflector. It also knows how old what it holds may be.
type feed struct {
	source source
	table  *table
	limit  time.Duration
	now    func() time.Time
	report func(ctx context.Context, cause error)

	mu     sync.Mutex // guards everything below
	listed bool       // the table was complete once
	closed bool       // nobody follows any more
	began  time.Time  // when the latest call began
	seen   time.Time  // the table holds everything that happened until then
	opened time.Time  // when the open watch was asked for; zero if there is none
	faults [2]string  // by verb: why the latest call failed; empty if it did not
	denied [2]bool    // by verb: the API server refused it, as opposed to not answering
}

func newFeed(from source, config ViewConfig, report func(context.Context, error)) *feed {
	return &feed{source: from, table: newTable(from.byNode), limit: config.MaxStaleness, now: config.Now, report: report}
}

// trouble is what is wrong with a feed.
type trouble struct {
	reason string // empty if nothing is
	stale  bool   // what it holds must not be believed
	failed bool   // a call failed
}

func (f *feed) trouble(now time.Time) trouble {
	f.mu.Lock()
	defer f.mu.Unlock()
	fault := f.faults[verbList]
	if fault == "" {
		fault = f.faults[verbWatch]
	}
	switch age := f.age(now); {
	case f.closed:
		return trouble{reason: "nothing follows " + f.source.resource + " any more", stale: true}
	case f.denied[verbList]:
		return trouble{f.faults[verbList], true, true}
	case f.denied[verbWatch]:
		return trouble{f.faults[verbWatch], true, true}
	case !f.listed && fault == "":
		return trouble{reason: "the first list of " + f.source.resource + " is not complete", stale: true}
	case !f.listed:
		return trouble{fault, true, true}
	case age > f.limit && fault == "":
		return trouble{reason: fmt.Sprintf("the watch of %s has given no sign of life for over %s", f.source.resource, f.limit), stale: true}
	default:
		return trouble{fault, age > f.limit, fault != ""}
	}
}

// age returns how old the table may be. The monotonic clock stands still while a machine is suspended and the wall clock can be set back: the more
// pessimistic of the two counts.
func (f *feed) age(now time.Time) time.Duration {
	seen := f.seen
	if !f.opened.IsZero() && elapsed(f.opened, now) >= settled {
		seen = later(seen, f.opened)
	}
	return elapsed(seen, now)
}

func elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// List implements kubecache.Lister; reflectors call ListWithContext.
func (f *feed) List(options metav1.ListOptions) (runtime.Object, error) {
	return f.ListWithContext(context.Background(), options)
}

// Watch implements kubecache.Watcher; reflectors call WatchWithContext.
func (f *feed) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return f.WatchWithContext(context.Background(), options)
}

// IsWatchListSemanticsUnSupported tells reflectors not to stream the first list: where that cannot be, and where the watch that it comes by, which has to
// be open for long enough for a large list, would go on for longer without a sign of life than the view may be old. API servers send a bookmark a minute.
func (f *feed) IsWatchListSemanticsUnSupported() bool {
	return f.source.noStreaming || f.limit/2 < listTimeout
}

// ListWithContext lists for a reflector.
func (f *feed) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if options.ResourceVersion == "0" { // anything that some API server's cache holds, however old
		options.ResourceVersion = ""
	}
	f.begin()
	bounded, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	list, err := f.source.list(bounded, options)
	f.called(ctx, verbList, err)
	return list, err
}

// WatchWithContext watches for a reflector. The watch is asked to end, and so to begin anew, in time to tell a quiet one from a dead one, should the
// server send no bookmarks; if it has not ended a while after that, the connection is dead and it is cut.
func (f *feed) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	lasts := max(int64((f.limit/2)/time.Second), 1)
	if options.SendInitialEvents != nil { // it brings the first list as well
		lasts = max(lasts, int64(listTimeout/time.Second))
	}
	if options.TimeoutSeconds == nil || *options.TimeoutSeconds > lasts {
		options.TimeoutSeconds = &lasts
	}
	began := f.begin()
	bounded, cancel := context.WithTimeout(ctx, time.Duration(*options.TimeoutSeconds)*time.Second+hangingGrace)
	inner, err := f.source.watch(bounded, options)
	if err != nil {
		cancel()
		if options.SendInitialEvents == nil || !(apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)) { // an old server knows no streamed lists
			f.called(ctx, verbWatch, err)
		}
		return nil, err
	}
	if options.SendInitialEvents == nil { // what a streamed list brings is not in the table before it is complete
		f.mu.Lock()
		f.opened = began
		f.mu.Unlock()
	}
	f.called(ctx, verbWatch, nil)
	seeing := watch.Filter(inner, func(event watch.Event) (watch.Event, bool) {
		if event.Type == watch.Error {
			f.void(began)
		}
		return event, true
	})
	return &watched{Interface: seeing, end: sync.OnceFunc(func() {
		cancel()
		f.ended(began)
	})}, nil
}

// watched is a watch whose end is noted. A reflector stops every watch that it is done with.
type watched struct {
	watch.Interface
	end func()
}

func (w *watched) Stop() {
	w.Interface.Stop()
	w.end()
}

func (f *feed) begin() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.began = f.now()
	return f.began
}

// ended notes the end of the watch that was asked for at opened.
func (f *feed) ended(opened time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.opened.Equal(opened) {
		return
	}
	if elapsed(opened, f.now()) >= settled {
		f.seen = later(f.seen, opened)
	}
	f.opened = time.Time{}
}

// void takes the watch that was asked for at opened for none: the server did not follow it after all.
func (f *feed) void(opened time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.opened.Equal(opened) {
		f.opened = time.Time{}
	}
}

// starting tells whether the first list is on its way and nothing has gone wrong with it.
func (f *feed) starting() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.listed && f.faults == [2]string{}
}

// called notes the outcome of a call.
func (f *feed) called(ctx context.Context, by verb, err error) {
	if ctx.Err() != nil || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return // we stop, or a new list follows
	}
	f.mu.Lock()
	f.faults[by], f.denied[by] = "", false
	if err != nil {
		f.faults[by], f.denied[by] = f.fault(by, err), apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
	} else if by == verbWatch { // it can bring a list as well, which is then not needed as such
		f.faults[verbList], f.denied[verbList] = "", false
	}
	f.mu.Unlock()
	f.report(ctx, err)
}

// fault says why a call failed, in words for health and log.
func (f *feed) fault(by verb, err error) string {
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("the server's own account may not %s %s: bind it to a ClusterRole with the verbs list and watch on pods, serviceaccounts and nodes", by,
			f.source.resource)
	case apierrors.IsUnauthorized(err):
		return fmt.Sprintf("the API server does not accept the server's own credential, so it may not %s %s: give it a valid service-account token or kubeconfig", by,
			f.source.resource)
	case apierrors.IsTooManyRequests(err):
		return fmt.Sprintf("the API server throttles the %s of %s", by, f.source.resource)
	}
	switch known := faultOf(err); known.result {
	case resultTimeout, resultUnreachable:
		return fmt.Sprintf("%s (%s of %s)", known.reason, by, f.source.resource)
	default:
		return fmt.Sprintf("the API server answers the %s of %s with an error", by, f.source.resource)
	}
}

// close is for when nobody follows any more.
func (f *feed) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
}

// live notes a sign of life that follows what the table has taken in.
func (f *feed) live() {
	now := f.now()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = later(f.seen, now)
}

// Add implements kubecache.ReflectorStore.
func (f *feed) Add(object any) error { return f.Update(object) }

// Update implements kubecache.ReflectorStore.
func (f *feed) Update(object any) error {
	r, err := recordOf(object)
	if err != nil {
		return f.distrust(err)
	}
	f.table.put(r)
	f.live()
	return nil
}

// Delete implements kubecache.ReflectorStore. It takes an object, or the tombstone of one whose last state nobody saw. Whatever has the name goes.
func (f *feed) Delete(object any) error {
	if tombstone, ok := object.(kubecache.DeletedFinalStateUnknown); ok {
		namespace, name, err := kubecache.SplitMetaNamespaceKey(tombstone.Key)
		if err != nil {
			return f.distrust(err)
		}
		f.table.remove(namespace, name, "")
	} else {
		accessor, ok := object.(metav1.ObjectMetaAccessor)
		if !ok {
			return f.distrust(fmt.Errorf("a %T was deleted", object))
		}
		meta := accessor.GetObjectMeta()
		f.table.remove(meta.GetNamespace(), meta.GetName(), string(meta.GetUID()))
	}
	f.live()
	return nil
}

// Replace implements kubecache.ReflectorStore: a list, as old as the call that brought it.
func (f *feed) Replace(objects []any, _ string) error {
	records := make([]*record, len(objects))
	for i, object := range objects {
		r, err := recordOf(object)
		if err != nil {
			return f.distrust(err)
		}
		records[i] = r
	}
	f.table.replace(records)
	f.mu.Lock()
	f.listed, f.seen = true, later(f.seen, f.began)
	f.mu.Unlock()
	f.report(context.Background(), nil)
	return nil
}

// Bookmark implements kubecache.ReflectorBookmarkStore: nothing happened, and the watch lives.
func (f *feed) Bookmark(string) error {
	f.live()
	return nil
}

// Resync implements kubecache.ReflectorStore. There is nothing to do again.
func (f *feed) Resync() error { return nil }

// Transformer implements kubecache.TransformingStore: a streamed list is collected in small objects.
func (f *feed) Transformer() kubecache.TransformFunc {
	return func(object any) (any, error) { return slim(object), nil }
}

// distrust is for an object that cannot be read: what the table says is not believed until the next list.
func (f *feed) distrust(cause error) error {
	f.mu.Lock()
	f.listed = false
	f.mu.Unlock()
	err := errors.Join(errors.New("following "+f.source.resource), cause)
	f.report(context.Background(), err)
	return err
}
