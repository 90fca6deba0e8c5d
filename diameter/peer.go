package diameter

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"bsfd/diameter/rx"
	"bsfd/internal/admission"
)

// State is the state of a peer (RFC 6733 §5.6). R-Open and I-Open are one
// here: Status tells who made the connection.
type State string

// The states of a peer.
const (
	StateClosed      State = "Closed"
	StateWaitConnAck State = "Wait-Conn-Ack" // a connection is being made
	StateWaitCEA     State = "Wait-I-CEA"    // a CER was sent
	StateOpen        State = "Open"
	StateClosing     State = "Closing" // a DPR was sent or received
)

// eventKind is what happened to a peer.
type eventKind uint8

const (
	eventDial       eventKind = iota // a connection is about to be made
	eventConnected                   // it is there
	eventFailed                      // it cannot be made
	eventCEA                         // a good CEA came
	eventCER                         // a good CER came on another connection
	eventDown                        // a connection has ended
	eventDPR                         // the peer wants to disconnect
	eventDPA                         // the peer agrees to disconnect
	eventDisconnect                  // this node wants to disconnect
	eventExpired                     // waiting for the end took too long
)

// event is something that happened to a peer.
type event struct {
	kind   eventKind
	conn   *conn
	caps   *rx.Capabilities
	header rx.Header // of the CER
	cause  rx.Cause
	reason string
	turn   *turn
}

// peer is a node that is configured or connected.
type peer struct {
	g     *Gateway
	host  string
	cfg   Peer
	known bool // it is configured
	log   zerolog.Logger

	// active is the connection that may get new requests.
	active atomic.Pointer[conn]
	// told is what it was told about the load of this node, load what it has
	// told of its own.
	told admission.Peer
	load peerLoad

	mu        sync.Mutex
	state     State
	since     time.Time
	reason    string
	lastError string
	failure   string // of the last attempt to connect, as logged
	conn      *conn  // open or closing
	dialling  *conn  // waits for the CEA
	cancel    context.CancelFunc
	caps      *rx.Capabilities
	stateID   uint32
	watchdog  watchdog
	// afterDown is set when the watchdog ended the last connection.
	afterDown bool
	// left is set when the peer has sent a DPR, and cause is that of it.
	cause    rx.Cause
	left     bool
	closeBy  time.Time // when Closing has lasted long enough
	connects uint64
	wake     chan struct{} // a change that the connector may wait for
	// forgotten is set for a peer that made room for others.
	forgotten bool
	lastConns [2]uint64 // requests in and out on connections that ended
}

func (g *Gateway) newPeer(cfg Peer, known bool) *peer {
	return &peer{
		g: g, host: cfg.Host, cfg: cfg, known: known, state: StateClosed, since: time.Now(), reason: "not connected yet",
		log: g.log.With().Str("peer", cfg.Host).Logger(), wake: make(chan struct{}, 1),
		watchdog: watchdog{tw: g.cfg.Transport.Watchdog},
	}
}

// relays reports whether the peer is an agent for everything.
func (p *peer) relays() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.caps != nil && slices.Contains(p.caps.Applications, rx.RelayID)
}

// step gives an event to the state machine. An error ends the connection of
// the event.
func (p *peer) step(e event) error {
	p.mu.Lock()
	if p.forgotten {
		p.mu.Unlock()
		return errLate
	}
	before := p.state
	var next State
	var reason string
	var after func()
	var err error
	switch p.state {
	case StateClosed:
		next, reason, err = p.inClosed(e)
	case StateWaitConnAck:
		next, reason, err = p.inWaitConnAck(e)
	case StateWaitCEA:
		next, reason, err = p.inWaitCEA(e)
	case StateOpen:
		next, reason, after, err = p.inOpen(e)
	case StateClosing:
		next, reason, after, err = p.inClosing(e)
	}
	if reason != "" {
		p.state, p.since, p.reason = next, time.Now(), reason
		p.note(before, reason)
	}
	p.mu.Unlock()
	if after != nil {
		after()
	}
	return err
}

// note logs and counts a transition and tells the connector. Attempts that
// fail again for the same reason are for debugging.
func (p *peer) note(before State, reason string) {
	level := zerolog.InfoLevel
	switch {
	case p.state == StateWaitConnAck || p.state == StateWaitCEA:
		level = zerolog.DebugLevel
	case p.state == StateClosed && (before == StateWaitConnAck || before == StateWaitCEA):
		if reason == p.failure {
			level = zerolog.DebugLevel
		}
		p.failure = reason
	case p.state == StateOpen:
		p.failure = ""
	}
	p.log.WithLevel(level).Str("from", string(before)).Str("to", string(p.state)).Str("reason", reason).Msg("peer")
	p.g.metrics.connected(p, p.state == StateOpen)
	p.nudge()
}

// nudge tells the connector that something has changed.
func (p *peer) nudge() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// inClosed has no connection.
func (p *peer) inClosed(e event) (State, string, error) {
	switch e.kind {
	case eventDial:
		return StateWaitConnAck, "dialling " + p.cfg.address(), nil
	case eventCER:
		return p.accept(e)
	case eventConnected:
		return p.state, "", errLate
	default:
		return p.state, "", nil
	}
}

// inWaitConnAck has a connection under way.
func (p *peer) inWaitConnAck(e event) (State, string, error) {
	switch e.kind {
	case eventConnected:
		p.dialling = e.conn
		return StateWaitCEA, "connected to " + e.conn.nc.RemoteAddr().String(), nil
	case eventFailed:
		p.lastError = e.reason
		return StateClosed, e.reason, nil
	case eventCER:
		// The connection that came is as good as the one that is to come.
		if p.cancel != nil {
			p.cancel()
		}
		return p.accept(e)
	case eventDisconnect:
		p.cancel()
		return StateClosed, e.reason, nil
	default:
		return p.state, "", nil
	}
}

// inWaitCEA has sent a CER.
func (p *peer) inWaitCEA(e event) (State, string, error) {
	switch e.kind {
	case eventCEA:
		if e.conn != p.dialling {
			return p.state, "", errLate
		}
		p.dialling = nil
		p.open(e)
		return StateOpen, "CEA received", nil
	case eventCER:
		return p.elect(e)
	case eventDown, eventFailed:
		if e.conn != p.dialling {
			return p.state, "", nil
		}
		p.dialling, p.lastError = nil, e.reason
		return StateClosed, e.reason, nil
	case eventDisconnect:
		p.dialling.close(e.reason)
		return p.state, "", nil
	default:
		return p.state, "", nil
	}
}

// errLate ends a connection whose peer has another one by now.
var errLate = errors.New("another connection of the peer is open")

// elect decides which of two connections stays: the node with the higher
// identity keeps the one that it received (RFC 6733 §5.6.4).
func (p *peer) elect(e event) (State, string, error) {
	if rx.CompareIdentity(p.g.cfg.OriginHost, e.caps.Host) <= 0 {
		return p.state, "", refuse(rx.ElectionLost, "this node made the connection that stays")
	}
	p.dialling.close("election won: the connection of the peer stays")
	p.dialling = nil
	state, _, err := p.accept(e)
	return state, "election won, CER accepted", err
}

// accept answers a CER and opens its connection.
func (p *peer) accept(e event) (State, string, error) {
	e.conn.send(e.turn, p.g.capabilities(e.conn).CEA(e.header, rx.Success, "", nil))
	p.open(e)
	return StateOpen, "CER accepted from " + e.conn.nc.RemoteAddr().String(), nil
}

// open makes the connection of the event the one of the peer.
func (p *peer) open(e event) {
	c := e.conn
	// From now on the watchdog ends a connection that is dead.
	_ = c.nc.SetDeadline(time.Time{})
	p.conn, p.caps, p.left = c, e.caps, false
	p.connects++
	p.lastError = ""
	p.restarted(e.caps.StateID)
	c.peer.Store(p)
	c.isKnown()
	if p.watchdog.start(e.turn.now, p.afterDown) == watchdogSend {
		c.doubtful.Store(true)
		c.sendDWR(e.turn)
	} else {
		c.doubtful.Store(false)
		p.active.Store(c)
	}
	p.afterDown = false
	c.wdDue.Store(p.watchdog.due.UnixNano())
}

// restarted forgets the sessions of a peer whose Origin-State-Id has risen
// (RFC 6733 §8.16).
func (p *peer) restarted(id uint32) {
	if id == 0 {
		return
	}
	if p.stateID != 0 && id > p.stateID {
		p.g.sessions.forgetHost(p.host)
		p.log.Info().Uint32("originStateId", id).Msg("the peer has lost its sessions")
	}
	p.stateID = id
}

// noteState notes the Origin-State-Id of a watchdog message.
func (p *peer) noteState(id uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.restarted(id)
}

// inOpen has an open connection.
func (p *peer) inOpen(e event) (State, string, func(), error) {
	switch e.kind {
	case eventCER:
		return p.duplicate(e)
	case eventDown:
		if e.conn != p.conn {
			return p.state, "", nil, nil
		}
		return StateClosed, e.reason, p.gone(e.conn, "connection"), nil
	case eventDPR:
		if e.conn != p.conn {
			return p.state, "", nil, nil
		}
		p.active.Store(nil)
		p.cause, p.left = e.cause, true
		p.closeBy = time.Now().Add(p.g.cfg.Transport.Disconnect)
		e.conn.wdDue.Store(p.closeBy.UnixNano())
		e.conn.answer(e.turn, &rx.Answer{Result: rx.Base(rx.Success)})
		return StateClosing, "DPR received: " + e.cause.String(), nil, nil
	case eventDisconnect:
		p.active.Store(nil)
		p.closeBy = time.Now().Add(p.g.cfg.Transport.Disconnect)
		c := p.conn
		c.wdDue.Store(p.closeBy.UnixNano())
		c.send(e.turn, rx.DPR(p.g.origin(), e.cause, c.tickets.Add(1), p.g.endToEnd()))
		return StateClosing, e.reason + ", DPR sent: " + e.cause.String(), nil, nil
	case eventConnected:
		return p.state, "", nil, errLate
	default:
		return p.state, "", nil, nil
	}
}

// probeTime is how long a connection has to prove that it is alive when the
// peer tries to make another one.
const probeTime = 3 * time.Second

// duplicate refuses a second connection, unless the first one is doubtful or
// the peer has started again: then the first one is dead.
func (p *peer) duplicate(e event) (State, string, func(), error) {
	restarted := p.stateID != 0 && e.caps.StateID > p.stateID
	if p.watchdog.state != watchdogSuspect && !restarted {
		// If it is dead nevertheless, the watchdog soon knows.
		p.watched(e.turn, p.conn, p.watchdog.probe(e.turn.now, probeTime))
		return p.state, "", nil, refuse(rx.UnableToComply, "another connection of this host is open")
	}
	old := p.conn
	after := p.gone(old, "connection")
	old.close("replaced by a new connection of the peer")
	state, reason, err := p.accept(e)
	return state, reason + " in place of the old connection", after, err
}

// gone is what remains to be done for a connection that has ended: its pending
// requests go elsewhere.
func (p *peer) gone(c *conn, reason string) func() {
	p.active.CompareAndSwap(c, nil)
	p.conn = nil
	p.lastConns[0] += c.counters.requestsIn.Load()
	p.lastConns[1] += c.counters.requestsOut.Load()
	if why := c.closeReason(); why != "" {
		p.lastError = why
	}
	return func() { p.g.failover(c, c.pend.drain(true), reason) }
}

// inClosing waits for the end of the connection.
func (p *peer) inClosing(e event) (State, string, func(), error) {
	switch e.kind {
	case eventDPA:
		if e.conn == p.conn {
			e.conn.close("DPA received")
		}
		return p.state, "", nil, nil
	case eventDPR:
		if e.conn == p.conn {
			e.conn.answer(e.turn, &rx.Answer{Result: rx.Base(rx.Success)})
			p.cause, p.left = e.cause, true
		}
		return p.state, "", nil, nil
	case eventExpired:
		if e.conn == p.conn {
			e.conn.close("disconnected")
		}
		return p.state, "", nil, nil
	case eventDown:
		if e.conn != p.conn {
			return p.state, "", nil, nil
		}
		return StateClosed, e.reason, p.gone(e.conn, "connection"), nil
	case eventCER:
		// The peer is back before the end of its old connection was seen.
		old := p.conn
		after := p.gone(old, "connection")
		old.close("replaced by a new connection of the peer")
		state, reason, err := p.accept(e)
		return state, reason, after, err
	case eventConnected:
		return p.state, "", nil, errLate
	default:
		return p.state, "", nil, nil
	}
}

// receive notes a message for the watchdog.
func (p *peer) receive(t *turn, c *conn, dwa bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn != c {
		return
	}
	p.watched(t, c, p.watchdog.received(t.now, dwa))
}

// watch is called when the time of the watchdog may be over.
func (p *peer) watch(t *turn, c *conn) {
	p.mu.Lock()
	var failed []*pending
	switch {
	case p.conn != c:
		c.wdDue.Store(t.now.Add(time.Second).UnixNano())
	case p.state == StateClosing:
		c.wdDue.Store(p.closeBy.UnixNano())
		if !t.now.Before(p.closeBy) {
			p.mu.Unlock()
			_ = p.step(event{kind: eventExpired, conn: c})
			return
		}
	default:
		failed = p.timerOver(t, c)
	}
	p.mu.Unlock()
	p.g.failover(c, failed, "watchdog")
}

func (p *peer) timerOver(t *turn, c *conn) []*pending {
	// Messages that came since the timer was set have reset it; while all is
	// well the path of a message leaves that to this place.
	if last := time.Unix(0, c.received.Load()); p.watchdog.state == watchdogOkay && last.After(p.watchdog.armed) {
		p.watchdog.received(last, false)
	}
	if t.now.Before(p.watchdog.due) {
		c.wdDue.Store(p.watchdog.due.UnixNano())
		return nil
	}
	return p.watched(t, c, p.watchdog.expired(t.now))
}

// watched does what the watchdog says.
func (p *peer) watched(t *turn, c *conn, a watchdogAction) (failed []*pending) {
	c.wdDue.Store(p.watchdog.due.UnixNano())
	switch a {
	case watchdogSend:
		c.sendDWR(t)
	case watchdogFailover:
		c.doubtful.Store(true)
		p.active.Store(nil)
		p.log.Warn().Msg("no answer to the watchdog, requests go elsewhere")
		failed = c.pend.drain(false)
	case watchdogFailback:
		c.doubtful.Store(false)
		if p.state == StateOpen {
			p.active.Store(c)
			p.log.Info().Msg("the peer answers again")
		}
	case watchdogClose:
		p.afterDown = true
		c.close("the watchdog was not answered")
	}
	return failed
}
