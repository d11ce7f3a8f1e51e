package ca

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/chancery-ca/chancery/ca/profile"
)

// Pacer spreads renewals over time. Whatever started together would otherwise come back together, generation after generation. It counts the
// renewals that it has promised, by the moment, and of several moments that a certificate's life allows it takes one at which few are due. It uses
// early moments, which cost a renewal more often, only where the later ones are full.
//
// Its memory is fixed, whatever callers ask for. It knows of no fleet but that which it serves: each of several replicas paces its own share, and
// the sum of even loads is even. It decides nothing about safety: the worst that a false count does is a less even load, within the
// bounds that RenewAt and Lifetime name. It is safe for concurrent use if its random source is, and waits for nobody.
type Pacer struct {
	random  func() uint64
	classes [paceClasses]atomic.Pointer[paceClass]
}

const (
	// paceClasses is the number of classes of lifetimes: class n counts what lives 2^n seconds or more, by the moment, for at least as long as
	// the lifetimes of that class need. The last is that of 2^27 seconds, more than four years.
	paceClasses = 28
	// paceParts is into how many buckets a class divides the shortest of its lifetimes.
	paceParts = 2048
	// paceBuckets is the number of buckets of a class. A renewal lies at most two thirds of a lifetime ahead, of which the longest in a class is twice the
	// shortest: at most 4/3 of paceParts, and one that has begun.
	paceBuckets = 4096
	// paceCoarse is the number of buckets that are counted together a second time, so that many are added up at once.
	paceCoarse = 32
	// paceCalm is the number of renewals a second that is never a reason to renew early.
	paceCalm = 1
	// paceEarly weighs the load of early moments, against 1 for that of late ones.
	paceEarly = 1.5
	// paceDraws is how many moments are looked at in each part of a life.
	paceDraws = 8
)

// paceClass counts the renewals of lifetimes of one class.
type paceClass struct {
	width  int64 // of a fine bucket, in nanoseconds
	fine   [paceBuckets]paceBucket
	coarse [paceBuckets / paceCoarse]paceBucket
}

// paceBucket holds the low half of the number of its moment, and a count. To every other moment it is empty, so that nothing has to be cleared, and
// a clock that was set does no lasting harm.
type paceBucket struct{ atomic.Uint64 }

// NewPacer returns a Pacer without promises. The random source secures nothing; nil means that of math/rand/v2.
func NewPacer(random func() uint64) *Pacer {
	if random == nil {
		random = rand.Uint64
	}
	return &Pacer{random: random}
}

// RenewAt chooses when a certificate is renewed whose holder is told so, and counts the promise. The moment lies after half and up to two thirds of
// the time from issuance to the end; where that is crowded after a third of it, so that a third is left for retries in any case.
func (p *Pacer) RenewAt(issued, notAfter time.Time) time.Time {
	life := notAfter.Sub(issued)
	if life <= 0 {
		return issued
	}
	third := life / 3
	at := issued.Add(p.choose(life, issued, window{from: third + 1, late: life/2 + 1, to: life - third}))
	p.promise(life, at)
	return at
}

// Lifetime chooses a lifetime from shortest to longest for a holder that is told nothing and renews at half of it. It counts nothing: once the certificate
// is there, Halfway does.
func (p *Pacer) Lifetime(issued time.Time, shortest, longest time.Duration) time.Duration {
	if shortest >= longest {
		return longest
	}
	const part = 4 // of what may be taken away is taken without need
	least, most := shortest/2, longest/2
	return 2 * p.choose(longest, issued, window{from: least, late: most - (most-least)/part, to: most})
}

// Halfway counts the promise of a holder that renews at half of the time from issuance to the end, and returns that moment.
func (p *Pacer) Halfway(issued, notAfter time.Time) time.Time {
	life := notAfter.Sub(issued)
	if life <= 0 {
		return issued
	}
	at := issued.Add(life / 2)
	p.promise(life, at)
	return at
}

// renewAt returns when the holder of a new certificate comes back, and counts on it.
func (a *Authority) renewAt(door Door, v profile.Validity) time.Time {
	if door == DoorIstio {
		return a.pacer.Halfway(v.Issued, v.NotAfter)
	}
	return a.pacer.RenewAt(v.Issued, v.NotAfter)
}

// window is the time within a life in which it may be renewed; from late on it costs nothing. All count from the issuance.
type window struct{ from, late, to time.Duration }

// choose draws moments all over a window and returns the one at which the least load is to be expected: what is promised by now, and a share of what
// those will be promised who come soon. Who comes at the front of a wave leaves the later moments to those behind it.
func (p *Pacer) choose(life time.Duration, issued time.Time, in window) time.Duration {
	class := p.class(classOf(life))
	now := issued.UnixNano()
	calm := max(float64(class.width)/float64(time.Second)*paceCalm, 1)
	share := float64(class.width) / float64(max(int64(in.to-in.from), class.width)) // of a newcomer's promises that fall into one bucket
	coming := class.arrivals(now)
	best, least := in.to, math.Inf(1)
	for n := range 2 * paceDraws {
		from, to, weight := in.from, in.late, float64(paceEarly)
		if n >= paceDraws {
			from, to, weight = in.late, in.to, 1
		}
		draw := p.random()
		after := from + time.Duration((float64(n%paceDraws)+unit(draw))/paceDraws*float64(to-from))
		load := class.load(now+int64(after), now+int64(in.from), now+int64(in.to)) + share*coming.until(now+int64(after-in.from))
		load = (load+calm)*weight + float64(draw&0xff)/0x10000 // so that none of equals comes first
		if load < least {
			best, least = after, load
		}
	}
	return min(best, in.to) // a long life in nanoseconds is rounded in a float64
}

// load returns the promises about a moment. Those in a bucket that is only partly between from and to count as if it were full.
func (c *paceClass) load(at, from, to int64) float64 {
	n := at / c.width
	usable := min((n+1)*c.width, to) - max(n*c.width, from)
	return float64(c.fine[n&(paceBuckets-1)].count(n)) * float64(c.width) / float64(max(usable, 1))
}

// arrivals adds up the promises of a time that begins now.
type arrivals struct {
	class *paceClass
	at    int64 // up to which they are added up
	n     int64 // the coarse bucket that holds it
	ends  int64 // where that bucket ends
	sum   float64
}

func (c *paceClass) arrivals(now int64) arrivals {
	width := c.width * paceCoarse
	n := now / width
	return arrivals{class: c, at: now, n: n, ends: (n + 1) * width}
}

// until returns the sum of all up to a moment, not before that of the last call.
func (a *arrivals) until(moment int64) float64 {
	width := a.class.width * paceCoarse
	for a.at < moment {
		next := min(a.ends, moment)
		a.sum += float64(a.class.coarse[a.n&(paceBuckets/paceCoarse-1)].count(a.n)) * float64(next-a.at) / float64(width)
		if a.at = next; next == a.ends {
			a.n, a.ends = a.n+1, a.ends+width
		}
	}
	return a.sum
}

// unit makes a number from 0 to below 1 of random bits.
func unit(random uint64) float64 { return float64(random>>11) / (1 << 53) }

// promise counts a renewal, in the class of its lifetime and in the next: that of a lifetime which was chosen shorter than it might have been.
func (p *Pacer) promise(life time.Duration, at time.Time) {
	own := classOf(life)
	for n := own; n <= min(own+1, paceClasses-1); n++ {
		class := p.class(n)
		fine := at.UnixNano() / class.width
		coarse := fine / paceCoarse
		class.fine[fine&(paceBuckets-1)].add(fine)
		class.coarse[coarse&(paceBuckets/paceCoarse-1)].add(coarse)
	}
}

// count returns the count of a moment.
func (b *paceBucket) count(moment int64) uint32 { return countOf(b.Load(), moment) }

// add counts one more.
func (b *paceBucket) add(moment int64) {
	for {
		old := b.Load()
		count := countOf(old, moment) + 1
		if count == 0 || b.CompareAndSwap(old, uint64(uint32(moment))<<32|uint64(count)) { //nolint:gosec // G115: the low half on purpose
			return
		}
	}
}

func countOf(bucket uint64, moment int64) uint32 {
	if uint32(bucket>>32) != uint32(moment) { //nolint:gosec // G115: the low half on purpose
		return 0
	}
	return uint32(bucket) //nolint:gosec // G115: the low half on purpose
}

// class returns a class. Its counters are made when they are needed first.
func (p *Pacer) class(n int) *paceClass {
	if class := p.classes[n].Load(); class != nil {
		return class
	}
	p.classes[n].CompareAndSwap(nil, &paceClass{width: int64(time.Second) << n / paceParts})
	return p.classes[n].Load()
}

// classOf returns the number of a lifetime's class.
func classOf(life time.Duration) int {
	seconds := uint64(max(life/time.Second, 1))
	return min(bits.Len64(seconds)-1, paceClasses-1)
}
