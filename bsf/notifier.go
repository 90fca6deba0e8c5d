package bsf

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// Delivery is what became of one attempt to notify.
type Delivery uint8

// The results of an attempt.
const (
	Delivered Delivery = iota + 1 // the subscriber answered with success
	Gone                          // it answered that it does not know the subscription (404)
	Failed                        // anything else; worth another attempt
	Held                          // nothing was sent: the receiver wants less for now, or the node sends nothing
)

// String is the result as it appears in metrics.
func (d Delivery) String() string {
	switch d {
	case Delivered:
		return "delivered"
	case Gone:
		return "gone"
	case Held:
		return "held"
	default:
		return "failed"
	}
}

// Sender delivers a notification to a callback URI. It follows redirects; when
// one of them is permanent, moved is the URI for later notifications.
type Sender interface {
	Send(ctx context.Context, uri string, n *Notification) (result Delivery, moved string, err error)
}

// NotifierConfig bounds the work of a Notifier.
type NotifierConfig struct {
	// Workers is how many notifications are under way at once, at least 2. A
	// quarter of them serve receivers that failed last time, so that dead
	// receivers never take the workers of healthy ones.
	Workers int `koanf:"workers" usage:"notifications under way at once"`
	// Timeout bounds one attempt, 10 ms to 1 m.
	Timeout time.Duration `koanf:"timeout" usage:"bound of one attempt"`
	// Attempts is how often a notification is tried, 1 to 100.
	Attempts int `koanf:"attempts" usage:"attempts for one notification"`
	// Backoff is the pause before the second attempt; it doubles up to 30 s.
	Backoff time.Duration `koanf:"backoff" usage:"pause before the second attempt, doubling"`
	// GoneAttempts is how many answers of 404 in a row end a subscription.
	GoneAttempts int `koanf:"goneAttempts" usage:"answers of 404 in a row that end a subscription"`
	// Backlog bounds the notifications held in memory; what is beyond waits
	// in storage.
	Backlog int `koanf:"backlog" usage:"notifications held in memory"`
}

// Check reports the first wrong setting with its key.
func (c NotifierConfig) Check() error {
	switch {
	case c.Workers < 2 || c.Workers > 10000:
		return fmt.Errorf("workers: must be 2 to 10000")
	case c.Timeout < 10*time.Millisecond || c.Timeout > time.Minute:
		return fmt.Errorf("timeout: must be 10ms to 1m")
	case c.Attempts < 1 || c.Attempts > 100:
		return fmt.Errorf("attempts: must be 1 to 100")
	case c.Backoff < time.Millisecond || c.Backoff > 30*time.Second:
		return fmt.Errorf("backoff: must be 1ms to 30s")
	case c.GoneAttempts < 1 || c.GoneAttempts > 100:
		return fmt.Errorf("goneAttempts: must be 1 to 100")
	case c.Backlog < 16:
		return fmt.Errorf("backlog: must be at least 16")
	}
	return nil
}

const (
	maxBackoff = 30 * time.Second
	claimSize  = 256
	// pollInterval is how often the queue is looked at without being woken:
	// for events that another instance left behind.
	pollInterval = 5 * time.Second
	// maxPerSubscription bounds the notifications that wait for one
	// subscriber; the oldest beyond it are dropped.
	maxPerSubscription = 1000
)

// Notifier tells subscribers about events (TS 29.521 §4.2.8). Each
// subscription gets its notifications one at a time and in order; a slow or
// dead receiver holds up nobody else; an event leaves the queue when every
// subscriber got it or was given up.
type Notifier struct {
	cfg     NotifierConfig
	events  EventQueue
	docs    DocumentStore
	sender  Sender
	log     zerolog.Logger
	metrics *notifierMetrics
	wake    chan struct{}
	workers sync.WaitGroup
	retry   []*Event // claimed, but their subscribers could not be read; Run's own

	mu      sync.Mutex
	queues  map[ID]*notifyQueue
	health  map[string]int // failures in a row, by authority
	lanes   [2]lane
	backlog int
	space   bool // the loader waits for room
	ctx     context.Context
}

// lane is a share of the workers with the queues that wait for one of them.
type lane struct {
	ready   []*notifyQueue
	running int
	limit   int
}

const (
	laneHealthy = iota
	laneSuspect
)

// notifyQueue holds what one subscription has still to be told.
type notifyQueue struct {
	id       ID
	uri      string
	items    []notifyItem
	attempts int  // of the first item
	notFound int  // answers of 404 in a row
	gaveUp   bool // the last notification was given up: one attempt for each next
	busy     bool // in a lane, with a worker or waiting for its pause to end
	dropped  bool // the subscription has ended
}

type notifyItem struct {
	note  *Notification
	event *eventProgress
}

// eventProgress counts the subscribers that an event has still to reach.
type eventProgress struct {
	id   ID
	left int
}

// NewNotifier checks the configuration and returns a Notifier that does
// nothing until Run.
func NewNotifier(cfg NotifierConfig, events EventQueue, docs DocumentStore, sender Sender, log zerolog.Logger, reg prometheus.Registerer) (*Notifier, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	n := &Notifier{
		cfg: cfg, events: events, docs: docs, sender: sender,
		log:     log.With().Str("component", "notifier").Logger(),
		metrics: newNotifierMetrics(reg),
		wake:    make(chan struct{}, 1),
		queues:  make(map[ID]*notifyQueue),
		health:  make(map[string]int),
	}
	n.lanes[laneSuspect].limit = max(1, cfg.Workers/4)
	n.lanes[laneHealthy].limit = cfg.Workers - n.lanes[laneSuspect].limit
	return n, nil
}

// Wake tells the notifier that events were stored. It never blocks.
func (n *Notifier) Wake() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// Forget drops what a subscription that has ended was still to be told.
func (n *Notifier) Forget(subscription ID) {
	n.mu.Lock()
	q := n.queues[subscription]
	var done []ID
	if q != nil {
		q.dropped = true
		if !q.busy {
			done = n.clear(q)
		}
	}
	n.mu.Unlock()
	n.finish(context.Background(), done)
}

// Run delivers until ctx ends and all attempts under way have returned. Events
// that were not delivered stay in the queue.
func (n *Notifier) Run(ctx context.Context) error {
	n.mu.Lock()
	n.ctx = ctx
	n.mu.Unlock()
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	defer n.workers.Wait()
	for {
		n.load(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-n.wake:
		case <-poll.C:
		}
	}
}

// load claims events while there is room and puts them into the queues of
// their subscribers.
func (n *Notifier) load(ctx context.Context) {
	for n.room() && ctx.Err() == nil {
		events, err := n.events.Claim(ctx, claimSize)
		if err != nil {
			if ctx.Err() == nil {
				n.log.Error().Err(err).Msg("events cannot be read from storage")
			}
			return
		}
		events = append(n.retry, events...)
		n.retry = nil
		for _, e := range events {
			n.spread(ctx, e)
		}
		if len(events) < claimSize || len(n.retry) > 0 {
			return
		}
	}
}

func (n *Notifier) room() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.space = n.backlog >= n.cfg.Backlog
	return !n.space
}

// spread queues an event for each subscription that it concerns.
func (n *Notifier) spread(ctx context.Context, e *Event) {
	docs, err := n.docs.FindDocuments(ctx, KindSubscription, SubscriptionKey(e.Supi))
	if err != nil {
		n.log.Error().Err(err).Str("event", e.ID.String()).Msg("subscriptions cannot be read from storage")
		n.retry = append(n.retry, e)
		return
	}
	progress := &eventProgress{id: e.ID, left: 1}
	var done []ID
	for _, d := range docs {
		s, err := decodeBody[Subscription](d)
		if err != nil {
			n.log.Error().Err(err).Msg("subscription skipped")
			continue
		}
		if note := s.Notify(e); note != nil {
			done = append(done, n.enqueue(d.ID, s.NotifUri, notifyItem{note, progress})...)
		}
	}
	n.mu.Lock()
	done = append(done, progress.step()...)
	n.mu.Unlock()
	n.finish(ctx, done)
}

// step notes that one more subscriber is done and returns the event when it
// was the last. The lock is held.
func (p *eventProgress) step() []ID {
	if p.left--; p.left == 0 {
		return []ID{p.id}
	}
	return nil
}

func (n *Notifier) enqueue(id ID, uri string, item notifyItem) (done []ID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	q := n.queues[id]
	if q == nil {
		q = &notifyQueue{id: id}
		n.queues[id] = q
	}
	q.uri = uri
	item.event.left++
	q.items = append(q.items, item)
	n.addBacklog(1)
	failing := n.health[authority(uri)] > 0
	if len(q.items) > maxPerSubscription || failing && n.backlog > n.cfg.Backlog/2 && len(q.items) > 2 {
		// The first item may be with a worker, the second is the oldest that
		// surely is not.
		done = q.items[1].event.step()
		q.items = append(q.items[:1], q.items[2:]...)
		n.addBacklog(-1)
		n.metrics.deliveries.WithLabelValues("dropped").Inc()
	}
	if !q.busy {
		n.makeReady(q)
	}
	return done
}

func (n *Notifier) addBacklog(d int) {
	n.backlog += d
	n.metrics.backlog.Set(float64(n.backlog))
	if n.space && n.backlog < n.cfg.Backlog/2 {
		n.space = false
		n.Wake()
	}
}

// makeReady puts a queue with items into the lane of its receiver and starts
// a worker if the lane has one free. The lock is held.
func (n *Notifier) makeReady(q *notifyQueue) {
	q.busy = true
	l := &n.lanes[laneHealthy]
	if n.health[authority(q.uri)] > 0 {
		l = &n.lanes[laneSuspect]
	}
	l.ready = append(l.ready, q)
	n.startWorker(l)
}

func (n *Notifier) startWorker(l *lane) {
	if l.running < l.limit && len(l.ready) > 0 && n.ctx.Err() == nil {
		l.running++
		n.workers.Go(func() { n.work(l) })
	}
}

// work serves the queues of a lane, one item of each in turn, until none is
// ready.
func (n *Notifier) work(l *lane) {
	for {
		n.mu.Lock()
		if len(l.ready) == 0 || n.ctx.Err() != nil {
			l.running--
			n.mu.Unlock()
			return
		}
		q := l.ready[0]
		l.ready[0] = nil
		l.ready = l.ready[1:]
		if l == &n.lanes[laneHealthy] && n.health[authority(q.uri)] > 0 {
			n.makeReady(q)
			n.mu.Unlock()
			continue
		}
		if q.dropped {
			done := n.clear(q)
			n.mu.Unlock()
			n.finish(n.ctx, done)
			continue
		}
		uri, item, ctx := q.uri, q.items[0], n.ctx
		n.mu.Unlock()

		attempt, cancel := context.WithTimeout(ctx, n.cfg.Timeout)
		result, moved, err := n.sender.Send(attempt, uri, item.note)
		cancel()
		if ctx.Err() != nil {
			// A process that ends leaves the event for the next one.
			continue
		}
		n.settle(q, uri, result, moved, err)
	}
}

// settle notes the result of an attempt and decides what the queue does next.
func (n *Notifier) settle(q *notifyQueue, uri string, result Delivery, moved string, err error) {
	n.metrics.deliveries.WithLabelValues(result.String()).Inc()
	n.mu.Lock()
	var done []ID
	end := false
	switch {
	case q.dropped:
		done = n.clear(q)
	case result == Delivered:
		delete(n.health, authority(uri))
		q.notFound, q.gaveUp = 0, false
		if moved != "" {
			q.uri = moved
		}
		done = n.pop(q)
	case result == Held:
		n.pause(q)
	default:
		q.attempts++
		if result == Gone {
			q.notFound++
			end = q.notFound >= n.cfg.GoneAttempts
		} else {
			n.fail(authority(uri))
			q.notFound = 0
		}
		switch {
		case end:
			done = n.clear(q)
		case q.attempts >= n.cfg.Attempts || q.gaveUp:
			n.log.Warn().Err(err).Str("subscription", q.id.String()).Msg("notification given up")
			n.metrics.deliveries.WithLabelValues("given_up").Inc()
			q.gaveUp = true
			done = n.pop(q)
		default:
			n.pause(q)
		}
	}
	n.mu.Unlock()
	n.finish(n.ctx, done)
	if end {
		n.endSubscription(q.id)
	}
	if moved != "" && result == Delivered {
		n.move(q.id, moved)
	}
}

// fail counts a failure of a receiver. Receivers that are not asked for any
// more are forgotten by starting over now and then. The lock is held.
func (n *Notifier) fail(authority string) {
	const maxReceivers = 1 << 17
	if len(n.health) >= maxReceivers {
		clear(n.health)
	}
	n.health[authority]++
}

// pop removes the first item and makes the queue ready for the next. The lock
// is held.
func (n *Notifier) pop(q *notifyQueue) []ID {
	done := q.items[0].event.step()
	q.items[0] = notifyItem{}
	q.items = q.items[1:]
	q.attempts, q.busy = 0, false
	n.addBacklog(-1)
	if len(q.items) > 0 {
		n.makeReady(q)
	} else if !q.gaveUp && q.notFound == 0 {
		delete(n.queues, q.id)
	}
	return done
}

// clear drops all items of a queue. The lock is held.
func (n *Notifier) clear(q *notifyQueue) (done []ID) {
	for _, item := range q.items {
		done = append(done, item.event.step()...)
	}
	n.addBacklog(-len(q.items))
	delete(n.queues, q.id)
	return done
}

// pause makes the queue ready again after the back-off of its first item. The
// lock is held.
func (n *Notifier) pause(q *notifyQueue) {
	wait := min(n.cfg.Backoff<<min(max(q.attempts-1, 0), 16), maxBackoff)
	wait += time.Duration(rand.Int64N(int64(wait)/4 + 1))
	time.AfterFunc(wait, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.ctx.Err() == nil {
			n.makeReady(q)
		}
	})
}

func (n *Notifier) finish(ctx context.Context, done []ID) {
	for _, id := range done {
		if err := n.events.Finish(ctx, id); err != nil && ctx.Err() == nil {
			n.log.Error().Err(err).Str("event", id.String()).Msg("event cannot be removed and will be sent again")
		}
	}
}

// endSubscription removes a subscription whose receiver does not know it.
func (n *Notifier) endSubscription(id ID) {
	n.log.Warn().Str("subscription", id.String()).Msg("receiver does not know the subscription, removed")
	if _, err := n.docs.DeleteDocument(n.ctx, KindSubscription, id, noEvent); err != nil && n.ctx.Err() == nil {
		n.log.Error().Err(err).Str("subscription", id.String()).Msg("subscription cannot be removed")
	}
}

// move stores the URI that a permanent redirect named (TS 29.500 §6.10.9).
func (n *Notifier) move(id ID, uri string) {
	err := n.docs.UpdateDocument(n.ctx, KindSubscription, id, func(d Document) (*Document, error) {
		s, err := decodeBody[Subscription](d)
		if err != nil {
			return nil, err
		}
		s.NotifUri = uri
		return s.document(id), nil
	})
	if err != nil && n.ctx.Err() == nil {
		n.log.Warn().Err(err).Str("subscription", id.String()).Msg("new callback URI cannot be stored")
	}
}

// authority is what receivers are told apart by.
func authority(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		return uri
	}
	return u.Host
}
