package tokenreview

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
)

func proxy() *identity.Kubernetes {
	return &identity.Kubernetes{
		Cluster: "local", Namespace: "mesh", ServiceAccount: "ztunnel", ServiceAccountUID: "sa-z", PodName: "ztunnel-a", PodUID: "pod-z", NodeName: "node-a",
		NodeUID: "node-1",
	}
}

// proxyBed has a proxy on node-a, beside cart-x; cart-y and till-b are on node-b.
func proxyBed(t *testing.T, edit ...func(*ViewConfig)) *viewBed {
	t.Helper()
	b := newViewBed(t, edit...)
	ztunnel := aPod("ztunnel-a", "pod-z", "ztunnel", "node-a")
	ztunnel.Namespace = "mesh"
	b.pods.objects = append(b.pods.objects, ztunnel, aPod("cart-y", "pod-2", "cart", "node-b"), aPod("till-b", "pod-3", "till", "node-b"))
	b.accounts.objects = append(b.accounts.objects, aMeta("mesh", "ztunnel", "sa-z"), aMeta("shop", "till", "sa-2"), aMeta("office", "cart", "sa-3"))
	b.nodes.objects = append(b.nodes.objects, aMeta("", "node-b", "node-2"))
	return b
}

func TestOnNode(t *testing.T) {
	const cart = "spiffe://cluster.local/ns/shop/sa/cart"
	deleting := func(o metav1.Object, ago time.Duration) {
		at := metav1.NewTime(time.Now().Add(-ago))
		o.SetDeletionTimestamp(&at)
	}
	pod := func(b *viewBed, name string) *corev1.Pod {
		for _, o := range b.pods.objects {
			if o.GetName() == name {
				return o.(*corev1.Pod)
			}
		}
		return nil
	}
	without := func(k *fakeKind, name string) {
		for i, o := range k.objects {
			if o.GetName() == name {
				k.objects = append(k.objects[:i:i], k.objects[i+1:]...)
				return
			}
		}
	}
	for name, test := range map[string]struct {
		world  func(*viewBed)
		caller func(*identity.Kubernetes)
		id     string // cart if empty
		path   string // of identities; the default if empty
		no     string // the cause; empty if it may
	}{
		"a pod on the node":                {},
		"its own":                          {id: "spiffe://cluster.local/ns/mesh/sa/ztunnel"},
		"a pod on another node":            {id: "spiffe://cluster.local/ns/shop/sa/till", no: "no pod on node node-a has"},
		"an account without a pod":         {id: "spiffe://cluster.local/ns/office/sa/cart", no: "no pod on node node-a has"},
		"an account that is not there":     {id: "spiffe://cluster.local/ns/shop/sa/nobody", no: "no pod on node node-a has"},
		"another trust domain":             {id: "spiffe://example.org/ns/shop/sa/cart", no: "no pod on node node-a has"},
		"another path":                     {id: "spiffe://cluster.local/shop/cart", no: "no pod on node node-a has"},
		"a path below":                     {id: cart + "/x", no: "no pod on node node-a has"},
		"another case":                     {id: "spiffe://cluster.local/ns/shop/sa/Cart", no: "no pod on node node-a has"},
		"the trust domain itself":          {id: "spiffe://cluster.local", no: "no pod on node node-a has"},
		"the authority itself":             {id: "spiffe://cluster.local/chancery/server", no: "no pod on node node-a has"},
		"a pending pod":                    {world: func(b *viewBed) { pod(b, "cart-x").Status.Phase = corev1.PodPending }},
		"a pod of unknown phase":           {world: func(b *viewBed) { pod(b, "cart-x").Status.Phase = corev1.PodUnknown }},
		"a pod that succeeded":             {world: func(b *viewBed) { pod(b, "cart-x").Status.Phase = corev1.PodSucceeded }, no: "no pod on node"},
		"a pod that failed":                {world: func(b *viewBed) { pod(b, "cart-x").Status.Phase = corev1.PodFailed }, no: "no pod on node"},
		"a pod that is not scheduled":      {world: func(b *viewBed) { pod(b, "cart-x").Spec.NodeName = "" }, no: "no pod on node"},
		"a pod that moved":                 {world: func(b *viewBed) { pod(b, "cart-x").Spec.NodeName = "node-b" }, no: "no pod on node"},
		"a pod that is gone":               {world: func(b *viewBed) { without(b.pods, "cart-x") }, no: "no pod on node"},
		"a pod in its grace":               {world: func(b *viewBed) { deleting(pod(b, "cart-x"), -time.Minute) }},
		"a pod past it":                    {world: func(b *viewBed) { deleting(pod(b, "cart-x"), 2*time.Minute) }, no: "should have been gone"},
		"a second pod stays":               {world: func(b *viewBed) { deleting(pod(b, "cart-x"), 2*time.Minute); pod(b, "cart-y").Spec.NodeName = "node-a" }},
		"a static pod":                     {world: func(b *viewBed) { pod(b, "cart-x").Spec.ServiceAccountName = "" }, no: "no pod on node"},
		"a pod of another space":           {world: func(b *viewBed) { pod(b, "cart-x").Namespace = "office" }, no: "no pod on node"},
		"its account is gone":              {world: func(b *viewBed) { without(b.accounts, "cart") }, no: "its service account does not exist"},
		"its account was deleted":          {world: func(b *viewBed) { deleting(b.accounts.objects[0], 2*time.Minute) }, no: "its service account does not exist"},
		"the caller's pod is gone":         {world: func(b *viewBed) { without(b.pods, "ztunnel-a") }, no: "the caller: "},
		"the caller's pod was made anew":   {world: func(b *viewBed) { pod(b, "ztunnel-a").UID = "pod-y" }, no: "has UID pod-y and not pod-z"},
		"the caller's pod has ended":       {world: func(b *viewBed) { pod(b, "ztunnel-a").Status.Phase = corev1.PodFailed }, no: "pod mesh/ztunnel-a has ended"},
		"the caller's pod is another's":    {world: func(b *viewBed) { pod(b, "ztunnel-a").Spec.ServiceAccountName = "cart" }, no: "is of service account cart and not ztunnel"},
		"the caller's account is gone":     {world: func(b *viewBed) { without(b.accounts, "ztunnel") }, no: "service account mesh/ztunnel does not exist"},
		"the caller's account is anew":     {caller: func(k *identity.Kubernetes) { k.ServiceAccountUID = "sa-y" }, no: "has UID sa-z and not sa-y"},
		"the caller's node is gone":        {world: func(b *viewBed) { without(b.nodes, "node-a") }, no: "node node-a does not exist"},
		"the caller's node was made anew":  {world: func(b *viewBed) { b.nodes.objects[0].SetUID("node-9") }, no: "node node-a has UID node-9"},
		"the caller says another node":     {caller: func(k *identity.Kubernetes) { k.NodeName, k.NodeUID = "node-b", "node-2" }, no: `is on node "node-a" and not on node-b`},
		"a token without a node":           {caller: func(k *identity.Kubernetes) { k.NodeName, k.NodeUID = "", "" }},
		"that, another node":               {caller: func(k *identity.Kubernetes) { k.NodeName, k.NodeUID = "", "" }, id: "spiffe://cluster.local/ns/shop/sa/till", no: "no pod on node node-a"},
		"that, and the node is gone":       {caller: func(k *identity.Kubernetes) { k.NodeName, k.NodeUID = "", "" }, world: func(b *viewBed) { without(b.nodes, "node-a") }, no: "the caller's node node-a does not exist"},
		"that, and the pod is nowhere":     {caller: func(k *identity.Kubernetes) { k.NodeName, k.NodeUID = "", "" }, world: func(b *viewBed) { pod(b, "ztunnel-a").Spec.NodeName = ""; pod(b, "cart-x").Spec.NodeName = "" }, no: "is on no node"},
		"a token of a node alone":          {caller: func(k *identity.Kubernetes) { k.PodName, k.PodUID = "", "" }, no: "bound to a node and to no pod"},
		"a token of nothing":               {caller: func(k *identity.Kubernetes) { k.PodName, k.PodUID, k.NodeName, k.NodeUID = "", "", "", "" }, no: "neither a pod nor a node"},
		"a caller of another cluster":      {caller: func(k *identity.Kubernetes) { k.Cluster = "east" }, no: "is of cluster east"},
		"another template":                 {path: "/k8s/{cluster}/{service_account}/{namespace}", id: "spiffe://cluster.local/k8s/local/cart/shop"},
		"another template, the default ID": {path: "/k8s/{cluster}/{service_account}/{namespace}", no: "no pod on node"},
		"another template, swapped":        {path: "/k8s/{cluster}/{service_account}/{namespace}", id: "spiffe://cluster.local/k8s/local/shop/cart", no: "no pod on node"},
		"another template, other cluster":  {path: "/k8s/{cluster}/{service_account}/{namespace}", id: "spiffe://cluster.local/k8s/east/cart/shop", no: "no pod on node"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				b := proxyBed(t, func(c *ViewConfig) {
					if test.path != "" {
						var err error
						if c.Identity, err = identity.NewPath(trustDomain, "local", test.path); err != nil {
							t.Fatal(err)
						}
					}
				})
				if test.world != nil {
					test.world(b)
				}
				b.run()
				caller := proxy()
				if test.caller != nil {
					test.caller(caller)
				}
				id := test.id
				if id == "" {
					id = cart
				}
				err := b.view.OnNode(caller, spiffeid.RequireFromString(id))
				switch {
				case test.no == "" && err != nil:
					t.Errorf("refused: %v", err)
				case test.no != "" && (err == nil || !strings.Contains(err.Error(), test.no)):
					t.Errorf("got %v, want %q", err, test.no)
				case err != nil && errkind.Of(err).Retryable():
					t.Errorf("it is %s", errkind.Of(err))
				}
			})
		})
	}
}

// TestOnNodeFollowsEvents: the index by node keeps up with pods that come, go, end and are made anew.
func TestOnNodeFollowsEvents(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		b := proxyBed(t)
		till := spiffeid.RequireFromString("spiffe://cluster.local/ns/shop/sa/till")
		wantKind(t, b.view.OnNode(proxy(), till), errkind.Unavailable, "not up to date")
		b.run()
		step := func(event watch.EventType, pod *corev1.Pod, may bool) {
			t.Helper()
			b.pods.tell(event, pod)
			synctest.Wait()
			if err := b.view.OnNode(proxy(), till); (err == nil) != may {
				t.Errorf("after %s of %s: %v", event, pod.Name, err)
			}
		}
		step(watch.Added, aPod("till-a", "pod-4", "till", ""), false)
		step(watch.Modified, aPod("till-a", "pod-4", "till", "node-a"), true)
		step(watch.Modified, aPod("till-a", "pod-5", "till", "node-b"), false) // made anew, elsewhere
		step(watch.Modified, aPod("till-a", "pod-6", "till", "node-a"), true)
		step(watch.Deleted, aPod("till-a", "pod-6", "till", "node-a"), false)
		step(watch.Added, aPod("till-a", "pod-7", "till", "node-a"), true)
		ended := aPod("till-a", "pod-7", "till", "node-a")
		ended.Status.Phase = corev1.PodSucceeded
		step(watch.Modified, ended, false)
		step(watch.Deleted, aPod("till-b", "pod-3", "till", "node-b"), false)
		b.pods.tell(watch.Deleted, ended)
		synctest.Wait()
		nodes := 0
		for node, pods := range b.view.pods.table.nodes {
			nodes += len(pods)
			if node.Value() != "node-a" && node.Value() != "node-b" {
				t.Errorf("node %q is in the index", node.Value())
			}
		}
		if pods := len(b.view.pods.table.objects); nodes != pods || pods != 3 {
			t.Errorf("the index holds %d of %d pods", nodes, pods)
		}
		b.stop()
		wantKind(t, b.view.OnNode(proxy(), till), errkind.Unavailable, "not up to date")
	})
}
