package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"bsfd/bsf"
)

// Config configures the engine.
type Config struct {
	// DSN names the database, as a URL or key=value pairs. Several hosts with
	// target_session_attrs=read-write survive a failover.
	DSN string `koanf:"dsn" usage:"database of the postgres engine, as a URL or key=value pairs"`
	// MaxConns bounds the connections, at least 4.
	MaxConns int `koanf:"maxConns" usage:"connections of the postgres engine"`
	// Migrate brings the schema up to date at start; otherwise a schema that
	// is not is an error.
	Migrate bool `koanf:"migrate" usage:"upgrade the schema at start"`
	// Timeout bounds one round trip.
	Timeout time.Duration `koanf:"-"`
}

// Check reports the first wrong setting with its key.
func (c Config) Check() error {
	if c.DSN == "" {
		return errors.New("postgres.dsn: required")
	}
	if _, err := pgxpool.ParseConfig(c.DSN); err != nil {
		// The library puts the password into its text.
		return errors.New("postgres.dsn: cannot be read")
	}
	if c.MaxConns < 4 || c.MaxConns > 1000 {
		return errors.New("postgres.maxConns: must be 4 to 1000")
	}
	if c.Timeout < 100*time.Millisecond || c.Timeout > time.Minute {
		return errors.New("timeout: must be 100ms to 1m")
	}
	return nil
}

// Store is the PostgreSQL engine. It implements the stores of package bsf.
type Store struct {
	cfg     Config
	pool    *pgxpool.Pool
	log     zerolog.Logger
	writes  *gatherer[*write]
	reads   *gatherer[*read]
	claims  claims
	latency *prometheus.HistogramVec
	stop    context.CancelFunc
	workers sync.WaitGroup
}

const (
	writers  = 2
	readers  = 2
	maxBatch = 256
)

// Open connects, checks or upgrades the schema and starts the workers.
func Open(ctx context.Context, cfg Config, log zerolog.Logger, reg prometheus.Registerer) (*Store, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	pool, err := connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := prepareSchema(ctx, pool, cfg); err != nil {
		pool.Close()
		return nil, err
	}
	s := &Store{
		cfg: cfg, pool: pool, log: log.With().Str("component", "storage").Logger(),
		claims: newClaims(),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "ocbsf_db_latency", Help: "Time of a round trip to the database, in seconds.",
			Buckets: prometheus.ExponentialBuckets(.0001, 2, 16),
		}, []string{"db_operation"}),
	}
	reg.MustRegister(s.latency)
	s.writes = newGatherer(maxBatch, s.writeBatch)
	s.reads = newGatherer(maxBatch, s.readBatch)
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	for range writers {
		s.workers.Go(func() { s.writes.run(run) })
	}
	for range readers {
		s.workers.Go(func() { s.reads.run(run) })
	}
	s.workers.Go(func() { s.renewClaims(run) })
	return s, nil
}

func connect(ctx context.Context, cfg Config) (*pgxpool.Pool, error) {
	pc, err := pgxpool.ParseConfig(cfg.DSN)
	if err != nil {
		return nil, errors.New("storage.postgres.dsn: cannot be read")
	}
	pc.MaxConns = int32(cfg.MaxConns)
	pc.MaxConnLifetimeJitter = time.Minute
	pc.HealthCheckPeriod = 10 * time.Second
	if pc.ConnConfig.ConnectTimeout == 0 {
		pc.ConnConfig.ConnectTimeout = min(cfg.Timeout, 2*time.Second)
	}
	// The statements look rows up by index, whatever the statistics of a table
	// that was small a moment ago say. Databases without these settings ignore
	// the request.
	pc.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		for _, setting := range [...]string{"enable_seqscan", "enable_hashjoin", "enable_mergejoin"} {
			if _, err := c.Exec(ctx, "SET "+setting+" = off"); err != nil && c.IsClosed() {
				return err
			}
		}
		return nil
	}
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, err
	}
	ping, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()
	if err := pool.Ping(ping); err != nil {
		pool.Close()
		return nil, fmt.Errorf("storage.postgres.dsn: %w", err)
	}
	return pool, nil
}

// Close finishes what waits, gives back the events that were not delivered and
// closes the connections.
func (s *Store) Close() error {
	s.stop()
	s.workers.Wait()
	if err := s.releaseClaims(context.Background()); err != nil {
		s.log.Warn().Err(err).Msg("other instances get the events that were not delivered when their claims end")
	}
	s.pool.Close()
	return nil
}

// Ready implements the readiness probe.
func (s *Store) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	if err := s.pool.Ping(ctx); err != nil {
		return bsf.ErrUnavailable
	}
	return nil
}

// SQLSTATE codes that decide what to do with an error.
const (
	codeUnique       = "23505"
	codeSerialize    = "40001"
	codeDeadlock     = "40P01"
	codeReadOnly     = "25006"
	codeDiskFull     = "53100"
	codeShutdown     = "57P01"
	codeCrash        = "57P02"
	codeCannotServe  = "57P03"
	codeTooManyConns = "53300"
)

func code(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// racing reports whether the transaction lost against another and may run
// again.
func racing(err error) bool {
	switch code(err) {
	case codeUnique, codeSerialize, codeDeadlock:
		return true
	}
	return errors.Is(err, errMoved)
}

// failure maps an error of the database to those of package bsf. Connections
// to a server that can no longer write are given up.
func (s *Store) failure(err error) error {
	switch code(err) {
	case codeReadOnly, codeShutdown, codeCrash, codeCannotServe:
		s.pool.Reset()
		return bsf.ErrUnavailable
	case codeTooManyConns:
		return bsf.ErrUnavailable
	case codeDiskFull:
		return bsf.ErrFull
	case codeSerialize, codeDeadlock, codeUnique:
		return bsf.ErrUnavailable
	case "":
	default:
		return err
	}
	var network net.Error
	var dial *pgconn.ConnectError
	switch {
	case err == nil, errors.Is(err, bsf.ErrNotFound):
		return err
	case errors.As(err, &dial), pgconn.SafeToRetry(err), errors.Is(err, errMoved):
		return bsf.ErrUnavailable
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network):
		return bsf.ErrTimeout
	case isDomain(err):
		return err
	}
	// A connection that broke while the answer was awaited: nobody knows.
	return fmt.Errorf("%w: %v", bsf.ErrTimeout, err)
}

// isDomain reports whether err came from a function of the caller's.
func isDomain(err error) bool {
	var v *bsf.Violation
	return errors.As(err, &v) || errors.Is(err, bsf.ErrModificationNotAllowed) || errors.Is(err, bsf.ErrExpired) ||
		errors.Is(err, bsf.ErrUnavailable) || errors.Is(err, bsf.ErrTimeout) || errors.Is(err, bsf.ErrFull)
}

// transact runs do in a transaction, again when it lost against another.
func (s *Store) transact(ctx context.Context, do func(context.Context, pgx.Tx) error) error {
	const attempts = 8
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Timeout)
	defer cancel()
	start := time.Now()
	defer func() { s.latency.WithLabelValues("transaction").Observe(time.Since(start).Seconds()) }()
	var err error
	for range attempts {
		if err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return do(ctx, tx) }); !racing(err) {
			break
		}
	}
	if err == nil || isDomain(err) {
		return err
	}
	return s.failure(err)
}
