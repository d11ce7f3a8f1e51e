package authorize_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/chancery-ca/chancery/ca/authorize"
	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
)

// pods says yes to one ID on the node of one pod.
type pods struct {
	pod, id string
	err     error // instead of an answer
	asked   int
}

func (p *pods) OnNode(holder *identity.Kubernetes, id spiffeid.ID) error {
	p.asked++
	switch {
	case p.err != nil:
		return p.err
	case holder.PodUID != p.pod || id.String() != p.id:
		return errors.New("no pod on node node-a has " + id.String())
	}
	return nil
}

// proxyRequest is one that is allowed.
func proxyRequest() authorize.Request {
	return authorize.Request{
		Principal: &identity.Principal{
			ID: spiffeid.RequireFromString("spiffe://example.org/ns/mesh/sa/ztunnel"), Method: identity.MethodKubernetes,
			Kubernetes: &identity.Kubernetes{Cluster: "home", Namespace: "mesh", ServiceAccount: "ztunnel", PodUID: "pod-1"},
		},
		Profile: "workload", Names: identity.Names{URIs: []string{"spiffe://example.org/ns/shop/sa/cart"}},
	}
}

func TestNodeProxy(t *testing.T) {
	unavailable := errkind.New(errkind.Unavailable, "the view is not up to date").After(time.Second)
	for name, test := range map[string]struct {
		change func(*authorize.Request)
		err    error  // of the pods
		silent bool   // the rule has nothing to say
		cause  string // of a refusal
		kind   errkind.Kind
	}{
		"a pod on its node":          {},
		"under another profile":      {change: func(r *authorize.Request) { r.Profile = "short" }},
		"a proxy of another cluster": {change: func(r *authorize.Request) { r.Principal.Kubernetes.Cluster = "west" }, silent: true},
		"one that is trusted there":  {change: func(r *authorize.Request) { r.Principal.Kubernetes.ServiceAccount = "agent" }, silent: true},
		"another service account":    {change: func(r *authorize.Request) { r.Principal.Kubernetes.ServiceAccount = "cart" }, silent: true},
		"another namespace":          {change: func(r *authorize.Request) { r.Principal.Kubernetes.Namespace = "shop" }, silent: true},
		"the slash moved": {change: func(r *authorize.Request) {
			k := r.Principal.Kubernetes
			k.Namespace, k.ServiceAccount = "mesh/ztunnel", ""
		}, silent: true},
		"no account":         {change: func(r *authorize.Request) { k := r.Principal.Kubernetes; k.Namespace, k.ServiceAccount = "", "" }, silent: true},
		"by a certificate":   {change: func(r *authorize.Request) { r.Principal.Method = identity.MethodCertificate }, silent: true},
		"by a join token":    {change: func(r *authorize.Request) { r.Principal.Method = identity.MethodJoinToken }, silent: true},
		"the server itself":  {change: func(r *authorize.Request) { r.Principal.Method = identity.MethodServer }, silent: true},
		"no cluster's facts": {change: func(r *authorize.Request) { r.Principal.Kubernetes = nil }, silent: true},
		"no name":            {change: func(r *authorize.Request) { r.Names = identity.Names{} }, silent: true},
		"two identities": {change: func(r *authorize.Request) {
			r.Names.URIs = append(r.Names.URIs, "spiffe://example.org/ns/shop/sa/till")
		}, silent: true},
		"a DNS name beside it":        {change: func(r *authorize.Request) { r.Names.DNS = []string{"a.example.org"} }, silent: true},
		"a DNS name":                  {change: func(r *authorize.Request) { r.Names = hosts("a.example.org") }, silent: true},
		"an address beside it":        {change: func(r *authorize.Request) { r.Names.IPs = hosts("192.0.2.1").IPs }, silent: true},
		"another pod's node":          {change: func(r *authorize.Request) { r.Principal.Kubernetes.PodUID = "pod-2" }, cause: "no pod on node node-a", kind: errkind.Denied},
		"a pod on another node":       {change: func(r *authorize.Request) { r.Names.URIs[0] = "spiffe://example.org/ns/shop/sa/till" }, cause: "no pod on node node-a", kind: errkind.Denied},
		"its own, by a view that no":  {change: func(r *authorize.Request) { r.Names.URIs[0] = r.Principal.ID.String() }, cause: "no pod on node node-a", kind: errkind.Denied},
		"another trust domain":        {change: func(r *authorize.Request) { r.Names.URIs[0] = "spiffe://example.com/ns/shop/sa/cart" }, cause: "is of trust domain example.com", kind: errkind.Denied},
		"a trust domain below":        {change: func(r *authorize.Request) { r.Names.URIs[0] = "spiffe://a.example.org/ns/shop/sa/cart" }, cause: "is of trust domain a.example.org", kind: errkind.Denied},
		"no scheme":                   {change: func(r *authorize.Request) { r.Names.URIs[0] = "example.org/ns/shop/sa/cart" }, cause: "no SPIFFE ID", kind: errkind.Denied},
		"another scheme":              {change: func(r *authorize.Request) { r.Names.URIs[0] = "https://example.org/ns/shop/sa/cart" }, cause: "no SPIFFE ID", kind: errkind.Denied},
		"a scheme in capitals":        {change: func(r *authorize.Request) { r.Names.URIs[0] = "SPIFFE://example.org/ns/shop/sa/cart" }, cause: "no SPIFFE ID", kind: errkind.Denied},
		"a slash at the end":          {change: func(r *authorize.Request) { r.Names.URIs[0] += "/" }, cause: "no SPIFFE ID", kind: errkind.Denied},
		"a dot segment":               {change: func(r *authorize.Request) { r.Names.URIs[0] = "spiffe://example.org/ns/x/../shop/sa/cart" }, cause: "no SPIFFE ID", kind: errkind.Denied},
		"an escape":                   {change: func(r *authorize.Request) { r.Names.URIs[0] = "spiffe://example.org/ns/shop/sa/c%61rt" }, cause: "no SPIFFE ID", kind: errkind.Denied},
		"a query":                     {change: func(r *authorize.Request) { r.Names.URIs[0] += "?x" }, cause: "no SPIFFE ID", kind: errkind.Denied},
		"a port":                      {change: func(r *authorize.Request) { r.Names.URIs[0] = "spiffe://example.org:1/ns/shop/sa/cart" }, cause: "no SPIFFE ID", kind: errkind.Denied},
		"nothing at all":              {change: func(r *authorize.Request) { r.Names.URIs[0] = "" }, cause: "no SPIFFE ID", kind: errkind.Denied},
		"a caller that is gone":       {err: errkind.New(errkind.Unauthenticated, "gone").Because(errkind.ObjectGone), cause: "gone", kind: errkind.Denied},
		"a view that is behind":       {err: unavailable, cause: "not up to date", kind: errkind.Unavailable},
		"a failure without a kind":    {err: errors.New("boom"), cause: "boom", kind: errkind.Denied},
		"a failure that is exhausted": {err: errkind.New(errkind.Exhausted, "busy").After(time.Second), cause: "busy", kind: errkind.Exhausted},
	} {
		t.Run(name, func(t *testing.T) {
			home := &pods{pod: "pod-1", id: "spiffe://example.org/ns/shop/sa/cart", err: test.err}
			west := &pods{err: errors.New("the wrong cluster was asked")}
			rule, err := authorize.NodeProxy(authorize.NodeProxies{Cluster: "home", Accounts: []string{"mesh/proxy", "mesh/ztunnel"}, Pods: home},
				authorize.NodeProxies{Cluster: "west", Accounts: []string{"mesh/agent"}, Pods: west})
			if err != nil {
				t.Fatal(err)
			}
			r := proxyRequest()
			if test.change != nil {
				test.change(&r)
			}
			verdict, ok, err := rule(t.Context(), r)
			if want := !test.silent && test.cause == ""; ok != want {
				t.Errorf("allowed %t: %v", ok, err)
			}
			if test.silent && (err != nil || verdict != (authorize.Verdict{}) || home.asked+west.asked > 0) {
				t.Errorf("it says %v, %v", verdict, err)
			}
			if !test.silent && verdict != (authorize.Verdict{Rule: "node-proxy"}) {
				t.Errorf("the verdict is %v", verdict)
			}
			if test.cause == "" {
				return
			}
			if err == nil || errkind.Of(err) != test.kind || !strings.Contains(err.Error(), test.cause) {
				t.Fatalf("got %s, %v, want %s with %q", errkind.Of(err), err, test.kind, test.cause)
			}
			if test.kind == errkind.Denied {
				same := r.Principal.ID.String() + " may not hold " + r.Names.String() + ": a node proxy may hold the identities of the pods on its own node"
				if errkind.Message(err) != same || errkind.ReasonOf(err) != errkind.ProxyRefused {
					t.Errorf("the caller is told %q, %s", errkind.Message(err), errkind.ReasonOf(err))
				}
			}
		})
	}
}

func TestNodeProxyThatCannotBe(t *testing.T) {
	some := &pods{}
	for name, of := range map[string]authorize.NodeProxies{
		"no cluster":       {Accounts: []string{"a/b"}, Pods: some},
		"no pods":          {Cluster: "home", Accounts: []string{"a/b"}},
		"no accounts":      {Cluster: "home", Pods: some},
		"no namespace":     {Cluster: "home", Accounts: []string{"/b"}, Pods: some},
		"no name":          {Cluster: "home", Accounts: []string{"a/"}, Pods: some},
		"no slash":         {Cluster: "home", Accounts: []string{"a"}, Pods: some},
		"two slashes":      {Cluster: "home", Accounts: []string{"a/b/c"}, Pods: some},
		"an account twice": {Cluster: "home", Accounts: []string{"a/b", "a/b"}, Pods: some},
	} {
		if _, err := authorize.NodeProxy(of); err == nil {
			t.Errorf("%s: it is accepted", name)
		}
	}
	none, err := authorize.NodeProxy()
	if err != nil {
		t.Fatal(err)
	}
	if verdict, ok, err := none(t.Context(), proxyRequest()); ok || err != nil || verdict.Rule != "" {
		t.Errorf("without node proxies it says %v, %t, %v", verdict, ok, err)
	}
}
