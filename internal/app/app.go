// Package app is the assembly: it alone knows every module, and wires them to
// one process. Each file brings one module up and registers what undoes that
// beside it; a module is added by a file and a line in the list of starts.
package app

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"bsfd/bsf"
	"bsfd/config"
	"bsfd/diameter"
	"bsfd/internal/heap"
	"bsfd/internal/process"
	"bsfd/internal/refusal"
	"bsfd/overload"
	"bsfd/storage"
	"bsfd/web/oam"
	"bsfd/web/sbi"
)

// App is one bsfd, from its configuration to its end.
type App struct {
	cfg     *config.Config
	version string
	log     zerolog.Logger
	metrics *prometheus.Registry
	journal *refusal.Journal
	ready   *oam.Readiness

	signals  process.Signals
	group    *errgroup.Group
	teardown process.Teardown
	drains   []func(context.Context) error
	reloads  []func()

	// What the modules that have started leave for the next ones.
	operator *oam.Server
	store    storage.Store
	instance string // NF instance id
	overload *overload.Controller
	registry *bsf.Registry
	sbi      *sbi.Server
	rx       *diameter.Gateway // nil when not enabled
}

// New returns an App for a configuration that was checked. The log goes to w.
func New(cfg *config.Config, version string, w io.Writer) *App {
	a := &App{
		cfg: cfg, version: version, log: cfg.Log.Logger(w),
		metrics: prometheus.NewRegistry(), ready: oam.NewReadiness(),
	}
	a.journal = refusal.NewJournal(cfg.Errors.Log, a.log, a.metrics)
	a.metrics.MustRegister(
		collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.MetricsGC)),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return a
}

// Guest is what runs beside the process once it is ready. The process ends when
// it returns.
type Guest func(ctx context.Context, at Addresses) error

// Run starts every module, waits for a signal or the end of ctx and stops
// everything. guest may be nil.
func (a *App) Run(ctx context.Context, guest Guest) error {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer signal.Stop(signals)
	a.signals = signals
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a.group, ctx = errgroup.WithContext(ctx)
	err := a.start(ctx)
	if err == nil {
		visit, leave := process.Accompany(ctx, a.group, a.accompany(guest))
		a.signals.Wait(visit, a.log, a.reload)
		leave()
		a.stop()
	}
	cancel()
	err = errors.Join(err, a.group.Wait(), a.teardown.Run())
	a.log.Info().Msg("stopped")
	return err
}

func (a *App) accompany(guest Guest) func(context.Context) error {
	if guest == nil {
		return nil
	}
	return func(ctx context.Context) error { return guest(ctx, a.addresses()) }
}

// start brings the modules up, one after the other.
func (a *App) start(ctx context.Context) error {
	for _, start := range []func(context.Context) error{
		a.startOperator,
		a.startStorage,
		a.startOverload,
		a.startRegistry,
		a.startDiameter,
	} {
		if err := start(ctx); err != nil {
			return err
		}
	}
	a.run(ctx, a.sbi.Run)
	a.run(ctx, func(ctx context.Context) error { return heap.Tune(ctx, a.cfg.Process.GCHeadroom) })
	a.ready.Ready(a.store.Ready)
	process.Tell(a.log, process.Ready)
	a.log.Info().Str("nfInstanceId", a.instance).Str("storage", string(a.cfg.Storage.Engine)).Str("version", a.version).Msg("ready")
	return nil
}

// run runs a part of a module until the process ends.
func (a *App) run(ctx context.Context, run func(context.Context) error) {
	a.group.Go(func() error { return run(ctx) })
}

// reload reads again what may change on disk.
func (a *App) reload() {
	for _, reload := range a.reloads {
		reload()
	}
}

// stop drains within the grace period.
func (a *App) stop() {
	a.ready.NotReady("shutting down")
	process.Tell(a.log, process.Stopping)
	a.signals.Drain(a.log, a.cfg.Process.GracePeriod, a.drains...)
}

// Addresses are where a process is reached.
type Addresses struct {
	SBI string // URL of the service-based interface
	Rx  string // tcp://host:port, empty without gateway
	OAM string // URL of the operator's interface
}

func (a *App) addresses() Addresses {
	at := Addresses{SBI: a.sbi.Scheme() + "://" + a.sbi.Addrs()[0], OAM: a.operator.URL()}
	if a.rx != nil {
		if list := a.rx.Addrs(); len(list) > 0 {
			at.Rx = list[0]
		}
	}
	return at
}
