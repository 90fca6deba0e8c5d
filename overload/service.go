package overload

import (
	"fmt"
	"time"

	"bsfd/internal/admission"
)

// serviceState is what is known of the load of a service.
type serviceState struct {
	// Congestion.
	congestionAt  time.Time
	cpu           cpuMeter
	congestion    machine
	resources     [3]Level // of cpu, queue, memory
	use           [3]float64
	protectionAt  time.Time
	protectionCPU cpuMeter
	protection    machine // of the entrance: Danger and Congested
	// Overload levels.
	overloadAt  time.Time
	overloadCPU cpuMeter
	failures    uint64
	steps       [4]stepped // of cpu, pending, failures, memory
	stress      [4]float64
	overload    int
	arrivals    tally
	adaptive    adaptive
}

// resourceNames are the labels of the resources of congestion control.
var resourceNames = [3]string{"cpu", "queue", "memory"}

// stressNames are the labels of the resources of overload control.
var stressNames = [4]string{"cpu", "svc_pending_count", "svc_failure_count", "memory"}

// congestionOf are the congestion settings of the service.
func (s *Settings) congestionOf(svc Service) *ServiceCongestion {
	if svc == DiameterService {
		return &s.Congestion.Diameter
	}
	return &s.Congestion.Management
}

// step takes a sample of the service.
func (p *serviceState) step(c *Controller, svc Service, now time.Time, u Usage, in Input) {
	s, pending := &c.settings, in.Pending()
	if cc := s.congestionOf(svc); due(&p.congestionAt, now, milliseconds(cc.StateCalculationInterval)) {
		p.sampleCongestion(c, svc, now, u, pending)
	}
	if svc == ManagementService && due(&p.protectionAt, now, milliseconds(s.Protection.MonitoringInterval)) {
		p.sampleProtection(c, now, u, pending)
	}
	last := p.overloadAt
	if due(&p.overloadAt, now, milliseconds(s.Levels.SamplingPeriod)) {
		p.sampleOverload(c, svc, now, now.Sub(last), u, pending)
	}
	if p.counts(s, svc) {
		p.adaptive.step(c.gates[svc], s.adaptiveOf(svc), &p.arrivals, now, u, pending, in.Backlog())
	} else {
		p.adaptive = adaptive{}
	}
}

func (p *serviceState) sampleCongestion(c *Controller, svc Service, now time.Time, u Usage, pending int) {
	cc := c.settings.congestionOf(svc)
	limits := &c.plans[svc].limits
	p.use = [3]float64{p.cpu.percent(now, u), float64(pending), u.Memory}
	worst := Normal
	for i, use := range p.use {
		l := above(use, &limits[i])
		if l != p.resources[i] {
			c.metrics.resourceReports.WithLabelValues(svc.String(), resourceNames[i], l.String()).Inc()
		}
		p.resources[i] = l
		worst = max(worst, l)
	}
	was := p.congestion.level
	if !p.congestion.note(worst, cc.StateChangeSampleCount) {
		return
	}
	c.metrics.stateReports.WithLabelValues(svc.String(), p.congestion.level.String()).Inc()
	c.noteLevel(svc, "congestion", was, p.congestion.level, p.use)
}

// noteLevel logs a change of state: as an error when it is the worst one.
func (c *Controller) noteLevel(svc Service, what string, was, is Level, use [3]float64) {
	line := c.log.Warn()
	if is == Congested {
		line = c.log.Error()
	}
	line.Stringer("service", svc).Stringer("from", was).Stringer("to", is).
		Float64("cpuPercent", use[0]).Float64("pending", use[1]).Float64("memoryPercent", use[2]).Msg(what + " state changed")
}

func (p *serviceState) sampleProtection(c *Controller, now time.Time, u Usage, pending int) {
	if !c.settings.Protection.Enabled {
		p.protection = machine{}
		return
	}
	use := [3]float64{p.protectionCPU.percent(now, u), float64(pending), u.Memory}
	worst := Normal
	for _, st := range c.settings.Protection.States {
		for i, limit := range [3]int{st.CPU, st.Pending, st.Memory} {
			if limit > 0 && use[i] > float64(limit) {
				worst = max(worst, st.level())
			}
		}
	}
	was := p.protection.level
	if p.protection.note(worst, c.settings.Protection.StateChangeSampleCount) {
		c.noteLevel(ManagementService, "pod protection", was, p.protection.level, use)
	}
}

func (s *ProtectionState) level() Level {
	if s.Name == "DoC" {
		return Danger
	}
	return Congested
}

func (p *serviceState) sampleOverload(c *Controller, svc Service, now time.Time, took time.Duration, u Usage, pending int) {
	failures := c.gates[svc].failures.Load()
	rate := float64(failures-p.failures) / took.Seconds()
	p.failures = failures
	p.stress = [4]float64{p.overloadCPU.percent(now, u), float64(pending), rate, u.Memory}
	levels := c.plans[svc].steps
	if levels == nil {
		p.steps, p.overload = [4]stepped{}, 0
		return
	}
	was := p.overload
	p.overload = 0
	for i, l := range levels {
		p.overload = max(p.overload, p.steps[i].note(p.stress[i], l.onset, l.abatement))
	}
	if p.overload != was {
		line := c.log.Warn()
		if p.overload > was {
			line = c.log.Error()
		}
		line.Stringer("service", svc).Int("from", was).Int("to", p.overload).Floats64("use", p.stress[:]).Msg("overload level changed")
	}
}

// counts reports whether the arrivals of the service are to be counted by
// priority.
func (p *serviceState) counts(s *Settings, svc Service) bool {
	if s.adaptiveOf(svc).Enabled {
		return true
	}
	return svc == ManagementService && s.PolicyMapping.Enabled && s.Levels.Enabled
}

// shedding are the reasons to shed load of the service.
func (p *serviceState) shedding(c *Controller, svc Service) (list [][priorities]verdict) {
	s := &c.settings
	if cc := s.congestionOf(svc); cc.Enabled && p.congestion.level > Normal {
		list = append(list, p.byCongestion(c, svc, cc))
	}
	if s.Levels.Enabled && p.overload > 0 {
		if svc == ManagementService && s.PolicyMapping.Enabled {
			list = append(list, p.byPolicy(c))
		}
		if svc == DiameterService {
			list = append(list, p.byLoadShedding(c))
		}
	}
	if svc == ManagementService && s.Protection.Enabled && p.protection.level > Normal {
		list = append(list, p.byProtection(c))
	}
	if s.adaptiveOf(svc).Enabled && p.adaptive.reduction > 0 {
		shares := lowestFirst(&p.arrivals.recent, p.adaptive.reduction)
		list = append(list, spread(shares, byAdaptive, c.refusal(svc, "", "more comes than can be served")))
	}
	return list
}

// from refuses a share of the priorities from one to another.
func from(first, last int, s share, why reason, refusal *admission.Refusal) (shed [priorities]verdict) {
	for p := first; p <= last; p++ {
		shed[p] = verdict{s, why, refusal}
	}
	return shed
}

func spread(shares [priorities]share, why reason, refusal *admission.Refusal) (shed [priorities]verdict) {
	for p, s := range shares {
		if s > 0 {
			shed[p] = verdict{s, why, refusal}
		}
	}
	return shed
}

// percent is the share of a percentage in which 0 stands for all.
func percent(n int) share {
	if n == 0 {
		return whole
	}
	return share(n * whole / 100)
}

func (p *serviceState) byCongestion(c *Controller, svc Service, cc *ServiceCongestion) (shed [priorities]verdict) {
	profile := find(c.settings.Shedding, cc.LoadSheddingProfile, func(p *SheddingProfile) string { return p.Name })
	if profile == nil {
		return shed
	}
	refusal := c.refusal(svc, profile.ErrorCodeProfile, "is in "+p.congestion.level.String())
	for _, r := range profile.Rules {
		if r.State != p.congestion.level {
			continue
		}
		last := r.To
		if r.Percentage == 0 {
			last = priorities - 1
		}
		for i, v := range from(r.DiscardPriority, last, percent(r.Percentage), byCongestion, refusal) {
			if v.share > shed[i].share {
				shed[i] = v
			}
		}
	}
	return shed
}

// levelName is the name of an overload level, 1 to 3.
func levelName(l int) string { return fmt.Sprintf("L%d", l) }

func (p *serviceState) byPolicy(c *Controller) (shed [priorities]verdict) {
	policy := find(c.settings.Policies, c.settings.PolicyMapping.Policy, func(p *DiscardPolicy) string { return p.Name })
	if policy == nil {
		return shed
	}
	d := find(policy.Policies, levelName(p.overload), func(d *Discard) string { return d.Level })
	if d == nil {
		return shed
	}
	refusal := c.refusal(ManagementService, d.ErrorCodeProfile, "is at overload level "+d.Level)
	if policy.Scheme == "PriorityBased" {
		return from(d.Value, priorities-1, whole, byOverload, refusal)
	}
	return spread(lowestFirst(&p.arrivals.recent, float64(d.Value)/100), byOverload, refusal)
}

func (p *serviceState) byLoadShedding(c *Controller) (shed [priorities]verdict) {
	profile := find(c.settings.RxShedding, c.settings.Diameter.LoadSheddingProfile, func(p *RxSheddingProfile) string { return p.Name })
	if profile == nil {
		return shed
	}
	for _, r := range profile.Rules {
		if r.Level != levelName(p.overload) {
			continue
		}
		refusal := c.refusal(DiameterService, "", "is at overload level "+r.Level)
		if code, ok := resultCode(r.Result); ok {
			refusal.Result, refusal.Vendor = code, 0
		}
		return from(r.DiscardPriority, priorities-1, percent(r.Percentage), byOverload, refusal)
	}
	return shed
}

func (p *serviceState) byProtection(c *Controller) (shed [priorities]verdict) {
	for _, st := range c.settings.Protection.States {
		if st.level() == p.protection.level {
			return from(st.DiscardPriority, priorities-1, whole, byProtection, c.refusal(ManagementService, st.ErrorCodeProfile, "the entrance is in state "+st.Name))
		}
	}
	return shed
}
