package tokenreview

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/rest"

	"github.com/chancery-ca/chancery/ca/identity"
)

// await waits until a condition holds.
func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for !condition() {
		select {
		case <-deadline:
			t.Fatalf("%s did not come", what)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// TestViewOnClientGoFakes follows client-go's own fake clients, as sourcesFrom sets them up.
func TestViewOnClientGoFakes(t *testing.T) {
	typed := fake.NewClientset(aPod("cart-x", "pod-1", "cart", "node-a"))
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	account, node := aMeta("shop", "cart", "sa-1"), aMeta("", "node-a", "node-1")
	account.APIVersion, account.Kind, node.APIVersion, node.Kind = "v1", "ServiceAccount", "v1", "Node"
	meta := metadatafake.NewSimpleMetadataClient(scheme, account, node)
	path, err := identity.NewPath(trustDomain, "local", identity.DefaultPath)
	if err != nil {
		t.Fatal(err)
	}
	config, err := ViewConfig{Cluster: "local", Identity: path}.complete()
	if err != nil {
		t.Fatal(err)
	}
	var _ metadata.Interface = meta
	view := newView(sourcesFrom(clientOf{typed}, meta), config, nil)
	ended := make(chan error, 1)
	go func() { ended <- view.Run(t.Context()) }()
	await(t, "the first lists", func() bool { return view.Alive(holder()) == nil })
	await(t, "the watches", func() bool {
		watches := 0
		for _, action := range slices.Concat(typed.Actions(), meta.Actions()) {
			if action.GetVerb() == "watch" {
				watches++
			}
		}
		return watches == 3
	})
	pods := typed.CoreV1().Pods("shop")
	if err := pods.Delete(t.Context(), "cart-x", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, "the deletion", func() bool { return view.Alive(holder()) != nil })
	if _, err := pods.Create(t.Context(), aPod("cart-x", "pod-2", "cart", "node-a"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	anew := holder()
	anew.PodUID = "pod-2"
	await(t, "the new pod", func() bool { return view.Alive(anew) == nil })
	wantGone(t, view.Alive(holder()), "has UID pod-2")
	gvr := schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	if err := meta.Tracker().Delete(gvr, "shop", "cart"); err != nil {
		t.Fatal(err)
	}
	await(t, "the account's deletion", func() bool { return view.Alive(anew) != nil })
	wantGone(t, view.Alive(anew), "service account shop/cart does not exist")
}

// TestViewOnHTTP: what a server of the API sees of a View, and what the View makes of its refusals.
func TestViewOnHTTP(t *testing.T) {
	var mu sync.Mutex
	seen := make(map[string]http.Header)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen[r.URL.Path] = r.Header.Clone()
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api/v1/nodes":
			w.WriteHeader(http.StatusForbidden)
			_ = json.NewEncoder(w).Encode(metav1.Status{
				TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden,
			})
		case "/api/v1/pods":
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		default:
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(server.Close)
	access := &rest.Config{Host: server.URL, BearerToken: "our-own-token", TLSClientConfig: rest.TLSClientConfig{CAData: pemOf(server)}}
	path, err := identity.NewPath(trustDomain, "local", identity.DefaultPath)
	if err != nil {
		t.Fatal(err)
	}
	view, err := NewView(access, ViewConfig{Cluster: "local", Identity: path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- view.Run(t.Context()) }()
	await(t, "the refusal", func() bool {
		return strings.Contains(view.nodes.trouble(time.Now()).reason, "may not watch nodes") || strings.Contains(view.nodes.trouble(time.Now()).reason, "may not list nodes")
	})
	await(t, "the redirect's refusal", func() bool { return view.pods.trouble(time.Now()).reason != "the first list of pods is not complete" })
	if view.Synced() {
		t.Error("it is synced")
	}
	if ok, _, reason := view.Health(); ok || strings.Contains(reason, "our-own-token") {
		t.Errorf("health is %t: %q", ok, reason)
	}
	mu.Lock()
	defer mu.Unlock()
	if _, followed := seen["/elsewhere"]; followed {
		t.Error("a redirect was followed")
	}
	if accept := seen["/api/v1/pods"].Get("Accept"); !strings.HasPrefix(accept, "application/vnd.kubernetes.protobuf") {
		t.Errorf("pods are asked for as %q", accept)
	}
	if accept := seen["/api/v1/nodes"].Get("Accept"); !strings.Contains(accept, "as=PartialObjectMetadata") {
		t.Errorf("nodes are asked for as %q", accept)
	}
	if agent := seen["/api/v1/nodes"].Get("User-Agent"); agent != "chancery-liveness" {
		t.Errorf("we are %q", agent)
	}
}

func TestNewViewRefuses(t *testing.T) {
	path, err := identity.NewPath(trustDomain, "local", identity.DefaultPath)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		edit   func(*ViewConfig)
		access *rest.Config
		says   string
	}{
		"no cluster":      {edit: func(c *ViewConfig) { c.Cluster = "" }, says: "cluster is empty"},
		"no path":         {edit: func(c *ViewConfig) { c.Identity = identity.Path{} }, says: "identity path"},
		"too fresh":       {edit: func(c *ViewConfig) { c.MaxStaleness = time.Second }, says: "at least 10s"},
		"negative":        {edit: func(c *ViewConfig) { c.MaxStaleness = -time.Minute }, says: "at least 10s"},
		"too stale":       {edit: func(c *ViewConfig) { c.MaxStaleness = 2 * time.Hour }, says: "at most 1h"},
		"negative QPS":    {edit: func(c *ViewConfig) { c.QPS = -1 }, says: "negative"},
		"no access":       {says: "no client configuration"},
		"unverified":      {access: &rest.Config{Host: "https://192.0.2.1", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, says: "does not verify"},
		"in the clear":    {access: &rest.Config{Host: "http://192.0.2.1"}, says: "not https"},
		"what is allowed": {access: &rest.Config{Host: "https://192.0.2.1"}},
	} {
		config := ViewConfig{Cluster: "local", Identity: path}
		if test.edit != nil {
			test.edit(&config)
		}
		view, err := NewView(test.access, config, nil)
		if test.says == "" {
			if err != nil || view.Synced() {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: got %v, want %q", name, err, test.says)
		}
	}
}

// TestViewUnderLoad has readers and writers at the same time, for the race detector, and holds a rule against what they see: a pod's UID and its account
// change together.
func TestViewUnderLoad(t *testing.T) {
	table := newTable(true)
	records := make([]*record, 2)
	for i := range records {
		r, err := recordOf(aPod("cart-x", fmt.Sprint("pod-", i), fmt.Sprint("account-", i), fmt.Sprint("node-", i)))
		if err != nil {
			t.Fatal(err)
		}
		records[i] = r
	}
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if r := table.get("shop", "cart-x"); r != nil && strings.TrimPrefix(r.uid, "pod-") != strings.TrimPrefix(r.account.Value(), "account-") {
					t.Error("a record is of two pods")
				}
				for node := range 2 {
					for _, r := range table.onNode(fmt.Sprint("node-", node)) {
						if r.uid != fmt.Sprint("pod-", node) {
							t.Error("a pod is on the node of another")
						}
					}
				}
			}
		})
	}
	for i := range 3000 {
		switch i % 4 {
		case 0, 1:
			table.put(records[i%2])
		case 2:
			table.remove("shop", "cart-x", "pod-1")
		default:
			table.replace(records[i%2 : i%2+1])
		}
	}
	close(done)
	readers.Wait()
}

// numberedPod is one of 100 on its node and of its account.
func numberedPod(i int) *corev1.Pod {
	pod := aPod(fmt.Sprintf("deployment-%d-7d9f8b6c5d-x%04d", i/100, i%100), fmt.Sprintf("%08x-8a51-4a0e-9a55-0f0c6b1d2e3f", i), fmt.Sprintf("account-%d", i/100),
		fmt.Sprintf("ip-10-0-%d-%d.eu-central-1.compute.internal", i/100/250, i/100%250))
	pod.Namespace = fmt.Sprintf("namespace-%d", i/500)
	return pod
}

// fullPod is a pod as clusters have them: two containers, volumes, conditions, managed fields.
func fullPod(i int) *corev1.Pod {
	pod := numberedPod(i)
	pod.Labels = map[string]string{"app": "cart", "pod-template-hash": "7d9f8b6c5d", "version": fmt.Sprint(i)}
	pod.Annotations = map[string]string{"prometheus.io/scrape": "true", "kubectl.kubernetes.io/restartedAt": fmt.Sprint(i)}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: fmt.Sprint("cart-", i), UID: types.UID(fmt.Sprint("rs-", i))}}
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet", FieldsV1: metav1.NewFieldsV1(strings.Repeat(`{"f:status":{}}`, 100))}}
	for c := range 2 {
		container := corev1.Container{Name: fmt.Sprint("c", c), Image: fmt.Sprintf("registry.example.org/team/image-%d:v%d", c, i), Args: []string{"serve", "--verbose", fmt.Sprint(i)}}
		for e := range 8 {
			container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", e), Value: fmt.Sprintf("value-%d-%d", e, i)})
		}
		for m := range 3 {
			container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: fmt.Sprint("v", m), MountPath: fmt.Sprintf("/mnt/%d/%d", m, i)})
		}
		pod.Spec.Containers = append(pod.Spec.Containers, container)
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: container.Name, ImageID: container.Image + "@sha256:" + strings.Repeat("a", 64)})
	}
	for v := range 3 {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: fmt.Sprint("v", v), VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	}
	for c := range 5 {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodConditionType(fmt.Sprint("Condition", c)), Message: fmt.Sprint("m", i)})
	}
	return pod
}

// TestMemoryOfPods prints what a pod of 50,000 costs: whole, as an informer with a transform would keep it, and as a View does.
func TestMemoryOfPods(t *testing.T) {
	const pods, few, most = 50_000, 2000, 0.5 // KiB
	decode := func(i int) *corev1.Pod {       // strings of its own, as from the wire
		encoded, err := fullPod(i).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		pod := new(corev1.Pod)
		if err := pod.Unmarshal(encoded); err != nil {
			t.Fatal(err)
		}
		return pod
	}
	heap := func() float64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return float64(stats.HeapAlloc)
	}
	measure := func(number int, fill func() any) float64 {
		before := heap()
		kept := fill()
		after := heap()
		runtime.KeepAlive(kept)
		return (after - before) / float64(number) / 1024
	}
	whole := measure(few, func() any {
		kept := make([]any, few)
		for i := range kept {
			kept[i] = decode(i)
		}
		return kept
	})
	transformed := measure(few, func() any {
		kept := make([]any, few)
		for i := range kept {
			kept[i] = slim(decode(i))
		}
		return kept
	})
	record := measure(pods, func() any {
		table := newTable(true)
		for i := range pods {
			r, err := recordOf(numberedPod(i))
			if err != nil {
				t.Fatal(err)
			}
			table.put(r)
		}
		return table
	})
	t.Logf("KiB a pod: whole %.2f, with its fields dropped %.2f, in a view of %d pods with its index by node %.2f", whole, transformed, pods, record)
	if record > most || record > transformed/3 {
		t.Errorf("a pod costs %.2f KiB", record)
	}
}

func BenchmarkAlive(b *testing.B) {
	view, token := loadedView(b)
	b.ReportAllocs()
	for b.Loop() {
		if err := view.Alive(token); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOnNode has 100 pods on the node, and asks for what none of them has.
func BenchmarkOnNode(b *testing.B) {
	view, token := loadedView(b)
	id, err := view.config.Identity.ID("namespace-0", "nobody")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if view.OnNode(token, id) == nil {
			b.Fatal("it may")
		}
	}
}

func loadedView(b *testing.B) (*View, *identity.Kubernetes) {
	b.Helper()
	path, err := identity.NewPath(trustDomain, "local", identity.DefaultPath)
	if err != nil {
		b.Fatal(err)
	}
	config, err := ViewConfig{Cluster: "local", Identity: path}.complete()
	if err != nil {
		b.Fatal(err)
	}
	view := newView(sources{pods: source{byNode: true}}, config, nil)
	var pods, accounts, nodes []any
	for i := range 50_000 {
		pod := numberedPod(i)
		pods = append(pods, pod)
		if i%100 == 0 {
			nodes = append(nodes, aMeta("", pod.Spec.NodeName, fmt.Sprint("node-", i)))
			accounts = append(accounts, aMeta(pod.Namespace, pod.Spec.ServiceAccountName, fmt.Sprint("sa-", i)))
		}
	}
	for f, objects := range map[*feed][]any{view.pods: pods, view.accounts: accounts, view.nodes: nodes} {
		f.begin()
		if err := f.Replace(objects, "1"); err != nil {
			b.Fatal(err)
		}
	}
	pod := pods[0].(*corev1.Pod)
	return view, &identity.Kubernetes{
		Cluster: "local", Namespace: pod.Namespace, ServiceAccount: pod.Spec.ServiceAccountName, ServiceAccountUID: "sa-0", PodName: pod.Name,
		PodUID: string(pod.UID), NodeName: pod.Spec.NodeName, NodeUID: "node-0",
	}
}

// clientOf is a fake clientset as what podSource takes.
type clientOf struct{ *fake.Clientset }

func (c clientOf) Pods(namespace string) coreclient.PodInterface {
	return c.CoreV1().Pods(namespace)
}

func pemOf(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}
