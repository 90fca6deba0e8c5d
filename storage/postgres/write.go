package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"bsfd/bsf"
)

// write is a plain registration or deregistration that waits for a round trip.
type write struct {
	record   *bsf.Record // nil for a deregistration
	row      *row
	rules    bsf.Rules
	id       bsf.ID
	queued   time.Time
	deadline time.Time
	out      bsf.Outcome
	err      error
	// alone is set when the set-based statements did not settle the write: it
	// goes through a transaction of its own.
	alone bool
	done  chan struct{}
}

// Create implements bsf.BindingStore.
func (s *Store) Create(ctx context.Context, r *bsf.Record, rules bsf.Rules) (bsf.Outcome, error) {
	x, err := rowOf(r, rules.SameAddress)
	if err != nil {
		return bsf.Outcome{}, err
	}
	w := &write{record: r, row: x, rules: rules, id: r.ID}
	if !rules.Simple(r) || len(x.routes) > 0 {
		return s.createAlone(ctx, w)
	}
	if s.gather(ctx, w); w.alone {
		return s.createAlone(ctx, w)
	}
	return w.out, w.err
}

// Delete implements bsf.BindingStore.
func (s *Store) Delete(ctx context.Context, id bsf.ID) (bsf.Outcome, error) {
	w := &write{id: id}
	if s.gather(ctx, w); w.alone {
		return s.deleteAlone(ctx, id)
	}
	return w.out, w.err
}

func (s *Store) gather(ctx context.Context, w *write) {
	w.done = make(chan struct{}, 1)
	w.queued = time.Now()
	if at, ok := ctx.Deadline(); ok {
		w.deadline = at
	}
	s.writes.put(w)
	<-w.done
}

// noSubscriber holds for a binding b that nobody wants to hear of.
const noSubscriber = `NOT EXISTS (SELECT 1 FROM document s WHERE s.kind = 3 AND s.key1 = 'supi:' || b.supi)`

// supersedeBy begins the statements that remove the rivals of registrations
// which insertAll will store.
const supersedeBy = `DELETE FROM pcf_binding b USING unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
	AS n (id, addr, ip_domain, dnn, snssai, supi)
	WHERE b.dnn = n.dnn AND b.snssai = n.snssai AND b.id <> n.id AND NOT b.routed AND ` + noSubscriber + `
	AND NOT EXISTS (SELECT 1 FROM document s WHERE s.kind = 3 AND s.key1 = 'supi:' || n.supi)`

const (
	supersedeIPv4 = supersedeBy + ` AND b.ipv4 = n.addr AND b.ip_domain = n.ip_domain RETURNING n.id, ` + columns
	supersedeIPv6 = supersedeBy + ` AND b.ipv6 = n.addr RETURNING n.id, ` + columns
	supersedeMac  = supersedeBy + ` AND b.mac = n.addr RETURNING n.id, ` + columns

	// insertAll stores the rows whose subscriber nobody watches and whose
	// addresses no binding has as a route.
	insertAll = `INSERT INTO pcf_binding (id, created, audited, supi, ipv4, ip_domain, ipv6, mac, dnn, snssai, dup, pcf_id, pcf_set_id, document)
		SELECT b.id, b.created, b.created, b.supi, b.ipv4, b.ip_domain, b.ipv6, b.mac, b.dnn, b.snssai, b.dup, b.pcf_id, b.pcf_set_id, b.document
		FROM unnest($1::uuid[], $2::timestamptz[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
			$9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::smallint[], $15::text[])
		AS b (id, created, supi, ipv4, ip_domain, ipv6, mac, dnn, snssai, dup, pcf_id, pcf_set_id, document, family, bits)
		WHERE ` + noSubscriber + `
		AND NOT EXISTS (SELECT 1 FROM binding_route r WHERE r.family = b.family AND r.bits = b.bits)
		RETURNING id`

	deleteAll = `DELETE FROM pcf_binding b WHERE b.id = ANY($1::uuid[]) AND NOT b.routed AND ` + noSubscriber + `
		RETURNING b.id, ` + columns
	deleteLeft = `SELECT b.id, ` + columns + ` FROM pcf_binding b WHERE b.id = ANY($1::uuid[])`
)

// writeBatch commits plain writes in one transaction and one round trip. When
// one of them makes it fail, each goes alone.
func (s *Store) writeBatch(ctx context.Context, batch []*write) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	start := time.Now()
	live, later := s.pickLive(batch, start)
	if len(live) > 0 {
		if err := s.commit(ctx, live); err != nil {
			for _, w := range live {
				w.out = bsf.Outcome{}
				if w.alone = racing(err); !w.alone {
					w.err = s.failure(err)
				}
			}
		}
		s.latency.WithLabelValues("write").Observe(time.Since(start).Seconds())
	}
	for _, w := range batch {
		if !slices.Contains(later, w) {
			w.done <- struct{}{}
		}
	}
	for _, w := range later {
		s.writes.put(w)
	}
}

// pickLive takes out what nobody waits for any more, and puts off registrations
// for an address that another of the batch registers.
func (s *Store) pickLive(batch []*write, now time.Time) (live, later []*write) {
	taken := make(map[string]bool)
	for _, w := range batch {
		switch {
		case !w.deadline.IsZero() && now.After(w.deadline):
			w.err = bsf.ErrExpired
			continue
		case now.Sub(w.queued) > s.cfg.Timeout:
			w.err = bsf.ErrUnavailable
			continue
		}
		slots := w.row.slots()
		if slices.ContainsFunc(slots, func(k string) bool { return taken[k] }) {
			later = append(later, w)
			continue
		}
		for _, k := range slots {
			taken[k] = true
		}
		live = append(live, w)
	}
	return live, later
}

// slots are the unique entries that a row takes.
func (x *row) slots() (list []string) {
	if x == nil || x.dup != "" {
		return nil
	}
	rest := "|" + x.dnn + "|" + x.snssai
	if x.ipv4 != nil {
		list = append(list, *x.ipv4+"|"+x.ipDomain+rest)
	}
	if x.ipv6 != nil {
		list = append(list, *x.ipv6+rest)
	}
	if x.mac != nil {
		list = append(list, *x.mac+rest)
	}
	return list
}

// commit sends the statements of a batch and reads their results.
func (s *Store) commit(ctx context.Context, live []*write) error {
	byID := make(map[bsf.ID]*write, len(live))
	var creates, deletes []*write
	for _, w := range live {
		byID[w.id] = w
		w.alone = true // until a statement returns it
		if w.record != nil {
			creates = append(creates, w)
		} else {
			deletes = append(deletes, w)
		}
	}
	// One order for all batches, so that two of them cannot wait for each other.
	slices.SortFunc(creates, func(a, b *write) int { return slices.Compare(a.row.slots(), b.row.slots()) })
	var b pgx.Batch
	queueSupersede(&b, creates, byID)
	if len(creates) > 0 {
		b.Queue(insertAll, insertArgs(creates)...).Query(func(rows pgx.Rows) error {
			return eachID(rows, func(id bsf.ID) {
				if w := byID[id]; w != nil {
					w.alone = false
					w.out.Record = w.record
				}
			})
		})
	}
	queueDeletes(&b, deletes, byID)
	return s.pool.SendBatch(ctx, &b).Close()
}

// queueDeletes adds the statements of deregistrations. Rows that are left
// afterwards need a transaction of their own; ids without a row are unknown.
func queueDeletes(b *pgx.Batch, deletes []*write, byID map[bsf.ID]*write) {
	if len(deletes) == 0 {
		return
	}
	ids := make([][16]byte, len(deletes))
	for i, w := range deletes {
		ids[i] = w.id
		w.alone, w.err = false, bsf.ErrNotFound
	}
	b.Queue(deleteAll, ids).Query(func(rows pgx.Rows) error {
		return eachRecord(rows, func(id bsf.ID, r *bsf.Record) {
			byID[id].out.Record, byID[id].err = r, nil
		})
	})
	b.Queue(deleteLeft, ids).Query(func(rows pgx.Rows) error {
		return eachRecord(rows, func(id bsf.ID, _ *bsf.Record) {
			byID[id].alone, byID[id].err = true, nil
		})
	})
}

// queueSupersede adds the statements that remove the rivals of registrations.
func queueSupersede(b *pgx.Batch, creates []*write, byID map[bsf.ID]*write) {
	for _, kind := range [...]struct {
		sql  string
		addr func(*row) *string
	}{
		{supersedeIPv4, func(x *row) *string { return x.ipv4 }},
		{supersedeIPv6, func(x *row) *string { return x.ipv6 }},
		{supersedeMac, func(x *row) *string { return x.mac }},
	} {
		var ids [][16]byte
		var addrs, domains, dnns, snssais []string
		var supis []*string
		for _, w := range creates {
			if a := kind.addr(w.row); a != nil && w.rules.SameAddress == bsf.Supersede {
				ids, addrs = append(ids, w.id), append(addrs, *a)
				supis = append(supis, w.row.supi)
				domains, dnns, snssais = append(domains, w.row.ipDomain), append(dnns, w.row.dnn), append(snssais, w.row.snssai)
			}
		}
		if len(ids) == 0 {
			continue
		}
		b.Queue(kind.sql, ids, addrs, domains, dnns, snssais, supis).Query(func(rows pgx.Rows) error {
			return eachRecord(rows, func(id bsf.ID, old *bsf.Record) {
				w := byID[id]
				w.out.Remove = append(w.out.Remove, bsf.Removal{Record: old, Reason: bsf.ReasonSuperseded})
			})
		})
	}
}

func insertArgs(creates []*write) []any {
	n := len(creates)
	ids, created := make([][16]byte, n), make([]time.Time, n)
	supi, ipv4, ipv6, mac := make([]*string, n), make([]*string, n), make([]*string, n), make([]*string, n)
	domain, dnn, snssai, dup := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	pcf, set, doc := make([]*string, n), make([]*string, n), make([]string, n)
	family, bits := make([]int16, n), make([]string, n)
	for i, w := range creates {
		x := w.row
		family[i], bits[i] = x.asRoute()
		ids[i], created[i], supi[i], ipv4[i], domain[i], ipv6[i], mac[i] = x.id, x.created, x.supi, x.ipv4, x.ipDomain, x.ipv6, x.mac
		dnn[i], snssai[i], dup[i], pcf[i], set[i], doc[i] = x.dnn, x.snssai, x.dup, x.pcfID, x.pcfSetID, x.document
	}
	return []any{ids, created, supi, ipv4, domain, ipv6, mac, dnn, snssai, dup, pcf, set, doc, family, bits}
}

func eachID(rows pgx.Rows, do func(bsf.ID)) error {
	defer rows.Close()
	for rows.Next() {
		var id bsf.ID
		if err := rows.Scan((*[16]byte)(&id)); err != nil {
			return err
		}
		do(id)
	}
	return rows.Err()
}

func eachRecord(rows pgx.Rows, do func(bsf.ID, *bsf.Record)) error {
	defer rows.Close()
	for rows.Next() {
		var id bsf.ID
		var document string
		var audited time.Time
		var attempts int16
		if err := rows.Scan((*[16]byte)(&id), &document, &audited, &attempts); err != nil {
			return err
		}
		r, err := recordOf(document, audited, attempts)
		if err != nil {
			return err
		}
		do(id, r)
	}
	return rows.Err()
}
