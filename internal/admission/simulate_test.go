package admission

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// backend is what work needs, in simulated time: a flush or a call to elsewhere, which any number may wait for together, and a processor.
type backend struct {
	mu    sync.Mutex
	delay time.Duration // with chance: from half of it to one and a half
	cpu   time.Duration
	cores chan struct{}
	most  int // that were at work at once
	now   int
	chaos *rand.Rand
}

func newBackend(delay, cpu time.Duration, cores int) *backend {
	return &backend{delay: delay, cpu: cpu, cores: make(chan struct{}, cores), chaos: rand.New(rand.NewPCG(1, 2))}
}

func (b *backend) set(delay time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.delay = delay
}

func (b *backend) work() {
	b.mu.Lock()
	b.now++
	b.most = max(b.most, b.now)
	delay := b.delay/2 + time.Duration(b.chaos.Int64N(int64(b.delay)+1))
	b.mu.Unlock()
	time.Sleep(delay) //nolint:forbidigo // of the fake clock
	b.cores <- struct{}{}
	time.Sleep(b.cpu) //nolint:forbidigo // of the fake clock
	<-b.cores
	b.mu.Lock()
	b.now--
	b.mu.Unlock()
}

// crowd is callers who ask again as soon as they are answered.
type crowd struct {
	limiter *Limiter
	backend *backend
	stop    chan struct{}
	all     sync.WaitGroup

	mu       sync.Mutex
	finished int
	refused  int
	waits    time.Duration
}

func newCrowd(limiter *Limiter, backend *backend) *crowd {
	return &crowd{limiter: limiter, backend: backend, stop: make(chan struct{})}
}

// join adds callers, who rest between their calls.
func (c *crowd) join(callers int, rest time.Duration) {
	for range callers {
		c.all.Go(func() {
			for {
				select {
				case <-c.stop:
					return
				default:
				}
				c.once()
				time.Sleep(rest) //nolint:forbidigo // of the fake clock
			}
		})
	}
}

func (c *crowd) once() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	began := time.Now()
	done, err := c.limiter.Acquire(ctx, time.Time{})
	if err != nil {
		c.mu.Lock()
		c.refused++
		c.mu.Unlock()
		time.Sleep(time.Second) //nolint:forbidigo // of the fake clock
		return
	}
	waited := time.Since(began)
	c.backend.work()
	done(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.finished++
	c.waits += waited
}

// during lets time pass and returns how much was finished a second, the mean limit, and the usual time at the end.
func (c *crowd) during(period time.Duration) (rate, limit float64, usual time.Duration) {
	c.mu.Lock()
	before := c.finished
	c.mu.Unlock()
	const looks = 100
	for range looks {
		time.Sleep(period / looks) //nolint:forbidigo // of the fake clock
		limit += float64(c.limiter.State().Limit) / looks
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return float64(c.finished-before) / period.Seconds(), limit, c.limiter.State().Usual
}

func (c *crowd) leave() {
	close(c.stop)
	c.all.Wait()
}

// simulate runs a test in simulated time with an adaptive limiter from 4 to 512.
func simulate(t *testing.T, backend func() *backend, test func(*testing.T, *crowd)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { // what waits on the fake clock has to be made under it
		c := newCrowd(newLimiter(t, Config{Min: 4, Max: 512, Adaptive: true, Queue: 10_000, Now: time.Now}), backend())
		test(t, c)
		c.leave()
		if s := c.limiter.State(); s.InFlight != 0 || s.Queued != 0 {
			t.Errorf("at the end %d are at work and %d wait", s.InFlight, s.Queued)
		}
	})
}

// twoProcessors do 2000 pieces of work a second, if 22 are under way.
func twoProcessors() *backend { return newBackend(10*time.Millisecond, time.Millisecond, 2) }

// TestConvergence: the limit becomes what the backend can do at once and little more, whatever bounds the backend.
func TestConvergence(t *testing.T) {
	for name, test := range map[string]struct {
		delay, cpu  time.Duration
		cores       int
		least, most float64 // limit
		rate        float64 // least that is finished in a second
		callers     int
	}{
		// two cores and 1 ms each: 2000/s; 10 ms of delay keep 22 under way
		"bound by two processors": {delay: 10 * time.Millisecond, cpu: time.Millisecond, cores: 2, least: 15, most: 70, rate: 1900, callers: 400},
		// nothing but processors: there is nothing to gain above two
		"processors alone": {delay: 0, cpu: time.Millisecond, cores: 2, least: 4, most: 40, rate: 1990, callers: 400},
		// a backend far away with 20 connections: 20 of 50 ms, 400/s
		"twenty connections": {delay: 0, cpu: 50 * time.Millisecond, cores: 20, least: 15, most: 60, rate: 390, callers: 300},
		// a backend far away that takes whatever it gets: the limit rises to what the callers want
		"no bound": {delay: 50 * time.Millisecond, cpu: time.Microsecond, cores: 512, least: 150, most: 512, rate: 3000, callers: 300},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func() *backend { return newBackend(test.delay, test.cpu, test.cores) }, func(t *testing.T, c *crowd) {
				c.join(test.callers, 0)
				c.during(20 * time.Second)
				rate, limit, usual := c.during(20 * time.Second)
				t.Logf("limit %.0f, %.0f/s, usual %s", limit, rate, usual)
				if limit < test.least || limit > test.most {
					t.Errorf("the limit is %.0f, want %.0f to %.0f", limit, test.least, test.most)
				}
				if rate < test.rate {
					t.Errorf("%.0f are finished in a second, want %.0f", rate, test.rate)
				}
			})
		})
	}
}

// TestSlowBackend: while the backend takes ten times as long the limit does not run away, and afterwards it is soon what it was.
func TestSlowBackend(t *testing.T) {
	simulate(t, twoProcessors, func(t *testing.T, c *crowd) {
		b := c.backend
		c.join(100, 0)
		c.during(20 * time.Second)
		before, limitBefore, _ := c.during(10 * time.Second)
		b.set(100 * time.Millisecond)
		early, limitEarly, _ := c.during(10 * time.Second)
		c.during(30 * time.Second)
		late, limitLate, _ := c.during(10 * time.Second)
		b.set(10 * time.Millisecond)
		c.during(40 * time.Second)
		after, limitAfter, usual := c.during(20 * time.Second)
		t.Logf("before %.0f/s limit %.0f; slow %.0f/s %.0f, after 40 s %.0f/s %.0f; after %.0f/s %.0f, usual %s",
			before, limitBefore, early, limitEarly, late, limitLate, after, limitAfter, usual)
		// a hundred callers and 100 ms: at most a thousand a second
		if early < 100 || limitEarly > 150 || limitLate > 150 {
			t.Errorf("while it is slow %.0f/s are finished with the limit %.0f, later %.0f", early, limitEarly, limitLate)
		}
		if late < 600 {
			t.Errorf("what is slow for good is not taken for what is usual: %.0f/s with the limit %.0f", late, limitLate)
		}
		if after < 0.95*before || limitAfter > 2*limitBefore {
			t.Errorf("afterwards %.0f/s with the limit %.0f, before %.0f/s with %.0f", after, limitAfter, before, limitBefore)
		}
	})
}

// TestAtRest: a limit that is not reached stays where it is, for a day.
func TestAtRest(t *testing.T) {
	simulate(t, twoProcessors, func(t *testing.T, c *crowd) {
		start := c.limiter.State().Limit
		c.join(2, time.Second)
		_, limit, usual := c.during(24 * time.Hour)
		if now := c.limiter.State().Limit; now != start || math.Abs(limit-float64(start)) > 0.01 {
			t.Errorf("the limit went from %d to %d, on average %.1f", start, now, limit)
		}
		if usual > 20*time.Millisecond {
			t.Errorf("the usual time is %s", usual)
		}
	})
}

// TestBurst: a burst on a server at rest is carried at full speed: the limit does not collapse, and the backend never sees the burst.
func TestBurst(t *testing.T) {
	simulate(t, twoProcessors, func(t *testing.T, c *crowd) {
		b := c.backend
		c.join(2, 100*time.Millisecond)
		c.during(time.Minute)
		for range 3 {
			began := time.Now()
			var burst sync.WaitGroup
			for range 5000 {
				burst.Go(c.once)
			}
			burst.Wait()
			took := time.Since(began)
			b.mu.Lock()
			most := b.most
			b.mu.Unlock()
			state := c.limiter.State()
			t.Logf("5000 took %s, limit %d, at most %d at once", took, state.Limit, most)
			if took > 3*time.Second { // 2000 a second can be done
				t.Errorf("5000 took %s", took)
			}
			if state.Limit < 8 || most > 100 {
				t.Errorf("the limit is %d, and the backend had %d at once", state.Limit, most)
			}
			c.during(20 * time.Second)
		}
		if c.refused > 0 {
			t.Errorf("%d were refused", c.refused)
		}
	})
}

// TestHang: a backend that hangs for a minute does not leave a limiter behind that refuses for ever.
func TestHang(t *testing.T) {
	simulate(t, twoProcessors, func(t *testing.T, c *crowd) {
		b := c.backend
		c.join(50, 0)
		before, _, _ := c.during(10 * time.Second)
		b.set(20 * time.Second)
		c.during(time.Minute)
		b.set(10 * time.Millisecond)
		c.during(40 * time.Second) // what hangs has to end
		after, limit, usual := c.during(10 * time.Second)
		t.Logf("before %.0f/s, after %.0f/s, limit %.0f, usual %s", before, after, limit, usual)
		if after < 0.9*before {
			t.Errorf("before %.0f/s, after %.0f/s", before, after)
		}
	})
}
