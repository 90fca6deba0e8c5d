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
}

const (
	claimLease = 15 * time.Second
	claimRenew = 5 * time.Second
)

// Claim implements bsf.EventQueue.
func (s *Store) Claim(ctx context.Context, limit int) ([]*bsf.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	rows, err := s.pool.Query(ctx, `UPDATE event SET claimed_until = now() + $2 * interval '1 second'
		WHERE claimed_until < now() AND id IN (SELECT id FROM event WHERE claimed_until < now() ORDER BY id LIMIT $1)
		RETURNING body`, limit, claimLease.Seconds())
	if err != nil {
		return nil, s.failure(err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (*bsf.Event, error) {
		var body []byte
		if err := row.Scan(&body); err != nil {
			return nil, err
		}
		e := new(bsf.Event)
		if err := json.Unmarshal(body, e); err != nil {
			return nil, fmt.Errorf("stored event: %w", err)
		}
		return e, nil
	})
	if err != nil {
		return nil, s.failure(err)
	}
	slices.SortFunc(found, func(a, b *bsf.Event) int { return slices.Compare(a.ID[:], b.ID[:]) })
	s.claims.mu.Lock()
	defer s.claims.mu.Unlock()
	for _, e := range found {
		s.claims.held[e.ID] = struct{}{}
	}
	return found, nil
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
		s.claims.mu.Lock()
		ids := make([][16]byte, 0, len(s.claims.held))
		for id := range s.claims.held {
			ids = append(ids, id)
		}
		s.claims.mu.Unlock()
		if len(ids) == 0 {
			continue
		}
		renew, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
		_, err := s.pool.Exec(renew, "UPDATE event SET claimed_until = now() + $2 * interval '1 second' WHERE id = ANY($1)",
			ids, claimLease.Seconds())
		cancel()
		if err != nil && ctx.Err() == nil {
			s.log.Warn().Err(err).Msg("claims of events not renewed")
		}
	}
}
