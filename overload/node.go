package overload

import (
	"time"
)

// nodeLevel is the state of the node by its overload profile.
type nodeLevel int

const (
	nodeNormal nodeLevel = iota
	nodeOverloaded
	selfProtection
)

// String is the name of the state.
func (l nodeLevel) String() string {
	return [...]string{"normal", "overload", "self-protection"}[l]
}

// nodeState is the load of the node by its load profile.
type nodeState struct {
	at    time.Time
	cpu   cpuMeter
	load  int // in percent
	state nodeLevel
	// reduction is what peers are asked for, in percent; 0 for nothing.
	reduction int
	// loadAt and reductionAt are when these values came about.
	loadAt, reductionAt time.Time
}

// profile is the overload profile, nil for none.
func (n *nodeState) profile(s *Settings) *NodeProfile {
	if s.Node.LoadProfile == "" {
		return nil
	}
	return find(s.NodeProfiles, s.Node.OverloadProfile, func(p *NodeProfile) string { return p.Name })
}

func loadProfile(s *Settings) *LoadProfile {
	return find(s.LoadProfiles, s.Node.LoadProfile, func(p *LoadProfile) string { return p.Name })
}

// step calculates the load when that is due.
func (n *nodeState) step(c *Controller, now time.Time, u Usage) {
	s := &c.settings
	lp := loadProfile(s)
	if lp == nil {
		n.state, n.reduction, n.load, n.at = nodeNormal, 0, 0, time.Time{}
		return
	}
	first := n.at.IsZero()
	if !due(&n.at, now, time.Duration(lp.CalcFrequency)*time.Second) {
		return
	}
	cpu := n.cpu.percent(now, u)
	if first {
		// There is no usage between two samples yet: look again soon.
		n.at = now.Add(-time.Duration(lp.CalcFrequency)*time.Second + time.Second)
	}
	load := max(cpu, u.Memory)
	for svc := range Service(services) {
		if full := c.plans[svc].limits[1][Congested]; full > 0 {
			load = max(load, 100*float64(c.inputs[svc].Pending())/float64(full))
		}
	}
	n.set(c, now, int(min(load, 100)))
}

// set takes a load over.
func (n *nodeState) set(c *Controller, now time.Time, load int) {
	if load != n.load || n.loadAt.IsZero() {
		n.load, n.loadAt = load, now
	}
	state, reduction := nodeNormal, 0
	if p := n.profile(&c.settings); p != nil {
		state, reduction = p.at(load)
	}
	if reduction != n.reduction {
		n.reduction, n.reductionAt = reduction, now
	}
	if state != n.state {
		c.log.Warn().Stringer("from", n.state).Stringer("to", state).Int("load", load).Msg("state of the node changed")
		n.state = state
	}
}

// at is the state at a load, and the reduction, interpolated between the
// minimum and the maximum.
func (p *NodeProfile) at(load int) (nodeLevel, int) {
	switch {
	case load < p.ToleranceMin:
		return nodeNormal, 0
	case load >= p.ToleranceMax:
		return selfProtection, p.ReductionMax
	}
	span := p.ToleranceMax - p.ToleranceMin
	return nodeOverloaded, p.ReductionMin + (p.ReductionMax-p.ReductionMin)*(load-p.ToleranceMin)/span
}
