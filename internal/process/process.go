// Package process is the life of a daemon between its signals: it waits, reads
// certificates again, drains within a grace period, and tells the service
// manager.
package process

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"
)

// Signals are the signals of the process: SIGHUP reads certificates again, any
// other one ends it.
type Signals <-chan os.Signal

// Interrupt returns a context that a signal ends, for work that takes long
// before the process can serve. stop waits for what it started.
func (s Signals) Interrupt(ctx context.Context) (interrupted context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done, watching := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watching)
		select {
		case <-s:
			cancel()
		case <-done:
		}
	}()
	return ctx, func() {
		close(done)
		<-watching
		cancel()
	}
}

// Wait returns when the process is to end. Each SIGHUP calls reload.
func (s Signals) Wait(ctx context.Context, log zerolog.Logger, reload func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case sig := <-s:
			if sig != syscall.SIGHUP {
				log.Info().Str("signal", sig.String()).Msg("stopping")
				return
			}
			reload()
			log.Info().Msg("certificates read again")
		}
	}
}

// Accompany runs the guest, which may be nil, beside the process. The context
// that it returns ends when the guest does; leave ends the guest.
func Accompany(ctx context.Context, group *errgroup.Group, guest func(context.Context) error) (visit context.Context, leave func()) {
	visit, leave = context.WithCancel(ctx)
	if guest != nil {
		group.Go(func() error {
			defer leave()
			return guest(visit)
		})
	}
	return visit, leave
}

// Drain runs the drains side by side within the grace period; a second signal
// cuts it short.
func (s Signals) Drain(log zerolog.Logger, grace time.Duration, drains ...func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	drained := make(chan error, 1)
	go func() {
		var group errgroup.Group
		errs := make([]error, len(drains))
		for i, drain := range drains {
			group.Go(func() error { errs[i] = drain(ctx); return nil })
		}
		drained <- errors.Join(group.Wait(), errors.Join(errs...))
	}()
	for {
		select {
		case err := <-drained:
			if err != nil {
				log.Warn().Err(err).Msg("not all requests finished within the grace period")
			}
			return
		case sig := <-s:
			if sig == syscall.SIGHUP {
				continue
			}
			log.Warn().Msg("second signal, stopping at once")
			cancel()
		}
	}
}

// The states that a service manager is told.
const (
	Ready    = daemon.SdNotifyReady
	Stopping = daemon.SdNotifyStopping
)

// Tell reports the state to a service manager that asked for it.
func Tell(log zerolog.Logger, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Warn().Err(err).Msg("service manager not notified")
	}
}
