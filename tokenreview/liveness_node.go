package tokenreview

import (
	"errors"
	"fmt"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
)

// OnNode tells whether a pod with the SPIFFE ID id runs on the node of holder's pod: nil if one does. holder has to be Alive and a pod. The IDs of the
// pods on the node are made as they are for their own tokens and compared with id, which is never taken apart.
//
// A pod counts from when it is bound to the node until it has ended (phase Succeeded or Failed) or should have been gone for a minute. It need not be in
// phase Running: a node proxy asks while the pod's network is set up, and the phase is Pending until the first container has started. (Istio's own CA
// does not look at the phase at all.) The service account of the pod has to exist.
//
// Errors: errkind.Unavailable while the view is not Synced; any other says no, with the cause for the log.
func (v *View) OnNode(holder *identity.Kubernetes, id spiffeid.ID) error {
	if !v.Synced() {
		return v.unknown()
	}
	proxy, err := v.alive(holder)
	switch {
	case err != nil:
		return fmt.Errorf("the caller: %w", err)
	case proxy == nil:
		return errors.New("the caller is bound to a node and to no pod")
	}
	// the API server never lets a pod change its node, so this is where the caller is even if its token does not name a node
	node := proxy.node.Value()
	if node == "" {
		return fmt.Errorf("the caller's pod %s/%s is on no node", holder.Namespace, holder.PodName)
	}
	limit := v.config.Now().Add(-deletionLeeway)
	if there := v.nodes.table.get("", node); there == nil || there.deletedBefore(limit) {
		return fmt.Errorf("the caller's node %s does not exist", node)
	}
	cause := fmt.Errorf("no pod on node %s has %s", node, id)
	for _, pod := range v.pods.table.onNode(node) {
		namespace, account := pod.key.namespace.Value(), pod.account.Value()
		if account == "" { // a static pod, which has none
			continue
		}
		if own, err := v.config.Identity.ID(namespace, account); err != nil || own != id {
			continue
		}
		switch accounts := v.accounts.table.get(namespace, account); {
		case accounts == nil || accounts.deletedBefore(limit):
			cause = fmt.Errorf("pod %s/%s on node %s has %s, but its service account does not exist", namespace, pod.key.name, node, id)
		case pod.deletedBefore(limit):
			cause = fmt.Errorf("pod %s/%s on node %s has %s, but it should have been gone", namespace, pod.key.name, node, id)
		default:
			return nil
		}
	}
	return errkind.Wrap(errkind.Denied, cause, "no pod with that identity runs on the caller's node").Because(errkind.ProxyRefused)
}
