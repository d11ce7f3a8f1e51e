package kubetest

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Namespace makes a namespace with a name of its own and returns the name.
func (c *Cluster) Namespace(t testing.TB) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	ns, err := c.Client.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating a namespace: %v", err)
	}
	return ns.Name
}

// ServiceAccount makes a service account.
func (c *Cluster) ServiceAccount(t testing.TB, namespace, name string) *corev1.ServiceAccount {
	t.Helper()
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	sa, err := c.Client.CoreV1().ServiceAccounts(namespace).Create(t.Context(), sa, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating a service account: %v", err)
	}
	return sa
}

// Node returns the node called name, and makes it if there is none.
func (c *Cluster) Node(t testing.TB, name string) *corev1.Node {
	t.Helper()
	nodes := c.Client.CoreV1().Nodes()
	node, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		node, err = nodes.Get(t.Context(), name, metav1.GetOptions{})
	}
	if err != nil {
		t.Fatalf("creating a node: %v", err)
	}
	return node
}

// PodOptions describes a pod. The namespace and the service account must exist.
type PodOptions struct {
	Namespace      string
	Name           string
	ServiceAccount string
	Node           string // made if there is none; empty for a pod that is not scheduled
	IP             string // default 10.1.0.1
	Labels         map[string]string
}

// Pod makes a pod whose status is Running, though nothing runs. Without a node it stays Pending, as
// in a cluster.
func (c *Cluster) Pod(t testing.TB, o PodOptions) *corev1.Pod {
	t.Helper()
	if o.Node != "" {
		c.Node(t, o.Node)
	}
	if o.IP == "" {
		o.IP = "10.1.0.1"
	}
	pods := c.Client.CoreV1().Pods(o.Namespace)
	pod, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: o.Name, Labels: o.Labels},
		Spec: corev1.PodSpec{
			ServiceAccountName: o.ServiceAccount,
			NodeName:           o.Node,
			Containers:         []corev1.Container{{Name: "main", Image: "none.invalid/none"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating a pod: %v", err)
	}
	if o.Node == "" {
		return pod
	}
	now := metav1.Now()
	pod.Status = corev1.PodStatus{
		Phase:     corev1.PodRunning,
		StartTime: &now,
		HostIP:    "127.0.0.1",
		HostIPs:   []corev1.HostIP{{IP: "127.0.0.1"}},
		PodIP:     o.IP,
		PodIPs:    []corev1.PodIP{{IP: o.IP}},
		Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: now},
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now},
		},
	}
	pod, err = pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	if err != nil {
		t.Fatalf("writing a pod's status: %v", err)
	}
	return pod
}

// DeletePod deletes a pod at once. Without a kubelet to confirm that it has ended, a pod that is
// deleted the ordinary way and has a node would be Terminating for ever.
func (c *Cluster) DeletePod(t testing.TB, pod *corev1.Pod) {
	t.Helper()
	now := int64(0)
	err := c.Client.CoreV1().Pods(pod.Namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now,
		Preconditions:      metav1.NewUIDPreconditions(string(pod.UID)),
	})
	if err != nil {
		t.Fatalf("deleting a pod: %v", err)
	}
}

// SetPhase writes the phase of a pod, as its kubelet does: that it has ended, for example.
func (c *Cluster) SetPhase(t testing.TB, pod *corev1.Pod, phase corev1.PodPhase) *corev1.Pod {
	t.Helper()
	pods := c.Client.CoreV1().Pods(pod.Namespace)
	current, err := pods.Get(t.Context(), pod.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("reading a pod: %v", err)
	}
	current.Status.Phase = phase
	current, err = pods.UpdateStatus(t.Context(), current, metav1.UpdateOptions{})
	if err != nil {
		t.Fatalf("writing a pod's phase: %v", err)
	}
	return current
}
