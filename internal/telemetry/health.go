package telemetry

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Severity says what a failed check means.
type Severity uint8

// The severities.
const (
	// Required makes the whole set fail: the server cannot do its work.
	Required Severity = iota
	// Degraded is shown and no more: the server does its work, or the part of it that is left.
	Degraded
)

// String returns the severity as reports and metrics show it.
func (s Severity) String() string {
	if s == Degraded {
		return "degraded"
	}
	return "required"
}

// Check is one thing that has to work.
type Check struct {
	Name     string // a word, fixed: it is a metric label
	Severity Severity
	// Run returns nil if it works and otherwise a sentence for the operator, which is served to whoever may read the probes: no secrets.
	// It honours ctx. It is called by one goroutine at a time.
	Run func(ctx context.Context) error
}

// HealthConfig sets how checks are run. Zero fields mean the values named here.
type HealthConfig struct {
	Timeout time.Duration    // for a check; 2 seconds
	MaxAge  time.Duration    // for which a report is good; 2 seconds
	Now     func() time.Time // time.Now
}

// Health is a set of checks: one for readiness, another for liveness. Its reports are kept for a moment, and callers who come while the checks
// run share the run, so that neither probes nor scrapes nor an attacker make them run more often. It is safe for concurrent use.
type Health struct {
	config HealthConfig
	checks []*running

	mu      sync.Mutex
	report  Report // of the last run
	current *round // nil while no run is under way
}

// round is a run of all checks under way.
type round struct {
	done   chan struct{} // closed when report is set
	report Report
}

// running is a check and whether it is being run.
type running struct {
	Check
	busy atomic.Bool
}

// NewHealth returns a set of checks. Their names have to differ.
func NewHealth(config HealthConfig, checks ...Check) (*Health, error) {
	if config.Timeout <= 0 {
		config.Timeout = 2 * time.Second
	}
	if config.MaxAge <= 0 {
		config.MaxAge = 2 * time.Second
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	h := &Health{config: config}
	names := make(map[string]bool)
	for _, c := range checks {
		if c.Name == "" || c.Run == nil || names[c.Name] {
			return nil, fmt.Errorf("health check %q: needs a name of its own and a function", c.Name)
		}
		names[c.Name] = true
		h.checks = append(h.checks, &running{Check: c})
	}
	return h, nil
}

// Report returns the latest report, after running the checks if it is too old. It fails only when ctx ends while another caller's run is
// awaited. A run does not end with the caller that began it: the others wait for its result.
func (h *Health) Report(ctx context.Context) (Report, error) {
	h.mu.Lock()
	if age := h.config.Now().Sub(h.report.At); !h.report.At.IsZero() && age >= 0 && age < h.config.MaxAge {
		defer h.mu.Unlock()
		return h.report, nil
	}
	if r := h.current; r != nil {
		h.mu.Unlock()
		select {
		case <-r.done:
			return r.report, nil
		case <-ctx.Done():
			return Report{}, fmt.Errorf("waiting for health checks: %w", ctx.Err())
		}
	}
	r := &round{done: make(chan struct{})}
	h.current = r
	h.mu.Unlock()

	r.report = h.run(context.WithoutCancel(ctx))
	h.mu.Lock()
	h.report, h.current = r.report, nil
	h.mu.Unlock()
	close(r.done)
	return r.report, nil
}

// run runs all checks side by side.
func (h *Health) run(ctx context.Context) Report {
	ctx, cancel := context.WithTimeout(ctx, h.config.Timeout)
	defer cancel()
	results := make([]Result, len(h.checks))
	var all sync.WaitGroup
	for i, c := range h.checks {
		all.Go(func() {
			results[i] = Result{Name: c.Name, Severity: c.Severity}
			if err := c.run(ctx, h.config.Timeout); err != nil {
				results[i].Problem = sentence(err)
			}
		})
	}
	all.Wait()
	return Report{At: h.config.Now(), Results: results}
}

// run returns the check's error, or one of its own when the time is over. A check that does not honour its context is left behind, alone:
// it is not started again until it has returned.
func (c *running) run(ctx context.Context, timeout time.Duration) error {
	if !c.busy.CompareAndSwap(false, true) {
		return errors.New("the check before has not returned")
	}
	answer := make(chan error, 1)
	go func() {
		err := guarded(ctx, c.Run)
		c.busy.Store(false) // before the answer, which lets the next run begin
		answer <- err
	}()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return fmt.Errorf("no answer within %s", timeout)
	}
}

// guarded turns a panic into an error: a broken check must not stop the server that it watches.
func guarded(ctx context.Context, run func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the check panicked: %v", p)
		}
	}()
	return run(ctx)
}
