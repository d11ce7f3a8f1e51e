package server

import (
	"context"
	"crypto/sha256"
	"fmt"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/chancery-ca/chancery/ca"
	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
	"github.com/chancery-ca/chancery/internal/admission"
)

// Limits bounds what a Server carries at once. Meaning and unit of each are those of the configuration's section limits.
type Limits struct {
	InFlight       int
	Adaptive       bool
	Queue          int
	Authenticating int
	IdentityRate   float64 // a second; 0: no limit
	IdentityBurst  int
	NodeRate       float64 // a second; 0: no limit
	NodeBurst      int
	Callers        int
	Handshakes     int // 0: two for each processor
	Watchers       int
}

// reads is how many unauthenticated reads of the trust bundle are answered at once.
const reads = 256

// admit is what an issuance passes: a place for its authentication, the buckets of its caller and node, and a turn.
type admit struct {
	authenticating, reading chan struct{}

	identities, nodes *admission.Buckets // nil without a limit
	memory            *admission.Memory
	limiter           *admission.Limiter

	wait    prometheus.Histogram
	refused *prometheus.CounterVec
}

func newAdmit(limits Limits, registerer prometheus.Registerer, now func() time.Time) (*admit, error) {
	least := min(2*runtime.GOMAXPROCS(0), limits.InFlight)
	limiter, err := admission.NewLimiter(admission.Config{Min: least, Max: limits.InFlight, Adaptive: limits.Adaptive, Queue: limits.Queue, Now: now})
	if err != nil {
		return nil, err
	}
	memory, err := admission.NewMemory(limits.Callers)
	if err != nil {
		return nil, err
	}
	a := &admit{
		authenticating: make(chan struct{}, limits.Authenticating), reading: make(chan struct{}, reads), memory: memory, limiter: limiter,
		wait: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "chancery_admission_wait_seconds", Help: "Time that issuances waited for their turn.",
			Buckets: []float64{.0001, .001, .01, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "chancery_admission_refused_total", Help: "Issuances that were told to come back later, by reason.",
		}, []string{"reason"}),
	}
	if limits.IdentityRate > 0 {
		if a.identities, err = admission.NewBuckets(limits.IdentityRate, limits.IdentityBurst, limits.Callers, now); err != nil {
			return nil, err
		}
	}
	if limits.NodeRate > 0 {
		if a.nodes, err = admission.NewBuckets(limits.NodeRate, limits.NodeBurst, limits.Callers, now); err != nil {
			return nil, err
		}
	}
	for _, reason := range []errkind.Reason{errkind.RateLimited, errkind.Overloaded, errkind.DeadlineTooNear} {
		a.refused.WithLabelValues(string(reason))
	}
	gauge := func(name, help string, value func(admission.State) int) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value(limiter.State())) })
	}
	for _, collector := range []prometheus.Collector{
		a.wait, a.refused,
		gauge("chancery_admission_limit", "Issuances that may be under way at once at the moment.", func(s admission.State) int { return s.Limit }),
		gauge("chancery_admission_in_flight", "Issuances under way.", func(s admission.State) int { return s.InFlight }),
		gauge("chancery_admission_queued", "Issuances that wait for their turn.", func(s admission.State) int { return s.Queued }),
	} {
		if err := registerer.Register(collector); err != nil {
			return nil, fmt.Errorf("registering the metrics of admission: %w", err)
		}
	}
	return a, nil
}

// inPlace runs work in a place, for which it waits no longer than admissionWait.
func inPlace(ctx context.Context, places chan struct{}, work func()) error {
	select {
	case places <- struct{}{}:
	default:
		wait := time.NewTimer(admissionWait)
		defer wait.Stop()
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		case <-wait.C:
			return errkind.New(errkind.Exhausted, "the server has %d such calls at work, its limit; try again", cap(places)).
				Because(errkind.Overloaded).After(2 * time.Second)
		}
	}
	defer func() { <-places }()
	work()
	return nil
}

// turn waits until an order may be issued. What it returns is called when it has been, or has not.
func (a *admit) turn(ctx context.Context, order ca.Order) (done func(*ca.Issuance), err error) {
	caller := callerOf(order)
	defer func() {
		if kind := errkind.Of(err); err != nil && kind == errkind.Exhausted {
			a.refused.WithLabelValues(string(errkind.ReasonOf(err))).Inc()
		}
	}()
	if err := take(a.identities, caller, "this caller asks"); err != nil {
		return nil, err
	}
	if err := take(a.nodes, nodeOf(order.Principal), "this caller's node asks"); err != nil {
		return nil, err
	}
	urgent := a.memory.Until(caller)
	if held := order.Principal.Certificate; held != nil {
		urgent = held.NotAfter
	}
	began := time.Now()
	ended, err := a.limiter.Acquire(ctx, urgent)
	if err != nil {
		return nil, err
	}
	a.wait.Observe(time.Since(began).Seconds())
	return func(issuance *ca.Issuance) {
		ended(issuance != nil)
		if issuance != nil {
			a.memory.Remember(caller, issuance.NotAfter)
		}
	}, nil
}

func take(buckets *admission.Buckets, key, who string) error {
	if buckets == nil || key == "" {
		return nil
	}
	wait, ok := buckets.Take(key)
	if ok {
		return nil
	}
	return errkind.New(errkind.Exhausted, "%s for certificates more often than it may; try again", who).Because(errkind.RateLimited).After(wait)
}

// callerOf returns the key of whom an order's certificate is for: a pod, for others an identity. What a pod asks for in another name, as node proxies
// do, counts apart; its node bounds all of it. Of such a name, which nobody has looked at yet and which may be long, the key holds only the hash.
func callerOf(order ca.Order) string {
	k := order.Principal.Kubernetes
	if k == nil || k.PodUID == "" {
		return "id " + order.Principal.ID.String()
	}
	key := "pod " + k.Cluster + " " + k.PodUID
	if uris := order.Names.URIs; k.NodeUID != "" && len(uris) == 1 && uris[0] != order.Principal.ID.String() {
		sum := sha256.Sum256([]byte(uris[0]))
		key += " " + string(sum[:])
	}
	return key
}

// nodeOf returns the key of a caller's node, empty if it is on none.
func nodeOf(principal *identity.Principal) string {
	if k := principal.Kubernetes; k != nil && k.NodeUID != "" {
		return k.Cluster + " " + k.NodeUID
	}
	return ""
}
