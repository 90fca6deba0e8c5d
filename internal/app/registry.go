package app

import (
	"context"
	"fmt"

	"bsfd/bsf"
	"bsfd/bsf/nbsf"
	"bsfd/overload"
	"bsfd/web/sbi"
)

// startRegistry brings the registry up, with the delivery to subscribers behind
// it and Nbsf_Management before it. The service-based interface listens, and
// serves once all modules have started.
func (a *App) startRegistry(ctx context.Context) error {
	client, err := sbi.NewClient(a.cfg.Client(a.instance), a.overload)
	if err != nil {
		return fmt.Errorf("notifications.caFile: %w", err)
	}
	a.teardown.Add(func() error { client.Close(); return nil })
	notifier, err := bsf.NewNotifier(a.cfg.Notifications.NotifierConfig, a.store, a.store, nbsf.NewCallback(client), a.log, a.metrics)
	if err != nil {
		return err
	}
	if a.registry, err = bsf.NewRegistry(a.cfg.Registry(), a.store, a.store, notifier, a.log, a.metrics); err != nil {
		return err
	}
	errs := sbi.NewErrors(a.cfg.ErrorConfig(a.instance), a.journal, a.metrics)
	api, err := nbsf.New(a.cfg.API(a.instance), a.registry, a.overload.Gate(overload.ManagementService), errs, a.log, a.metrics)
	if err != nil {
		return err
	}
	if a.sbi, err = sbi.NewServer(a.cfg.SBI.ServerConfig, api, errs, a.log, a.metrics); err != nil {
		return err
	}
	if err := a.sbi.Listen(ctx); err != nil {
		return err
	}
	a.drains = append(a.drains, a.sbi.Drain)
	a.reloads = append(a.reloads, a.sbi.Reload)
	a.overload.Watch(overload.ManagementService, a.sbi)
	a.run(ctx, notifier.Run)
	return nil
}
