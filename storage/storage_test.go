package storage_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"bsfd/bsf"
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

// TestUpgradeKeepsEvents proves that events which an older version has stored
// are delivered after an upgrade of the schema, in order.
func TestUpgradeKeepsEvents(t *testing.T) {
	cfg := storage.Config{Engine: storage.Postgres, Postgres: postgres.Config{DSN: pgtest.Start(t).Database("old"), MaxConns: 6, Migrate: true}}
	if err := open(t, cfg).Close(); err != nil {
		t.Fatal(err)
	}
	db, err := pgx.Connect(t.Context(), cfg.Postgres.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(context.WithoutCancel(t.Context()))
	events := []*bsf.Event{{ID: bsf.NewID(), Supi: "imsi-001010000000001"}, {ID: bsf.NewID(), Supi: "imsi-001010000000001", Gone: true}}
	old := []string{
		"ALTER TABLE event DROP COLUMN supi, DROP COLUMN claimed_by",
		"DELETE FROM guard WHERE key = 'claim'",
		"DELETE FROM schema_migration WHERE version > 1",
	}
	for _, e := range events {
		body, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		old = append(old, fmt.Sprintf("INSERT INTO event (id, claimed_until, body) VALUES ('%s', to_timestamp(0), '%s')", e.ID, body))
	}
	for _, sql := range old {
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	s := open(t, cfg)
	defer s.Close()
	got, err := s.Claim(t.Context(), 10)
	if err != nil || len(got) != 2 || got[0].Gone || !got[1].Gone {
		t.Fatalf("%v, %v", got, err)
	}
	var supi string
	if err := db.QueryRow(t.Context(), "SELECT min(supi) FROM event").Scan(&supi); err != nil || supi != string(events[0].Supi) {
		t.Errorf("%q, %v", supi, err)
	}
}
