// Command bsfd is a 5G Binding Support Function (TS 29.521) in one process.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/rs/zerolog"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"bsfd/bsf"
	"bsfd/bsf/nbsf"
	"bsfd/config"
	"bsfd/diameter"
	"bsfd/internal/heap"
	"bsfd/internal/lab"
	"bsfd/internal/process"
	"bsfd/internal/settings"
	"bsfd/overload"
	"bsfd/storage"
	"bsfd/storage/postgres"
	"bsfd/web/oam"
	"bsfd/web/sbi"
)

// version is set by the build.
var version = "0.1.0-dev"

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}

// usageError is a mistake of the user: exit code 2.
type usageError struct{ error }

// run is the program: it picks the subcommand and maps its error to an exit
// code.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) int {
	command := "serve"
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		command, args = args[0], args[1:]
	}
	commands := map[string]func(context.Context, []string, []string, io.Writer, io.Writer) error{
		"serve": serve, "check": check, "health": health, "migrate": migrate, "lab": runLab, "bench": bench, "version": printVersion,
		"help": func(context.Context, []string, []string, io.Writer, io.Writer) error { return pflag.ErrHelp },
	}
	do, ok := commands[command]
	if !ok {
		fmt.Fprintf(stderr, "bsfd: unknown command %q; see bsfd -h\n", command)
		return exitUsage
	}
	err := do(ctx, args, environ, stdout, stderr)
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, pflag.ErrHelp):
		if err := config.WriteHelp(stdout); err != nil {
			return exitFailed
		}
		return exitOK
	case errors.As(err, &usage):
		fmt.Fprintln(stderr, "bsfd:", err)
		return exitUsage
	default:
		fmt.Fprintln(stderr, "bsfd:", err)
		return exitFailed
	}
}

// load reads the configuration of a subcommand; what is wrong with it is the
// user's mistake.
func load(name string, args, environ []string, extra func(*pflag.FlagSet)) (*config.Config, error) {
	cfg, err := config.FromArgs(name, args, environ, extra)
	if err != nil && !errors.Is(err, pflag.ErrHelp) {
		return nil, usageError{err}
	}
	return cfg, err
}

// serve runs the network function until a signal ends it.
func serve(ctx context.Context, args, environ []string, _, stderr io.Writer) error {
	cfg, err := load("serve", args, environ, nil)
	if err != nil {
		return err
	}
	return newServer(cfg, stderr).run(ctx)
}

// runLab runs a small network around the network function. Nothing is kept.
func runLab(ctx context.Context, args, environ []string, stdout, stderr io.Writer) error {
	var o lab.Options
	cfg, err := load("lab", args, environ, o.Flags)
	if err != nil {
		return err
	}
	if err := o.Check(); err != nil {
		return usageError{err}
	}
	cfg.Storage.Engine, cfg.Log.Level, cfg.Diameter.Enabled = storage.Memory, "warn", true
	lab.Gateway(&cfg.Diameter)
	p := newServer(cfg, stderr)
	p.guest = func(ctx context.Context) error { return lab.Run(ctx, o, p.addresses(), stdout) }
	return p.run(ctx)
}

func newServer(cfg *config.Config, stderr io.Writer) *server {
	p := &server{cfg: cfg, log: cfg.Log.Logger(stderr), metrics: prometheus.NewRegistry(), ready: oam.NewReadiness()}
	p.metrics.MustRegister(collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.MetricsGC)), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return p
}

// server is a running bsfd: what was started, in order, and how to stop it.
type server struct {
	cfg      *config.Config
	log      zerolog.Logger
	metrics  *prometheus.Registry
	ready    *oam.Readiness
	sbi      *sbi.Server
	oam      string // its URL
	overload *overload.Controller
	rx       *diameter.Gateway // nil when not enabled
	teardown process.Teardown
	// guest, when not nil, runs beside it once it is ready.
	guest func(context.Context) error
}

// run starts everything, waits for the end and stops everything.
func (p *server) run(ctx context.Context) error {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer signal.Stop(signals)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	err := p.start(ctx, group, signals)
	if err == nil {
		visit, leave := process.Accompany(ctx, group, p.guest)
		process.Signals(signals).Wait(visit, p.log, p.reload)
		leave()
		p.stop(signals)
	}
	cancel()
	err = errors.Join(err, group.Wait(), p.teardown.Run())
	p.log.Info().Msg("stopped")
	return err
}

// addresses are where the process is reached.
func (p *server) addresses() lab.Addresses {
	return lab.Addresses{SBI: p.sbi.Scheme() + "://" + p.sbi.Addrs()[0], Rx: p.rx.Addrs()[0], OAM: p.oam}
}

// start brings the modules up: operator's interface, storage, registry,
// listeners. A signal while storage loads ends the start.
func (p *server) start(ctx context.Context, group *errgroup.Group, signals process.Signals) error {
	cfg := p.cfg
	operator := oam.New(cfg.OAM, oam.NewVersion(version), p.ready, p.log, p.metrics)
	if err := operator.Listen(ctx); err != nil {
		return err
	}
	p.oam = operator.URL()
	group.Go(func() error { return operator.Run(ctx) })
	group.Go(func() error { return heap.Tune(ctx, cfg.Process.GCHeadroom) })

	store, err := p.openStorage(ctx, signals)
	if err != nil {
		return err
	}
	p.teardown.Add(store.Close)
	instance, err := bsf.InstanceID(ctx, store, cfg.StoreName(), cfg.NF.InstanceID)
	if err != nil {
		return err
	}
	if err := p.startOverload(ctx, group, instance, store, operator); err != nil {
		return err
	}
	client, err := sbi.NewClient(cfg.Client(instance), p.overload)
	if err != nil {
		return fmt.Errorf("notifications.caFile: %w", err)
	}
	p.teardown.Add(func() error { client.Close(); return nil })
	notifier, err := bsf.NewNotifier(cfg.Notifications.NotifierConfig, store, store, nbsf.NewCallback(client), p.log, p.metrics)
	if err != nil {
		return err
	}
	registry, err := bsf.NewRegistry(cfg.Registry(), store, store, notifier, p.log, p.metrics)
	if err != nil {
		return err
	}
	errs := sbi.NewErrors(cfg.ErrorConfig(instance), p.log, p.metrics)
	api, err := nbsf.New(cfg.API(instance), registry, p.overload.Gate(overload.ManagementService), errs, p.log, p.metrics)
	if err != nil {
		return err
	}
	if p.sbi, err = sbi.NewServer(cfg.SBI.ServerConfig, api, errs, p.log, p.metrics); err != nil {
		return err
	}
	if err := p.sbi.Listen(ctx); err != nil {
		return err
	}
	p.overload.Watch(overload.ManagementService, p.sbi)
	if err := p.startDiameter(ctx, group, registry, store); err != nil {
		return err
	}
	operator.ShowDiameter(p.rx)
	storage.Observe(store, cfg.Storage.Timeout, p.metrics)
	group.Go(func() error { return notifier.Run(ctx) })
	group.Go(func() error { return p.sbi.Run(ctx) })
	p.ready.Ready(store.Ready)
	process.Tell(p.log, process.Ready)
	p.log.Info().Str("nfInstanceId", instance).Str("storage", string(cfg.Storage.Engine)).Str("version", version).Msg("ready")
	return nil
}

// startOverload brings the overload control up, with its settings as they are
// in storage.
func (p *server) startOverload(ctx context.Context, group *errgroup.Group, instance string, store storage.Store, operator *oam.Server) (err error) {
	id := overload.Identity{InstanceID: instance, Name: p.cfg.NF.Fqdn}
	if p.overload, err = overload.New(p.cfg.Overload, id, overload.NewMachine(), p.log, p.metrics); err != nil {
		return err
	}
	live, err := settings.Open(ctx, "overload", store, p.cfg.Overload, p.overload.Reconfigure, p.log)
	if err != nil {
		return err
	}
	operator.ShowSettings(live)
	group.Go(func() error { return live.Run(ctx) })
	group.Go(func() error { return p.overload.Run(ctx) })
	return nil
}

// startDiameter brings the Rx gateway up, when there is to be one.
func (p *server) startDiameter(ctx context.Context, group *errgroup.Group, registry *bsf.Registry, store storage.Store) (err error) {
	if !p.cfg.Diameter.Enabled {
		return nil
	}
	gate := p.overload.Gate(overload.DiameterService)
	deps := diameter.Deps{
		Bindings: registry, Remote: p.cfg.Storage.Engine == storage.Postgres, Admitter: gate, Reports: gate,
		Documents: store, Log: p.log, Metrics: p.metrics,
	}
	if p.rx, err = diameter.New(p.cfg.Gateway(), deps); err != nil {
		return fmt.Errorf("diameter.%w", err)
	}
	if err = p.rx.Listen(ctx); err != nil {
		return err
	}
	p.overload.Watch(overload.DiameterService, p.rx)
	group.Go(func() error { return p.rx.Run(ctx) })
	return nil
}

// openStorage opens the engine; a signal meanwhile gives up.
func (p *server) openStorage(ctx context.Context, signals process.Signals) (storage.Store, error) {
	ctx, stop := signals.Interrupt(ctx)
	defer stop()
	store, err := storage.Open(ctx, p.cfg.Storage, p.ready.Progress(p.log), p.log, p.metrics)
	if err != nil {
		return nil, fmt.Errorf("storage: %w", err)
	}
	return store, nil
}

// reload reads the certificates again.
func (p *server) reload() {
	p.sbi.Reload()
	if p.rx != nil {
		p.rx.Reload()
	}
}

// stop drains within the grace period.
func (p *server) stop(signals process.Signals) {
	p.ready.NotReady("shutting down")
	process.Tell(p.log, process.Stopping)
	drains := []func(context.Context) error{p.sbi.Drain}
	if p.rx != nil {
		drains = append(drains, p.rx.Drain)
	}
	signals.Drain(p.log, p.cfg.Process.GracePeriod, drains...)
}

// check is the pre-flight: a line a check, exit code 1 when one fails.
func check(ctx context.Context, args, environ []string, stdout, _ io.Writer) error {
	cfg, err := load("check", args, environ, nil)
	if err != nil {
		return err
	}
	return cfg.Preflight(ctx, stdout)
}

// health asks a running bsfd whether it is ready, for container health checks.
func health(ctx context.Context, args, environ []string, _, _ io.Writer) error {
	cfg, err := load("health", args, environ, nil)
	if err != nil {
		return err
	}
	return oam.Probe(ctx, cfg.OAM)
}

func migrate(ctx context.Context, args, environ []string, stdout, _ io.Writer) error {
	var plan bool
	cfg, err := load("migrate", args, environ, func(f *pflag.FlagSet) {
		f.BoolVar(&plan, "plan", false, "only print what would be done")
	})
	if err != nil {
		return err
	}
	if cfg.Storage.Engine != storage.Postgres {
		return usageError{errors.New("storage.engine: migrate is for postgres")}
	}
	steps, err := postgres.Migrate(ctx, cfg.Storage.PostgresConfig(), plan)
	if err != nil {
		return err
	}
	return postgres.WriteSteps(stdout, steps, plan)
}

func bench(ctx context.Context, args, _ []string, stdout, stderr io.Writer) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	err := lab.Bench(ctx, args, stdout, stderr)
	if errors.Is(err, lab.ErrUsage) {
		return usageError{err}
	}
	return err
}

func printVersion(_ context.Context, _, _ []string, stdout, _ io.Writer) error {
	_, err := fmt.Fprintln(stdout, oam.NewVersion(version))
	return err
}
