package app

import (
	"context"
	"fmt"

	"bsfd/bsf"
	"bsfd/storage"
)

// startStorage opens the engine; a signal meanwhile gives up.
func (a *App) startStorage(ctx context.Context) error {
	opening, stop := a.signals.Interrupt(ctx)
	defer stop()
	store, err := storage.Open(opening, a.cfg.Storage, a.ready.Progress(a.log), a.log, a.metrics)
	if err != nil {
		return fmt.Errorf("storage: %w", err)
	}
	a.store = store
	a.teardown.Add(store.Close)
	storage.Observe(store, a.cfg.Storage.Timeout, a.metrics)
	a.instance, err = bsf.InstanceID(ctx, store, a.cfg.StoreName(), a.cfg.NF.InstanceID)
	return err
}
