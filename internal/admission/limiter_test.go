package admission

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chancery-ca/chancery/ca/errkind"
)

func newLimiter(t testing.TB, config Config) *Limiter {
	t.Helper()
	if config.Now == nil {
		config.Now = time.Now
	}
	l, err := NewLimiter(config)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// hold takes a place that is free.
func hold(t *testing.T, l *Limiter) (done func(bool)) {
	t.Helper()
	done, err := l.Acquire(t.Context(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func wantRefusal(t *testing.T, err error, reason errkind.Reason) {
	t.Helper()
	if errkind.Of(err) != errkind.Exhausted || errkind.ReasonOf(err) != reason {
		t.Errorf("got %s %s (%v), want it to be refused for %s", errkind.Of(err), errkind.ReasonOf(err), err, reason)
	}
	if wait := errkind.RetryAfter(err); wait < shortestWait/2 || wait > longestWait*3/2 {
		t.Errorf("the caller is told to wait %s", wait)
	}
}

func TestBounds(t *testing.T) {
	for name, config := range map[string]Config{
		"no least":         {Min: 0, Max: 1, Now: time.Now},
		"more than most":   {Min: 2, Max: 1, Now: time.Now},
		"a negative queue": {Min: 1, Max: 1, Queue: -1, Now: time.Now},
		"no clock":         {Min: 1, Max: 1},
	} {
		t.Run(name, func(t *testing.T) {
			if l, err := NewLimiter(config); err == nil || l != nil {
				t.Errorf("got %v, %v", l, err)
			}
		})
	}
}

// TestOrder lets callers come in an order while the one place is taken, and looks in which they get it.
func TestOrder(t *testing.T) {
	const unknown = -1
	for name, test := range map[string]struct {
		come []int // hours until they have no certificate
		want []int // index of come
	}{
		"as they come":            {[]int{unknown, unknown, unknown, unknown}, []int{0, 1, 2, 3}},
		"equals as they come":     {[]int{5, 5, 5, 5, 5}, []int{0, 1, 2, 3, 4}},
		"soonest first":           {[]int{3, 1, 2, 5, 4}, []int{1, 2, 0, 4, 3}},
		"those without any first": {[]int{3, unknown, 1, unknown, 2, unknown}, []int{1, 3, 5, 2, 4, 0}},
		"ended is not unknown":    {[]int{0, unknown, 1}, []int{1, 0, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLimiter(t, Config{Min: 1, Max: 1, Queue: 10})
				done := hold(t, l)
				now := time.Now()
				var mu sync.Mutex
				var got []int
				for who, hours := range test.come {
					urgent := now.Add(time.Duration(hours) * time.Hour)
					if hours == unknown {
						urgent = time.Time{}
					}
					go func() {
						done, err := l.Acquire(t.Context(), urgent)
						if err != nil {
							t.Error(err)
							return
						}
						mu.Lock()
						got = append(got, who)
						mu.Unlock()
						done(true)
					}()
					synctest.Wait()
				}
				done(true)
				synctest.Wait()
				if !slices.Equal(got, test.want) {
					t.Errorf("the order is %v, want %v", got, test.want)
				}
			})
		})
	}
}

// TestFullQueue: whoever is least urgent goes, be it the one who comes or one who waits already.
func TestFullQueue(t *testing.T) {
	for name, test := range map[string]struct {
		waiting []int // hours
		comes   int
		leaves  int // index of waiting; len(waiting) is the one who comes
	}{
		"the one who comes is the least urgent": {[]int{1, 2, 3}, 4, 3},
		"an equal comes too late":               {[]int{1, 2, 3}, 3, 3},
		"one who waits is less urgent":          {[]int{1, 9, 3}, 2, 1},
		"the last of equals":                    {[]int{5, 5, 5}, 1, 2},
		"a larger heap":                         {[]int{4, 8, 2, 6, 9, 1, 7}, 3, 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLimiter(t, Config{Min: 1, Max: 1, Queue: len(test.waiting)})
				done := hold(t, l)
				now := time.Now()
				results := make([]error, len(test.waiting)+1)
				come := func(who, hours int) {
					go func() {
						done, err := l.Acquire(t.Context(), now.Add(time.Duration(hours)*time.Hour))
						if results[who] = err; err == nil {
							done(true)
						}
					}()
					synctest.Wait()
				}
				for who, hours := range test.waiting {
					come(who, hours)
				}
				come(len(test.waiting), test.comes)
				for who, err := range results {
					if who == test.leaves {
						wantRefusal(t, err, errkind.Overloaded)
					}
				}
				if got := l.State().Queued; got != len(test.waiting) {
					t.Errorf("%d wait", got)
				}
				done(true)
				synctest.Wait()
				for who, err := range results {
					if who != test.leaves && err != nil {
						t.Errorf("caller %d got %v", who, err)
					}
				}
			})
		})
	}
}

func TestNoQueue(t *testing.T) {
	l := newLimiter(t, Config{Min: 1, Max: 1})
	done := hold(t, l)
	_, err := l.Acquire(t.Context(), time.Time{})
	wantRefusal(t, err, errkind.Overloaded)
	done(true)
	hold(t, l)(true)
}

// TestDeadlines fills a limiter of two places, where work takes a second, and asks with a deadline.
func TestDeadlines(t *testing.T) {
	for name, test := range map[string]struct {
		waiting int // as urgent as a certificate that ends in an hour
		urgent  time.Duration
		left    time.Duration // 0: no deadline
		refused bool
	}{
		"no deadline":                  {waiting: 100, urgent: time.Hour},
		"first in the queue":           {waiting: 0, urgent: time.Hour, left: 1600 * time.Millisecond},
		"first, but too late":          {waiting: 0, urgent: time.Hour, left: 1400 * time.Millisecond, refused: true},
		"in time behind others":        {waiting: 9, urgent: time.Hour, left: 6100 * time.Millisecond},
		"too late behind others":       {waiting: 9, urgent: time.Hour, left: 5900 * time.Millisecond, refused: true},
		"urgent enough to pass others": {waiting: 100, urgent: time.Minute, left: 1600 * time.Millisecond},
		"not urgent enough":            {waiting: 100, urgent: 2 * time.Hour, left: 1600 * time.Millisecond, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				l := newLimiter(t, Config{Min: 2, Max: 2, Queue: 1000})
				done := hold(t, l)
				time.Sleep(time.Second) //nolint:forbidigo // of the fake clock
				done(true)              // so a second is usual
				now := time.Now()
				first, second := hold(t, l), hold(t, l)
				var all sync.WaitGroup
				enter := func(ctx context.Context, urgent time.Duration, result *error) {
					all.Go(func() {
						done, err := l.Acquire(ctx, now.Add(urgent))
						if *result = err; err == nil {
							done(true)
						}
					})
					synctest.Wait()
				}
				for range test.waiting {
					enter(ctx, time.Hour, new(error))
				}
				asking := ctx
				if test.left > 0 {
					limited, stop := context.WithTimeout(ctx, test.left)
					defer stop()
					asking = limited
				}
				var result error
				enter(asking, test.urgent, &result)
				if test.refused {
					wantRefusal(t, result, errkind.DeadlineTooNear)
				} else if queued := l.State().Queued; queued != test.waiting+1 {
					t.Errorf("%d wait, of %d (%v)", queued, test.waiting+1, result)
				}
				cancel()
				all.Wait()
				first(true)
				second(true)
				if s := l.State(); s.InFlight != 0 || s.Queued != 0 {
					t.Errorf("%d at work, %d wait", s.InFlight, s.Queued)
				}
			})
		})
	}
}

// TestCancellation: whoever leaves the queue leaves no trace in it.
func TestCancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, Config{Min: 1, Max: 1, Queue: 10})
		done := hold(t, l)
		ctx, cancel := context.WithCancel(t.Context())
		left, served := make(chan error, 5), make(chan error, 5)
		for range 5 {
			go func() {
				_, err := l.Acquire(ctx, time.Time{})
				left <- err
			}()
			go func() {
				done, err := l.Acquire(t.Context(), time.Time{})
				if err == nil {
					done(true)
				}
				served <- err
			}()
		}
		synctest.Wait()
		cancel()
		for range 5 {
			if err := <-left; !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		}
		if queued := l.State().Queued; queued != 5 {
			t.Errorf("%d wait", queued)
		}
		done(false)
		for range 5 {
			if err := <-served; err != nil {
				t.Error(err)
			}
		}
		if _, err := l.Acquire(ctx, time.Time{}); !errors.Is(err, context.Canceled) {
			t.Errorf("a context that has ended got %v", err)
		}
		if s := l.State(); s.InFlight != 0 || s.Queued != 0 {
			t.Errorf("%d at work, %d wait", s.InFlight, s.Queued)
		}
	})
}

// TestDoneOnce: a place is given back once, however often and from wherever that is said, and by a deferred call also when the work panics.
func TestDoneOnce(t *testing.T) {
	l := newLimiter(t, Config{Min: 3, Max: 3})
	other := hold(t, l)
	done := hold(t, l)
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() { done(true) })
	}
	all.Wait()
	if n := l.State().InFlight; n != 1 {
		t.Errorf("%d at work", n)
	}
	func() {
		defer func() { _ = recover() }()
		defer hold(t, l)(false)
		panic("the work") //nolint:forbidigo // that is the test
	}()
	other(true)
	if n := l.State().InFlight; n != 0 {
		t.Errorf("%d at work", n)
	}
}

// TestCrowd lets many come, wait, leave and be sent away at once: never more are at work than may be, and nothing is left in the end.
func TestCrowd(t *testing.T) {
	const places = 4
	l := newLimiter(t, Config{Min: places, Max: places, Queue: 8})
	var working, most, served, refused, left atomic.Int64
	var all sync.WaitGroup
	for caller := range uint64(32) {
		all.Go(func() {
			chance := rand.New(rand.NewPCG(caller, 0))
			for range 300 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(chance.Int64N(int64(time.Millisecond))))
				if chance.IntN(2) == 0 {
					ctx = context.WithoutCancel(ctx)
				}
				done, err := l.Acquire(ctx, time.Time{}.Add(time.Duration(chance.IntN(3))))
				switch {
				case err == nil:
					if n := working.Add(1); n > most.Load() {
						most.Store(n)
					}
					for range chance.IntN(5) {
						<-time.After(time.Microsecond)
					}
					working.Add(-1)
					done(chance.IntN(2) == 0)
					served.Add(1)
				case errkind.Of(err) == errkind.Exhausted:
					refused.Add(1)
				default:
					left.Add(1)
				}
				cancel()
			}
		})
	}
	all.Wait()
	t.Logf("served %d, refused %d, left %d", served.Load(), refused.Load(), left.Load())
	if most.Load() > places || served.Load() == 0 || refused.Load() == 0 {
		t.Errorf("at most %d at once, served %d, refused %d", most.Load(), served.Load(), refused.Load())
	}
	if s := l.State(); s.InFlight != 0 || s.Queued != 0 {
		t.Errorf("%d at work, %d wait", s.InFlight, s.Queued)
	}
}

// TestRefusalsSpread: those who are sent away together are told different times, which grow with the queue.
func TestRefusalsSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		l := newLimiter(t, Config{Min: 1, Max: 1, Queue: 20})
		done := hold(t, l)
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // of the fake clock
		done(true)
		done = hold(t, l)
		for range 20 {
			go func() { _, _ = l.Acquire(ctx, time.Time{}) }()
		}
		synctest.Wait()
		waits := make(map[time.Duration]bool)
		for range 100 {
			_, err := l.Acquire(ctx, time.Time{})
			wantRefusal(t, err, errkind.Overloaded)
			wait := errkind.RetryAfter(err)
			if wait < 2*time.Second || wait > 7*time.Second { // 20 of 100 ms are before them, twice, with chance
				t.Fatalf("told to wait %s", wait)
			}
			waits[wait.Truncate(100*time.Millisecond)] = true
		}
		if len(waits) < 15 {
			t.Errorf("a hundred are told to come back in %d different tenths of a second", len(waits))
		}
		cancel()
		done(true)
	})
}

// TestFailuresTeachLittle: callers who make work fail at once cannot make the server believe that work is quick.
func TestFailuresTeachLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, Config{Min: 4, Max: 64, Adaptive: true})
		once := func(takes time.Duration, ok bool) {
			done := hold(t, l)
			time.Sleep(takes) //nolint:forbidigo // of the fake clock
			done(ok)
		}
		for range 100 {
			once(10*time.Millisecond, true)
		}
		limit := l.State().Limit
		for range 1000 {
			once(time.Microsecond, false)
		}
		if s := l.State(); s.Usual != 10*time.Millisecond || s.Limit != limit {
			t.Errorf("quick failures made %s usual and the limit %d", s.Usual, s.Limit)
		}
		for range 100 {
			once(time.Second, false)
		}
		if s := l.State(); s.Usual < 100*time.Millisecond {
			t.Errorf("after failures that took a second %s is usual", s.Usual)
		}
	})
}

func BenchmarkAcquire(b *testing.B) {
	for name, config := range map[string]Config{
		"fixed":    {Min: 512, Max: 512, Queue: 10_000},
		"adaptive": {Min: 4, Max: 512, Adaptive: true, Queue: 10_000},
	} {
		b.Run(name+"/alone", func(b *testing.B) {
			l := newLimiter(b, config)
			b.ReportAllocs()
			for b.Loop() {
				done, err := l.Acquire(b.Context(), time.Time{})
				if err != nil {
					b.Fatal(err)
				}
				done(true)
			}
		})
		b.Run(name+"/contended", func(b *testing.B) {
			l := newLimiter(b, config)
			b.ReportAllocs()
			b.SetParallelism(64)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					done, err := l.Acquire(b.Context(), time.Time{})
					if err != nil {
						b.Error(err)
						return
					}
					done(true)
				}
			})
		})
	}
	b.Run("queued", func(b *testing.B) { // a call that waits behind thousands, with a deadline
		l := newLimiter(b, Config{Min: 1, Max: 1, Queue: 10_000})
		done, _ := l.Acquire(b.Context(), time.Time{})
		ctx, cancel := context.WithCancel(b.Context())
		var all sync.WaitGroup
		for range 5000 {
			all.Go(func() { _, _ = l.Acquire(ctx, time.Time{}) })
		}
		for l.State().Queued < 5000 {
			<-time.After(time.Millisecond)
		}
		late, stop := context.WithTimeout(ctx, time.Millisecond)
		defer stop()
		<-late.Done()
		b.ReportAllocs()
		for b.Loop() {
			w, err := l.enter(late, time.Now())
			if err == nil {
				l.leave(w)
			}
		}
		cancel()
		all.Wait()
		done(true)
	})
}
