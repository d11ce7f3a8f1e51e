package ca_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/chancery-ca/chancery/ca"
)

// seeded returns a Pacer that does the same in every run.
func seeded(seed uint64) *ca.Pacer { return ca.NewPacer(rand.New(rand.NewPCG(seed, 1)).Uint64) }

// lives are lifetimes from the shortest there is to the longest, at the bounds of classes and between them.
func lives() []time.Duration {
	const day = 24 * time.Hour
	return []time.Duration{
		time.Second, 2 * time.Second, 5*time.Second - 1, 5 * time.Minute, 1023 * time.Second, 1024 * time.Second, time.Hour, 24 * time.Hour, 90 * day, 825 * day,
	}
}

// TestRenewalStaysWithinLife wants a third of the life to be left for retries and a third to be over, however many come.
func TestRenewalStaysWithinLife(t *testing.T) {
	const rounds = 5000
	for _, life := range lives() {
		p := seeded(1)
		early := 0
		for range rounds {
			after := p.RenewAt(start, start.Add(life)).Sub(start)
			if after <= life/3 || after > life-life/3 {
				t.Fatalf("of %s, renewal comes after %s", life, after)
			}
			if after <= life/2 {
				early++
			}
		}
		// a certificate a second is no reason to come early; more is, and then about half come
		if reason := rounds/(life/6).Seconds() > 20; reason && (early < rounds/4 || early > rounds/4*3) || rounds/(life/6).Seconds() < 0.2 && early > rounds/50 {
			t.Errorf("of %d certificates of %s, %d are renewed before half", rounds, life, early)
		}
	}
}

// TestFewRenewLate wants nobody to be sent early without need.
func TestFewRenewLate(t *testing.T) {
	for _, life := range []time.Duration{time.Hour, 24 * time.Hour} {
		p := seeded(2)
		for range 100 {
			if after := p.RenewAt(start, start.Add(life)).Sub(start); after <= life/2 {
				t.Errorf("one of a hundred certificates of %s is renewed after %s", life, after)
			}
			if got := p.Lifetime(start, life*8/10, life); got < life*95/100 {
				t.Errorf("one of a hundred certificates of %s is shortened to %s", life, got)
			}
		}
	}
}

// TestRenewalSpreads wants a fleet of one moment to be spread evenly over all of the time there is.
func TestRenewalSpreads(t *testing.T) {
	const rounds, parts = 20_000, 20
	for _, life := range []time.Duration{time.Second, 1023 * time.Second, time.Hour} {
		told, mesh := seeded(3), seeded(4)
		var counts, halves [parts]int
		shortest := life - life/5
		for range rounds {
			at := told.RenewAt(start, start.Add(life)).Sub(start)
			counts[part(at, life/3, life-life/3, parts)]++
			lived := mesh.Lifetime(start, shortest, life)
			if lived < shortest || lived > life {
				t.Fatalf("of %s to %s, %s is chosen", shortest, life, lived)
			}
			if at := mesh.Halfway(start, start.Add(lived)); !at.Equal(start.Add(lived / 2)) {
				t.Fatalf("half of %s is %s", lived, at.Sub(start))
			}
			halves[part(lived, shortest, life, parts)]++
		}
		for n := range parts {
			if counts[n] > rounds/parts*3/2 || halves[n] > rounds/parts*3/2 {
				t.Errorf("of %s, part %d has %d renewals and %d halves; an even part has %d: %v, %v", life, n, counts[n], halves[n], rounds/parts, counts, halves)
			}
		}
	}
}

func part(at, from, to time.Duration, parts int) int {
	return min(int(float64(at-from)/float64(max(to-from, 1))*float64(parts)), parts-1)
}

// TestPacerFillsGaps wants renewals to go to where none are promised.
func TestPacerFillsGaps(t *testing.T) {
	p := seeded(5)
	const life = time.Hour
	for n := range 50_000 { // everything from 20 minutes to 34
		p.Halfway(start, start.Add(2*(20*time.Minute+time.Duration(n%(14*60))*time.Second)))
	}
	in := 0
	for range 1000 {
		if p.RenewAt(start, start.Add(life)).Sub(start) > 34*time.Minute {
			in++
		}
	}
	if in < 990 {
		t.Errorf("only %d of 1000 renewals go into the gap", in)
	}
}

// TestPacerForgets wants what is past, and a clock that was set, to leave nothing behind.
func TestPacerForgets(t *testing.T) {
	const life, rounds = time.Hour, 5000
	for name, later := range map[string]time.Time{
		"a day later": start.Add(24 * time.Hour), "a year later": start.AddDate(1, 0, 0), "a clock set back": start.AddDate(-5, 0, 0),
		"before 1970": time.Date(1960, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		p := seeded(6)
		for range rounds {
			p.RenewAt(start, start.Add(life))
		}
		early := 0
		for range 100 {
			if p.RenewAt(later, later.Add(life)).Sub(later) <= life/2 {
				early++
			}
		}
		if early > 0 {
			t.Errorf("%s: %d of 100 are renewed early", name, early)
		}
	}
}

func TestPacerIsDeterministic(t *testing.T) {
	a, b := seeded(7), seeded(7)
	for n := range 1000 {
		at := start.Add(time.Duration(n) * time.Millisecond)
		if x, y := a.RenewAt(at, at.Add(time.Hour)), b.RenewAt(at, at.Add(time.Hour)); !x.Equal(y) {
			t.Fatalf("renewal %d is at %s and at %s", n, x, y)
		}
	}
}

// TestPacerWithoutLife wants nothing odd of a life that is none, or longer than any profile allows.
func TestPacerWithoutLife(t *testing.T) {
	p := ca.NewPacer(nil)
	for _, life := range []time.Duration{-time.Hour, 0} {
		if at, half := p.RenewAt(start, start.Add(life)), p.Halfway(start, start.Add(life)); !at.Equal(start) || !half.Equal(start) {
			t.Errorf("of %s, renewal is at %s and half at %s", life, at, half)
		}
	}
	for _, life := range []time.Duration{1, 2, 3, time.Millisecond, 100 * 365 * 24 * time.Hour} {
		if after := p.RenewAt(start, start.Add(life)).Sub(start); after < life/3 || after > life-life/3 {
			t.Errorf("of %s, renewal comes after %s", life, after)
		}
	}
	if got := p.Lifetime(start, time.Hour, time.Minute); got != time.Minute {
		t.Errorf("of nothing to choose from, %s is chosen", got)
	}
}

// TestPacerInParallel wants every promise to be counted, whoever else makes one.
func TestPacerInParallel(t *testing.T) {
	p := ca.NewPacer(nil)
	var group sync.WaitGroup
	const workers, each, parts = 8, 5000, 10
	var mu sync.Mutex
	var counts [parts]int
	for range workers {
		group.Go(func() {
			var own [parts]int
			for range each {
				own[part(p.RenewAt(start, start.Add(time.Hour)).Sub(start), 20*time.Minute, 40*time.Minute, parts)]++
			}
			mu.Lock()
			defer mu.Unlock()
			for n := range parts {
				counts[n] += own[n]
			}
		})
	}
	group.Wait()
	for n, count := range counts {
		if count > workers*each/parts*3/2 {
			t.Errorf("part %d has %d renewals; an even part has %d: %v", n, count, workers*each/parts, counts)
		}
	}
}

func BenchmarkPacer(b *testing.B) {
	for name, life := range map[string]time.Duration{"1h": time.Hour, "17m": 1023 * time.Second, "24h": 24 * time.Hour} {
		b.Run(name, func(b *testing.B) {
			p := ca.NewPacer(nil)
			for n := range 100_000 { // a fleet
				at := start.Add(time.Duration(n) * life / 200_000)
				p.RenewAt(at, at.Add(life))
			}
			now := start.Add(life / 2)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					p.RenewAt(now, now.Add(life))
				}
			})
		})
	}
	b.Run("istio", func(b *testing.B) {
		p := ca.NewPacer(nil)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				p.Halfway(start, start.Add(p.Lifetime(start, 48*time.Minute, time.Hour)))
			}
		})
	})
}
