package ca_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chancery-ca/chancery/ca"
	"github.com/chancery-ca/chancery/ca/errkind"
)

const summaryMessage = "audit summary"

// TestRefusalsAreBounded wants no more records than the limit says, and every refusal in a record or in exactly one summary.
func TestRefusalsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &logs{}
		r := ca.NewRefusals(slog.New(slog.NewJSONHandler(l, nil)), time.Now, ca.RecordLimit{PerSecond: 10, Burst: 20})
		admitted, refused := 0, 0
		const seconds, each = 10, 500
		for n := range seconds * each {
			time.Sleep(time.Second / each) //nolint:forbidigo // of the fake clock
			door, reason := ca.DoorChancery, errkind.BadSignature
			if n%4 == 0 {
				door, reason = ca.DoorIstio, errkind.NoCredential
			}
			if r.Admit(door, fmt.Sprintf("192.0.2.%d:%d", n%7, n), reason) {
				admitted++
			} else {
				refused++
			}
		}
		time.Sleep(2 * time.Second) //nolint:forbidigo // of the fake clock; nothing more comes, and nothing is flushed
		synctest.Wait()
		if most := 20 + 10*seconds; admitted < most-1 || admitted > most+1 {
			t.Errorf("%d records in %d seconds, want %d", admitted, seconds, most)
		}
		summaries := l.records(t, summaryMessage)
		if len(summaries) < seconds-1 || len(summaries) > seconds+1 {
			t.Errorf("%d summaries in %d seconds", len(summaries), seconds)
		}
		var total float64
		sums := make(map[string]float64)
		for _, s := range summaries {
			total += s["refusals"].(float64)
			for _, group := range []string{"reasons", "doors"} {
				for name, count := range s[group].(map[string]any) {
					sums[name] += count.(float64)
				}
			}
			if s["level"] != "WARN" {
				t.Errorf("the summary is %v", s)
			}
			if busiest := s["busiest"].([]any); len(busiest) != 5 {
				t.Errorf("the busiest are %v", busiest)
			}
		}
		if int(total) != refused || sums["bad_signature"]+sums["no_credential"] != total || sums["chancery"]+sums["istio"] != total {
			t.Errorf("%d were refused a record; the summaries have %v, and %v", refused, total, sums)
		}
	})
}

// TestTheBusiest wants whoever asks most to be found among more addresses than are kept.
func TestTheBusiest(t *testing.T) {
	l := &logs{}
	clock := &clock{}
	clock.set(start)
	r := ca.NewRefusals(slog.New(slog.NewJSONHandler(l, nil)), clock.now, ca.RecordLimit{PerSecond: 1, Burst: 1})
	if !r.Admit(ca.DoorChancery, "", errkind.NoCredential) {
		t.Fatal("the first has no record")
	}
	const strangers, rounds = 5000, 3
	counts := make(map[string]int)
	count := func(remote, name string) {
		r.Admit(ca.DoorChancery, remote, errkind.NoCredential)
		counts[name]++
	}
	for n := range strangers {
		r.Admit(ca.DoorChancery, fmt.Sprintf("10.%d.%d.1:99", n/256, n%256), errkind.NoCredential)
		for range rounds {
			count(fmt.Sprintf("192.0.2.1:%d", 1024+n), "192.0.2.1")
			count(fmt.Sprintf("[::ffff:192.0.2.1]:%d", 1024+n), "192.0.2.1")
		}
		count(fmt.Sprintf("[2001:db8:0:7::%x%%eth0]:443", n+1), "2001:db8:0:7::/64") // one network
		count("nowhere", "unknown")
	}
	r.Flush()
	summary := l.records(t, summaryMessage)[0]
	got := make(map[string]int)
	for _, entry := range summary["busiest"].([]any) {
		e := entry.(map[string]any)
		got[e["remote"].(string)] = int(e["at_least"].(float64))
	}
	for name, count := range counts {
		if got[name] > count || got[name] < count*9/10 {
			t.Errorf("%s had %d, and at least %d by the summary: %v", name, count, got[name], got)
		}
	}
	if total := int(summary["refusals"].(float64)); total != strangers*(3+2*rounds) {
		t.Errorf("the total is %d, want %d", total, strangers*(3+2*rounds))
	}
}

// TestALatecomerIsNotTheBusiest wants no address to be shown with the refusals of the one whose place it took.
func TestALatecomerIsNotTheBusiest(t *testing.T) {
	l := &logs{}
	clock := &clock{}
	clock.set(start)
	r := ca.NewRefusals(slog.New(slog.NewJSONHandler(l, nil)), clock.now, ca.RecordLimit{PerSecond: 1, Burst: 1})
	r.Admit(ca.DoorChancery, "", errkind.NoCredential) // has a record of its own
	const kept, each = 64, 100
	for n := range kept * each {
		r.Admit(ca.DoorChancery, fmt.Sprintf("10.0.0.%d:99", n%kept), errkind.NoCredential)
	}
	r.Admit(ca.DoorChancery, "192.0.2.1:99", errkind.NoCredential)
	r.Flush()
	for _, entry := range l.records(t, summaryMessage)[0]["busiest"].([]any) {
		e := entry.(map[string]any)
		if e["remote"] == "192.0.2.1" || e["at_least"].(float64) > each {
			t.Errorf("shown is %v; all others had %d, and it had 1", e, each)
		}
	}
}

// TestTheLimitThatIsNotNamed wants a bound where nobody asks for one.
func TestTheLimitThatIsNotNamed(t *testing.T) {
	for name, limit := range map[string]ca.RecordLimit{"zero": {}, "less than zero": {PerSecond: -1, Burst: -1}} {
		clock := &clock{}
		clock.set(start)
		r := ca.NewRefusals(slog.New(slog.DiscardHandler), clock.now, limit)
		for _, step := range []struct {
			move time.Duration
			want int
		}{{0, 200}, {time.Second, 100}, {time.Hour, 200}} {
			clock.add(step.move)
			admitted := 0
			for range 1000 {
				if r.Admit(ca.DoorChancery, "", errkind.NoCredential) {
					admitted++
				}
			}
			if admitted != step.want {
				t.Errorf("%s: after %s, %d are admitted, want %d", name, step.move, admitted, step.want)
			}
		}
		r.Flush()
	}
}

// TestFlush wants the end to lose nothing, whoever refuses meanwhile, and to write nothing where there is nothing.
func TestFlush(t *testing.T) {
	l := &logs{}
	r := ca.NewRefusals(slog.New(slog.NewJSONHandler(l, nil)), time.Now, ca.RecordLimit{PerSecond: 1, Burst: 1})
	r.Flush()
	if l.String() != "" {
		t.Errorf("nothing is summed up as %s", l)
	}
	var group sync.WaitGroup
	var refused atomic.Int64
	for range 4 {
		group.Go(func() {
			for n := range 2000 {
				if !r.Admit(ca.DoorChancery, "192.0.2.1:1", errkind.NoCredential) {
					refused.Add(1)
				}
				if n%500 == 0 {
					r.Flush()
				}
			}
		})
	}
	group.Wait()
	r.Flush()
	r.Flush()
	var total int64
	for _, s := range l.records(t, summaryMessage) {
		total += int64(s["refusals"].(float64))
	}
	if total != refused.Load() {
		t.Errorf("%d were refused a record, the summaries have %d", refused.Load(), total)
	}
}

// TestFlushWaitsForTheTimer wants a summary that is being written to be written when Flush returns.
func TestFlushWaitsForTheTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowLog{began: make(chan struct{})}
		r := ca.NewRefusals(slog.New(slog.NewJSONHandler(slow, nil)), time.Now, ca.RecordLimit{PerSecond: 1, Burst: 1})
		for range 5 {
			r.Admit(ca.DoorChancery, "", errkind.NoCredential)
		}
		<-slow.began
		r.Flush()
		if !slow.done.Load() {
			t.Error("Flush returned before the summary was written")
		}
	})
}

// TestFlushWaitsForAllBefore wants a summary that takes long to be written to be waited for even if another has come after it.
func TestFlushWaitsForAllBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := &stuckLog{}
		r := ca.NewRefusals(slog.New(stuck), time.Now, ca.RecordLimit{PerSecond: 1, Burst: 1})
		for range 3 {
			for range 5 {
				r.Admit(ca.DoorChancery, "", errkind.NoCredential)
			}
			time.Sleep(2 * time.Second) //nolint:forbidigo // of the fake clock
			synctest.Wait()
		}
		r.Flush()
		if began, done := stuck.began.Load(), stuck.done.Load(); began != 3 || done != began {
			t.Errorf("Flush returned with %d of %d summaries written", done, began)
		}
	})
}

// stuckLog takes a minute for its first record, and no time for those that come meanwhile.
type stuckLog struct {
	slog.Handler
	began, done atomic.Int64
}

func (s *stuckLog) Enabled(context.Context, slog.Level) bool { return true }

func (s *stuckLog) Handle(context.Context, slog.Record) error {
	if s.began.Add(1) == 1 {
		time.Sleep(time.Minute) //nolint:forbidigo // of the fake clock
	}
	s.done.Add(1)
	return nil
}

// slowLog takes a second for a record.
type slowLog struct {
	began chan struct{}
	done  atomic.Bool
}

func (s *slowLog) Write(p []byte) (int, error) {
	close(s.began)
	time.Sleep(time.Second) //nolint:forbidigo // of the fake clock
	s.done.Store(true)
	return len(p), nil
}

// TestAClockSetBack wants it to give nothing, and to take nothing away.
func TestAClockSetBack(t *testing.T) {
	clock := &clock{}
	clock.set(start)
	r := ca.NewRefusals(slog.New(slog.DiscardHandler), clock.now, ca.RecordLimit{PerSecond: 10, Burst: 10})
	defer r.Flush()
	admitted := func() (n int) {
		for range 50 {
			if r.Admit(ca.DoorChancery, "", errkind.NoCredential) {
				n++
			}
		}
		return n
	}
	for _, step := range []struct {
		move time.Duration
		want int
	}{{0, 10}, {time.Second, 10}, {-time.Hour, 0}, {500 * time.Millisecond, 5}, {time.Hour, 10}} {
		clock.add(step.move)
		if got := admitted(); got != step.want {
			t.Errorf("after %s, %d are admitted, want %d", step.move, got, step.want)
		}
	}
}

// TestOnlyStrangersAreSummedUp wants callers who are known to have a record each, and the metric to count everyone.
func TestOnlyStrangersAreSummedUp(t *testing.T) {
	b := newBed(t, func(b *bed) { b.with.RefusalRecords = ca.RecordLimit{PerSecond: 1, Burst: 3} })
	stranger := ca.Order{Door: ca.DoorIstio, Remote: "192.0.2.7:1"}
	for range 10 {
		b.authority.Refused(t.Context(), stranger, errkind.New(errkind.Unauthenticated, "no").Because(errkind.NoCredential), start)
	}
	known := order(t)
	for range 10 {
		b.authority.Refused(t.Context(), known, errkind.New(errkind.Exhausted, "too often").Because(errkind.RateLimited), start)
	}
	b.issue(t, known)
	b.authority.Flush()
	counted := make(map[string]int)
	for _, record := range b.logs.records(t, "audit") {
		counted[record["reason"].(string)]++
	}
	if want := map[string]int{"no_credential": 3, "rate_limited": 10, "issued": 1}; !maps.Equal(counted, want) {
		t.Errorf("there are records of %v, want %v", counted, want)
	}
	summaries := b.logs.records(t, summaryMessage)
	if len(summaries) != 1 || summaries[0]["refusals"] != 7.0 {
		t.Errorf("the summaries are %v", summaries)
	}
	for _, m := range b.metric(t, "chancery_issuance_decisions_total") {
		for _, label := range m.GetLabel() {
			if label.GetValue() == "no_credential" && m.GetCounter().GetValue() != 10 {
				t.Errorf("%v refusals are counted", m.GetCounter().GetValue())
			}
		}
	}
	if m := b.metric(t, "chancery_audit_summarised_total"); len(m) != 1 || m[0].GetCounter().GetValue() != 7 {
		t.Errorf("summed up are %v", m)
	}
}
