// Command bench measures what a certificate costs the server.
//
// It runs the real binary with its ledger on, shows it service-account tokens that a stand-in for the API server vouches for (the answers are
// cached, as in life), and asks for certificates over warm connections. The figure is certificates per second of the server's
// own CPU time, so that it does not depend on how many cores the machine has or what the load generator takes. Beside it, in the same
// run, stands the floor: what parsing and verifying the request and signing the certificate cost with nothing around them.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

type options struct {
	binary      string
	duration    time.Duration
	connections int
	inFlight    int
	identities  int
	json        bool
}

func main() {
	var o options
	flag.StringVar(&o.binary, "binary", "", "chancery binary (default: built from this tree)")
	flag.DurationVar(&o.duration, "duration", 10*time.Second, "how long to measure")
	flag.IntVar(&o.connections, "connections", 8, "warm connections")
	flag.IntVar(&o.inFlight, "in-flight", 64, "calls in flight over all connections")
	flag.IntVar(&o.identities, "identities", 200, "different callers")
	flag.BoolVar(&o.json, "json", false, "print JSON")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// Result is what one run measured.
type Result struct {
	Certificates  int           `json:"certificates"`
	Failures      int           `json:"failures"`
	Wall          time.Duration `json:"wall_ns"`
	ServerCPU     time.Duration `json:"server_cpu_ns"`
	PerCoreSecond float64       `json:"certificates_per_cpu_second"`
	PerWallSecond float64       `json:"certificates_per_wall_second"`
	P50, P99      time.Duration
	Floor         float64 `json:"floor_per_cpu_second"`
	BareFloor     float64 `json:"bare_floor_per_cpu_second"`
	Ratio         float64 `json:"ratio"`
	BareRatio     float64 `json:"bare_ratio"`
	TokenReviews  int64   `json:"token_reviews"`
	Steps         []Step  `json:"steps"`
}

func run(ctx context.Context, o options) (err error) {
	bed, err := newBed(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bed.close()) }()
	load, err := newLoad(ctx, o, bed)
	if err != nil {
		return err
	}
	defer load.close()
	// warm: connections, caches, the lint of the shape
	if _, err := load.run(ctx, time.Second); err != nil {
		return err
	}
	// half of the floor before and half after, so that a machine that changes its speed changes both
	before, err := measureFloor(ctx, o.duration/8)
	if err != nil {
		return err
	}
	cpu, err := bed.serverCPU()
	if err != nil {
		return err
	}
	result, err := load.run(ctx, o.duration)
	if err != nil {
		return err
	}
	after, err := bed.serverCPU()
	if err != nil {
		return err
	}
	later, err := measureFloor(ctx, o.duration/8)
	if err != nil {
		return err
	}
	result.ServerCPU = after - cpu
	result.PerCoreSecond = float64(result.Certificates) / result.ServerCPU.Seconds()
	result.Floor, result.BareFloor = (before.whole+later.whole)/2, (before.bare+later.bare)/2
	result.Ratio, result.BareRatio = result.PerCoreSecond/result.Floor, result.PerCoreSecond/result.BareFloor
	result.TokenReviews = bed.api.Reviews()
	result.Steps = steps()
	if o.json {
		encoder := json.NewEncoder(os.Stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(result)
	}
	result.print(os.Stdout)
	return nil
}
