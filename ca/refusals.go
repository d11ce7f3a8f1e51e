package ca

import (
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/internal/admission"
)

// RecordLimit bounds a kind of audit record. Zero fields mean the values named here.
type RecordLimit struct {
	PerSecond int // 100
	Burst     int // 200
}

// summaryEvery is the time that a summary covers, at least.
const summaryEvery = time.Second

// refusals decides which refusals of callers whom nobody knows get an audit record of their own: whoever can open a connection can cause them, as many as the
// server can answer, and would fill the disk. What is above the limit is counted and summed up in one record a second, by reason, by door and by the busiest
// addresses, so that nothing is lost but the single addresses, times and causes.
type refusals struct {
	logger *slog.Logger
	now    func() time.Time
	limit  RecordLimit

	mu      sync.Mutex
	tokens  float64
	at      time.Time // when tokens were counted
	pending *summary  // nil if nothing is to be summed up
	taken   *summary  // the one before it, which is being written or was
}

// summary is what the records would have said.
type summary struct {
	from    time.Time
	total   uint64
	reasons map[errkind.Reason]uint64
	doors   map[Door]uint64
	busiest busiest
	timer   *time.Timer
	written chan struct{}   // closed once it is, and all before it are
	before  <-chan struct{} // written of the one before it; nil for the first
}

func newRefusals(logger *slog.Logger, now func() time.Time, limit RecordLimit) *refusals {
	if limit.PerSecond <= 0 {
		limit.PerSecond = 100
	}
	if limit.Burst <= 0 {
		limit.Burst = 200
	}
	return &refusals{logger: logger, now: now, limit: limit, tokens: float64(limit.Burst), at: now()}
}

// admit tells whether a refusal gets its own record. Otherwise it has been counted.
func (r *refusals) admit(order Order, reason errkind.Reason) bool {
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if elapsed := now.Sub(r.at); elapsed > 0 { // a clock that was set back gives nothing
		r.tokens = min(r.tokens+elapsed.Seconds()*float64(r.limit.PerSecond), float64(r.limit.Burst))
	}
	r.at = now
	if r.tokens >= 1 {
		r.tokens--
		return true
	}
	if r.pending == nil {
		s := &summary{from: now, reasons: make(map[errkind.Reason]uint64), doors: make(map[Door]uint64), written: make(chan struct{})}
		s.timer = time.AfterFunc(summaryEvery, func() {
			r.mu.Lock()
			mine := r.take(s)
			r.mu.Unlock()
			if mine {
				r.write(s)
			}
		})
		r.pending = s
	}
	r.pending.total++
	r.pending.reasons[reason]++
	r.pending.doors[order.Door]++
	r.pending.busiest.add(network(order.Remote))
	return false
}

// take ends the summary that is pending, if it is this one, and returns whether it was this call that did. Whoever it was has to write it. The caller
// holds mu.
func (r *refusals) take(s *summary) bool {
	if s == nil || r.pending != s {
		return false
	}
	if r.taken != nil {
		s.before = r.taken.written
	}
	r.pending, r.taken = nil, s
	return true
}

// flush writes what is pending, and returns once every summary is written.
func (r *refusals) flush() {
	r.mu.Lock()
	pending, taken := r.pending, r.taken
	mine := r.take(pending)
	r.mu.Unlock()
	switch {
	case mine:
		pending.timer.Stop() // if that is too late, it finds nothing pending
		r.write(pending)
	case taken != nil:
		<-taken.written
	}
}

// write writes a summary, and returns once those before it are written too, which can be under way still.
func (r *refusals) write(s *summary) {
	defer close(s.written)
	r.logger.Warn("audit summary", "refusals", s.total, "from", s.from, "to", r.now(), counts("reasons", s.reasons), counts("doors", s.doors),
		"busiest", s.busiest.first())
	if s.before != nil {
		<-s.before
	}
}

// counts returns a group with a count for each name, in order.
func counts[Name ~string](key string, of map[Name]uint64) slog.Attr {
	all := make([]slog.Attr, 0, len(of))
	for name, count := range of {
		all = append(all, slog.Uint64(string(name), count))
	}
	slices.SortFunc(all, func(a, b slog.Attr) int {
		if a.Key < b.Key {
			return -1
		}
		return 1
	})
	return slog.Attr{Key: key, Value: slog.GroupValue(all...)}
}

// network returns what counts as one address of a caller.
func network(remote string) netip.Prefix {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Prefix{}
	}
	return admission.Network(at.Addr())
}

const (
	busiestKept  = 64 // addresses that are counted at once
	busiestShown = 5
)

// busiest finds the addresses with the most refusals in fixed memory (the space-saving algorithm of Metwally, Agrawal and El Abbadi, 2005): whoever has more than
// 1/64 of all refusals is among them.
type busiest struct{ kept []remoteCount }

type remoteCount struct {
	remote  netip.Prefix
	count   uint64
	surplus uint64 // by which count may be too high
}

// busy is one address of a summary, with a number of refusals that it certainly had.
type busy struct {
	Remote  string `json:"remote"`
	AtLeast uint64 `json:"at_least"`
}

func (b *busiest) add(remote netip.Prefix) {
	least := 0
	for i := range b.kept {
		if b.kept[i].remote == remote {
			b.kept[i].count++
			return
		}
		if b.kept[i].count < b.kept[least].count {
			least = i
		}
	}
	if len(b.kept) < busiestKept {
		b.kept = append(b.kept, remoteCount{remote: remote, count: 1})
		return
	}
	replaced := b.kept[least].count
	b.kept[least] = remoteCount{remote: remote, count: replaced + 1, surplus: replaced}
}

// first returns the busiest, the first of them first.
func (b *busiest) first() []busy {
	slices.SortFunc(b.kept, func(a, b remoteCount) int {
		switch x, y := a.count-a.surplus, b.count-b.surplus; {
		case x > y:
			return -1
		case x < y:
			return 1
		default:
			return a.remote.Addr().Compare(b.remote.Addr())
		}
	})
	out := make([]busy, 0, busiestShown)
	for _, kept := range b.kept[:min(len(b.kept), busiestShown)] {
		name := unknown
		switch {
		case kept.remote.Addr().Is4():
			name = kept.remote.Addr().String()
		case kept.remote.IsValid():
			name = kept.remote.String()
		}
		out = append(out, busy{Remote: name, AtLeast: kept.count - kept.surplus})
	}
	return out
}
