package postgres

import (
	"context"
	"net/netip"
	"time"

	"github.com/jackc/pgx/v5"

	"bsfd/bsf"
)

// read is a lookup that waits for a round trip.
type read struct {
	key   bsf.Key
	found []*bsf.Record
	err   error
	done  chan struct{}
}

// Find implements bsf.BindingStore.
func (s *Store) Find(_ context.Context, key bsf.Key) ([]*bsf.Record, error) {
	r := &read{key: key, done: make(chan struct{}, 1)}
	s.reads.put(r)
	<-r.done
	return r.found, r.err
}

const columns = "b.document, b.audited, b.attempts"

// byRoute finds what has the prefix $1 (all its bits) inside one of its routes
// of family $2.
const byRoute = ` UNION ALL SELECT ` + columns + ` FROM prefix_length l
	JOIN binding_route r ON r.family = l.family AND r.bits = left($2, l.len)
	JOIN pcf_binding b ON b.id = r.binding_id
	WHERE l.family = $3 AND l.len <= $4`

const (
	findIPv4 = `SELECT ` + columns + ` FROM pcf_binding b WHERE b.ipv4 = $1` + byRoute
	findIPv6 = `SELECT ` + columns + ` FROM pcf_binding b WHERE b.ipv6 = $1` + byRoute
	findMac  = `SELECT ` + columns + ` FROM pcf_binding b WHERE b.mac = $1` + byRoute
	findSupi = `SELECT ` + columns + ` FROM pcf_binding b WHERE b.supi = $1`
)

// queryOf is the statement that answers a key.
func queryOf(k bsf.Key) (sql string, args []any) {
	switch k.Kind {
	case bsf.KeySupi:
		return findSupi, []any{string(k.Supi)}
	case bsf.KeyMac:
		m := macText(k)
		return findMac, []any{m, m, familyMac, len(m)}
	}
	family, bits := prefixBits(k.Prefix)
	if family == familyIPv4 {
		own := ""
		if k.Prefix.Bits() == 32 {
			own = k.Prefix.Addr().String()
		}
		return findIPv4, []any{own, bits, family, len(bits)}
	}
	own := ""
	if k.Prefix.Bits() >= 64 {
		own = netip.PrefixFrom(k.Prefix.Addr(), 64).Masked().Addr().String()
	}
	return findIPv6, []any{own, bits, family, len(bits)}
}

// readBatch answers lookups with one round trip.
func (s *Store) readBatch(ctx context.Context, batch []*read) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	start := time.Now()
	defer func() { s.latency.WithLabelValues("select").Observe(time.Since(start).Seconds()) }()
	var b pgx.Batch
	for _, r := range batch {
		sql, args := queryOf(r.key)
		b.Queue(sql, args...)
	}
	results := s.pool.SendBatch(ctx, &b)
	for _, r := range batch {
		rows, err := results.Query()
		if err == nil {
			r.found, err = collectRecords(rows)
		}
		if err != nil {
			r.err = s.failure(err)
		}
	}
	_ = results.Close()
	for _, r := range batch {
		r.done <- struct{}{}
	}
}

// collectRecords reads records, each once.
func collectRecords(rows pgx.Rows) (found []*bsf.Record, err error) {
	defer rows.Close()
	for rows.Next() {
		var document string
		var audited time.Time
		var attempts int16
		if err := rows.Scan(&document, &audited, &attempts); err != nil {
			return nil, err
		}
		r, err := recordOf(document, audited, attempts)
		if err != nil {
			return nil, err
		}
		known := false
		for _, f := range found {
			known = known || f.ID == r.ID
		}
		if !known {
			found = append(found, r)
		}
	}
	return found, rows.Err()
}

// query runs one statement for records.
func (s *Store) query(ctx context.Context, sql string, args ...any) ([]*bsf.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	rows, err := s.pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, s.failure(err)
	}
	found, err := collectRecords(rows)
	if err != nil {
		return nil, s.failure(err)
	}
	return found, nil
}

// Stale implements bsf.BindingPager.
func (s *Store) Stale(ctx context.Context, before time.Time, after bsf.Cursor, limit int) ([]*bsf.Record, error) {
	return s.query(ctx, `SELECT `+columns+` FROM pcf_binding b
		WHERE b.audited < $1 AND (b.audited, b.id) > ($2, $3) ORDER BY b.audited, b.id LIMIT $4`,
		before, after.Audited, [16]byte(after.ID), limit)
}

// HeldBy implements bsf.BindingPager.
func (s *Store) HeldBy(ctx context.Context, h bsf.Holder, after bsf.Cursor, limit int) ([]*bsf.Record, error) {
	column, value := "pcf_id", h.PcfId
	if h.PcfId == "" {
		column, value = "pcf_set_id", h.PcfSetId
	}
	return s.query(ctx, `SELECT `+columns+` FROM pcf_binding b
		WHERE b.`+column+` = $1 AND (b.audited, b.id) > ($2, $3) ORDER BY b.audited, b.id LIMIT $4`,
		value, after.Audited, [16]byte(after.ID), limit)
}

// Count implements bsf.BindingPager.
func (s *Store) Count(ctx context.Context) (n int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	if err = s.pool.QueryRow(ctx, "SELECT count(*) FROM pcf_binding").Scan(&n); err != nil {
		return 0, s.failure(err)
	}
	return n, nil
}
