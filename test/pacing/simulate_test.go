package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// TestRenewalsComeBackEvenly holds what the simulation shows, with a smaller fleet. The seed is fixed, so the figures are the same in every run.
func TestRenewalsComeBackEvenly(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates 10,000 agents")
	}
	const agents = 10_000
	base := scenario{agents: agents, within: time.Minute, lifetime: time.Hour, failing: 0.01, replicas: 1, seed: 1}
	for name, test := range map[string]struct {
		change      func(*scenario)
		first, from int     // the bound holds from this generation on
		most        float64 // peak to mean
	}{
		"told":              {func(s *scenario) { s.spread = paced }, 3, 2, 1.4},
		"told, 2 replicas":  {func(s *scenario) { s.spread, s.replicas = paced, 2 }, 3, 2, 1.4},
		"told, 24 hours":    {func(s *scenario) { s.spread, s.lifetime, s.agents = paced, 24*time.Hour, 5*agents }, 5, 2, 2.8},
		"ztunnel":           {func(s *scenario) { s.spread, s.holder, s.jitter = paced, ztunnels, 0.2 }, 7, 5, 1.4},
		"ztunnel, replicas": {func(s *scenario) { s.spread, s.holder, s.jitter, s.replicas = paced, ztunnels, 0.2, 2 }, 7, 5, 1.4},
		"pilot-agent":       {func(s *scenario) { s.spread, s.holder, s.jitter = paced, sidecars, 0.2 }, 7, 5, 1.4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := base
			test.change(&s)
			r := s.run()
			if r.ratio(1) > float64(test.first) || r.worst(test.from) > test.most {
				t.Errorf("peak to mean is %.2f in the first generation and at most %.2f from %d on; want %d and %v", r.ratio(1), r.worst(test.from), test.from, test.first,
					test.most)
			}
			// evenness is not bought by renewing all the time: 2 in a lifetime are what half of it costs
			if most := 2.2 * float64(s.agents) / s.lifetime.Seconds(); r.last > most {
				t.Errorf("%.1f renewals a second at the end; want at most %.1f", r.last, most)
			}
		})
	}
}

// TestTheSimulationSeesWaves wants it to show what the Pacer is there to prevent: otherwise it shows nothing.
func TestTheSimulationSeesWaves(t *testing.T) {
	s := scenario{agents: 5000, within: time.Minute, lifetime: time.Hour, replicas: 1, seed: 1}
	if r := s.run(); r.worst(2) < 20 {
		t.Errorf("without spread, peak to mean is %.2f", r.worst(2))
	}
	s.outage, s.spread = 5*time.Minute, even
	if r := s.run(); r.ratio(4) < 2 || r.ratio(3) > 2 {
		t.Errorf("with an outage, peak to mean is %.2f, after %.2f", r.ratio(4), r.ratio(3))
	}
}

func TestTheTable(t *testing.T) {
	var out bytes.Buffer
	write(&out, scenarios(100, time.Minute, time.Minute, 0.01, 1)[:3])
	if lines := strings.Split(strings.TrimSpace(out.String()), "\n"); len(lines) != 4 || !strings.Contains(lines[0], "gen 10") || !strings.Contains(lines[3], "before") {
		t.Errorf("it is:\n%s", out.String())
	}
}
