package tokenreview

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	kubecache "k8s.io/client-go/tools/cache"

	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
)

// wantGone checks an error of Alive and its cause.
func wantGone(t *testing.T, err error, cause string) {
	t.Helper()
	if cause == "" {
		if err != nil {
			t.Errorf("it is refused: %v", err)
		}
		return
	}
	if err == nil {
		t.Fatalf("it is alive, want %q", cause)
	}
	if errkind.Of(err) != errkind.Unauthenticated || !strings.Contains(err.Error(), cause) {
		t.Errorf("got %s %q, want unauthenticated with %q", errkind.Of(err), err, cause)
	}
}

func TestAlive(t *testing.T) {
	deleting := func(o metav1.Object, ago time.Duration) {
		at := metav1.NewTime(time.Now().Add(-ago))
		o.SetDeletionTimestamp(&at)
	}
	pod := func(b *viewBed) *corev1.Pod { return b.pods.objects[0].(*corev1.Pod) }
	for name, test := range map[string]struct {
		world func(*viewBed)
		token func(*identity.Kubernetes)
		gone  string
	}{
		"all is there":          {},
		"pod pending":           {world: func(b *viewBed) { pod(b).Status.Phase = corev1.PodPending }},
		"pod of unknown phase":  {world: func(b *viewBed) { pod(b).Status.Phase = corev1.PodUnknown }},
		"pod succeeded":         {world: func(b *viewBed) { pod(b).Status.Phase = corev1.PodSucceeded }, gone: "pod shop/cart-x has ended"},
		"pod failed":            {world: func(b *viewBed) { pod(b).Status.Phase = corev1.PodFailed }, gone: "pod shop/cart-x has ended"},
		"no pod":                {world: func(b *viewBed) { b.pods.objects = nil }, gone: "pod shop/cart-x does not exist"},
		"pod made anew":         {world: func(b *viewBed) { pod(b).UID = "pod-2" }, gone: "pod shop/cart-x has UID pod-2 and not pod-1"},
		"pod without a UID":     {world: func(b *viewBed) { pod(b).UID = "" }, gone: "has UID  and not pod-1"},
		"pod of another kind":   {world: func(b *viewBed) { pod(b).Spec.ServiceAccountName = "till" }, gone: "is of service account till and not cart"},
		"pod without account":   {world: func(b *viewBed) { pod(b).Spec.ServiceAccountName = "" }, gone: "is of service account  and not cart"},
		"pod elsewhere":         {world: func(b *viewBed) { pod(b).Spec.NodeName = "node-b" }, gone: `on node "node-b" and not on node-a`},
		"pod not scheduled":     {world: func(b *viewBed) { pod(b).Spec.NodeName = "" }, gone: `on node "" and not on node-a`},
		"pod in other space":    {world: func(b *viewBed) { pod(b).Namespace = "office" }, gone: "pod shop/cart-x does not exist"},
		"pod in its grace":      {world: func(b *viewBed) { deleting(pod(b), -30*time.Second) }},
		"pod just past it":      {world: func(b *viewBed) { deleting(pod(b), 59*time.Second) }},
		"pod long past it":      {world: func(b *viewBed) { deleting(pod(b), 62*time.Second) }, gone: "pod shop/cart-x was to be gone by"},
		"no account":            {world: func(b *viewBed) { b.accounts.objects = nil }, gone: "service account shop/cart does not exist"},
		"account made anew":     {world: func(b *viewBed) { b.accounts.objects[0].SetUID("sa-2") }, gone: "service account shop/cart has UID sa-2 and not sa-1"},
		"account being deleted": {world: func(b *viewBed) { deleting(b.accounts.objects[0], 30*time.Second) }},
		"account deleted":       {world: func(b *viewBed) { deleting(b.accounts.objects[0], 62*time.Second) }, gone: "service account shop/cart was to be gone"},
		"no node":               {world: func(b *viewBed) { b.nodes.objects = nil }, gone: "node node-a does not exist"},
		"node made anew":        {world: func(b *viewBed) { b.nodes.objects[0].SetUID("node-2") }, gone: "node node-a has UID node-2 and not node-1"},
		"node deleted":          {world: func(b *viewBed) { deleting(b.nodes.objects[0], 62*time.Second) }, gone: "node node-a was to be gone"},

		"token without a node":        {token: func(k *identity.Kubernetes) { k.NodeName, k.NodeUID = "", "" }},
		"token without a node's UID":  {token: func(k *identity.Kubernetes) { k.NodeUID = "" }},
		"token without a node's name": {token: func(k *identity.Kubernetes) { k.NodeName = "" }, gone: "lacks the name or the UID of a node"},
		"token of a node alone":       {token: func(k *identity.Kubernetes) { k.PodName, k.PodUID = "", "" }},
		"token of another node alone": {token: func(k *identity.Kubernetes) { k.PodName, k.PodUID, k.NodeUID = "", "", "node-0" }, gone: "node node-a has UID"},
		"token of nothing":            {token: func(k *identity.Kubernetes) { k.PodName, k.PodUID, k.NodeName, k.NodeUID = "", "", "", "" }, gone: "neither a pod nor a node"},
		"token of a node's name":      {token: func(k *identity.Kubernetes) { k.PodName, k.PodUID, k.NodeUID = "", "", "" }, gone: "neither a pod nor a node"},
		"token of a pod's UID":        {token: func(k *identity.Kubernetes) { k.PodName = "" }, gone: "lacks the name or the UID of a pod"},
		"token of an older pod":       {token: func(k *identity.Kubernetes) { k.PodUID = "pod-0" }, gone: "pod shop/cart-x has UID pod-1 and not pod-0"},
		"token of another account":    {token: func(k *identity.Kubernetes) { k.ServiceAccount = "till" }, gone: "service account shop/till does not exist"},
		"token without account UID":   {token: func(k *identity.Kubernetes) { k.ServiceAccountUID = "" }, gone: "lacks the name or the UID of a service account"},
		"token of another space":      {token: func(k *identity.Kubernetes) { k.Namespace = "office" }, gone: "service account office/cart does not exist"},
		"token without a space":       {token: func(k *identity.Kubernetes) { k.Namespace = "" }, gone: "service account cart does not exist"},
		"token of another cluster":    {token: func(k *identity.Kubernetes) { k.Cluster = "east" }, gone: "the token is of cluster east"},
		"a neighbour of its account": {
			world: func(b *viewBed) { b.pods.objects = append(b.pods.objects, aPod("cart-y", "pod-2", "cart", "node-a")) },
			token: func(k *identity.Kubernetes) { k.PodName = "cart-y" }, gone: "pod shop/cart-y has UID pod-2 and not pod-1",
		},
		"slashes in names": {
			token: func(k *identity.Kubernetes) { k.Namespace, k.ServiceAccount = "shop/cart", "" }, gone: "lacks the name or the UID",
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				b := newViewBed(t)
				if test.world != nil {
					test.world(b)
				}
				b.run()
				b.wantSynced(true)
				token := holder()
				if test.token != nil {
					test.token(token)
				}
				err := b.view.Alive(token)
				wantGone(t, err, test.gone)
				if err != nil && strings.Contains(errkind.Message(err), "shop") {
					t.Errorf("the caller is told %q", errkind.Message(err))
				}
			})
		})
	}
}

// TestAliveFollowsEvents: no time passes between an event and the answer that goes by it.
func TestAliveFollowsEvents(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newViewBed(t)
		b.run()
		step := func(kind *fakeKind, event watch.EventType, object metav1.Object, cause string) {
			t.Helper()
			kind.tell(event, object)
			synctest.Wait()
			wantGone(t, b.view.Alive(holder()), cause)
		}
		began := time.Now()
		step(b.pods, watch.Deleted, aPod("cart-x", "pod-1", "cart", "node-a"), "does not exist")
		step(b.pods, watch.Added, aPod("cart-x", "pod-2", "cart", "node-a"), "has UID pod-2")
		step(b.pods, watch.Modified, aPod("cart-x", "pod-2", "cart", "node-a"), "has UID pod-2")
		step(b.pods, watch.Deleted, aPod("cart-x", "pod-2", "cart", "node-a"), "does not exist")
		step(b.pods, watch.Added, aPod("cart-x", "pod-1", "cart", ""), `on node ""`)
		step(b.pods, watch.Modified, aPod("cart-x", "pod-1", "cart", "node-a"), "")
		step(b.pods, watch.Modified, aPod("cart-x", "pod-3", "cart", "node-a"), "has UID pod-3") // the deletion in between was never told
		step(b.pods, watch.Modified, aPod("cart-x", "pod-1", "cart", "node-a"), "")
		ended := aPod("cart-x", "pod-1", "cart", "node-a")
		ended.Status.Phase = corev1.PodFailed
		step(b.pods, watch.Modified, ended, "has ended")
		step(b.pods, watch.Modified, aPod("cart-x", "pod-1", "cart", "node-a"), "")
		step(b.accounts, watch.Deleted, aMeta("shop", "cart", "sa-1"), "service account shop/cart does not exist")
		step(b.accounts, watch.Added, aMeta("shop", "cart", "sa-2"), "has UID sa-2")
		step(b.accounts, watch.Modified, aMeta("shop", "cart", "sa-1"), "")
		step(b.nodes, watch.Deleted, aMeta("", "node-a", "node-1"), "node node-a does not exist")
		step(b.nodes, watch.Added, aMeta("", "node-a", "node-1"), "")
		step(b.pods, watch.Deleted, aPod("cart-x", "pod-9", "cart", "node-a"), "does not exist") // whatever has the name goes
		if passed := time.Since(began); passed != 0 {
			t.Errorf("%s passed", passed)
		}
		if lists, _ := b.pods.counts(); lists != 1 {
			t.Errorf("pods were listed %d times", lists)
		}
	})
}

// TestTheStoreOfAFeed does what reflectors do not do today.
func TestTheStoreOfAFeed(t *testing.T) {
	for name, test := range map[string]struct {
		do     func(*feed) error
		wrong  bool
		exists bool
	}{
		"nothing":       {func(*feed) error { return nil }, false, true},
		"its tombstone": {func(f *feed) error { return f.Delete(kubecache.DeletedFinalStateUnknown{Key: "shop/cart-x"}) }, false, false},
		"a tombstone with an old": {func(f *feed) error {
			return f.Delete(kubecache.DeletedFinalStateUnknown{Key: "shop/cart-x", Obj: aPod("cart-x", "pod-0", "cart", "")})
		}, false, false},
		"another's tombstone":     {func(f *feed) error { return f.Delete(kubecache.DeletedFinalStateUnknown{Key: "shop/cart-y"}) }, false, true},
		"a tombstone of no name":  {func(f *feed) error { return f.Delete(kubecache.DeletedFinalStateUnknown{Key: "a/b/c"}) }, true, true},
		"deletion of no object":   {func(f *feed) error { return f.Delete("shop/cart-x") }, true, true},
		"an object of other type": {func(f *feed) error { return f.Add(&corev1.Node{}) }, true, true},
		"a list of other type":    {func(f *feed) error { return f.Replace([]any{&corev1.Node{}}, "9") }, true, true},
		"an empty list":           {func(f *feed) error { return f.Replace(nil, "9") }, false, false},
		"a list without it":       {func(f *feed) error { return f.Replace([]any{aPod("cart-y", "pod-2", "cart", "node-a")}, "9") }, false, false},
		"a resync and a bookmark": {func(f *feed) error { return f.Resync() }, false, true},
		"what a transformer made": {func(f *feed) error {
			made, _ := f.Transformer()(aPod("cart-x", "pod-1", "cart", "node-a"))
			return f.Add(made)
		}, false, true},
		"what it made of a string": {func(f *feed) error { made, _ := f.Transformer()("x"); return f.Add(made) }, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				b := newViewBed(t)
				b.run()
				err := test.do(b.view.pods)
				if (err != nil) != test.wrong || b.view.Synced() == test.wrong {
					t.Errorf("error %v, synced %t", err, b.view.Synced())
				}
				if got := b.view.pods.table.get("shop", "cart-x") != nil; got != test.exists {
					t.Errorf("the pod exists: %t", got)
				}
			})
		})
	}
}

// TestNotBeforeTheFirstLists: until each kind has been listed, the view knows nothing.
func TestNotBeforeTheFirstLists(t *testing.T) {
	for last, resource := range []string{"pods", "serviceaccounts", "nodes"} {
		inBubble(t, func(t *testing.T) {
			b := newViewBed(t)
			b.wantSynced(false) // it does not even run
			held := make(chan struct{})
			b.kinds()[last].held = held
			b.run()
			b.wantSynced(false)
			err := b.view.Alive(holder())
			wantKind(t, err, errkind.Unavailable, "not up to date")
			if errkind.ReasonOf(err) != errkind.ClusterUnavailable {
				t.Errorf("the reason is %s", errkind.ReasonOf(err))
			}
			time.Sleep(6 * time.Second) //nolint:forbidigo // of the bubble's clock
			if ok, since, reason := b.view.Health(); ok || time.Since(since) != 6*time.Second || reason != "the first list of "+resource+" is not complete" {
				t.Errorf("health is %t since %s: %q", ok, since, reason)
			}
			close(held)
			synctest.Wait()
			b.wantSynced(true)
			if ok, since, reason := b.view.Health(); !ok || !since.Equal(time.Now()) || reason != "" {
				t.Errorf("health is %t since %s: %q", ok, since, reason)
			}
			wantGone(t, b.view.Alive(holder()), "")
		})
	}
}

// pass lets time pass on the bubble's clock, and what is due happen.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // of the bubble's clock
	synctest.Wait()
}

// TestTheAPIServerIsAway: the view is believed for MaxStaleness and no longer, and comes back soon after the API server.
func TestTheAPIServerIsAway(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newViewBed(t)
		b.run()
		pass(time.Hour)
		b.wantSynced(true)
		lists, _ := b.pods.counts()
		for _, k := range b.kinds() {
			k.tell(watch.Added, aBystander(k == b.pods)) // so that we know when the last sign of life was
		}
		synctest.Wait()
		for _, k := range b.kinds() {
			k.fail(refused(), refused())
			k.cut()
		}
		pass(time.Minute)
		b.wantSynced(true)
		wantGone(t, b.view.Alive(holder()), "")
		if ok, _, reason := b.view.Health(); ok || reason != "the API server cannot be reached (watch of pods)" {
			t.Errorf("after a minute health is %t: %q", ok, reason)
		}
		pass(4*time.Minute - time.Second)
		b.wantSynced(true)
		pass(2 * time.Second)
		b.wantSynced(false)
		wantKind(t, b.view.Alive(holder()), errkind.Unavailable, "not up to date")
		pass(time.Hour)
		b.wantSynced(false)

		b.pods.tell(watch.Deleted, aPod("cart-x", "pod-1", "cart", "node-a")) // nobody listens
		for _, k := range b.kinds() {
			k.fail(nil, nil)
		}
		b.pods.fail(nil, apierrors.NewResourceExpired("too old"))
		pass(5 * time.Second)
		b.pods.fail(nil, nil)
		pass(5 * time.Second)
		b.wantSynced(true)
		wantGone(t, b.view.Alive(holder()), "pod shop/cart-x does not exist")
		if after, _ := b.pods.counts(); after == lists {
			t.Error("pods were not listed again")
		}
		if ok, _, reason := b.view.Health(); !ok {
			t.Errorf("health is %q", reason)
		}
		pass(quietPeriod) // the log may wait for as long after a reminder
		log := b.log.String()
		for _, want := range []string{"complete and up to date", `level=WARN msg="the view of the cluster is not up to date" cluster=local believed=true`} {
			if !strings.Contains(log, want) {
				t.Errorf("the log lacks %q:\n%s", want, log)
			}
		}
		if lines := strings.Count(log, "\n"); lines > 100 { // a reminder a minute
			t.Errorf("the log has %d lines", lines)
		}
	})
}

func aBystander(pod bool) metav1.Object {
	if pod {
		return aPod("bystander", "pod-b", "cart", "node-a")
	}
	return aMeta("shop", "bystander", "uid-b")
}

// TestAWatchThatHangs: a connection that is open and silent is no sign of life, and is cut.
func TestAWatchThatHangs(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newViewBed(t)
		b.nodes.hang(true)
		b.run()
		b.wantSynced(true)
		pass(150*time.Second + hangingGrace + time.Second)
		if _, opened := b.nodes.counts(); opened != 2 {
			t.Errorf("%d watches were opened, want a second in the place of the one that hung", opened)
		}
		b.nodes.fail(nil, refused())
		pass(150*time.Second + hangingGrace)
		b.wantSynced(true) // the second watch opened less than 5 minutes ago
		pass(150 * time.Second)
		b.wantSynced(false)
		if ok, _, reason := b.view.Health(); ok || !strings.Contains(reason, "watch of nodes") {
			t.Errorf("health is %t: %q", ok, reason)
		}
	})
}

// TestWatchesThatAreDropped: a server that takes watches and ends them is followed by lists; if it does not list either, it is not believed for long.
func TestWatchesThatAreDropped(t *testing.T) {
	for name, drop := range map[string]func(*fakeKind){
		"closed": func(k *fakeKind) { k.cut() },
		"with an error": func(k *fakeKind) {
			k.mu.Lock()
			defer k.mu.Unlock()
			status := apierrors.NewInternalError(refused()).Status()
			for _, w := range k.watches {
				if !w.IsStopped() {
					w.Error(&status)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				b := newViewBed(t)
				b.run()
				for range 300 {
					drop(b.accounts)
					pass(500 * time.Millisecond)
				}
				b.wantSynced(true)
				wantGone(t, b.view.Alive(holder()), "")
				drop(b.accounts)
				synctest.Wait()
				b.accounts.tell(watch.Deleted, aMeta("shop", "cart", "sa-1"))
				for range 10 {
					drop(b.accounts)
					pass(500 * time.Millisecond)
				}
				wantGone(t, b.view.Alive(holder()), "service account shop/cart does not exist")
				b.accounts.fail(refused(), nil)
				for range 620 {
					drop(b.accounts)
					pass(500 * time.Millisecond)
				}
				b.wantSynced(false)
			})
		})
	}
}

// TestStreamedLists: what API servers do since Kubernetes 1.34. No list is asked for; what a new stream has brought counts when it is complete.
func TestStreamedLists(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newViewBedOf(t, true)
		b.run()
		b.wantSynced(true)
		wantGone(t, b.view.Alive(holder()), "")
		b.pods.tell(watch.Deleted, aPod("cart-x", "pod-1", "cart", "node-a"))
		synctest.Wait()
		wantGone(t, b.view.Alive(holder()), "pod shop/cart-x does not exist")
		b.pods.tell(watch.Added, aPod("cart-x", "pod-1", "cart", "node-a"))
		pass(time.Hour)
		wantGone(t, b.view.Alive(holder()), "")

		// the watch expires and the next stream does not end: that it is open is no sign of life of what is in the table
		b.pods.mu.Lock()
		b.pods.endless = true
		b.pods.mu.Unlock()
		expired := apierrors.NewResourceExpired("too old").Status()
		b.pods.mu.Lock()
		for _, w := range b.pods.watches {
			if !w.IsStopped() {
				w.Error(&expired)
			}
		}
		b.pods.listErr = refused()
		b.pods.objects = nil
		b.pods.mu.Unlock()
		pass(20 * time.Minute)
		b.wantSynced(false)

		b.pods.mu.Lock()
		b.pods.endless = false
		b.pods.mu.Unlock()
		pass(10 * time.Minute)
		b.wantSynced(true)
		wantGone(t, b.view.Alive(holder()), "pod shop/cart-x does not exist")
	})
	inBubble(t, func(t *testing.T) { // an older API server
		b := newViewBedOf(t, true)
		for _, k := range b.kinds() {
			k.noStream = apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil)
		}
		b.run()
		b.wantSynced(true)
		wantGone(t, b.view.Alive(holder()), "")
		if ok, _, reason := b.view.Health(); !ok {
			t.Errorf("health is %q", reason)
		}
	})
}

// TestQuietStreams has a cluster in which nothing happens and whose API server streams first lists and sends no bookmarks: whatever the bound is, the view is
// never taken for old.
func TestQuietStreams(t *testing.T) {
	for _, bound := range []time.Duration{minStaleness, time.Minute, 3 * time.Minute, 4 * time.Minute, 5 * time.Minute, maxStaleness} {
		t.Run(bound.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				b := newViewBedOf(t, true, func(c *ViewConfig) { c.MaxStaleness = bound })
				b.run()
				for range 600 {
					b.wantSynced(true)
					pass(time.Second)
				}
			})
		})
	}
}

// TestElapsed: the monotonic clock stands still while a machine sleeps, and the wall clock can be set back.
func TestElapsed(t *testing.T) {
	now := time.Now()
	for name, test := range map[string]struct {
		from, to time.Time
		want     time.Duration
	}{
		"both clocks":          {now, now.Add(time.Second), time.Second},
		"the wall clock alone": {now.Round(0), now.Round(0).Add(time.Second), time.Second},
		"backwards":            {now, now.Add(-time.Second), -time.Second},
	} {
		if got := elapsed(test.from, test.to); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}

// TestSilence: what is wrong has a name even if no call has failed.
func TestSilence(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newViewBed(t, func(c *ViewConfig) { c.MaxStaleness = 10 * time.Second })
		b.nodes.hang(true)
		b.run()
		pass(15 * time.Second)
		b.wantSynced(false)
		if ok, _, reason := b.view.Health(); ok || reason != "the watch of nodes has given no sign of life for over 10s" {
			t.Errorf("health is %t: %q", ok, reason)
		}
	})
}

// TestAge: how old a feed takes itself to be, call by call.
func TestAge(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newViewBed(t)
		f := b.view.pods
		age := func(want time.Duration) {
			t.Helper()
			f.mu.Lock()
			defer f.mu.Unlock()
			if got := f.age(time.Now()); got != want {
				t.Errorf("it is %s old, want %s", got, want)
			}
		}
		open := func() watch.Interface {
			t.Helper()
			w, err := f.WatchWithContext(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return w
		}
		f.begin()
		pass(100 * time.Second) // a long list
		if err := f.Replace(nil, "1"); err != nil {
			t.Fatal(err)
		}
		age(100 * time.Second)

		w := open()
		age(100 * time.Second) // it may end at once
		pass(2 * time.Second)
		age(2 * time.Second)
		w.Stop()
		age(2 * time.Second)
		pass(10 * time.Second)

		w = open()
		pass(500 * time.Millisecond)
		w.Stop()
		pass(2 * time.Second)
		age(14*time.Second + 500*time.Millisecond)

		w = open()
		expired := apierrors.NewResourceExpired("too old").Status()
		b.pods.mu.Lock()
		b.pods.watches[len(b.pods.watches)-1].Error(&expired)
		b.pods.mu.Unlock()
		<-w.ResultChan()
		pass(2 * time.Second)
		age(16*time.Second + 500*time.Millisecond)
		w.Stop()
		age(16*time.Second + 500*time.Millisecond)

		if err := f.Bookmark("2"); err != nil {
			t.Fatal(err)
		}
		age(0)
	})
}

func TestViewMetrics(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newViewBed(t)
		registry := prometheus.NewPedanticRegistry()
		other := newView(sources{}, ViewConfig{Cluster: "east", Now: time.Now}, nil)
		for _, view := range []*View{b.view, other} {
			if err := registry.Register(view); err != nil {
				t.Fatal(err)
			}
		}
		expect := func(text string) {
			t.Helper()
			if err := testutil.CollectAndCompare(b.view, strings.NewReader(text), "chancery_liveness_believed", "chancery_liveness_age_seconds"); err != nil {
				t.Error(err)
			}
		}
		const believed = "# HELP chancery_liveness_believed 1 if the view of the cluster is complete and recent enough to be believed, otherwise 0.\n" +
			"# TYPE chancery_liveness_believed gauge\nchancery_liveness_believed{cluster=\"local\"} "
		expect(believed + "0\n")
		b.run()
		pass(30 * time.Second)
		age := "# HELP chancery_liveness_age_seconds Time since the last sign of life of a resource's watch; absent before the first list.\n" +
			"# TYPE chancery_liveness_age_seconds gauge\n"
		for _, resource := range []string{"nodes", "pods", "serviceaccounts"} {
			age += `chancery_liveness_age_seconds{cluster="local",resource="` + resource + `"} 30` + "\n"
		}
		expect(age + believed + "1\n")
	})
}

func TestRunEnds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newViewBed(t)
		b.run()
		b.wantSynced(true)
		if err := b.view.Run(t.Context()); err == nil {
			t.Error("it runs twice")
		}
		b.stop()
		b.wantSynced(false)
		if ok, _, reason := b.view.Health(); !ok { // the last that was heard
			t.Errorf("health is %q", reason)
		}
		wantKind(t, b.view.Alive(holder()), errkind.Unavailable, "not up to date")
	})
}

// TestBookmarks keep a view alive whose watches are not asked for anew.
func TestBookmarks(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := newViewBed(t, func(c *ViewConfig) { c.MaxStaleness = 10 * time.Second })
		b.run()
		if b.pods.timeouts[0] != 5 {
			t.Errorf("a watch was to last %d s", b.pods.timeouts[0])
		}
		for range 600 {
			for _, k := range b.kinds() {
				k.mu.Lock()
				k.event(watch.Bookmark, anEmpty(k == b.pods))
				k.mu.Unlock()
			}
			pass(time.Second)
			b.wantSynced(true)
		}
		for _, k := range b.kinds() {
			k.fail(refused(), refused())
			k.cut()
		}
		pass(8 * time.Second)
		b.wantSynced(true)
		pass(3 * time.Second)
		b.wantSynced(false)
	})
}

func anEmpty(pod bool) runtime.Object {
	if pod {
		return &corev1.Pod{}
	}
	return &metav1.PartialObjectMetadata{}
}

func TestForbidden(t *testing.T) {
	for at, resource := range []string{"pods", "serviceaccounts", "nodes"} {
		group := schema.GroupResource{Resource: resource}
		for name, test := range map[string]struct {
			list, watch error
			says        string
		}{
			"list":           {list: apierrors.NewForbidden(group, "", nil), says: "may not list " + resource + ": bind it"},
			"watch":          {watch: apierrors.NewForbidden(group, "", nil), says: "may not watch " + resource + ": bind it"},
			"both":           {apierrors.NewForbidden(group, "", nil), apierrors.NewForbidden(group, "", nil), "may not list " + resource},
			"our credential": {watch: apierrors.NewUnauthorized("x"), says: "does not accept the server's own credential, so it may not watch " + resource},
		} {
			t.Run(resource+"/"+name, func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					b := newViewBed(t)
					b.kinds()[at].fail(test.list, test.watch)
					b.run()
					check := func() {
						t.Helper()
						b.wantSynced(false)
						if ok, _, reason := b.view.Health(); ok || !strings.Contains(reason, test.says) {
							t.Errorf("health is %t: %q", ok, reason)
						}
						wantKind(t, b.view.Alive(holder()), errkind.Unavailable, "not up to date")
					}
					check()
					for range 20 {
						pass(7 * time.Second)
						check()
					}
					b.kinds()[at].fail(nil, nil)
					pass(5 * time.Second)
					b.wantSynced(true)
					if ok, _, reason := b.view.Health(); !ok {
						t.Errorf("health is %q", reason)
					}
					// a right that is taken away later counts at the next call, long before the view is old
					b.kinds()[at].fail(test.list, test.watch)
					b.kinds()[at].cut()
					pass(5 * time.Second)
					if test.watch != nil {
						check()
					}
				})
			})
		}
	}
}
