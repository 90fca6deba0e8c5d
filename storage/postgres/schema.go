package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// Migration is one step of the schema. Steps only go forward.
type Migration struct {
	Version int
	Name    string
	SQL     string
}

// migrations lists the steps in order.
func migrations() ([]Migration, error) {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var list []Migration
	for _, name := range names {
		sql, err := migrationFiles.ReadFile(name)
		if err != nil {
			return nil, err
		}
		number, _, _ := strings.Cut(path.Base(name), "_")
		version, err := strconv.Atoi(number)
		if err != nil {
			return nil, fmt.Errorf("%s: no version", name)
		}
		list = append(list, Migration{version, path.Base(name), string(sql)})
	}
	return list, nil
}

// ErrSchema is the error for a schema that this version cannot use.
var ErrSchema = errors.New("schema")

func prepareSchema(ctx context.Context, pool *pgxpool.Pool, cfg Config) error {
	pending, err := pendingMigrations(ctx, pool)
	if err != nil {
		return err
	}
	if len(pending) == 0 {
		return nil
	}
	if !cfg.Migrate {
		return fmt.Errorf("%w is %d steps behind: run bsfd migrate, or set storage.postgres.migrate", ErrSchema, len(pending))
	}
	return apply(ctx, pool, pending)
}

// schemaVersion is the version of the schema, 0 for an empty database.
func schemaVersion(ctx context.Context, pool *pgxpool.Pool) (version int, err error) {
	var exists bool
	err = pool.QueryRow(ctx, `SELECT count(*) > 0 FROM information_schema.tables
		WHERE table_name = 'schema_migration' AND table_schema = current_schema()`).Scan(&exists)
	if err != nil || !exists {
		return 0, err
	}
	err = pool.QueryRow(ctx, "SELECT coalesce(max(version), 0) FROM schema_migration").Scan(&version)
	return version, err
}

func pendingMigrations(ctx context.Context, pool *pgxpool.Pool) ([]Migration, error) {
	all, err := migrations()
	if err != nil {
		return nil, err
	}
	version, err := schemaVersion(ctx, pool)
	if err != nil {
		return nil, err
	}
	if latest := all[len(all)-1].Version; version > latest {
		return nil, fmt.Errorf("%w version %d is newer than this program (%d)", ErrSchema, version, latest)
	}
	return slices.DeleteFunc(all, func(m Migration) bool { return m.Version <= version }), nil
}

// apply runs the steps, each in a transaction. Its first statement takes the
// version, so that of two instances that start together one waits and then
// finds the step done.
func apply(ctx context.Context, pool *pgxpool.Pool, pending []Migration) error {
	_, err := pool.Exec(ctx, `CREATE TABLE IF NOT EXISTS schema_migration (
		version integer PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now())`)
	if err != nil && !existsAlready(err) {
		return fmt.Errorf("%w: %w", ErrSchema, err)
	}
	for _, m := range pending {
		err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "INSERT INTO schema_migration (version) VALUES ($1)", m.Version); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, m.SQL)
			return err
		})
		if code(err) == codeUnique {
			continue
		}
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrSchema, m.Name, err)
		}
	}
	return nil
}

// existsAlready reports whether another instance made the same thing at the
// same time; "IF NOT EXISTS" does not wait for it.
func existsAlready(err error) bool {
	const duplicateTable, duplicateObject = "42P07", "42710"
	switch code(err) {
	case codeUnique, duplicateTable, duplicateObject:
		return true
	}
	return false
}

// WriteSteps lists migrations, with their statements when they are only
// planned.
func WriteSteps(w io.Writer, steps []Migration, planned bool) (err error) {
	for _, m := range steps {
		text := ""
		if planned {
			text = m.SQL + "\n"
		}
		_, failed := fmt.Fprintf(w, "%04d %s\n%s", m.Version, m.Name, text)
		err = errors.Join(err, failed)
	}
	if len(steps) == 0 {
		_, err = fmt.Fprintln(w, "the schema is up to date")
	}
	return err
}

// Migrate brings the schema up to date and returns the steps that were missing.
// With planOnly nothing changes.
func Migrate(ctx context.Context, cfg Config, planOnly bool) ([]Migration, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	pool, err := connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	pending, err := pendingMigrations(ctx, pool)
	if err != nil || planOnly {
		return pending, err
	}
	return pending, apply(ctx, pool, pending)
}

// Finding is one result of Inspect.
type Finding struct {
	What string
	Err  error
}

// tables are what the engine reads and writes.
var tables = [...]string{"pcf_binding", "binding_route", "prefix_length", "document", "event", "guard"}

// Inspect checks the database before a start: reachable, schema, tables and
// rights.
func Inspect(ctx context.Context, cfg Config) []Finding {
	pool, err := connect(ctx, cfg)
	if err != nil {
		return []Finding{{"database reachable", err}}
	}
	defer pool.Close()
	list := []Finding{{"database reachable", nil}}
	pending, err := pendingMigrations(ctx, pool)
	if err == nil && len(pending) > 0 && !cfg.Migrate {
		err = fmt.Errorf("%d steps behind: run bsfd migrate", len(pending))
	}
	list = append(list, Finding{"schema", err})
	if err != nil {
		return list
	}
	if len(pending) > 0 {
		return append(list, Finding{"right to create tables", mayCreate(ctx, pool)})
	}
	for _, t := range tables {
		var ok bool
		err := pool.QueryRow(ctx, "SELECT has_table_privilege($1, 'SELECT') AND has_table_privilege($1, 'INSERT') AND "+
			"has_table_privilege($1, 'UPDATE') AND has_table_privilege($1, 'DELETE')", t).Scan(&ok)
		if err == nil && !ok {
			err = errors.New("SELECT, INSERT, UPDATE and DELETE are needed")
		}
		list = append(list, Finding{"rights on table " + t, err})
	}
	return list
}

func mayCreate(ctx context.Context, pool *pgxpool.Pool) error {
	var ok bool
	err := pool.QueryRow(ctx, "SELECT has_schema_privilege(current_schema(), 'CREATE')").Scan(&ok)
	if err == nil && !ok {
		err = errors.New("the user may not create tables")
	}
	return err
}
