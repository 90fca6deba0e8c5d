package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"bsfd/bsf"
)

// guards is how many rows the table of guards may get: keys are hashed, so
// that it does not grow with the bindings.
const guards = 4096

// takeTurns makes transactions with a key in common run one after the other.
func takeTurns(ctx context.Context, tx pgx.Tx, keys []bsf.Key) error {
	if len(keys) == 0 {
		return nil
	}
	var names []string
	for _, k := range keys {
		h := fnv.New32a()
		fmt.Fprintf(h, "%d %s %x %s", k.Kind, k.Prefix, k.Mac, k.Supi)
		names = append(names, fmt.Sprintf("%04d", h.Sum32()%guards))
	}
	slices.Sort(names)
	_, err := tx.Exec(ctx, `INSERT INTO guard (key) SELECT unnest($1::text[]) ON CONFLICT (key) DO UPDATE SET n = (guard.n + 1) % 1000`,
		slices.Compact(names))
	return err
}

// createAlone creates a binding in a transaction of its own.
func (s *Store) createAlone(ctx context.Context, w *write) (bsf.Outcome, error) {
	var out bsf.Outcome
	err := s.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		out = bsf.Outcome{Record: w.record}
		keys := w.rules.Keys(w.record, nil)
		if err := takeTurns(ctx, tx, keys); err != nil {
			return err
		}
		rivals, err := findAll(ctx, tx, keys)
		if err != nil {
			return err
		}
		out.Verdict = w.rules.Decide(w.record, rivals)
		if out.Duplicate != nil || out.Conflict != nil {
			return nil
		}
		before, err := countSlice(ctx, tx, w.record)
		if err != nil {
			return err
		}
		if err := removeAll(ctx, tx, out.Remove); err != nil {
			return err
		}
		if err := s.insertOne(ctx, tx, w.row); err != nil {
			return err
		}
		out.Queued, err = queueEvents(ctx, tx, out.Remove, w.record, before)
		return err
	})
	if err != nil {
		return bsf.Outcome{}, err
	}
	return out, nil
}

// findAll returns the records under the keys. Racing transactions that share
// one have finished.
func findAll(ctx context.Context, tx pgx.Tx, keys []bsf.Key) (found []*bsf.Record, err error) {
	for _, k := range keys {
		sql, args := queryOf(k)
		rows, err := tx.Query(ctx, sql, args...)
		if err != nil {
			return nil, err
		}
		records, err := collectRecords(rows)
		if err != nil {
			return nil, err
		}
		for _, r := range records {
			if !slices.ContainsFunc(found, func(f *bsf.Record) bool { return f.ID == r.ID }) {
				found = append(found, r)
			}
		}
	}
	return found, nil
}

func removeAll(ctx context.Context, tx pgx.Tx, removals []bsf.Removal) error {
	for _, x := range removals {
		if err := removeOne(ctx, tx, x.Record.ID); err != nil {
			return err
		}
	}
	return nil
}

// errMoved is the error when a row went between the statement that read it and
// the one that was to remove it. The transaction runs again.
var errMoved = errors.New("another transaction removed the binding")

func removeOne(ctx context.Context, tx pgx.Tx, id bsf.ID) error {
	if _, err := tx.Exec(ctx, "DELETE FROM binding_route WHERE binding_id = $1", [16]byte(id)); err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, "DELETE FROM pcf_binding WHERE id = $1", [16]byte(id))
	if err == nil && tag.RowsAffected() == 0 {
		return errMoved
	}
	return err
}

// insertOne stores a row with its routes.
func (s *Store) insertOne(ctx context.Context, tx pgx.Tx, x *row) error {
	_, err := tx.Exec(ctx, `INSERT INTO pcf_binding
		(id, created, audited, attempts, supi, ipv4, ip_domain, ipv6, mac, dnn, snssai, dup, pcf_id, pcf_set_id, routed, document)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`,
		[16]byte(x.id), x.created, x.audited, x.attempts, x.supi, x.ipv4, x.ipDomain, x.ipv6, x.mac,
		x.dnn, x.snssai, x.dup, x.pcfID, x.pcfSetID, len(x.routes) > 0, x.document)
	if err != nil {
		return err
	}
	for _, r := range x.routes {
		if _, err := tx.Exec(ctx, "INSERT INTO prefix_length (family, len) VALUES ($1, $2) ON CONFLICT DO NOTHING",
			r.family, len(r.bits)); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "INSERT INTO binding_route (family, bits, binding_id) VALUES ($1, $2, $3)",
			r.family, r.bits, [16]byte(x.id)); err != nil {
			return err
		}
	}
	return nil
}

// selectForUpdate returns the record of an id, locked until the transaction
// ends.
func selectForUpdate(ctx context.Context, tx pgx.Tx, id bsf.ID) (*bsf.Record, error) {
	var document string
	var audited time.Time
	var attempts int16
	err := tx.QueryRow(ctx, "SELECT "+columns+" FROM pcf_binding b WHERE b.id = $1 FOR UPDATE", [16]byte(id)).
		Scan(&document, &audited, &attempts)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, bsf.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return recordOf(document, audited, attempts)
}

// deleteAlone removes a binding in a transaction of its own.
func (s *Store) deleteAlone(ctx context.Context, id bsf.ID) (bsf.Outcome, error) {
	var out bsf.Outcome
	err := s.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		out = bsf.Outcome{}
		r, err := selectForUpdate(ctx, tx, id)
		if err != nil {
			return err
		}
		out.Record = r
		if err := removeOne(ctx, tx, id); err != nil {
			return err
		}
		out.Queued, err = queueEvents(ctx, tx, []bsf.Removal{{Record: r, Reason: bsf.ReasonDeregistered}}, nil, 0)
		return err
	})
	if err != nil {
		return bsf.Outcome{}, err
	}
	return out, nil
}

// Update implements bsf.BindingStore.
func (s *Store) Update(ctx context.Context, id bsf.ID, rules bsf.Rules, change func(bsf.Record) (*bsf.Record, error)) (bsf.Outcome, error) {
	var out bsf.Outcome
	var refused error
	err := s.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		out, refused = bsf.Outcome{}, nil
		old, err := selectForUpdate(ctx, tx, id)
		if err != nil {
			return err
		}
		fresh, err := change(*old)
		if err != nil {
			refused = err
			return nil
		}
		out.Record = fresh
		keys := rules.Keys(fresh, nil)
		if err := takeTurns(ctx, tx, keys); err != nil {
			return err
		}
		if rules.SameAddress == bsf.Supersede {
			rivals, err := findAll(ctx, tx, keys)
			if err != nil {
				return err
			}
			out.Remove = rules.Decide(fresh, rivals).Remove
		}
		if err := removeAll(ctx, tx, append(out.Remove, bsf.Removal{Record: old})); err != nil {
			return err
		}
		x, err := rowOf(fresh, rules.SameAddress)
		if err != nil {
			return err
		}
		if err := s.insertOne(ctx, tx, x); err != nil {
			return err
		}
		out.Queued, err = queueEvents(ctx, tx, out.Remove, nil, 0)
		return err
	})
	if err == nil {
		err = refused
	}
	if err != nil {
		return bsf.Outcome{}, err
	}
	return out, nil
}

// Touch implements bsf.BindingPager.
func (s *Store) Touch(ctx context.Context, id bsf.ID, audited time.Time, attempts uint8) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	tag, err := s.pool.Exec(ctx, "UPDATE pcf_binding SET audited = $2, attempts = $3 WHERE id = $1",
		[16]byte(id), audited.Truncate(time.Microsecond), int16(attempts))
	switch {
	case err != nil:
		return s.failure(err)
	case tag.RowsAffected() == 0:
		return bsf.ErrNotFound
	}
	return nil
}

// countSlice counts the bindings of the subscriber for the DNN and S-NSSAI.
func countSlice(ctx context.Context, tx pgx.Tx, r *bsf.Record) (n int, err error) {
	b := &r.Binding
	err = tx.QueryRow(ctx, "SELECT count(*) FROM pcf_binding WHERE supi = $1 AND dnn = $2 AND snssai = $3",
		string(b.Supi), b.Dnn.Key(), b.Snssai.Key()).Scan(&n)
	return n, err
}

// queueEvents stores the events of a change for subscribers who are there. It
// runs after the change; before is how many bindings there were for the slice
// of put.
func queueEvents(ctx context.Context, tx pgx.Tx, removals []bsf.Removal, put *bsf.Record, before int) (queued bool, err error) {
	for _, x := range removals {
		left, err := countSlice(ctx, tx, x.Record)
		if err != nil {
			return false, err
		}
		q, err := queueEvent(ctx, tx, bsf.BindingEvent(&x.Record.Binding, true, left))
		if err != nil {
			return false, err
		}
		queued = queued || q
	}
	if put != nil {
		q, err := queueEvent(ctx, tx, bsf.BindingEvent(&put.Binding, false, before+1))
		if err != nil {
			return false, err
		}
		queued = queued || q
	}
	return queued, nil
}

// queueEvent stores an event when somebody has subscribed to its SUPI.
func queueEvent(ctx context.Context, tx pgx.Tx, e *bsf.Event) (bool, error) {
	if e == nil || e.Supi == "" {
		return false, nil
	}
	body, err := json.Marshal(e)
	if err != nil {
		return false, err
	}
	tag, err := tx.Exec(ctx, `INSERT INTO event (id, claimed_until, supi, body)
		SELECT $1, to_timestamp(0), $2, $3 WHERE EXISTS (SELECT 1 FROM document WHERE kind = $4 AND key1 = $5)`,
		[16]byte(e.ID), string(e.Supi), string(body), int16(bsf.KindSubscription), bsf.SubscriptionKey(e.Supi))
	return tag.RowsAffected() > 0, err
}
