package telemetry

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestOldestOperation(t *testing.T) {
	now := time.Unix(0, 0)
	f := NewInFlight(func() time.Time { return now })
	expect := func(what string, count int, oldest time.Duration) {
		t.Helper()
		if f.Len() != count || f.Oldest() != oldest {
			t.Errorf("%s: %d operations, the oldest %s; want %d, %s", what, f.Len(), f.Oldest(), count, oldest)
		}
	}
	expect("none", 0, 0)
	first := f.Begin()
	now = now.Add(time.Second)
	second := f.Begin()
	now = now.Add(time.Second)
	third := f.Begin()
	expect("three", 3, 2*time.Second)
	second()
	expect("one from the middle ended", 2, 2*time.Second)
	first()
	expect("the oldest ended", 1, 0)
	first()
	now = now.Add(time.Minute)
	expect("one ended twice", 1, time.Minute)
	third()
	expect("all ended", 0, 0)
}

func TestHangingOperationFailsTheCheck(t *testing.T) {
	now := time.Unix(0, 0)
	f := NewInFlight(func() time.Time { return now })
	check := f.Check("requests", time.Minute)
	end := f.Begin()
	now = now.Add(time.Minute)
	if err := check.Run(context.Background()); err != nil || check.Severity != Required {
		t.Errorf("at the limit: %v", err)
	}
	now = now.Add(time.Second)
	if err := check.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "1m1s") {
		t.Errorf("above the limit: %v", err)
	}
	end()
	if err := check.Run(context.Background()); err != nil {
		t.Errorf("after it ended: %v", err)
	}
}

func TestOperationsOfManyGoroutines(t *testing.T) {
	f := NewInFlight(nil)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 1000 {
				end := f.Begin()
				if f.Oldest() < 0 {
					t.Error("an operation from the future")
				}
				end()
			}
		})
	}
	all.Wait()
	if f.Len() != 0 || f.Oldest() != 0 {
		t.Errorf("%d operations are left", f.Len())
	}
}

func BenchmarkInFlight(b *testing.B) {
	f := NewInFlight(nil)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			f.Begin()()
		}
	})
}
