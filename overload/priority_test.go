package overload

import (
	"net/http"
	"strings"
	"testing"

	"bsfd/internal/admission"
)

// TestPriorityOnTheServiceBasedInterface proves the order in which a priority
// is found (SBI-030): oc-message-priority, 3gpp-Sbi-Message-Priority, the kind of
// request; and what message profiles make of it, rule by rule.
func TestPriorityOnTheServiceBasedInterface(t *testing.T) {
	rule := func(m MessageRule) MessageRule {
		for _, f := range []struct{ field *string }{{&m.Interface}, {&m.Message}} {
			if *f.field == "" {
				*f.field = "Any"
			}
		}
		if m.Override == "" {
			m.Override = "Always"
		}
		if m.Assign == "" {
			m.Assign = "Never"
		}
		m.ID = "r"
		return m
	}
	const none = admission.Absent
	r := newRig(t, func(*Settings) {})
	for name, x := range map[string]struct {
		rules        []MessageRule
		message      string
		oc, sbi      int
		want, answer int
	}{
		"discovery":                  {nil, "discover", none, none, 15, none},
		"registration":               {nil, "register", none, none, 20, none},
		"deregistration":             {nil, "deregister", none, none, 16, none},
		"header":                     {nil, "register", none, 3, 3, none},
		"oc before header":           {nil, "register", 9, 3, 9, none},
		"always":                     {[]MessageRule{rule(MessageRule{Request: 4})}, "register", 9, 3, 4, none},
		"if not present, present":    {[]MessageRule{rule(MessageRule{Override: "IfNotPresent", Request: 4})}, "register", none, 3, 3, none},
		"if not present, absent":     {[]MessageRule{rule(MessageRule{Override: "IfNotPresent", Request: 4})}, "register", none, none, 4, none},
		"never":                      {[]MessageRule{rule(MessageRule{Override: "Never", Request: 4})}, "register", none, none, 20, none},
		"lowest rule first":          {[]MessageRule{rule(MessageRule{RulePriority: 2, Request: 7}), rule(MessageRule{RulePriority: 1, Request: 8})}, "register", none, none, 8, none},
		"another message":            {[]MessageRule{rule(MessageRule{Message: "Discovery", Request: 7})}, "register", none, none, 20, none},
		"its message":                {[]MessageRule{rule(MessageRule{Message: "Discovery", Request: 7})}, "ue_discover", none, none, 7, none},
		"notifications only":         {[]MessageRule{rule(MessageRule{Interface: "Nbsf_Management_Notify", Request: 7})}, "register", none, none, 20, none},
		"filter holds":               {[]MessageRule{rule(MessageRule{Filters: []MessageFilter{{"3gpp-Sbi-Message-Priority", "Less Than", 10}}, Request: 1})}, "register", none, 9, 1, none},
		"filter does not hold":       {[]MessageRule{rule(MessageRule{Filters: []MessageFilter{{"3gpp-Sbi-Message-Priority", "Less Than", 10}}, Request: 1})}, "register", none, 10, 10, none},
		"filter on what is absent":   {[]MessageRule{rule(MessageRule{Filters: []MessageFilter{{"oc-message-priority", "Not Equals", 10}}, Request: 1})}, "register", none, 11, 11, none},
		"all filters":                {[]MessageRule{rule(MessageRule{Filters: []MessageFilter{{"oc-message-priority", "Equals", 9}, {"3gpp-Sbi-Message-Priority", "Greater Than Equals", 3}}, Request: 1})}, "register", 9, 3, 1, none},
		"answer always":              {[]MessageRule{rule(MessageRule{Override: "Never", Assign: "Always", Response: 6})}, "register", none, 3, 3, 6},
		"answer if not present":      {[]MessageRule{rule(MessageRule{Override: "Never", Assign: "IfNotPresent", Response: 6})}, "register", none, none, 20, 6},
		"answer, the request has it": {[]MessageRule{rule(MessageRule{Override: "Never", Assign: "IfNotPresent", Response: 6})}, "register", none, 3, 3, none},
	} {
		r.change(t, func(s *Settings) {
			s.MessageProfiles = []MessageProfile{{"p", "BSF_Management", x.rules}}
			s.Management.MessagePriority.Profile = "p"
		})
		q := httpRequest(x.message, "POST", x.sbi)
		q.OCPriority = x.oc
		if got, answer := r.Gate(ManagementService).rules.Load().priority.of(q); got != x.want || answer != x.answer {
			t.Errorf("%s: %d and %d in the answer", name, got, answer)
		}
	}
}

// TestAnswersGetTheirPriority proves that the priority of the answer is sent,
// and that notifications get theirs.
func TestAnswersGetTheirPriority(t *testing.T) {
	r := newRig(t, func(s *Settings) {
		s.MessageProfiles = []MessageProfile{{"p", "BSF_Management", []MessageRule{
			{ID: "a", RulePriority: 1, Interface: "Nbsf_Management", Message: "Any", Override: "Never", Assign: "Always", Response: 6},
			{ID: "b", RulePriority: 2, Interface: "Nbsf_Management_Notify", Message: "Notify", Override: "Always", Request: 10, Assign: "Never"},
		}}}
		s.Management.MessagePriority.Profile = "p"
	})
	h := http.Header{}
	if r.Gate(ManagementService).AdmitHTTP(httpRequest("register", "POST", admission.Absent), h) != nil || strings.Join(h["3gpp-Sbi-Message-Priority"], "") != "6" {
		t.Errorf("%v", h)
	}
	if r.SendPriority() != 10 {
		t.Errorf("notifications have %d", r.SendPriority())
	}
	r.change(t, func(s *Settings) { s.Management.MessagePriority.Profile = "" })
	if r.SendPriority() != admission.Absent {
		t.Errorf("notifications have %d", r.SendPriority())
	}
}

// TestPriorityOnDiameter proves the rules of the default profile, RX-080, the
// conditions, and that OC-Message-Priority comes before DRMP.
func TestPriorityOnDiameter(t *testing.T) {
	const none = admission.Absent
	aar := func(kind, drmp, oc int) *admission.Request {
		q := rxRequest("AAR", drmp)
		q.RequestType, q.OCPriority = kind, oc
		q.Begins = kind == 0 || kind == none
		return q
	}
	str := func(drmp int) *admission.Request { return rxRequest("STR", drmp) }
	rule := func(priority, rank int, drmp bool, message string, conditions ...RxCondition) RxRule {
		return RxRule{"r", priority, rank, drmp, RxConditions{"Rx", message, conditions}}
	}
	update := RxCondition{Name: "Rx-Request-Type", Types: []string{"UPDATE_REQUEST"}}
	update.Types = []string{"UPDATE_REQUEST"}
	inSession := aar(none, none, none)
	inSession.Begins = false
	r := newRig(t, func(*Settings) {})
	urgent := str(15)
	urgent.Urgent = true
	for name, x := range map[string]struct {
		rules []RxRule
		r     *admission.Request
		want  int
	}{
		"initial":                    {nil, aar(0, none, none), 13},
		"update":                     {nil, aar(1, none, none), 11},
		"P-CSCF restoration":         {nil, aar(2, none, none), 20},
		"without type, new":          {nil, aar(none, none, none), 13},
		"without type, known":        {nil, inSession, 11},
		"termination":                {nil, str(none), 7},
		"DRMP counts instead":        {nil, str(3), 6},
		"no rule, DRMP":              {nil, rxRequest("RAR", 4), 8},
		"no rule, nothing":           {nil, rxRequest("ASR", none), 20},
		"emergency":                  {nil, urgent, 0},
		"oc before the rules":        {nil, aar(0, 3, 5), 5},
		"drmp not enabled":           {[]RxRule{rule(9, 1, false, "STR")}, str(3), 9},
		"drmp below":                 {[]RxRule{rule(9, 1, false, "STR", RxCondition{Name: "DRMP", Operator: "Less Than", Value: 4})}, str(3), 9},
		"drmp not below":             {[]RxRule{rule(9, 1, false, "STR", RxCondition{Name: "DRMP", Operator: "Less Than", Value: 3})}, str(3), 6},
		"drmp absent":                {[]RxRule{rule(9, 1, false, "STR", RxCondition{Name: "DRMP", Operator: "Not Equals", Value: 3})}, str(none), 20},
		"oc condition before others": {[]RxRule{rule(9, 1, false, "AAR"), rule(4, 2, false, "AAR", RxCondition{Name: "OC-Message-Priority", Operator: "Greater Than", Value: 8})}, aar(0, 2, 9), 4},
		"oc condition does not hold": {[]RxRule{rule(9, 1, false, "AAR"), rule(4, 2, false, "AAR", RxCondition{Name: "OC-Message-Priority", Operator: "Greater Than", Value: 8})}, aar(0, 2, 8), 8},
		"order of rules":             {[]RxRule{rule(9, 2, false, ""), rule(4, 1, false, "AAR", update)}, aar(1, none, none), 4},
		"order of rules, other":      {[]RxRule{rule(9, 2, false, ""), rule(4, 1, false, "AAR", update)}, aar(0, none, none), 9},
		"another application":        {[]RxRule{rule(9, 1, false, "")}, &admission.Request{Message: "other", Application: 4, DRMP: none, OCPriority: none, RequestType: none}, 20},
	} {
		r.change(t, func(s *Settings) {
			s.RxPriorities = Default().RxPriorities
			if x.rules != nil {
				s.RxPriorities = []RxPriorityProfile{{defaultProfile, x.rules}}
			}
		})
		if got, _ := r.Gate(DiameterService).rules.Load().priority.of(x.r); got != x.want {
			t.Errorf("%s: %d, not %d", name, got, x.want)
		}
	}
}

// TestWrongSettingsAreRefused proves that the check finds what is wrong and
// names it.
func TestWrongSettingsAreRefused(t *testing.T) {
	for want, change := range map[string]func(*Settings){
		"congestionControl.diameter.stateCalculationInterval: must be 50":  func(s *Settings) { s.Congestion.Diameter.StateCalculationInterval = 49 },
		"congestionControl.management.stateChangeSampleCount: must be 1":   func(s *Settings) { s.Congestion.Management.StateChangeSampleCount = 0 },
		`congestionControl.management.thresholdProfile: there is no "x"`:   func(s *Settings) { s.Congestion.Management.ThresholdProfile = "x" },
		"thresholdProfiles[0].states[1].cpu: must be above":                func(s *Settings) { s.Thresholds[0].States[1].CPU = 75 },
		"thresholdProfiles[0].states[2].queue: must be above":              func(s *Settings) { s.Thresholds[0].States[2].Pending = 1 },
		"thresholdProfiles[0].states[1].state: must come after":            func(s *Settings) { s.Thresholds[0].States[1].State = Danger },
		"thresholdProfiles[1].name: \"default_management\" is there twice": func(s *Settings) { s.Thresholds[1].Name = defaultManagement },
		"thresholdProfiles[0].name: must be 1 to 64":                       func(s *Settings) { s.Thresholds[0].Name = "a b" },
		"thresholdProfiles[0].states[0].state: must be":                    func(s *Settings) { s.Thresholds[0].States[0].State = Normal },
		"loadSheddingRules[0].rules[0].discardPriority: must be 0 to 31":   func(s *Settings) { s.Shedding[0].Rules[0].DiscardPriority = 32 },
		"loadSheddingRules[2].rules[0].discardPriorityTo: must not be":     func(s *Settings) { s.Shedding[2].Rules[0].To = 26 },
		"ocDiscardPolicies[0].policies[0].value: must be 0 to 31":          func(s *Settings) { s.Policies[0].Policies[0].Value = 32 },
		"ansWithResultCode: \"NO\" is no result code":                      func(s *Settings) { s.RxShedding[0].Rules[0].Result = "NO" },
		"overloadLevelThresholdProfiles[0].levels[1].onset: must be": func(s *Settings) {
			s.LevelProfiles[0].Levels[1].Onset.CPU = 44
			s.LevelProfiles[0].Levels[1].Abatement.CPU = 1
		},
		"overloadLevelThresholdProfiles[0].levels[0].abatement: must not": func(s *Settings) { s.LevelProfiles[0].Levels[0].Abatement.CPU = 45 },
		"overloadLevelThresholdProfiles[0]: has neither":                  func(s *Settings) { s.LevelProfiles[0].Levels = nil },
		"toleranceMaximum: must be above":                                 func(s *Settings) { s.NodeProfiles[0].ToleranceMax = 80 },
		"reductionMetricMaximum: must not be below":                       func(s *Settings) { s.NodeProfiles[0].ReductionMax = 9 },
		"dnnList: must have at most 3":                                    func(s *Settings) { s.ExcludeProfiles[0].DNNs = []string{"a", "b", "c", "d"} },
		"procedureList[0]: must be session-delete, new-call or modify":    func(s *Settings) { s.ExcludeProfiles[0].Procedures = []string{"x"} },
		"value: must be 0 to 15 for DRMP": func(s *Settings) {
			s.RxPriorities[0].Rules[1].Conditions.AVPs = []RxCondition{{Name: "DRMP", Value: 16}}
		},
		"routesConfiguration[1]: another route": func(s *Settings) { s.Routes[1].Method = "POST" },
		"podProtection.states[0].cpu: must be":  func(s *Settings) { s.Protection.States[0].CPU = 101 },
	} {
		s := Default()
		change(&s)
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	s := Default()
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}
