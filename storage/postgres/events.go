package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"bsfd/bsf"
)

// claims are the events that this process works on. Claims that are not kept
// fresh end, and another process takes the events over.
type claims struct {
	mu   sync.Mutex
	held map[bsf.ID]struct{}
	// owner is the name of the process in claims. Events that were claimed
	// under another name and are not held are those of another process.
	owner bsf.ID
}

func newClaims() claims { return claims{held: make(map[bsf.ID]struct{}), owner: bsf.NewID()} }

const (
	claimLease = 15 * time.Second
	claimRenew = 5 * time.Second
)

// claimEvents leaves out events of a subscriber while another process works on
// an older one: only who has all of them can deliver them in order.
const claimEvents = `UPDATE event SET claimed_until = now() + $2 * interval '1 second', claimed_by = $3
	WHERE id IN (SELECT id FROM event e WHERE claimed_until < now() AND NOT EXISTS (
			SELECT 1 FROM event older WHERE older.supi = e.supi AND older.supi <> '' AND older.id < e.id
				AND older.claimed_until >= now() AND older.claimed_by IS DISTINCT FROM $3)
		ORDER BY id LIMIT $1)
	RETURNING body`

// Claim implements bsf.EventQueue.
func (s *Store) Claim(ctx context.Context, limit int) ([]*bsf.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	owner, _ := s.claims.ids()
	var found []*bsf.Event
	var b pgx.Batch
	// The next statement must see what others have claimed before.
	b.Queue("SELECT n FROM guard WHERE key = 'claim' FOR UPDATE")
	b.Queue(claimEvents, limit, claimLease.Seconds(), owner).Query(func(rows pgx.Rows) (err error) {
		found, err = pgx.CollectRows(rows, scanEvent)
		return err
	})
	err := s.pool.SendBatch(ctx, &b).Close()
	s.claims.mu.Lock()
	defer s.claims.mu.Unlock()
	if err != nil {
		// Events may be claimed of which nobody here knows. Under another name
		// they are those of another process, whose claim ends.
		s.claims.owner = bsf.NewID()
		return nil, s.failure(err)
	}
	slices.SortFunc(found, func(a, b *bsf.Event) int { return slices.Compare(a.ID[:], b.ID[:]) })
	for _, e := range found {
		s.claims.held[e.ID] = struct{}{}
	}
	return found, nil
}

func scanEvent(row pgx.CollectableRow) (*bsf.Event, error) {
	var body []byte
	if err := row.Scan(&body); err != nil {
		return nil, err
	}
	e := new(bsf.Event)
	if err := json.Unmarshal(body, e); err != nil {
		return nil, fmt.Errorf("stored event: %w", err)
	}
	return e, nil
}

// Finish implements bsf.EventQueue.
func (s *Store) Finish(ctx context.Context, id bsf.ID) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	if _, err := s.pool.Exec(ctx, "DELETE FROM event WHERE id = $1", [16]byte(id)); err != nil {
		return s.failure(err)
	}
	s.claims.mu.Lock()
	defer s.claims.mu.Unlock()
	delete(s.claims.held, id)
	return nil
}

// renewClaims keeps the claims of this process fresh until ctx ends.
func (s *Store) renewClaims(ctx context.Context) {
	t := time.NewTicker(claimRenew)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if err := s.renew(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn().Err(err).Msg("claims of events not renewed")
		}
	}
}

// ids are the events that this process works on.
func (c *claims) ids() (owner [16]byte, ids [][16]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.held {
		ids = append(ids, id)
	}
	return c.owner, ids
}

func (s *Store) renew(ctx context.Context) error {
	return s.onClaims(ctx, "UPDATE event SET claimed_until = now() + $3 * interval '1 second', claimed_by = $2 WHERE id = ANY($1)", claimLease.Seconds())
}

// releaseClaims lets other processes have the events at once.
func (s *Store) releaseClaims(ctx context.Context) error {
	return s.onClaims(ctx, "UPDATE event SET claimed_until = to_timestamp(0) WHERE id = ANY($1) AND claimed_by = $2")
}

// onClaims runs a statement on the events that this process works on, when
// there are any: $1 are their ids, $2 is the owner, more follow.
func (s *Store) onClaims(ctx context.Context, sql string, more ...any) error {
	owner, ids := s.claims.ids()
	if len(ids) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	_, err := s.pool.Exec(ctx, sql, append([]any{ids, owner}, more...)...)
	return err
}
