package admission

import (
	"math"
	"time"
)

// adaptive is a limit that follows the time that work takes, as TCP Vegas finds its window: by Little's law, of n pieces of work that take the time t
// each, where alone each takes t0, n(1-t0/t) wait inside for something. Few that wait mean that more fit in, many that there are too many.
//
// t0 is measured by a probe: the limit is a fourth of what was under way until enough work that began after that has ended. Between probes t0 falls with what is seen
// but does not grow, so that load does not pass for the usual case. A server with little to do needs no probe: it measures t0 all the time.
type adaptive struct {
	min, max float64
	limit    float64
	usual    time.Duration // smoothed time of work; zero while unknown
	least    time.Duration // t0; zero while unknown

	round int // work that ended in this round, of which there is one for about as much work as the limit
	most  int // work under way at once in this round
	peak  int // work under way at once since the last probe

	probed time.Time // when the last probe ended
	back   float64   // the limit to which a probe returns; zero while there is none
	from   time.Time // work counts for the probe if it began after that
	count  int       // such work that has ended
	sum    time.Duration
}

const (
	// probeEvery is how long t0 is believed.
	probeEvery = 15 * time.Second
	// smoothing is the weight of a new time in the usual one.
	smoothing = 0.02
	// outlier bounds by how much a single time counts, in usual ones.
	outlier = 10
	// leastRound is the least work that a round or a probe waits for.
	leastRound = 20
	// tolerance is how much longer than t0 work may take by chance, such as that of a flush of the disk that it waits for.
	tolerance = 1.5
)

func newAdaptive(least, most int, now time.Time) *adaptive {
	a := &adaptive{min: float64(least), max: float64(most), limit: float64(min(most, 4*least)), probed: now}
	a.back, a.from = a.limit, now // the first probe, at the limit itself
	return a
}

// began notes work that begins when n are under way with it.
func (a *adaptive) began(n int) {
	a.most = max(a.most, n)
}

// ended notes work that was done. failed says that it came to nothing: then it counts only if it took long enough to show that others would too.
func (a *adaptive) ended(began, now time.Time, failed bool) {
	took := now.Sub(began)
	if took <= 0 || failed && took <= a.usual {
		return
	}
	if a.usual == 0 {
		a.usual = took
	}
	took = min(took, outlier*a.usual)
	a.usual += time.Duration(smoothing * float64(took-a.usual))
	if a.least > 0 {
		a.least = min(a.least, a.usual)
	}
	if a.back > 0 {
		a.probe(took, began, now)
		return
	}
	if a.round++; a.round >= max(leastRound, int(a.limit)) {
		a.adapt(now)
		a.round, a.most = 0, 0
	}
}

// adapt changes the limit by what the last round showed.
func (a *adaptive) adapt(now time.Time) {
	a.peak = max(a.peak, a.most)
	if age := now.Sub(a.probed); age >= probeEvery || age < 0 {
		if a.peak <= int(a.min) { // what is usual is what work takes alone
			a.least, a.probed, a.peak = a.usual, now, 0
			return
		}
		a.back, a.from, a.count, a.sum = a.limit, now.Add(a.usual), 0, 0
		a.limit = max(a.min, min(a.limit, float64(a.peak))/4)
		return
	}
	inside := min(a.limit, float64(a.most)) * (1 - tolerance*float64(a.least)/float64(a.usual))
	few := 2 + 3*math.Log10(a.limit) // of those that wait more are let be the more there are at all
	step := max(1, a.limit/16)
	switch {
	case inside > 2*few:
		a.limit -= step
	case inside < few && a.most >= int(a.limit): // what is not used says nothing about more
		a.limit += step
	}
	a.limit = min(max(a.limit, a.min), a.max)
}

// probe counts work for a probe, and ends it when there is enough.
func (a *adaptive) probe(took time.Duration, began, now time.Time) {
	if began.Before(a.from) {
		return
	}
	a.count++
	a.sum += took
	if a.count < max(leastRound, int(a.limit)) {
		return
	}
	a.least = a.sum / time.Duration(a.count)
	a.limit, a.back, a.probed = a.back, 0, now
	a.round, a.most, a.peak = 0, 0, 0
}
