package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/chancery-ca/chancery/api/server"
	"github.com/chancery-ca/chancery/api/web"
	"github.com/chancery-ca/chancery/ca"
	"github.com/chancery-ca/chancery/ca/errkind"
	"github.com/chancery-ca/chancery/ca/identity"
	"github.com/chancery-ca/chancery/ca/ledger"
	"github.com/chancery-ca/chancery/internal/admission"
	"github.com/chancery-ca/chancery/internal/config"
	"github.com/chancery-ca/chancery/internal/telemetry"
)

func serveCommand() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the server",
		Long: `Runs the server until it gets SIGTERM or SIGINT; then it lets calls in flight finish and
ends. SIGHUP loads the configuration, keys and certificates again; if anything is wrong
with them the server goes on with what it has, says so in the log and in the metric
chancery_reloads_total.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := loadConfig(path)
			if err != nil {
				return err
			}
			return serve(cmd.Context(), cfg, path, cmd.ErrOrStderr())
		},
	}
	configFlag(cmd, &path)
	return cmd
}

// process is a running server.
type process struct {
	path      string
	level     *slog.LevelVar
	logger    *slog.Logger
	roll      roll
	authority *ca.Authority
	serving   *server.Serving
	server    *server.Server
	inFlight  *telemetry.InFlight
	config    atomic.Pointer[config.Config]
	reloads   *prometheus.CounterVec
	draining  chan struct{}
	clusters  clusters // whose tokens are accepted

	connections *admission.Connections        // of the gRPC listeners
	tasks       []func(context.Context) error // of the authenticators
}

// serve runs a server until ctx ends. Errors before it listens are of the configuration or the machine; they say what to mend.
func serve(ctx context.Context, cfg *config.Config, path string, logs io.Writer) (err error) {
	// from the first moment on: a hangup that comes while the server starts must not end it
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)

	paceCollector()
	p := &process{path: path, level: new(slog.LevelVar), inFlight: telemetry.NewInFlight(time.Now), draining: make(chan struct{})}
	p.level.Set(cfg.Log.Level)
	if p.logger, err = telemetry.Logger(logs, cfg.Log.Format, p.level); err != nil {
		return usageError{err}
	}
	registry := telemetry.Registry(telemetry.Build{Version: version, Revision: revision})
	p.config.Store(cfg)

	if p.roll, err = openLedger(ctx, cfg, accessServe, rollTools{p.logger, newLedgerMetrics(registry)}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.roll.Close()) }()
	doors, err := newDoors(cfg, p.roll, registry, p.logger)
	if err != nil {
		return usageError{err}
	}
	p.tasks, p.clusters = doors.tasks, doors.clusters
	if p.connections, err = newConnections(cfg, registry, p.logger); err != nil {
		return err
	}
	if err := p.start(ctx, cfg, doors, registry); err != nil {
		return err
	}
	live, ready, err := p.health(doors)
	if err != nil {
		return err
	}
	registry.MustRegister(live.Collector("live"), ready.Collector("ready"))
	defer p.authority.Flush() // after the last call
	return p.listen(ctx, cfg, web.Handler(registry, live, ready, p.logger), ready, hangups)
}

// paceCollector lets the garbage collector run less often: the server keeps a few megabytes alive and makes short-lived garbage, for which Go's
// default means dozens of collections a second. GOGC in the environment wins; GOMEMLIMIT bounds it as usual.
func paceCollector() {
	const percent = 400
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// start makes the authority, its own certificate and the gRPC services.
func (p *process) start(ctx context.Context, cfg *config.Config, doors *doors, registry *prometheus.Registry) error {
	policy, err := newPolicy(cfg, time.Now(), p.clusters)
	if err != nil {
		return usageError{err}
	}
	p.authority, err = ca.New(ctx, ca.Dependencies{
		Ledger: p.roll, Logger: p.logger, Audit: telemetry.Always(p.logger), Registerer: registry, Now: time.Now,
	}, policy)
	if err != nil {
		return startError(err)
	}
	doors.authority = p.authority
	own, err := spiffeid.FromSegments(cfg.TrustDomain, "chancery", "server")
	if err != nil {
		return err
	}
	p.serving = server.NewServing(server.ServingConfig{
		Authority: p.authority, Principal: &identity.Principal{ID: own, Method: identity.MethodServer}, Profile: serverProfile,
		Subject: func() (identity.Names, time.Duration) {
			cfg := p.config.Load()
			return serverNames(cfg), cfg.Server.CertificateLifetime
		},
		Logger: p.logger, Registerer: registry, Now: time.Now,
	})
	if err := p.serving.Renew(ctx); err != nil {
		return startError(err)
	}
	p.reloads = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "chancery_reloads_total", Help: "Reloads of the configuration, by result (ok, failed)."},
		[]string{"result"})
	registry.MustRegister(p.reloads)
	for _, result := range []string{"ok", "failed"} {
		p.reloads.WithLabelValues(result)
	}
	limits := server.Limits{
		InFlight: cfg.Limits.InFlight, Adaptive: cfg.Limits.Adaptive, Queue: cfg.Limits.Queue, Authenticating: cfg.Limits.Authenticating,
		IdentityRate: cfg.Limits.IdentityRate, IdentityBurst: cfg.Limits.IdentityBurst, NodeRate: cfg.Limits.NodeRate, NodeBurst: cfg.Limits.NodeBurst,
		Callers: cfg.Limits.Callers, Handshakes: cfg.Limits.Handshakes, Watchers: cfg.Limits.Watchers,
	}
	p.server, err = server.New(server.Config{
		Authority: p.authority, Chancery: doors.chancery, Istio: doors.istio, IstioJitter: cfg.Istio.LifetimeJitter, Certificate: p.serving.Certificate,
		RequestTimeout: cfg.Server.RequestTimeout, Limits: limits, Track: p.inFlight.Begin,
		Logger: p.logger, Registerer: registry, Now: time.Now,
	})
	return err
}

// startError marks what the authority refuses at its start as the configuration's fault, unless the same start can succeed later.
func startError(err error) error {
	if errors.Is(err, ledger.ErrUnavailable) || errkind.Of(err).Retryable() {
		return err
	}
	return usageError{err}
}

// stuckAfter is how much longer than its deadline a call or a write may take before the process counts as stuck.
const stuckAfter = 60 * time.Second

// health returns the checks: live means not stuck, ready means that a signature can be made and recorded.
func (p *process) health(doors *doors) (live, ready *telemetry.Health, err error) {
	live, err = telemetry.NewHealth(telemetry.HealthConfig{},
		p.inFlight.Check("calls", p.config.Load().Server.RequestTimeout+stuckAfter),
		telemetry.Check{Name: "ledger-writer", Run: func(context.Context) error {
			if waiting := p.roll.Stuck(time.Now()); waiting > stuckAfter {
				return fmt.Errorf("a write has been waiting for %s", waiting.Round(time.Second))
			}
			return nil
		}},
	)
	if err != nil {
		return nil, nil, err
	}
	checks := append([]telemetry.Check{
		{Name: "accepting", Run: func(context.Context) error {
			select {
			case <-p.draining:
				return errors.New("the server is stopping")
			default:
				return nil
			}
		}},
		{Name: "connections", Severity: telemetry.Degraded, Run: func(context.Context) error {
			if limit := p.config.Load().Limits.Connections; p.connections.Open() >= limit {
				return fmt.Errorf("%d are open, the limit (limits.connections): new ones are refused", limit)
			}
			return nil
		}},
		{Name: "signer", Run: p.authority.Probe},
		{Name: "ledger", Run: p.roll.Probe},
	}, doors.checks...)
	ready, err = telemetry.NewHealth(telemetry.HealthConfig{}, checks...)
	return live, ready, err
}

// listener is one address with the server behind it.
type listener struct {
	name string
	net.Listener
	grpc *grpc.Server
}

func (p *process) listen(ctx context.Context, cfg *config.Config, handler http.Handler, ready *telemetry.Health, hangups <-chan os.Signal) (err error) {
	shared := cfg.Istio.Enabled && cfg.Istio.Listen == ""
	wanted := []struct {
		name, address string
		door          server.Door
	}{{"listen.grpc", cfg.Listen.GRPC, server.Door{Chancery: true, Istio: shared}}}
	if cfg.Istio.Enabled && !shared {
		wanted = append(wanted, struct {
			name, address string
			door          server.Door
		}{"istio.listen", cfg.Istio.Listen, server.Door{Istio: true}})
	}
	var listeners []listener
	defer func() {
		if err != nil {
			for _, l := range listeners {
				err = errors.Join(err, ignoreClosed(l.Close()))
			}
		}
	}()
	for _, w := range wanted {
		l, err := net.Listen("tcp", w.address)
		if err != nil {
			return usageError{cannotListen(p.path, w.name, err)}
		}
		listeners = append(listeners, listener{w.name, p.connections.Listener(l), p.server.GRPC(w.door)}) //nolint:contextcheck // calls have their own
	}
	plain, err := net.Listen("tcp", cfg.Listen.HTTP)
	if err != nil {
		return usageError{cannotListen(p.path, "listen.http", err)}
	}
	return p.run(ctx, cfg, listeners, plain, web.Server(handler, p.logger), ready, hangups)
}

func cannotListen(path, setting string, err error) error {
	remedy := "set it to an address of this machine that this user may listen on"
	if errors.Is(err, syscall.EADDRINUSE) {
		remedy = "choose another address or stop what uses it"
	}
	return fmt.Errorf("%s: %s: %w; %s", path, setting, err, remedy)
}

// run serves on all listeners until ctx ends, then drains.
func (p *process) run(ctx context.Context, cfg *config.Config, listeners []listener, plain net.Listener, httpServer *http.Server, ready *telemetry.Health,
	hangups <-chan os.Signal,
) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, l := range listeners {
		p.logger.InfoContext(ctx, "listening", "setting", l.name, "address", l.Addr().String())
		group.Go(func() error {
			if err := l.grpc.Serve(l.Listener); !errors.Is(err, grpc.ErrServerStopped) { // stopped before it began
				return err
			}
			return nil
		})
	}
	p.logger.InfoContext(ctx, "listening", "setting", "listen.http", "address", plain.Addr().String())
	group.Go(func() error {
		if err := httpServer.Serve(plain); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	group.Go(func() error { return p.serving.Run(ctx) })
	group.Go(func() error { return p.reloadOn(ctx, hangups) })
	group.Go(func() error { return p.follow(ctx, ready) })
	for _, task := range p.tasks {
		group.Go(func() error { return task(ctx) })
	}
	group.Go(func() error {
		<-ctx.Done()
		return p.drain(cfg, listeners, httpServer) //nolint:contextcheck // the one there is has ended
	})
	return group.Wait()
}

// drain lets calls in flight finish. Readiness fails first, so that nobody sends new ones.
func (p *process) drain(cfg *config.Config, listeners []listener, httpServer *http.Server) error {
	p.logger.Info("draining", "timeout", cfg.Server.DrainTimeout.String())
	close(p.draining)
	p.server.Drain()
	ctx, cancel := context.WithTimeout(context.Background(), cfg.Server.DrainTimeout)
	defer cancel()
	var stopping errgroup.Group
	for _, l := range listeners {
		stopping.Go(func() error {
			stop := context.AfterFunc(ctx, l.grpc.Stop)
			defer stop()
			l.grpc.GracefulStop()
			return nil
		})
	}
	err := stopping.Wait()
	// health and metrics stay to the end
	err = errors.Join(err, httpServer.Close())
	p.logger.Info("stopped")
	return err
}

// follow keeps gRPC health at what readiness says.
func (p *process) follow(ctx context.Context, ready *telemetry.Health) error {
	const every = 5 * time.Second
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if report, err := ready.Report(ctx); err == nil {
			p.server.SetServing(report.OK())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
