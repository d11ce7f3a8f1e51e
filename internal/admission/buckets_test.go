package admission

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// clock is a clock that tests set.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func newClock() *clock { return &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)} }

func newBuckets(t testing.TB, rate float64, burst, size int, now func() time.Time) *Buckets {
	t.Helper()
	b, err := NewBuckets(rate, burst, size, now)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBucketsBounds(t *testing.T) {
	for name, test := range map[string]struct {
		rate        float64
		burst, size int
		now         func() time.Time
	}{
		"no rate":         {0, 1, 1, time.Now},
		"a negative rate": {-1, 1, 1, time.Now},
		"no burst":        {1, 0, 1, time.Now},
		"no keys":         {1, 1, 0, time.Now},
		"no clock":        {1, 1, 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if b, err := NewBuckets(test.rate, test.burst, test.size, test.now); err == nil || b != nil {
				t.Errorf("got %v, %v", b, err)
			}
		})
	}
}

// TestBuckets takes from a bucket at times and looks whether it gets something and how long it is told to wait.
func TestBuckets(t *testing.T) {
	type take struct {
		after time.Duration // the one before
		wait  time.Duration // zero: it gets one
	}
	for name, test := range map[string]struct {
		rate  float64
		burst int
		takes []take
	}{
		"the burst, then the rate": {2, 3, []take{{0, 0}, {0, 0}, {0, 0}, {0, 500 * time.Millisecond}, {500 * time.Millisecond, 0}, {0, 500 * time.Millisecond}}},
		"part of the wait":         {1, 1, []take{{0, 0}, {300 * time.Millisecond, 700 * time.Millisecond}, {700 * time.Millisecond, 0}}},
		"no more than the burst":   {10, 2, []take{{0, 0}, {time.Hour, 0}, {0, 0}, {0, 100 * time.Millisecond}}},
		"refusals cost nothing":    {1, 1, []take{{0, 0}, {0, time.Second}, {0, time.Second}, {0, time.Second}, {time.Second, 0}}},
		"less than one a second":   {0.1, 1, []take{{0, 0}, {0, 10 * time.Second}, {9 * time.Second, time.Second}, {time.Second, 0}}},
		"a clock that goes back":   {1, 1, []take{{0, 0}, {-time.Hour, time.Second}, {time.Second, 0}, {0, time.Second}}},
		"hardly ever":              {1e-12, 1, []take{{0, 0}, {0, longestBucketWait}}},
	} {
		t.Run(name, func(t *testing.T) {
			clock := newClock()
			b := newBuckets(t, test.rate, test.burst, 10, clock.Now)
			for i, take := range test.takes {
				clock.now = clock.now.Add(take.after)
				wait, ok := b.Take("key")
				if ok != (take.wait == 0) || wait < take.wait || wait > take.wait+time.Microsecond {
					t.Fatalf("take %d got %t and a wait of %s, want %s", i, ok, wait, take.wait)
				}
			}
		})
	}
}

// TestBucketWaitIsEnough: who waits for exactly as long as it was told gets something, at any rate.
func TestBucketWaitIsEnough(t *testing.T) {
	chance := rand.New(rand.NewPCG(3, 4))
	for range 10_000 {
		clock := newClock()
		rate := chance.ExpFloat64() * 100
		b := newBuckets(t, rate, 1, 1, clock.Now)
		b.Take("key")
		clock.now = clock.now.Add(time.Duration(chance.Float64() / rate * float64(time.Second)))
		wait, ok := b.Take("key")
		if ok || wait >= longestBucketWait {
			continue
		}
		clock.now = clock.now.Add(wait)
		if again, ok := b.Take("key"); !ok {
			t.Fatalf("at %g a second, after a wait of %s it is told to wait %s more", rate, wait, again)
		}
	}
}

func TestBucketsAreApart(t *testing.T) {
	b := newBuckets(t, 1, 1, 10, newClock().Now)
	for _, key := range []string{"a", "b", ""} {
		if _, ok := b.Take(key); !ok {
			t.Errorf("the first of %q was refused", key)
		}
		if _, ok := b.Take(key); ok {
			t.Errorf("the second of %q was let in", key)
		}
	}
}

// TestBucketsForget: the memory is bounded, and whoever asks stays in it, refused or not.
func TestBucketsForget(t *testing.T) {
	b := newBuckets(t, 1, 1, 10, newClock().Now)
	b.Take("busy")
	for i := range 1000 {
		b.Take(fmt.Sprint(i))
		if _, ok := b.Take("busy"); ok {
			t.Fatalf("after %d others the bucket that is in use was full again", i)
		}
	}
	if n := b.keys.Len(); n != 10 {
		t.Errorf("%d keys are remembered", n)
	}
}

// TestBucketsAtOnce: many at once get no more than the burst.
func TestBucketsAtOnce(t *testing.T) {
	b := newBuckets(t, 1, 50, 10, newClock().Now)
	var got atomic.Int64
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 20 {
				if _, ok := b.Take("key"); ok {
					got.Add(1)
				}
			}
		})
	}
	all.Wait()
	if got.Load() != 50 {
		t.Errorf("%d were let in", got.Load())
	}
}

func TestMemory(t *testing.T) {
	if m, err := NewMemory(0); err == nil || m != nil {
		t.Error("a memory of nobody was made")
	}
	m, err := NewMemory(2)
	if err != nil {
		t.Fatal(err)
	}
	at := newClock().now
	if until := m.Until("a"); !until.IsZero() {
		t.Errorf("nobody is remembered until %s", until)
	}
	m.Remember("a", at)
	m.Remember("b", at.Add(time.Hour))
	m.Remember("a", at.Add(2*time.Hour)) // a newer certificate
	if got := m.Until("a"); !got.Equal(at.Add(2 * time.Hour)) {
		t.Errorf("a is remembered until %s", got)
	}
	m.Remember("c", at) // b was used least lately
	if !m.Until("b").IsZero() || m.Until("a").IsZero() || m.Until("c").IsZero() {
		t.Error("the wrong one was forgotten")
	}
}

func BenchmarkTake(b *testing.B) {
	buckets := newBuckets(b, 1, 10, 100_000, time.Now)
	keys := make([]string, 200_000)
	for i := range keys {
		keys[i] = fmt.Sprintf("pod local 9f0d9f6e-0000-4000-8000-%012d", i)
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := rand.IntN(len(keys)); pb.Next(); i++ {
			buckets.Take(keys[i%len(keys)])
		}
	})
}
