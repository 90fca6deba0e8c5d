package storage_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"bsfd/internal/pgtest"
	"bsfd/storage"
	"bsfd/storage/embedded"
	"bsfd/storage/postgres"
	"bsfd/storage/storagetest"
)

func open(t *testing.T, cfg storage.Config) storage.Store {
	t.Helper()
	cfg.Timeout = 10 * time.Second
	cfg.Embedded = embedded.Config{MemTableBytes: 1 << 20, ReserveBytes: 1 << 20}
	s, err := storage.Open(t.Context(), cfg, func(int64, float64) {}, zerolog.Nop(), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMemory(t *testing.T) {
	storagetest.Run(t, storagetest.Engine{
		Open: func(t *testing.T) storage.Store { return open(t, storage.Config{Engine: storage.Memory}) },
	})
}

func TestEmbedded(t *testing.T) {
	var dir string
	storagetest.Run(t, storagetest.Engine{
		Open: func(t *testing.T) storage.Store {
			dir = t.TempDir()
			return open(t, storage.Config{Engine: storage.Embedded, DataDir: dir})
		},
		Reopen: func(t *testing.T) storage.Store {
			return open(t, storage.Config{Engine: storage.Embedded, DataDir: dir})
		},
	})
}

func TestPostgres(t *testing.T) {
	server := pgtest.Start(t)
	n, dsn := 0, ""
	connect := func(t *testing.T) storage.Store {
		return open(t, storage.Config{Engine: storage.Postgres, Postgres: postgres.Config{DSN: dsn, MaxConns: 6, Migrate: true}})
	}
	storagetest.Run(t, storagetest.Engine{
		Open: func(t *testing.T) storage.Store {
			n++
			dsn = server.Database(fmt.Sprintf("t%d", n))
			return connect(t)
		},
		Reopen: connect,
		Join:   connect,
	})
}
