package tokenreview

// maxGone is how many UIDs of objects that went are remembered for each kind: for longer than any answer about them is remembered elsewhere, even while
// a large cluster is emptied.
const maxGone = 1 << 15

// goneUIDs remembers the UIDs of objects that were seen and then seen to go, the latest maxGone of them. A UID is never used again, so what is in here
// needs no API server to confirm it; one whose own watch is behind, or whose cache of good tokens still holds the pod's, would even contradict. The zero
// value is empty. It is guarded by whoever has it.
type goneUIDs struct {
	uids  map[string]struct{}
	order []string // a ring, once it is full
	next  int      // the oldest in the ring
}

func (g *goneUIDs) add(uid string) {
	if _, known := g.uids[uid]; known || uid == "" {
		return
	}
	if g.uids == nil {
		g.uids = make(map[string]struct{})
	}
	if len(g.order) < maxGone {
		g.order = append(g.order, uid)
	} else {
		delete(g.uids, g.order[g.next])
		g.order[g.next] = uid
		g.next = (g.next + 1) % maxGone
	}
	g.uids[uid] = struct{}{}
}

func (g *goneUIDs) has(uid string) bool {
	_, known := g.uids[uid]
	return known
}
