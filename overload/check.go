package overload

import (
	"fmt"

	"bsfd/internal/settings"
)

// Check reports the first wrong setting. The error is a *settings.Invalid.
func (s *Settings) Check() error {
	if err := settings.Check(s); err != nil {
		return err
	}
	for _, check := range []func() error{s.checkReferences, s.checkThresholds, s.checkLevels, s.checkShedding, s.checkPriorities, s.checkNode, s.checkRoutes} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// reference is a name of an element of a list.
type reference struct {
	member, name string
	required     bool
	known        func(name string) bool
}

func names[T any](list []T, of func(*T) string) func(string) bool {
	return func(name string) bool { return find(list, name, of) != nil }
}

func (s *Settings) checkReferences() error {
	thresholds := names(s.Thresholds, func(p *ThresholdProfile) string { return p.Name })
	shedding := names(s.Shedding, func(p *SheddingProfile) string { return p.Name })
	levels := names(s.LevelProfiles, func(p *LevelProfile) string { return p.Name })
	codes := names(s.ErrorCodes, func(p *ErrorCodeProfile) string { return p.Name })
	exclude := names(s.ExcludeProfiles, func(p *ExcludeProfile) string { return p.Name })
	refs := []reference{
		{"congestionControl.management.thresholdProfile", s.Congestion.Management.ThresholdProfile, true, thresholds},
		{"congestionControl.diameter.thresholdProfile", s.Congestion.Diameter.ThresholdProfile, true, thresholds},
		{"congestionControl.management.loadSheddingProfile", s.Congestion.Management.LoadSheddingProfile, true, shedding},
		{"congestionControl.diameter.loadSheddingProfile", s.Congestion.Diameter.LoadSheddingProfile, true, shedding},
		{"managementService.messagePriority.messagePriorityProfile", s.Management.MessagePriority.Profile, false, names(s.MessageProfiles, func(p *MessageProfile) string { return p.Name })},
		{"diameterSettings.messagePriorityProfile", s.Diameter.MessagePriorityProfile, false, names(s.RxPriorities, func(p *RxPriorityProfile) string { return p.Name })},
		{"diameterSettings.loadSheddingProfile", s.Diameter.LoadSheddingProfile, false, names(s.RxShedding, func(p *RxSheddingProfile) string { return p.Name })},
		{"overloadLevelThreshold.managementProfile", s.Levels.Management, false, levels},
		{"overloadLevelThreshold.diameterProfile", s.Levels.Diameter, false, levels},
		{"ocPolicyMapping.policyName", s.PolicyMapping.Policy, false, names(s.Policies, func(p *DiscardPolicy) string { return p.Name })},
		{"controlledShutdown.errorCodeProfile", s.Shutdown.ErrorCodeProfile, false, codes},
		{"bsfProfile.loadProfile", s.Node.LoadProfile, false, names(s.LoadProfiles, func(p *LoadProfile) string { return p.Name })},
		{"bsfProfile.overloadProfile", s.Node.OverloadProfile, false, names(s.NodeProfiles, func(p *NodeProfile) string { return p.Name })},
	}
	for i, p := range s.Shedding {
		refs = append(refs, reference{fmt.Sprintf("loadSheddingRules[%d].errorCodeProfile", i), p.ErrorCodeProfile, false, codes})
	}
	for i, p := range s.Policies {
		for j, d := range p.Policies {
			refs = append(refs, reference{fmt.Sprintf("ocDiscardPolicies[%d].policies[%d].errorCodeProfile", i, j), d.ErrorCodeProfile, false, codes})
		}
	}
	for i, r := range s.Routes {
		refs = append(refs, reference{fmt.Sprintf("routesConfiguration[%d].errorCodeProfile", i), r.ErrorCodeProfile, false, codes})
	}
	for i, p := range s.Protection.States {
		refs = append(refs, reference{fmt.Sprintf("podProtection.states[%d].errorCodeProfile", i), p.ErrorCodeProfile, false, codes})
	}
	for i, p := range s.NodeProfiles {
		refs = append(refs,
			reference{fmt.Sprintf("overloadProfiles[%d].overloadExcludeProfile", i), p.Exclude, false, exclude},
			reference{fmt.Sprintf("overloadProfiles[%d].peerExcludeProfile", i), p.PeerExclude, false, exclude})
	}
	for _, r := range refs {
		if (r.name != "" || r.required) && !r.known(r.name) {
			return settings.Fail(r.member, "there is no %q", r.name)
		}
	}
	return nil
}

// checkThresholds wants the states of a profile in order, each once, and their
// thresholds rising.
func (s *Settings) checkThresholds() error {
	for i, p := range s.Thresholds {
		for j := 1; j < len(p.States); j++ {
			a, b := p.States[j-1], p.States[j]
			at := fmt.Sprintf("thresholdProfiles[%d].states[%d]", i, j)
			switch {
			case b.State <= a.State:
				return settings.Fail(at+".state", "must come after %s, in the order of severity", a.State)
			case falls(a.CPU, b.CPU):
				return settings.Fail(at+".cpu", "must be above that of %s", a.State)
			case falls(a.Pending, b.Pending):
				return settings.Fail(at+".queue", "must be above that of %s", a.State)
			case falls(a.Memory, b.Memory):
				return settings.Fail(at+".memory", "must be above that of %s", a.State)
			}
		}
	}
	return nil
}

// falls reports whether a value that is there is not above one before it.
func falls(before, after int) bool { return before != 0 && after != 0 && after <= before }

func (s *Settings) checkLevels() error {
	for i, p := range s.LevelProfiles {
		at := fmt.Sprintf("overloadLevelThresholdProfiles[%d]", i)
		if len(p.Levels) == 0 && p.Capacity == (Capacity{}) {
			return settings.Fail(at, "has neither levels nor a capacity to derive them from")
		}
		rows := p.derived()
		for j, l := range rows {
			at := fmt.Sprintf("%s.levels[%d]", at, j)
			if l.Level != levelName(j+1) {
				return settings.Fail(at+".level", "must be %s: L1, L2 and L3 in this order", levelName(j+1))
			}
			for r := range stressNames {
				onset, abatement := l.Onset.of(r), l.Abatement.of(r)
				if abatement > onset {
					return settings.Fail(at+".abatement", "must not be above the onset")
				}
				if j > 0 && falls(rows[j-1].Onset.of(r), onset) {
					return settings.Fail(at+".onset", "must be above that of %s", rows[j-1].Level)
				}
			}
		}
	}
	return nil
}

func (s *Settings) checkShedding() error {
	for i, p := range s.Shedding {
		for j, r := range p.Rules {
			if r.Percentage > 0 && r.To < r.DiscardPriority {
				return settings.Fail(fmt.Sprintf("loadSheddingRules[%d].rules[%d].discardPriorityTo", i, j), "must not be below discardPriority")
			}
		}
	}
	for i, p := range s.Policies {
		for j, d := range p.Policies {
			if p.Scheme == "PriorityBased" && d.Value >= priorities {
				return settings.Fail(fmt.Sprintf("ocDiscardPolicies[%d].policies[%d].value", i, j), "must be 0 to 31 in the scheme PriorityBased")
			}
		}
	}
	for i, p := range s.RxShedding {
		for j, r := range p.Rules {
			if _, ok := resultCode(r.Result); r.Result != "" && !ok {
				return settings.Fail(fmt.Sprintf("diameterLoadSheddingProfiles[%d].overloadLoadSheddingRules[%d].ansWithResultCode", i, j), "%q is no result code", r.Result)
			}
		}
	}
	return nil
}

func (s *Settings) checkPriorities() error {
	for i, p := range s.RxPriorities {
		for j, r := range p.Rules {
			for k, c := range r.Conditions.AVPs {
				at := fmt.Sprintf("diameterMessagePriorityProfiles[%d].priorityRules[%d].conditions.preDefinedAVPConditions[%d]", i, j, k)
				switch {
				case c.Name == "DRMP" && c.Value > 15:
					return settings.Fail(at+".value", "must be 0 to 15 for DRMP")
				case c.Name == "Rx-Request-Type" && len(c.Types) == 0:
					return settings.Fail(at+".conditionRxRTValue", "there is none")
				}
			}
		}
	}
	return nil
}

func (s *Settings) checkNode() error {
	const dnns = 3
	for i, p := range s.ExcludeProfiles {
		if len(p.DNNs) > dnns {
			return settings.Fail(fmt.Sprintf("overloadExcludeProfiles[%d].dnnList", i), "must have at most %d entries", dnns)
		}
	}
	for i, p := range s.NodeProfiles {
		switch at := fmt.Sprintf("overloadProfiles[%d]", i); {
		case p.ToleranceMax <= p.ToleranceMin:
			return settings.Fail(at+".toleranceMaximum", "must be above toleranceMinimum")
		case p.ReductionMax < p.ReductionMin:
			return settings.Fail(at+".reductionMetricMaximum", "must not be below reductionMetricMinimum")
		}
	}
	return nil
}

// checkRoutes wants every route once, and only methods that the collection has.
func (s *Settings) checkRoutes() error {
	seen := make(map[[2]string]bool)
	for i, r := range s.Routes {
		if key := [2]string{r.Path, r.Method}; seen[key] {
			return settings.Fail(fmt.Sprintf("routesConfiguration[%d]", i), "another route has %s %s, too", r.Method, r.Path)
		} else {
			seen[key] = true
		}
	}
	return nil
}
