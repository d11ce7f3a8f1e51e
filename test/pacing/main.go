// Command pacing simulates how renewals come back after a fleet has started all at once. It asks the real ca.Pacer and leaves everything else out: a
// hundred thousand agents and ten generations take seconds.
//
// It prints, for each generation, the busiest ten seconds as a multiple of the mean: 1 is a perfectly even load.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"
)

func main() {
	agents := flag.Int("agents", 100_000, "agents")
	within := flag.Duration("within", time.Minute, "time in which all of them start")
	failing := flag.Float64("failing", 0.01, "share of the calls that fail and are tried again")
	seed := flag.Uint64("seed", 1, "seed of all that is random")
	flag.Parse()
	began := time.Now()
	for _, lifetime := range []time.Duration{time.Hour, 24 * time.Hour} {
		fmt.Printf("%d agents start within %s; lifetime %s; %v %% of the calls fail. The busiest 10 s of a generation, as a multiple of the mean:\n\n",
			*agents, *within, lifetime, *failing*100)
		all := scenarios(*agents, *within, lifetime, *failing, *seed)
		write(os.Stdout, all)
	}
	fmt.Printf("took %s\n", time.Since(began).Round(100*time.Millisecond))
}

// scenarios are those that are worth comparing.
func scenarios(agents int, within, lifetime time.Duration, failing float64, seed uint64) []scenario {
	base := scenario{agents: agents, within: within, lifetime: lifetime, failing: failing, replicas: 1, seed: seed}
	var all []scenario
	add := func(name string, change func(*scenario)) {
		s := base
		s.name = name
		change(&s)
		all = append(all, s)
	}
	add("chance alone: random phases", func(s *scenario) { s.spread = even })
	add("chancery agents, no spread", func(s *scenario) { s.spread = none })
	add("chancery agents, random (before)", func(s *scenario) { s.spread = uniform })
	add("chancery agents, paced", func(s *scenario) { s.spread = paced })
	add("chancery agents, paced, 2 replicas", func(s *scenario) { s.spread, s.replicas = paced, 2 })
	add("chancery agents, paced, outage of 5m", func(s *scenario) { s.spread, s.outage = paced, 5*time.Minute })
	add("ztunnel, no spread", func(s *scenario) { s.holder, s.spread = ztunnels, none })
	add("ztunnel, random 0.05 (before)", func(s *scenario) { s.holder, s.spread, s.jitter = ztunnels, uniform, 0.05 })
	add("ztunnel, random 0.2", func(s *scenario) { s.holder, s.spread, s.jitter = ztunnels, uniform, 0.2 })
	for _, jitter := range []float64{0.05, 0.1, 0.15, 0.2} {
		add(fmt.Sprintf("ztunnel, paced %v", jitter), func(s *scenario) { s.holder, s.spread, s.jitter = ztunnels, paced, jitter })
	}
	add("ztunnel, paced 0.2, 2 replicas", func(s *scenario) { s.holder, s.spread, s.jitter, s.replicas = ztunnels, paced, 0.2, 2 })
	add("pilot-agent, no spread", func(s *scenario) { s.holder, s.spread = sidecars, none })
	add("pilot-agent, random 0.05 (before)", func(s *scenario) { s.holder, s.spread, s.jitter = sidecars, uniform, 0.05 })
	add("pilot-agent, paced 0.2", func(s *scenario) { s.holder, s.spread, s.jitter = sidecars, paced, 0.2 })
	add("both, paced 0.2, outage of 5m", func(s *scenario) { s.holder, s.spread, s.jitter, s.outage = mesh, paced, 0.2, 5*time.Minute })
	return all
}

func write(w io.Writer, all []scenario) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	header := []string{"", "mean/s", "last/s"}
	for generation := 1; generation <= generations; generation++ {
		header = append(header, fmt.Sprintf("gen %d", generation))
	}
	fmt.Fprintln(table, strings.Join(header, "\t")+"\t")
	for _, s := range all {
		r := s.run()
		row := []string{s.name, fmt.Sprintf("%.2f", r.mean), fmt.Sprintf("%.2f", r.last)}
		for generation := 1; generation <= generations; generation++ {
			row = append(row, fmt.Sprintf("%.2f", r.ratio(generation)))
		}
		fmt.Fprintln(table, strings.Join(row, "\t")+"\t")
	}
	_ = table.Flush() // what cannot be printed is not read
	fmt.Fprintln(w)
}
