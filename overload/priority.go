package overload

import (
	"cmp"
	"slices"

	"bsfd/internal/admission"
)

// priorities is how many there are: 0 (highest) to 31.
const priorities = 32

// priority decides the priority of requests of one service. It does not
// change once it is made.
type priority interface {
	// of is the priority of the request, and that of its answer or
	// admission.Absent.
	of(r *admission.Request) (request, answer int)
}

// sbiPriority is the priority of requests on the service-based interface.
type sbiPriority struct {
	rules    []MessageRule // of the active profile, in their order
	advanced Advanced
}

func newSBIPriority(s *Settings) *sbiPriority {
	p := &sbiPriority{advanced: s.Management.Advanced}
	if profile := find(s.MessageProfiles, s.Management.MessagePriority.Profile, func(p *MessageProfile) string { return p.Name }); profile != nil {
		p.rules = slices.Clone(profile.Rules)
		slices.SortStableFunc(p.rules, func(a, b MessageRule) int { return cmp.Compare(a.RulePriority, b.RulePriority) })
	}
	return p
}

// find is the element with the name, nil when there is none.
func find[T any](list []T, name string, of func(*T) string) *T {
	for i := range list {
		if of(&list[i]) == name {
			return &list[i]
		}
	}
	return nil
}

// received is the priority that a request brings: oc-message-priority before
// 3gpp-Sbi-Message-Priority.
func received(r *admission.Request) int {
	if r.OCPriority != admission.Absent {
		return r.OCPriority
	}
	return r.SBIPriority
}

func (p *sbiPriority) of(r *admission.Request) (request, answer int) {
	request, answer = received(r), admission.Absent
	if rule := p.rule("Nbsf_Management", messageType(r.Message), r); rule != nil {
		answer = rule.answer(request)
		request = rule.request(request)
	}
	if r.Urgent {
		return 0, answer
	}
	if request == admission.Absent {
		request = p.byMessage(r)
	}
	return request, answer
}

// sent is the priority of a notification that is sent, or admission.Absent.
func (p *sbiPriority) sent() int {
	r := &admission.Request{OCPriority: admission.Absent, SBIPriority: admission.Absent}
	rule := p.rule("Nbsf_Management_Notify", "Notify", r)
	if rule == nil {
		return admission.Absent
	}
	return rule.request(admission.Absent)
}

// rule is the first that matches.
func (p *sbiPriority) rule(iface, message string, r *admission.Request) *MessageRule {
	for i := range p.rules {
		rule := &p.rules[i]
		if (rule.Interface == "Any" || rule.Interface == iface) && (rule.Message == "Any" || rule.Message == message) && rule.passes(r) {
			return rule
		}
	}
	return nil
}

func (m *MessageRule) passes(r *admission.Request) bool {
	for _, f := range m.Filters {
		v := r.SBIPriority
		if f.Name == "oc-message-priority" {
			v = r.OCPriority
		}
		if v == admission.Absent || !compare(f.Operator, v, f.Value) {
			return false
		}
	}
	return true
}

// request is the priority of a request that brings one, or none.
func (m *MessageRule) request(brought int) int {
	if m.Override == "Always" || m.Override == "IfNotPresent" && brought == admission.Absent {
		return m.Request
	}
	return brought
}

// answer is the priority that is put into the answer.
func (m *MessageRule) answer(brought int) int {
	if m.Assign == "Always" || m.Assign == "IfNotPresent" && brought == admission.Absent {
		return m.Response
	}
	return admission.Absent
}

// byMessage is the configured priority of the kind of request.
func (p *sbiPriority) byMessage(r *admission.Request) int {
	switch messageType(r.Message) {
	case "Discovery":
		return p.advanced.Get
	case "Register":
		return p.advanced.Post
	case "Update":
		return p.advanced.Patch
	case "Deregister":
		return p.advanced.Delete
	}
	return p.advanced.Subscription
}

// messageType is the messageType of an operation.
func messageType(operation string) string {
	switch operation {
	case "register", "ue_register", "mbs_register":
		return "Register"
	case "discover", "ue_discover", "mbs_discover":
		return "Discovery"
	case "update", "ue_update", "mbs_update":
		return "Update"
	case "deregister", "ue_deregister", "mbs_deregister":
		return "Deregister"
	case "unsubscribe":
		return "Unsubscribe"
	}
	return "Subscribe"
}

// rxPriority is the priority of requests on Diameter.
type rxPriority struct {
	// rules are those of the active profile in their order, those with a
	// condition on OC-Message-Priority before all others.
	rules    []RxRule
	fallback int
}

func newRxPriority(s *Settings) *rxPriority {
	p := &rxPriority{fallback: s.Diameter.DefaultPriority}
	if profile := find(s.RxPriorities, s.Diameter.MessagePriorityProfile, func(p *RxPriorityProfile) string { return p.Name }); profile != nil {
		p.rules = slices.Clone(profile.Rules)
		slices.SortStableFunc(p.rules, func(a, b RxRule) int {
			if x, y := a.wantsOC(), b.wantsOC(); x != y {
				if x {
					return -1
				}
				return 1
			}
			return cmp.Compare(a.RulePriority, b.RulePriority)
		})
	}
	return p
}

func (r *RxRule) wantsOC() bool {
	return slices.ContainsFunc(r.Conditions.AVPs, func(c RxCondition) bool { return c.Name == "OC-Message-Priority" })
}

func (p *rxPriority) of(r *admission.Request) (request, answer int) {
	return p.priority(r), admission.Absent
}

func (p *rxPriority) priority(r *admission.Request) int {
	if r.Urgent {
		return 0
	}
	for i := range p.rules {
		rule := &p.rules[i]
		if r.OCPriority != admission.Absent && !rule.wantsOC() {
			return r.OCPriority
		}
		if rule.matches(r) {
			if rule.EnableDRMP && r.DRMP != admission.Absent {
				return 2 * r.DRMP
			}
			return rule.MessagePriority
		}
	}
	switch {
	case r.OCPriority != admission.Absent:
		return r.OCPriority
	case r.DRMP != admission.Absent:
		return 2 * r.DRMP
	}
	return p.fallback
}

// rxApplication is the application of Rx (TS 29.214 §5.1).
const rxApplication = 16777236

func (r *RxRule) matches(q *admission.Request) bool {
	c := &r.Conditions
	if c.Application != "" && q.Application != rxApplication || c.Message != "" && c.Message != q.Message {
		return false
	}
	for i := range c.AVPs {
		if !c.AVPs[i].holds(q) {
			return false
		}
	}
	return true
}

var requestTypes = [...]string{"INITIAL_REQUEST", "UPDATE_REQUEST", "PCSCF_RESTORATION_REQUEST"}

func (c *RxCondition) holds(q *admission.Request) bool {
	switch c.Name {
	case "Rx-Request-Type":
		if q.RequestType == admission.Absent {
			// A request without the AVP begins a session or changes one.
			name := requestTypes[1]
			if q.Begins {
				name = requestTypes[0]
			}
			return slices.Contains(c.Types, name)
		}
		return q.RequestType < len(requestTypes) && slices.Contains(c.Types, requestTypes[q.RequestType])
	case "DRMP":
		return q.DRMP != admission.Absent && compare(c.Operator, q.DRMP, c.Value)
	}
	return q.OCPriority != admission.Absent && compare(c.Operator, q.OCPriority, c.Value)
}

func compare(operator string, a, b int) bool {
	switch operator {
	case "Not Equals":
		return a != b
	case "Less Than":
		return a < b
	case "Less Than Equals":
		return a <= b
	case "Greater Than":
		return a > b
	case "Greater Than Equals":
		return a >= b
	}
	return a == b
}
