// Package storage opens the storage engine that the configuration names. The
// engines differ only in where the data lives; storagetest holds what they all
// promise.
package storage

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"bsfd/bsf"
	"bsfd/storage/embedded"
	"bsfd/storage/memory"
	"bsfd/storage/postgres"
)

// Engine names a storage engine.
type Engine string

// The storage engines.
const (
	Embedded Engine = "embedded" // durable, in the data directory
	Memory   Engine = "memory"   // gone with the process
	Postgres Engine = "postgres" // shared by several instances
)

// Config chooses and configures the engine.
type Config struct {
	Engine Engine `koanf:"engine" usage:"storage engine: embedded, memory or postgres"`
	// DataDir is the directory of the embedded engine.
	DataDir string `koanf:"dataDir" usage:"directory of the embedded engine"`
	// Timeout bounds one access to storage.
	Timeout  time.Duration   `koanf:"timeout" usage:"bound of one access to storage"`
	Embedded embedded.Config `koanf:"embedded"`
	Postgres postgres.Config `koanf:"postgres"`
}

// embedded is the configuration of the embedded engine with the common parts
// filled in.
func (c Config) embedded() embedded.Config {
	e := c.Embedded
	e.Dir, e.Timeout = c.DataDir, c.Timeout
	return e
}

// PostgresConfig is the configuration of the PostgreSQL engine with the common
// parts filled in.
func (c Config) PostgresConfig() postgres.Config {
	p := c.Postgres
	p.Timeout = c.Timeout
	return p
}

// Check reports the first wrong setting with its key.
func (c Config) Check() error {
	switch c.Engine {
	case Memory:
		return nil
	case Embedded:
		return c.embedded().Check()
	case Postgres:
		return c.PostgresConfig().Check()
	}
	return fmt.Errorf("engine: must be %q, %q or %q", Embedded, Memory, Postgres)
}

// Store is what every engine is.
type Store interface {
	bsf.BindingStore
	bsf.BindingPager
	bsf.DocumentStore
	bsf.EventQueue
	Lifecycle
}

// Lifecycle is what the process needs of an engine beside its contents.
type Lifecycle interface {
	// Ready reports whether the engine can serve now.
	Ready(context.Context) error
	// Close waits for accepted changes and frees everything.
	Close() error
}

// Open opens the engine. It returns when the engine can serve; progress is
// told how far a load is.
func Open(ctx context.Context, cfg Config, progress func(records int64, fraction float64), log zerolog.Logger, reg prometheus.Registerer) (Store, error) {
	switch cfg.Engine {
	case Memory:
		return memory.New(), nil
	case Postgres:
		return postgres.Open(ctx, cfg.PostgresConfig(), log, reg)
	default:
		return embedded.Open(ctx, cfg.embedded(), progress, log, reg)
	}
}

// Observe registers the number of bindings as a metric, -1 while the engine
// does not answer.
func Observe(pager bsf.BindingPager, timeout time.Duration, reg prometheus.Registerer) {
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "ocbsf_bindings", Help: "PCF bindings in storage; -1 while storage does not answer.",
	}, func() float64 {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		n, err := pager.Count(ctx)
		if err != nil {
			return -1
		}
		return float64(n)
	}))
}
