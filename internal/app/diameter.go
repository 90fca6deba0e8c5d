package app

import (
	"context"
	"fmt"

	"bsfd/diameter"
	"bsfd/overload"
	"bsfd/storage"
)

// startDiameter brings the Rx gateway up, when there is to be one.
func (a *App) startDiameter(ctx context.Context) (err error) {
	if !a.cfg.Diameter.Enabled {
		return nil
	}
	gate := a.overload.Gate(overload.DiameterService)
	deps := diameter.Deps{
		Bindings: a.registry, Remote: a.cfg.Storage.Engine == storage.Postgres, Admitter: gate, Reports: gate,
		Documents: a.store, Refusals: a.journal, Log: a.log, Metrics: a.metrics,
	}
	if a.rx, err = diameter.New(a.cfg.Gateway(), deps); err != nil {
		return fmt.Errorf("diameter.%w", err)
	}
	if err = a.rx.Listen(ctx); err != nil {
		return err
	}
	a.drains = append(a.drains, a.rx.Drain)
	a.reloads = append(a.reloads, a.rx.Reload)
	a.overload.Watch(overload.DiameterService, a.rx)
	a.operator.ShowDiameter(a.rx)
	a.run(ctx, a.rx.Run)
	return nil
}
