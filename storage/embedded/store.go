package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"bsfd/bsf"
	"bsfd/storage/memory"
)

// Config configures the engine.
type Config struct {
	// Dir is the directory of the data; it is created when missing.
	Dir string `koanf:"-"`
	// MemTableBytes is the size of the write buffer, 1 MiB to 1 GiB.
	MemTableBytes int `koanf:"memTableBytes" usage:"write buffer of the embedded engine"`
	// ReserveBytes is how much of the file system stays free: as much again is
	// held in a ballast file. Below it, new records are refused, and deletions
	// still succeed.
	ReserveBytes int64 `koanf:"reserveBytes" usage:"free space below which new records are refused"`
	// Timeout is how long a write may wait for the disk before its caller is
	// told so.
	Timeout time.Duration `koanf:"-"`

	fs vfs.FS // in place of the file system, for tests
}

// Check reports the first wrong setting with its key.
func (c Config) Check() error {
	switch {
	case c.Dir == "":
		return errors.New("dataDir: required")
	case c.MemTableBytes < 1<<20 || c.MemTableBytes > 1<<30:
		return errors.New("embedded.memTableBytes: must be 1 MiB to 1 GiB")
	case c.ReserveBytes < 1<<20:
		return errors.New("embedded.reserveBytes: must be at least 1 MiB")
	case c.Timeout < 100*time.Millisecond || c.Timeout > time.Minute:
		return errors.New("timeout: must be 100ms to 1m")
	}
	return nil
}

// Progress is told how far the load at start is.
type Progress func(records int64, fraction float64)

// Store is the embedded engine. It implements the stores of package bsf; reads
// are those of the memory tables.
type Store struct {
	*memory.Tables
	cfg     Config
	db      *pebble.DB
	log     zerolog.Logger
	space   *space
	metrics *metrics

	mu      sync.Mutex
	queue   []*op
	current []*op // being committed
	closed  bool
	hanging bool // the disk does not answer
	wake    chan struct{}
	began   atomic.Int64 // when the commit under way began, in Unix ns; 0 when none is
	done    sync.WaitGroup
	stop    chan struct{}
}

type metrics struct {
	batch   prometheus.Histogram
	latency prometheus.Histogram
}

// Key spaces of the store.
const (
	spaceBinding  = 'b'
	spaceDocument = 'd'
	spaceEvent    = 'e'
	spaceMeta     = 'm'
)

// formatVersion is the version of the stored form. A store of a later version
// is refused.
const formatVersion = "1"

var formatKey = []byte{spaceMeta, 'f'}

// Open opens or creates the store and loads it. Another process that has it
// open is an error.
func Open(ctx context.Context, cfg Config, progress Progress, log zerolog.Logger, reg prometheus.Registerer) (*Store, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	log = log.With().Str("component", "storage").Logger()
	if err := os.MkdirAll(cfg.Dir, 0o750); err != nil {
		return nil, err
	}
	s := &Store{
		Tables: memory.NewTables(), cfg: cfg, log: log,
		wake: make(chan struct{}, 1), stop: make(chan struct{}),
		space: newSpace(cfg.Dir, cfg.ReserveBytes, log),
		metrics: &metrics{
			batch: prometheus.NewHistogram(prometheus.HistogramOpts{
				Name: "ocbsf_storage_batch_records", Help: "Changes committed with one sync.",
				Buckets: prometheus.ExponentialBuckets(1, 2, 10),
			}),
			latency: prometheus.NewHistogram(prometheus.HistogramOpts{
				Name: "ocbsf_db_latency", Help: "Time of a commit, in seconds.",
				Buckets: prometheus.ExponentialBuckets(.0001, 2, 16),
			}),
		},
	}
	if err := s.openDB(); err != nil {
		return nil, err
	}
	if err := s.load(ctx, progress); err != nil {
		return nil, errors.Join(err, s.db.Close())
	}
	reg.MustRegister(s.metrics.batch, s.metrics.latency, s.space)
	s.done.Go(s.commitLoop)
	s.done.Go(s.watch)
	return s, nil
}

func (s *Store) openDB() error {
	cache := pebble.NewCache(16 << 20)
	defer cache.Unref()
	disk := s.cfg.fs
	if disk == nil {
		disk = vfs.Default
	}
	opts := &pebble.Options{
		FS:                          vfs.OnDiskFull(disk, s.space.release),
		Cache:                       cache,
		MemTableSize:                uint64(s.cfg.MemTableBytes),
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       4,
		L0StopWritesThreshold:       24,
		BytesPerSync:                1 << 20,
		FormatMajorVersion:          pebble.FormatNewest,
		Logger:                      pebbleLog{s.log},
		CompactionConcurrencyRange:  func() (int, int) { return 1, max(1, runtime.GOMAXPROCS(0)/2) },
	}
	db, err := pebble.Open(filepath.Join(s.cfg.Dir, "store"), opts)
	if err != nil {
		return fmt.Errorf("%s: %w", s.cfg.Dir, err)
	}
	s.db = db
	return s.checkFormat()
}

// checkFormat writes the version of the stored form to a new store and refuses
// one that a later program wrote.
func (s *Store) checkFormat() error {
	v, closer, err := s.db.Get(formatKey)
	switch {
	case errors.Is(err, pebble.ErrNotFound):
		return s.db.Set(formatKey, []byte(formatVersion), pebble.Sync)
	case err != nil:
		return errors.Join(err, s.db.Close())
	}
	found := string(v)
	if err := closer.Close(); err != nil || found != formatVersion {
		return errors.Join(fmt.Errorf("%s: format %s is not known to this version", s.cfg.Dir, found), err, s.db.Close())
	}
	return nil
}

// pebbleLog hands the words of Pebble to the log of the process. What Pebble
// calls fatal ends the process: nothing that was acknowledged is lost by that,
// and a supervisor starts it again.
type pebbleLog struct{ log zerolog.Logger }

// Infof implements pebble.Logger.
func (l pebbleLog) Infof(format string, args ...any) { l.log.Debug().Msgf(format, args...) }

// Errorf implements pebble.Logger.
func (l pebbleLog) Errorf(format string, args ...any) { l.log.Error().Msgf(format, args...) }

// Fatalf implements pebble.Logger.
func (l pebbleLog) Fatalf(format string, args ...any) { l.log.Fatal().Msgf(format, args...) }

// Ready implements the readiness probe: storage answers unless a commit hangs.
func (s *Store) Ready(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hanging {
		return bsf.ErrUnavailable
	}
	return nil
}

// Close waits for the changes that were accepted and closes the store.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	close(s.stop)
	s.done.Wait()
	return s.db.Close()
}

func bindingKey(dst []byte, id bsf.ID) []byte { return append(append(dst, spaceBinding), id[:]...) }

func documentKey(dst []byte, kind bsf.Kind, id bsf.ID) []byte {
	return append(append(dst, spaceDocument, byte(kind)), id[:]...)
}

func eventKey(dst []byte, id bsf.ID) []byte { return append(append(dst, spaceEvent), id[:]...) }

func decodeEvent(v []byte) (*bsf.Event, error) {
	e := new(bsf.Event)
	return e, json.Unmarshal(v, e)
}
