package app

import (
	"context"

	"bsfd/web/oam"
)

// startOperator brings the operator's interface up first, so that it tells how
// the start goes on.
func (a *App) startOperator(ctx context.Context) error {
	a.operator = oam.New(a.cfg.OAM, oam.NewVersion(a.version), a.ready, a.journal, a.log, a.metrics)
	if err := a.operator.Listen(ctx); err != nil {
		return err
	}
	a.run(ctx, a.operator.Run)
	return nil
}
