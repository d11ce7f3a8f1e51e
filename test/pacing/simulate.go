package main

import (
	"container/heap"
	"math/rand/v2"
	"time"

	"github.com/chancery-ca/chancery/ca"
	"github.com/chancery-ca/chancery/ca/profile"
)

// start is when the first agent starts. It is a date like any other.
var start = time.Date(2027, 1, 15, 12, 0, 0, 0, time.UTC)

// holder says how agents know when to renew.
type holder int

const (
	told     holder = iota // at the time that the server says
	sidecars               // pilot-agent: at half of the life as it got it, ±1 % of the life
	ztunnels               // at exactly half of NotAfter - NotBefore
	mesh                   // half of the agents sidecars, half ztunnels
)

// spread says how the server spreads renewals.
type spread int

const (
	none    spread = iota // everything alike
	uniform               // at random: between half and two thirds, or by the whole jitter
	paced                 // by ca.Pacer
	even                  // no server does: agents whose phases are random from the start. What is left is chance
)

// scenario is one fleet and how it is served.
type scenario struct {
	name     string
	agents   int
	within   time.Duration // in which all of them start
	lifetime time.Duration
	holder   holder
	spread   spread
	jitter   float64       // of lifetimes, for holders that are not told
	replicas int           // of the server; each paces by what it has issued itself
	failing  float64       // share of the attempts that fail
	outage   time.Duration // for which nothing is issued, from the middle of the fourth generation on
	seed     uint64
}

const (
	generations = 10
	bucket      = 10 * time.Second // over which rates are measured
	firstRetry  = time.Second
	lastRetry   = 150 * time.Second // as ztunnel's
)

// period is about how long a generation lasts.
func (s scenario) period() time.Duration { return s.lifetime / 2 }

// result is what a scenario came to.
type result struct {
	peaks [generations + 1]float64 // by generation, in renewals a second; the first is the start
	mean  float64                  // renewals a second from the first generation to the end
	last  float64                  // renewals a second in the last generation: what an even load costs
}

// ratio is peak to mean in one generation.
func (r result) ratio(generation int) float64 { return r.peaks[generation] / r.mean }

// worst is the highest ratio from a generation on.
func (r result) worst(from int) float64 {
	most := 0.0
	for generation := from; generation <= generations; generation++ {
		most = max(most, r.ratio(generation))
	}
	return most
}

// simulation is a scenario under way.
type simulation struct {
	scenario
	random *rand.Rand
	pacers []*ca.Pacer
	queue  attempts
	counts []int // successes by bucket
	end    time.Duration
}

// attempt is the next call of one agent. Times count from the start.
type attempt struct {
	at    time.Duration
	agent int
	retry time.Duration // what it waits if this one fails; zero for a first attempt
}

// run simulates every call of every agent.
func (s scenario) run() result {
	sim := &simulation{scenario: s, random: rand.New(rand.NewPCG(s.seed, 1))}
	for range max(s.replicas, 1) {
		sim.pacers = append(sim.pacers, ca.NewPacer(sim.random.Uint64))
	}
	sim.end = time.Duration(generations)*s.period() + s.period()/2
	sim.counts = make([]int, sim.end/bucket+1)
	for agent := range s.agents {
		within := s.within
		if s.spread == even {
			within = s.period()
		}
		sim.queue = append(sim.queue, attempt{at: time.Duration(sim.random.Int64N(int64(within))), agent: agent})
	}
	heap.Init(&sim.queue)
	for len(sim.queue) > 0 {
		sim.step()
	}
	return sim.result()
}

// step makes the earliest call.
func (s *simulation) step() {
	a := &s.queue[0]
	if s.fails(a.at) {
		a.retry = min(max(2*a.retry, firstRetry), lastRetry)
		a.at += time.Duration((0.5 + s.random.Float64()) * float64(a.retry))
	} else {
		s.counts[a.at/bucket]++
		a.at, a.retry = s.next(*a), 0
	}
	if a.at >= s.end {
		heap.Pop(&s.queue)
		return
	}
	heap.Fix(&s.queue, 0)
}

func (s *simulation) fails(at time.Duration) bool {
	began := 4 * s.period()
	return at >= began && at < began+s.outage || s.random.Float64() < s.failing
}

// next returns when an agent comes that is served now.
func (s *simulation) next(a attempt) time.Duration {
	pacer := s.pacers[s.random.IntN(len(s.pacers))]
	issued := start.Add(a.at).Truncate(time.Second)
	if s.holder == told {
		return s.told(pacer, issued)
	}
	life := s.lifetime
	switch shortest := life - time.Duration(float64(life)*s.jitter); s.spread {
	case uniform:
		life -= time.Duration(s.random.Float64() * float64(life-shortest))
	case paced:
		life = pacer.Lifetime(issued, shortest, life)
	case none, even:
	}
	notAfter := issued.Add(life).Truncate(time.Second)
	if s.spread == paced {
		pacer.Halfway(issued, notAfter)
	}
	if s.holder == ztunnels || s.holder == mesh && a.agent%2 == 0 {
		notBefore := issued.Add(-profile.Backdate)
		return notBefore.Add(notAfter.Sub(notBefore) / 2).Sub(start)
	}
	const blur = 0.01
	now := start.Add(a.at)
	return a.at + time.Duration((0.5+blur*(2*s.random.Float64()-1))*float64(notAfter.Sub(now)))
}

func (s *simulation) told(pacer *ca.Pacer, issued time.Time) time.Duration {
	half := issued.Add(s.lifetime / 2)
	switch s.spread {
	case uniform:
		return half.Add(time.Duration(s.random.Float64() * float64(s.lifetime/6))).Sub(start)
	case paced:
		return pacer.RenewAt(issued, issued.Add(s.lifetime)).Sub(start)
	case none, even:
	}
	return half.Sub(start)
}

// result takes as a generation the time of one period about the moment at which agents come that nobody spreads.
func (s *simulation) result() result {
	var r result
	first := int(s.period() / 2 / bucket)
	total, last, buckets := 0, 0, 0
	for n, count := range s.counts[:len(s.counts)-1] { // the last is cut short
		at := time.Duration(n) * bucket
		generation := min(int((at+s.period()/2)/s.period()), generations)
		r.peaks[generation] = max(r.peaks[generation], float64(count)/bucket.Seconds())
		if n >= first {
			total += count
		}
		if generation == generations {
			last += count
			buckets++
		}
	}
	r.mean = float64(total) / (time.Duration(len(s.counts)-1-first) * bucket).Seconds()
	r.last = float64(last) / (time.Duration(buckets) * bucket).Seconds()
	return r
}

// attempts is a heap by time.
type attempts []attempt

func (q attempts) Len() int           { return len(q) }
func (q attempts) Less(i, j int) bool { return q[i].at < q[j].at }
func (q attempts) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *attempts) Push(x any)        { *q = append(*q, x.(attempt)) }

func (q *attempts) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}
