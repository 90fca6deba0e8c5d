package postgres

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"bsfd/bsf"
)

// CreateDocument implements bsf.DocumentStore.
func (s *Store) CreateDocument(ctx context.Context, d *bsf.Document, replace []bsf.ID, ev *bsf.Event) (holder *bsf.Document, queued bool, err error) {
	err = s.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		holder, queued = nil, false
		if d.Unique != "" {
			held, err := documents(ctx, tx, "kind = $1 AND uniq = $2", int16(d.Kind), d.Unique)
			if err != nil {
				return err
			}
			if len(held) > 0 {
				holder = &held[0]
				return nil
			}
		}
		for _, id := range replace {
			if _, err := tx.Exec(ctx, "DELETE FROM document WHERE kind = $1 AND id = $2", int16(d.Kind), [16]byte(id)); err != nil {
				return err
			}
		}
		key1, key2 := keysOf(d)
		if _, err := tx.Exec(ctx, "INSERT INTO document (kind, id, key1, key2, uniq, body) VALUES ($1, $2, $3, $4, $5, $6)",
			int16(d.Kind), [16]byte(d.ID), key1, key2, optional(d.Unique), string(d.Body)); err != nil {
			return err
		}
		queued, err = queueEvent(ctx, tx, ev)
		return err
	})
	return holder, queued, err
}

func keysOf(d *bsf.Document) (key1, key2 *string) {
	if len(d.Keys) > 0 {
		key1 = &d.Keys[0]
	}
	if len(d.Keys) > 1 {
		key2 = &d.Keys[1]
	}
	return key1, key2
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// documents returns the documents for which the condition holds, oldest first.
func documents(ctx context.Context, q querier, condition string, args ...any) ([]bsf.Document, error) {
	rows, err := q.Query(ctx, "SELECT kind, id, key1, key2, uniq, body FROM document WHERE "+condition, args...)
	if err != nil {
		return nil, err
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (d bsf.Document, err error) {
		var kind int16
		var key1, key2, unique *string
		err = row.Scan(&kind, (*[16]byte)(&d.ID), &key1, &key2, &unique, &d.Body)
		d.Kind = bsf.Kind(kind)
		for _, k := range [...]*string{key1, key2} {
			if k != nil {
				d.Keys = append(d.Keys, *k)
			}
		}
		if unique != nil {
			d.Unique = *unique
		}
		return d, err
	})
	slices.SortFunc(found, func(a, b bsf.Document) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return found, err
}

// lockDocument returns a document, locked until the transaction ends.
func lockDocument(ctx context.Context, tx pgx.Tx, kind bsf.Kind, id bsf.ID) (bsf.Document, error) {
	found, err := documents(ctx, tx, "kind = $1 AND id = $2 FOR UPDATE", int16(kind), [16]byte(id))
	if err == nil && len(found) == 0 {
		err = bsf.ErrNotFound
	}
	if err != nil {
		return bsf.Document{}, err
	}
	return found[0], nil
}

// UpdateDocument implements bsf.DocumentStore.
func (s *Store) UpdateDocument(ctx context.Context, kind bsf.Kind, id bsf.ID, change func(bsf.Document) (*bsf.Document, error)) error {
	var refused error
	err := s.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		refused = nil
		old, err := lockDocument(ctx, tx, kind, id)
		if err != nil {
			return err
		}
		fresh, err := change(old)
		if err != nil {
			refused = err
			return nil
		}
		key1, key2 := keysOf(fresh)
		_, err = tx.Exec(ctx, "UPDATE document SET key1 = $3, key2 = $4, uniq = $5, body = $6 WHERE kind = $1 AND id = $2",
			int16(kind), [16]byte(id), key1, key2, optional(fresh.Unique), string(fresh.Body))
		return err
	})
	return errors.Join(err, refused)
}

// DeleteDocument implements bsf.DocumentStore.
func (s *Store) DeleteDocument(ctx context.Context, kind bsf.Kind, id bsf.ID, ev func(bsf.Document) *bsf.Event) (queued bool, err error) {
	err = s.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		old, err := lockDocument(ctx, tx, kind, id)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "DELETE FROM document WHERE kind = $1 AND id = $2", int16(kind), [16]byte(id)); err != nil {
			return err
		}
		queued, err = queueEvent(ctx, tx, ev(old))
		return err
	})
	return queued, err
}

// FindDocuments implements bsf.DocumentStore.
func (s *Store) FindDocuments(ctx context.Context, kind bsf.Kind, key string) ([]bsf.Document, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	found, err := documents(ctx, s.pool, "kind = $1 AND (key1 = $2 OR key2 = $2)", int16(kind), key)
	if err != nil {
		return nil, s.failure(err)
	}
	return found, nil
}
