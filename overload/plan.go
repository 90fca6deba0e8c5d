package overload

// plan is what the settings say of a service, in the form in which samples and
// requests are held against it. It does not change once it is made.
type plan struct {
	priority priority
	profile  bool // a message profile is active
	// limits are the congestion thresholds by resource and state, 0 for none.
	limits [3][levels]int
	// steps are the overload levels by resource; nil when there are none.
	steps *[4]steps
}

// steps are the onset and the abatement of a resource by overload level, from
// 1 on.
type steps struct{ onset, abatement []int }

func newPlan(s *Settings, svc Service) *plan {
	p := &plan{limits: s.thresholds(s.congestionOf(svc).ThresholdProfile), steps: s.steps(svc)}
	if svc == DiameterService {
		p.priority = newRxPriority(s)
		return p
	}
	sbi := newSBIPriority(s)
	p.priority, p.profile = sbi, len(sbi.rules) > 0
	return p
}

// thresholds are the limits of a profile by resource and state.
func (s *Settings) thresholds(name string) (limits [3][levels]int) {
	profile := find(s.Thresholds, name, func(p *ThresholdProfile) string { return p.Name })
	if profile == nil {
		return limits
	}
	for _, t := range profile.States {
		limits[0][t.State], limits[1][t.State], limits[2][t.State] = t.CPU, t.Pending, t.Memory
	}
	return limits
}

// steps are the overload levels of a service, nil when they do not count.
func (s *Settings) steps(svc Service) *[4]steps {
	name := s.Levels.Management
	if svc == DiameterService {
		name = s.Levels.Diameter
	}
	profile := find(s.LevelProfiles, name, func(p *LevelProfile) string { return p.Name })
	if !s.Levels.Enabled || profile == nil {
		return nil
	}
	rows := profile.derived()
	var list [4]steps
	for i := range list {
		list[i] = steps{make([]int, len(rows)+1), make([]int, len(rows)+1)}
		for j := range rows {
			list[i].onset[j+1], list[i].abatement[j+1] = rows[j].Onset.of(i), rows[j].Abatement.of(i)
		}
	}
	return &list
}

// of is the value of a resource, in the order of stressNames.
func (r *Resources) of(i int) int { return [4]int{r.CPU, r.Pending, r.Failures, r.Memory}[i] }
