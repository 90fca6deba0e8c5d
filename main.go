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

	"github.com/spf13/pflag"

	"bsfd/config"
	"bsfd/internal/app"
	"bsfd/internal/lab"
	"bsfd/storage"
	"bsfd/web/oam"
)

// version is set by the build.
var version = "0.1.0-dev"

// Exit codes.
const exitOK, exitFailed, exitUsage = 0, 1, 2

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
		"serve": serve, "check": check, "health": health, "migrate": migrate, "lab": runLab, "bench": bench,
		"version": func(_ context.Context, _, _ []string, stdout, _ io.Writer) error {
			_, err := fmt.Fprintln(stdout, oam.NewVersion(version))
			return err
		},
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
		if config.WriteHelp(stdout) != nil {
			return exitFailed
		}
		return exitOK
	default:
		fmt.Fprintln(stderr, "bsfd:", err)
		if errors.As(err, &usage) || errors.Is(err, config.ErrUsage) {
			return exitUsage
		}
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
	return app.New(cfg, version, stderr).Run(ctx, app.Greeting(stderr))
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
	return app.New(cfg, version, stderr).Run(ctx, func(ctx context.Context, at app.Addresses) error {
		return lab.Run(ctx, o, lab.Addresses(at), stdout)
	})
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
	return cfg.Migrate(ctx, plan, stdout)
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
