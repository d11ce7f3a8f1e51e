package authorize

import (
	"context"
	"fmt"
	"strings"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
)

// NodeProxyRule is the name of the rule that NodeProxy makes.
const NodeProxyRule = "node-proxy"

// Pods knows which pods run where in one cluster.
type Pods interface {
	// OnNode returns nil if holder's pod exists, with the UID and the service account that holder has, and a pod with the SPIFFE ID id runs on the same
	// node. An error of a retryable kind (errkind) means that this is not known at the moment; any other means no, and is the cause for the log. It is
	// safe for concurrent use and asks nobody over a network.
	OnNode(holder *identity.Kubernetes, id spiffeid.ID) error
}

// NodeProxies are the node proxies of one cluster.
type NodeProxies struct {
	// Cluster is the cluster's name in principals.
	Cluster string
	// Accounts are the service accounts that are trusted, as NAMESPACE/NAME. At least one.
	Accounts []string
	// Pods are the cluster's.
	Pods Pods
}

// NodeProxy returns the Rule by which node proxies (Istio's ztunnel, node agents) may hold the identities of the pods on their own node. A caller is one
// if its service account is listed for the cluster that its token is of; such a caller may hold a single SPIFFE ID, of its own trust domain, of a pod
// that runs on the node of its own pod.
//
// Put it after the rules that grant other things: of callers that are no node proxies, and of other names, it says nothing, but what a node proxy asks
// for in vain it refuses. All refusals look alike to the caller, and have the precise cause for the log.
func NodeProxy(clusters ...NodeProxies) (Rule, error) {
	type account struct{ cluster, namespace, name string }
	trusted := make(map[account]Pods)
	for _, c := range clusters {
		switch {
		case c.Cluster == "" || c.Pods == nil:
			return nil, fmt.Errorf("node proxies of cluster %q: they need the cluster's name and its pods", c.Cluster)
		case len(c.Accounts) == 0:
			return nil, fmt.Errorf("node proxies of cluster %q: name at least one service account", c.Cluster)
		}
		for _, text := range c.Accounts {
			namespace, name, found := strings.Cut(text, "/")
			if !found || namespace == "" || name == "" || strings.Contains(name, "/") {
				return nil, fmt.Errorf("node proxies of cluster %q: %q is not NAMESPACE/NAME of a service account", c.Cluster, text)
			}
			key := account{c.Cluster, namespace, name}
			if trusted[key] != nil {
				return nil, fmt.Errorf("node proxies of cluster %q: %s is there twice", c.Cluster, text)
			}
			trusted[key] = c.Pods
		}
	}
	return func(_ context.Context, request Request) (Verdict, bool, error) {
		holder, names := request.Principal.Kubernetes, request.Names
		if request.Principal.Method != identity.MethodKubernetes || holder == nil || len(names.URIs) != 1 || len(names.DNS)+len(names.IPs) > 0 {
			return Verdict{}, false, nil
		}
		pods := trusted[account{holder.Cluster, holder.Namespace, holder.ServiceAccount}]
		if pods == nil {
			return Verdict{}, false, nil
		}
		verdict := Verdict{Rule: NodeProxyRule}
		switch err := mayProxy(pods, request); {
		case err == nil:
			return verdict, true, nil
		case errkind.Of(err).Retryable():
			return verdict, false, err
		default:
			return verdict, false, errkind.Wrap(errkind.Denied, err, "%s may not hold %s: a node proxy may hold the identities of the pods on its own node",
				request.Principal.ID, names).Because(errkind.ProxyRefused)
		}
	}, nil
}

// mayProxy returns why a trusted node proxy may not hold the name that it asks for.
func mayProxy(pods Pods, request Request) error {
	id, err := spiffeid.FromString(request.Names.URIs[0])
	switch {
	case err != nil:
		return fmt.Errorf("what it asks for is no SPIFFE ID: %w", err)
	case !id.MemberOf(request.Principal.ID.TrustDomain()):
		return fmt.Errorf("what it asks for is of trust domain %s", id.TrustDomain())
	}
	return pods.OnNode(request.Principal.Kubernetes, id)
}
