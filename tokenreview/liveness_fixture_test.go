package tokenreview

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/chancery-ca/chancery/ca/identity"
)

// fakeKind stands for what an API server has of one kind of object. Its watches tell of changes, and end when they were asked to.
type fakeKind struct {
	mu       sync.Mutex
	objects  []metav1.Object
	version  int
	watches  []*watch.RaceFreeFakeWatcher
	lists    int
	opened   int
	listErr  error
	watchErr error
	held     chan struct{} // lists wait for it
	hung     bool          // watches do not end, and are told nothing
	streams  bool          // first lists come by a watch
	endless  bool          // such lists have no end
	noStream error         // answers the call for one
	timeouts []int64
	podsOnly bool
}

func (k *fakeKind) source(resource string, example runtime.Object, byNode bool) source {
	return source{resource: resource, example: example, byNode: byNode, noStreaming: !k.streams, list: k.list, watch: k.watch}
}

func (k *fakeKind) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	k.mu.Lock()
	held := k.held
	k.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lists++
	if options.ResourceVersion == "0" {
		return nil, fmt.Errorf("a list of any age was asked for")
	}
	if k.listErr != nil {
		return nil, k.listErr
	}
	version := metav1.ListMeta{ResourceVersion: strconv.Itoa(k.version)}
	if k.podsOnly {
		list := &corev1.PodList{ListMeta: version}
		for _, o := range k.objects {
			list.Items = append(list.Items, *o.(*corev1.Pod).DeepCopy())
		}
		slimList(list)
		return list, nil
	}
	list := &metav1.PartialObjectMetadataList{ListMeta: version}
	for _, o := range k.objects {
		list.Items = append(list.Items, *o.(*metav1.PartialObjectMetadata).DeepCopy())
	}
	slimList(list)
	return list, nil
}

func (k *fakeKind) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.timeouts = append(k.timeouts, *options.TimeoutSeconds)
	if options.SendInitialEvents != nil && k.noStream != nil {
		return nil, k.noStream
	}
	if k.watchErr != nil {
		return nil, k.watchErr
	}
	k.opened++
	w := watch.NewRaceFreeFake()
	if options.SendInitialEvents != nil {
		for _, o := range k.objects {
			w.Add(o.(runtime.Object).DeepCopyObject())
		}
		if !k.endless {
			end := &corev1.Pod{}
			end.ResourceVersion, end.Annotations = strconv.Itoa(k.version), map[string]string{metav1.InitialEventsAnnotationKey: "true"}
			if k.podsOnly {
				w.Action(watch.Bookmark, end)
			} else {
				w.Action(watch.Bookmark, &metav1.PartialObjectMetadata{ObjectMeta: end.ObjectMeta})
			}
		}
	}
	k.watches = append(k.watches, w)
	context.AfterFunc(ctx, w.Stop)
	if !k.hung {
		time.AfterFunc(time.Duration(*options.TimeoutSeconds)*time.Second, w.Stop)
	}
	return w, nil
}

// tell sends an event to the open watches, after the object was put, changed or taken away.
func (k *fakeKind) tell(kind watch.EventType, object metav1.Object) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.version++
	object.SetResourceVersion(strconv.Itoa(k.version))
	k.objects = slices.DeleteFunc(k.objects, func(o metav1.Object) bool {
		return o.GetNamespace() == object.GetNamespace() && o.GetName() == object.GetName()
	})
	if kind != watch.Deleted {
		k.objects = append(k.objects, object)
	}
	k.event(kind, object.(runtime.Object).DeepCopyObject())
}

func (k *fakeKind) event(kind watch.EventType, object runtime.Object) {
	if k.hung {
		return
	}
	for _, w := range k.watches {
		if !w.IsStopped() {
			w.Action(kind, object)
		}
	}
}

// fail makes calls fail from now on; nil for the one that works.
func (k *fakeKind) fail(list, watch error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.listErr, k.watchErr = list, watch
}

// cut ends the open watches.
func (k *fakeKind) cut() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, w := range k.watches {
		w.Stop()
	}
	k.watches = nil
}

func (k *fakeKind) hang(hung bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.hung = hung
}

func (k *fakeKind) counts() (lists, opened int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lists, k.opened
}

// viewBed is a View of a cluster with one pod, on one node, of one service account. Its clock is that of the synctest bubble.
type viewBed struct {
	t                     *testing.T
	pods, accounts, nodes *fakeKind
	view                  *View
	log                   *bytes.Buffer
	stop                  func()
}

func aPod(name, uid, account, node string) *corev1.Pod {
	pod := &corev1.Pod{Spec: corev1.PodSpec{ServiceAccountName: account, NodeName: node}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	pod.Namespace, pod.Name, pod.UID = "shop", name, types.UID(uid)
	return pod
}

func aMeta(namespace, name, uid string) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.Namespace, object.Name, object.UID = namespace, name, types.UID(uid)
	return object
}

func holder() *identity.Kubernetes {
	return &identity.Kubernetes{
		Cluster: "local", Namespace: "shop", ServiceAccount: "cart", ServiceAccountUID: "sa-1", PodName: "cart-x", PodUID: "pod-1", NodeName: "node-a",
		NodeUID: "node-1",
	}
}

func newViewBed(t *testing.T, edit ...func(*ViewConfig)) *viewBed {
	t.Helper()
	return newViewBedOf(t, false, edit...)
}

func newViewBedOf(t *testing.T, streams bool, edit ...func(*ViewConfig)) *viewBed {
	t.Helper()
	b := &viewBed{t: t, pods: &fakeKind{version: 1, podsOnly: true}, accounts: &fakeKind{version: 1}, nodes: &fakeKind{version: 1}, log: new(bytes.Buffer)}
	for _, k := range b.kinds() {
		k.streams = streams
	}
	b.pods.objects = []metav1.Object{aPod("cart-x", "pod-1", "cart", "node-a")}
	b.accounts.objects = []metav1.Object{aMeta("shop", "cart", "sa-1")}
	b.nodes.objects = []metav1.Object{aMeta("", "node-a", "node-1")}
	path, err := identity.NewPath(trustDomain, "local", identity.DefaultPath)
	if err != nil {
		t.Fatal(err)
	}
	config := ViewConfig{Cluster: "local", Identity: path}
	for _, e := range edit {
		e(&config)
	}
	if config, err = config.complete(); err != nil {
		t.Fatal(err)
	}
	b.view = newView(sources{
		pods:     b.pods.source("pods", &corev1.Pod{}, true),
		accounts: b.accounts.source("serviceaccounts", &metav1.PartialObjectMetadata{}, false),
		nodes:    b.nodes.source("nodes", &metav1.PartialObjectMetadata{}, false),
	}, config, slog.New(slog.NewTextHandler(&lockedWriter{to: b.log}, nil)))
	return b
}

func (b *viewBed) kinds() []*fakeKind { return []*fakeKind{b.pods, b.accounts, b.nodes} }

// run starts the view. It is for use in a synctest bubble.
func (b *viewBed) run() {
	ctx, cancel := context.WithCancel(b.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.view.Run(ctx) }()
	b.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			b.t.Error(err)
		}
	})
	b.t.Cleanup(b.stop)
	synctest.Wait()
}

// inBubble runs a test with a fake clock.
func inBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	// client-go spaces the errors of the whole process by the time of the last one, which would be that of another bubble
	before := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = nil
	defer func() { utilruntime.ErrorHandlers = before }()
	synctest.Test(t, test)
}

// wantSynced checks whether the view is believed, and that Alive agrees.
func (b *viewBed) wantSynced(want bool) {
	b.t.Helper()
	if got := b.view.Synced(); got != want {
		_, _, reason := b.view.Health()
		b.t.Fatalf("synced is %t, want %t; health says %q", got, want, reason)
	}
}

// refused is what a client gets when nobody listens.
func refused() error {
	return &url.Error{Op: "Get", URL: "https://192.0.2.1/api/v1/x", Err: syscall.ECONNREFUSED}
}
