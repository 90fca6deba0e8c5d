package diameter

import (
	"context"
	"errors"

	"bsfd/bsf"
	"bsfd/diameter/rx"
)

// staleReporter tells the registry of sessions that their PCF does not know.
type staleReporter struct {
	g     *Gateway
	queue chan staleSession
}

// staleSession is a UE address of which a PCF said that it has no session.
type staleSession struct {
	query bsf.Query
	pcf   string
}

// staleBacklog bounds the reports that wait. What is more is left to the audit
// of bindings.
const staleBacklog = 4096

func newStaleReporter(g *Gateway) *staleReporter {
	return &staleReporter{g: g, queue: make(chan staleSession, staleBacklog)}
}

// report notes the address of a request, when the PCF itself has answered it.
func (s *staleReporter) report(t *turn, p *pending, from []byte) {
	if !rx.EqualIdentity(from, p.target.host) {
		return
	}
	var v rx.View
	if v.Scan(p.msg) != nil {
		return
	}
	q, err := p.from.query(&v)
	if err != nil {
		// An AAR of a session that is there need not have an address.
		return
	}
	select {
	case s.queue <- staleSession{q, string(from)}:
		s.g.metrics.staleRequests.Inc()
	default:
	}
}

// run removes the bindings until ctx ends.
func (s *staleReporter) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case x := <-s.queue:
			s.g.metrics.staleResponses.WithLabelValues(s.remove(ctx, x)).Inc()
		}
	}
}

// remove removes the binding of the address, if it is still the one of the
// PCF that does not know it.
func (s *staleReporter) remove(ctx context.Context, x staleSession) string {
	ctx, cancel := context.WithTimeout(ctx, s.g.cfg.DiscoveryTimeout)
	defer cancel()
	rec, err := s.g.deps.Bindings.Discover(ctx, &x.query)
	switch {
	case errors.Is(err, bsf.ErrNotFound):
		return "gone"
	case err == nil && !rx.EqualIdentity(x.pcf, string(rec.Binding.PcfDiamHost)):
		return "moved"
	case err == nil:
		err = s.g.deps.Bindings.Remove(ctx, rec.ID, bsf.ReasonStale)
	}
	if err != nil {
		s.g.often.Warn().Err(err).Msg("a binding that its PCF does not know could not be removed")
		return "failed"
	}
	return "removed"
}
