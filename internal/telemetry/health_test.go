package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func answer(name string, severity Severity, err error) Check {
	return Check{Name: name, Severity: severity, Run: func(context.Context) error { return err }}
}

func health(t *testing.T, checks ...Check) *Health {
	t.Helper()
	h, err := NewHealth(HealthConfig{}, checks...)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func report(t *testing.T, h *Health) Report {
	t.Helper()
	r, err := h.Report(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func text(t *testing.T, r Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.Text(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestReports(t *testing.T) {
	full := errors.New("database or disk is full")
	for name, test := range map[string]struct {
		checks []Check
		ok     bool
		status string
		text   string
	}{
		"no check":        {nil, true, "ok", ""},
		"passed":          {[]Check{answer("ledger", Required, nil), answer("b", Degraded, nil)}, true, "ok", "[+] ledger: ok\n[+] b: ok\n"},
		"required failed": {[]Check{answer("ledger", Required, full), answer("b", Degraded, full)}, false, "failed", "[-] ledger: database or disk is full\n[!] b: database or disk is full (degraded)\n"},
		"degraded":        {[]Check{answer("a", Required, nil), answer("kubernetes", Degraded, errors.New("no answer"))}, true, "degraded", "[+] a: ok\n[!] kubernetes: no answer (degraded)\n"},
		"panicked": {[]Check{{Name: "a", Run: func(context.Context) error { panic("oh") }}}, //nolint:forbidigo // what the test is about
			false, "failed", "[-] a: the check panicked: oh\n"},
		"several lines": {[]Check{answer("a", Required, errors.New("one\n[+] b:\x1b ok\t"))}, false, "failed", "[-] a: one [+] b: ok\n"},
		"no text":       {[]Check{answer("a", Required, errors.New(""))}, false, "failed", "[-] a: unknown error\n"},
		"a secret":      {[]Check{answer("a", Required, errors.New("x eyJhbGciOiJ.eyJpc3MiO.s"))}, false, "failed", "[-] a: [redacted]\n"},
		"long":          {[]Check{answer("a", Required, errors.New(strings.Repeat("é", 400)))}, false, "failed", "[-] a: " + strings.Repeat("é", 150) + "…\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := report(t, health(t, test.checks...))
			if got := text(t, r); got != test.text || r.OK() != test.ok {
				t.Errorf("ok is %t:\n%s", r.OK(), got)
			}
			var got struct {
				Status string
				At     time.Time
				Checks []struct {
					Name, Severity, Problem string
					OK                      bool
				}
			}
			data, err := json.Marshal(r)
			if err != nil || json.Unmarshal(data, &got) != nil || got.Status != test.status || len(got.Checks) != len(test.checks) || got.At.IsZero() {
				t.Errorf("%v: %s", err, data)
			}
		})
	}
}

func TestChecksNeedNameAndFunction(t *testing.T) {
	for name, checks := range map[string][]Check{
		"no name":     {answer("", Required, nil)},
		"no function": {{Name: "a"}},
		"same name":   {answer("a", Required, nil), answer("a", Degraded, nil)},
	} {
		if _, err := NewHealth(HealthConfig{}, checks...); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestReportIsKeptForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		h := health(t, Check{Name: "a", Run: func(context.Context) error { runs++; return nil }})
		for _, step := range []struct {
			wait time.Duration
			want int
		}{{0, 1}, {0, 1}, {1999 * time.Millisecond, 1}, {time.Millisecond, 2}, {0, 2}} {
			<-time.After(step.wait)
			report(t, h)
			if runs != step.want {
				t.Errorf("after %s more: %d runs, want %d", step.wait, runs, step.want)
			}
		}
	})
}

func TestCallersShareARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int32
		release := make(chan struct{})
		h := health(t, Check{Name: "a", Run: func(context.Context) error { runs.Add(1); <-release; return nil }})

		ctx, cancel := context.WithCancel(context.Background())
		var callers sync.WaitGroup
		callers.Go(func() { _, _ = h.Report(ctx) }) // begins the run and is cancelled
		synctest.Wait()
		cancel()
		for range 20 {
			callers.Go(func() {
				if r, err := h.Report(context.Background()); err != nil || !r.OK() {
					t.Errorf("%v, %v", r, err)
				}
			})
		}
		synctest.Wait()
		if _, err := h.Report(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller who has left: %v", err)
		}
		close(release)
		callers.Wait()
		if runs.Load() != 1 {
			t.Errorf("%d runs", runs.Load())
		}
	})
}

func TestChecksRunSideBySideWithATimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Minute):
				return nil
			}
		}
		begin := time.Now()
		r := report(t, health(t, Check{Name: "a", Run: slow}, Check{Name: "b", Severity: Degraded, Run: slow}, answer("c", Required, nil)))
		if took := time.Since(begin); took != 2*time.Second {
			t.Errorf("took %s", took)
		}
		if r.OK() || r.Results[0].Problem == "" || r.Results[1].Problem == "" || r.Results[2].Problem != "" {
			t.Errorf("%v", r)
		}
	})
}

func TestStuckCheckIsNotStartedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		release := make(chan struct{})
		h := health(t, Check{Name: "a", Run: func(context.Context) error { runs++; <-release; return nil }})
		for _, want := range []string{"[-] a: no answer within 2s\n", "[-] a: the check before has not returned\n"} {
			if got := text(t, report(t, h)); got != want {
				t.Errorf("%q, want %q", got, want)
			}
			<-time.After(2 * time.Second)
		}
		close(release)
		synctest.Wait()
		if got := text(t, report(t, h)); got != "[+] a: ok\n" || runs != 2 {
			t.Errorf("%q after %d runs", got, runs)
		}
	})
}

func TestCollector(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(health(t, answer("ledger", Required, nil), answer("kubernetes", Degraded, errors.New("x"))).Collector("ready"),
		health(t, answer("requests", Required, nil)).Collector("live"))
	want := `# HELP chancery_health Whether a health check passed (1) or not (0).
# TYPE chancery_health gauge
chancery_health{check="kubernetes",set="ready",severity="degraded"} 0
chancery_health{check="ledger",set="ready",severity="required"} 1
chancery_health{check="requests",set="live",severity="required"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestRegistry(t *testing.T) {
	families, err := Registry(Build{Version: "v1.2.3", Revision: "abc"}).Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	for _, f := range families {
		found[f.GetName()] = f.String()
	}
	for _, name := range []string{"go_goroutines", "process_open_fds", "chancery_build_info"} {
		if found[name] == "" {
			t.Errorf("no %s", name)
		}
	}
	if info := found["chancery_build_info"]; !strings.Contains(info, "v1.2.3") || !strings.Contains(info, "abc") {
		t.Error(info)
	}
}
