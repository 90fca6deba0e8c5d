package diameter

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"bsfd/bsf"
	"bsfd/diameter/rx"
)

// Trigger is a demand to disconnect the peers that are connected now, so that
// they spread over the instances again.
type Trigger struct {
	InvocationID     string    `json:"invocationId"`
	RequestTimestamp time.Time `json:"requestTimestamp"`
}

// Where triggers are in storage.
const (
	triggerKey = "diameterRepavingTrigger"
	// keptTriggers is how many triggers of the past are kept.
	keptTriggers = 100
	// repavingPoll is how often storage is asked, so that a trigger reaches
	// all instances that share it.
	repavingPoll = time.Second
)

// repaver carries out triggers, one after the other in the order in which they
// were given.
type repaver struct {
	g    *Gateway
	log  zerolog.Logger
	busy atomic.Bool
	// started is when the process did, less what clocks may differ.
	started time.Time
	seen    map[bsf.ID]bool // the triggers in storage that were taken up
	done    time.Time       // when the last one was carried out

	mu  sync.Mutex
	cfg Repaving
}

func newRepaver(g *Gateway) *repaver {
	const skew = 10 * time.Second
	return &repaver{g: g, cfg: g.cfg.Repaving, started: time.Now().Add(-skew), log: g.log.With().Str("feature", "repaving").Logger()}
}

// TriggerRepaving stores a trigger; every instance on the same storage takes
// it up.
func (g *Gateway) TriggerRepaving(ctx context.Context) (Trigger, error) {
	t := Trigger{uuid.NewString(), time.Now().UTC()}
	body, err := json.Marshal(t)
	if err != nil {
		return t, err
	}
	_, err = bsf.AppendHistory(ctx, g.deps.Documents, triggerKey, body, keptTriggers)
	return t, err
}

// RepavingHistory lists the triggers of the past, oldest first.
func (g *Gateway) RepavingHistory(ctx context.Context) ([]Trigger, error) {
	docs, err := g.deps.Documents.FindDocuments(ctx, bsf.KindHistory, triggerKey)
	list := make([]Trigger, len(docs))
	for i, d := range docs {
		err = errors.Join(err, json.Unmarshal(d.Body, &list[i]))
	}
	return list, err
}

// RepavingBusy reports whether a trigger is being carried out.
func (g *Gateway) RepavingBusy() bool { return g.repaver.busy.Load() }

func (r *repaver) config() Repaving {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cfg
}

func (r *repaver) setConfig(c Repaving) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cfg = c
}

// run looks for triggers until ctx ends.
func (r *repaver) run(ctx context.Context) {
	for pause(ctx, repavingPoll) {
		docs, err := r.g.deps.Documents.FindDocuments(ctx, bsf.KindHistory, triggerKey)
		if err != nil {
			r.log.Debug().Err(err).Msg("triggers cannot be read")
			continue
		}
		for _, t := range r.fresh(docs) {
			r.carryOut(ctx, t)
		}
	}
}

// fresh are the triggers that were not taken up yet. Those from before the
// start concern no connection of this process.
func (r *repaver) fresh(docs []bsf.Document) (list []Trigger) {
	seen := make(map[bsf.ID]bool, len(docs))
	for _, d := range docs {
		seen[d.ID] = true
		var t Trigger
		if !r.seen[d.ID] && json.Unmarshal(d.Body, &t) == nil && t.RequestTimestamp.After(r.started) {
			list = append(list, t)
		}
	}
	r.seen = seen
	return list
}

// carryOut disconnects the peers whose connections are older than the trigger.
func (r *repaver) carryOut(ctx context.Context, t Trigger) {
	cfg := r.config()
	log := r.log.With().Str("invocationId", t.InvocationID).Logger()
	if !cfg.Enabled {
		log.Warn().Msg("trigger ignored: repaving is not enabled")
		return
	}
	r.busy.Store(true)
	defer r.busy.Store(false)
	if wait := time.Until(r.done.Add(cfg.ReinvocationDelay)); !r.done.IsZero() && wait > 0 {
		log.Info().Dur("wait", wait).Msg("trigger waits: the last one was a short time ago")
		if !pause(ctx, wait) {
			return
		}
	}
	jitter := rand.N(cfg.MaxStaggerJitter + 1)
	log.Info().Dur("wait", jitter).Msg("repaving begins")
	if !pause(ctx, jitter) {
		return
	}
	n := 0
	for _, p := range r.g.peerList() {
		if !p.repavable(t.RequestTimestamp) {
			continue
		}
		if n++; n > 1 && !pause(ctx, cfg.DisconnectInterval) {
			return
		}
		r.disconnect(ctx, p, cfg)
	}
	r.done = time.Now()
	log.Info().Int("disconnected", n).Msg("repaving done")
}

// disconnect sends a DPR once the answers that are outstanding have come, or
// the delay is over.
func (r *repaver) disconnect(ctx context.Context, p *peer, cfg Repaving) {
	if c := p.active.Swap(nil); c != nil {
		quiet, cancel := context.WithTimeout(ctx, cfg.DPRDelay)
		// When the delay is over it goes on all the same.
		_ = r.g.until(quiet, func() bool { return c.pend.len() == 0 })
		cancel()
	}
	tn := &turn{g: r.g, ctx: ctx, now: time.Now()}
	_ = p.step(event{kind: eventDisconnect, cause: rx.Cause(cfg.DisconnectCause), reason: "repaving", turn: tn})
	tn.flush()
	r.g.metrics.repaved.Inc()
}

// repavable reports whether the peer made its connection itself, before the
// time, and is no other instance.
func (p *peer) repavable(before time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state == StateOpen && !p.cfg.Instance && p.conn.dialled == nil && p.conn.opened.Before(before)
}
