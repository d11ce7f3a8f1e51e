package tokenreview

import (
	"fmt"
	"sync"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// record is what is kept of an object. It is never changed once it is in a table. Texts that many objects share are kept once.
type record struct {
	key objectKey
	uid string
	// of a pod:
	account, node unique.Handle[string] // node is empty until the pod is scheduled
	ended         bool                  // its phase is Succeeded or Failed, from which there is no way back
	deleted       int64                 // deletionTimestamp in Unix seconds; zero if it is not being deleted
}

type objectKey struct {
	namespace unique.Handle[string] // empty for a node
	name      string
}

// deletedBefore tells whether the object is being deleted and should have been gone before a time.
func (r *record) deletedBefore(limit time.Time) bool {
	return r.deleted != 0 && r.deleted < limit.Unix()
}

// recordOf reads an object of an API server.
func recordOf(object any) (*record, error) {
	none := unique.Make("")
	switch o := object.(type) {
	case *corev1.Pod:
		r := metaRecord(&o.ObjectMeta)
		r.account, r.node = unique.Make(o.Spec.ServiceAccountName), unique.Make(o.Spec.NodeName)
		r.ended = o.Status.Phase == corev1.PodSucceeded || o.Status.Phase == corev1.PodFailed
		return r, nil
	case *metav1.PartialObjectMetadata:
		r := metaRecord(&o.ObjectMeta)
		r.account, r.node = none, none
		return r, nil
	default:
		return nil, fmt.Errorf("a %T is neither a pod nor metadata", object)
	}
}

func metaRecord(meta *metav1.ObjectMeta) *record {
	r := &record{key: objectKey{unique.Make(meta.Namespace), meta.Name}, uid: string(meta.UID)}
	if meta.DeletionTimestamp != nil {
		r.deleted = max(meta.DeletionTimestamp.Unix(), 1)
	}
	return r
}

// slim drops from an object, in place, all that recordOf and reflectors do not read.
func slim(object any) any {
	switch o := object.(type) {
	case *corev1.Pod:
		*o = corev1.Pod{
			ObjectMeta: slimMeta(&o.ObjectMeta),
			Spec:       corev1.PodSpec{ServiceAccountName: o.Spec.ServiceAccountName, NodeName: o.Spec.NodeName},
			Status:     corev1.PodStatus{Phase: o.Status.Phase},
		}
	case *metav1.PartialObjectMetadata:
		o.ObjectMeta = slimMeta(&o.ObjectMeta)
	}
	return object
}

func slimMeta(meta *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: meta.Namespace, Name: meta.Name, UID: meta.UID, ResourceVersion: meta.ResourceVersion, DeletionTimestamp: meta.DeletionTimestamp,
	}
}

// slimList drops from each object of a list what is not needed, so that a list of many pages is small before it is complete.
func slimList(list runtime.Object) {
	switch l := list.(type) {
	case *corev1.PodList:
		for i := range l.Items {
			slim(&l.Items[i])
		}
	case *metav1.PartialObjectMetadataList:
		for i := range l.Items {
			slim(&l.Items[i])
		}
	}
}

// table holds the records of one kind of object. One goroutine writes, any number read.
type table struct {
	byNode bool // keep nodes

	mu      sync.RWMutex // guards what follows
	objects map[objectKey]*record
	gone    goneUIDs
	nodes   map[unique.Handle[string]]map[*record]struct{} // those that run on a node, by the node's name
}

func newTable(byNode bool) *table {
	t := &table{byNode: byNode}
	t.replace(nil)
	return t
}

// get returns the record of an object, nil if there is none.
func (t *table) get(namespace, name string) *record {
	key := objectKey{unique.Make(namespace), name}
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.objects[key]
}

// went tells whether an object with this UID was seen and is gone.
func (t *table) went(uid string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.gone.has(uid)
}

func (t *table) size() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.objects)
}

// onNode returns the records of a node that have not ended.
func (t *table) onNode(node string) []*record {
	handle := unique.Make(node)
	t.mu.RLock()
	defer t.mu.RUnlock()
	found := make([]*record, 0, len(t.nodes[handle]))
	for r := range t.nodes[handle] {
		found = append(found, r)
	}
	return found
}

// put takes a record in, in the place of the one with its key.
func (t *table) put(r *record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.objects[r.key]
	if before != nil && *before == *r {
		return // most changes of a pod are of what is not kept
	}
	t.unlink(before)
	if before != nil && before.uid != r.uid {
		t.gone.add(before.uid)
	}
	t.objects[r.key] = r
	link(t.nodes, t.byNode, r)
}

// remove drops whatever has the name. What counts as gone is the UID, empty if nobody knows it.
func (t *table) remove(namespace, name, uid string) {
	key := objectKey{unique.Make(namespace), name}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unlink(t.objects[key])
	t.gone.add(uid)
	delete(t.objects, key)
}

// replace makes records all that there is.
func (t *table) replace(records []*record) {
	objects := make(map[objectKey]*record, len(records))
	nodes := make(map[unique.Handle[string]]map[*record]struct{})
	for _, r := range records {
		objects[r.key] = r
	}
	for _, r := range objects {
		link(nodes, t.byNode, r)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, before := range t.objects {
		if now := objects[key]; now == nil || now.uid != before.uid {
			t.gone.add(before.uid)
		}
	}
	t.objects, t.nodes = objects, nodes
}

func link(nodes map[unique.Handle[string]]map[*record]struct{}, byNode bool, r *record) {
	if !byNode || r.ended || r.node == unique.Make("") {
		return
	}
	there := nodes[r.node]
	if there == nil {
		there = make(map[*record]struct{})
		nodes[r.node] = there
	}
	there[r] = struct{}{}
}

func (t *table) unlink(r *record) {
	if r == nil || !t.byNode {
		return
	}
	there := t.nodes[r.node]
	delete(there, r)
	if len(there) == 0 {
		delete(t.nodes, r.node)
	}
}
