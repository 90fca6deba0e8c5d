package config

import (
	"context"
	"errors"
	"fmt"
	"io"

	"bsfd/storage"
	"bsfd/storage/postgres"
)

// ErrUsage is the error for a configuration that does not fit the command.
var ErrUsage = errors.New("wrong usage")

// Migrate creates or upgrades the schema of the database, or only prints what
// would be done. The error is ErrUsage for another engine than postgres.
func (c *Config) Migrate(ctx context.Context, plan bool, w io.Writer) error {
	if c.Storage.Engine != storage.Postgres {
		return fmt.Errorf("%w: storage.engine: migrate is for postgres", ErrUsage)
	}
	steps, err := postgres.Migrate(ctx, c.Storage.PostgresConfig(), plan)
	if err != nil {
		return err
	}
	return postgres.WriteSteps(w, steps, plan)
}
