package app

import (
	"context"

	"bsfd/internal/settings"
	"bsfd/overload"
)

// startOverload brings the overload control up, with its settings as they are
// in storage.
func (a *App) startOverload(ctx context.Context) (err error) {
	id := overload.Identity{InstanceID: a.instance, Name: a.cfg.NF.Fqdn}
	if a.overload, err = overload.New(a.cfg.Overload, id, overload.NewMachine(), a.log, a.metrics); err != nil {
		return err
	}
	live, err := settings.Open(ctx, "overload", a.store, a.cfg.Overload, a.overload.Reconfigure, a.log)
	if err != nil {
		return err
	}
	a.operator.ShowSettings(live)
	a.run(ctx, live.Run)
	a.run(ctx, a.overload.Run)
	return nil
}
