package diameter

import (
	"cmp"
	"slices"
	"time"
)

// PeerStatus is a peer as operators see it.
type PeerStatus struct {
	Host  string `json:"host"`
	Realm string `json:"realm"`
	// Configured is false for a host that was let in by its realm.
	Configured bool  `json:"configured"`
	Instance   bool  `json:"instance,omitempty"`
	State      State `json:"state"`
	// Reason is why the peer is in this state, Since when it came there.
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
	// Watchdog is OKAY, SUSPECT or REOPEN (RFC 3539) while connected.
	Watchdog string `json:"watchdog,omitempty"`
	// Initiator is set when this node made the connection.
	Initiator     bool      `json:"initiator,omitempty"`
	Transport     Transport `json:"transport,omitempty"`
	LocalAddress  string    `json:"localAddress,omitempty"`
	RemoteAddress string    `json:"remoteAddress,omitempty"`
	ProductName   string    `json:"productName,omitempty"`
	OriginStateID uint32    `json:"originStateId,omitempty"`
	LastError     string    `json:"lastError,omitempty"`
	// Connects counts connections that opened.
	Connects uint64 `json:"connects"`
	// RequestsIn and RequestsOut count over all connections; the others are of
	// the present one.
	RequestsIn   uint64 `json:"requestsIn"`
	RequestsOut  uint64 `json:"requestsOut"`
	AnswersIn    uint64 `json:"answersIn"`
	AnswersOut   uint64 `json:"answersOut"`
	Discarded    uint64 `json:"discarded"`
	Pending      int    `json:"pending"`
	QueuedOctets int    `json:"queuedOctets"`
}

// Peers is the state of all peers, by host.
func (g *Gateway) Peers() []PeerStatus {
	list := []PeerStatus{}
	for _, p := range g.peerList() {
		list = append(list, p.status())
	}
	slices.SortFunc(list, func(a, b PeerStatus) int { return cmp.Compare(a.Host, b.Host) })
	return list
}

func (p *peer) status() PeerStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := PeerStatus{
		Host: p.host, Realm: p.cfg.Realm, Configured: p.known, Instance: p.cfg.Instance,
		State: p.state, Reason: p.reason, Since: p.since, LastError: p.lastError, Connects: p.connects,
		RequestsIn: p.lastConns[0], RequestsOut: p.lastConns[1], OriginStateID: p.stateID,
	}
	if p.caps != nil {
		s.ProductName, s.Realm = p.caps.ProductName, p.caps.Realm
	}
	c := p.conn
	if c == nil {
		return s
	}
	s.Watchdog, s.Initiator, s.Transport = p.watchdog.state.String(), c.dialled != nil, c.transport
	s.LocalAddress, s.RemoteAddress = c.nc.LocalAddr().String(), c.nc.RemoteAddr().String()
	s.RequestsIn += c.counters.requestsIn.Load()
	s.RequestsOut += c.counters.requestsOut.Load()
	s.AnswersIn, s.AnswersOut = c.counters.answersIn.Load(), c.counters.answersOut.Load()
	s.Discarded, s.Pending, s.QueuedOctets = c.counters.discarded.Load(), c.pend.len(), c.out.waiting()
	return s
}

// responders is how many peers are connected by a connection that they made.
func (g *Gateway) responders() (n int) {
	for _, p := range g.peerList() {
		p.mu.Lock()
		if p.state == StateOpen && p.conn.dialled == nil {
			n++
		}
		p.mu.Unlock()
	}
	return n
}
