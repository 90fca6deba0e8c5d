package bsf

import (
	"slices"

	"bsfd/internal/tgpp"
)

// Events of a subscription (TS 29.521 §5.6.3.3). Other texts are kept and
// never happen.
const (
	EventPduRegistration      = "PCF_PDU_SESSION_BINDING_REGISTRATION"
	EventPduDeregistration    = "PCF_PDU_SESSION_BINDING_DEREGISTRATION"
	EventUeRegistration       = "PCF_UE_BINDING_REGISTRATION"
	EventUeDeregistration     = "PCF_UE_BINDING_DEREGISTRATION"
	EventSnssaiRegistration   = "SNSSAI_DNN_BINDING_REGISTRATION"
	EventSnssaiDeregistration = "SNSSAI_DNN_BINDING_DEREGISTRATION"
)

// SnssaiDnnPair is a slice with a data network (TS 29.521 §5.6.2.15).
type SnssaiDnnPair struct {
	Dnn    tgpp.Dnn    `json:"dnn"`
	Snssai tgpp.Snssai `json:"snssai"`
}

func (p SnssaiDnnPair) match(b *PcfBinding) bool {
	return p.Dnn.Match(b.Dnn) && p.Snssai.Equal(b.Snssai)
}

// Subscription is an Individual Binding Subscription (TS 29.521 §5.6.2.9,
// BsfSubscription).
type Subscription struct {
	Events            []string        `json:"events"`
	NotifUri          string          `json:"notifUri"`
	NotifCorreId      string          `json:"notifCorreId"`
	Supi              tgpp.Supi       `json:"supi"`
	Gpsi              tgpp.Gpsi       `json:"gpsi,omitempty"`
	SnssaiDnnPairs    *SnssaiDnnPair  `json:"snssaiDnnPairs,omitempty"`
	AddSnssaiDnnPairs []SnssaiDnnPair `json:"addSnssaiDnnPairs,omitempty"`
	SuppFeat          *tgpp.Features  `json:"suppFeat,omitempty"`
}

// Check reports the first rule that the subscription breaks, as a *Violation.
func (s *Subscription) Check() error {
	switch {
	case len(s.Events) == 0:
		return missing("/events", "required")
	case s.NotifUri == "":
		return missing("/notifUri", "required")
	case s.NotifCorreId == "":
		return missing("/notifCorreId", "required")
	case s.Supi == "":
		return missing("/supi", "required")
	case s.SnssaiDnnPairs == nil && (slices.Contains(s.Events, EventSnssaiRegistration) ||
		slices.Contains(s.Events, EventSnssaiDeregistration)):
		return missing("/snssaiDnnPairs", "required for the SNSSAI_DNN events")
	case s.SnssaiDnnPairs == nil && len(s.AddSnssaiDnnPairs) > 0:
		return optional("/addSnssaiDnnPairs", "only together with snssaiDnnPairs")
	}
	return nil
}

// pairs lists the slices that the subscription asks about; none means all.
func (s *Subscription) pairs() []SnssaiDnnPair {
	if s.SnssaiDnnPairs == nil {
		return nil
	}
	return append([]SnssaiDnnPair{*s.SnssaiDnnPairs}, s.AddSnssaiDnnPairs...)
}

// wants returns the pair of the subscription that the binding belongs to. A
// subscription without pairs wants every session of the UE.
func (s *Subscription) wants(b *PcfBinding) (SnssaiDnnPair, bool) {
	if s.SnssaiDnnPairs == nil {
		return SnssaiDnnPair{b.Dnn, b.Snssai}, true
	}
	for _, p := range s.pairs() {
		if p.match(b) {
			return p, true
		}
	}
	return SnssaiDnnPair{}, false
}

// AppendMembers appends the members of the subscription without the braces,
// so that the response may merge them with those of a notification
// (BsfSubscriptionResp).
func (s *Subscription) AppendMembers(dst []byte) []byte {
	w := objectWriter{dst: append(dst, '{')}
	w.name("events")
	w.dst = append(w.dst, '[')
	for i, e := range s.Events {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.dst = tgpp.AppendJSONString(w.dst, e)
	}
	w.dst = append(w.dst, ']')
	w.text("notifUri", s.NotifUri)
	w.text("notifCorreId", s.NotifCorreId)
	w.text("supi", string(s.Supi))
	w.text("gpsi", string(s.Gpsi))
	if s.SnssaiDnnPairs != nil {
		w.name("snssaiDnnPairs")
		w.dst = s.SnssaiDnnPairs.appendJSON(w.dst)
	}
	if len(s.AddSnssaiDnnPairs) > 0 {
		w.name("addSnssaiDnnPairs")
		w.dst = append(w.dst, '[')
		for i, p := range s.AddSnssaiDnnPairs {
			if i > 0 {
				w.dst = append(w.dst, ',')
			}
			w.dst = p.appendJSON(w.dst)
		}
		w.dst = append(w.dst, ']')
	}
	w.features("suppFeat", s.SuppFeat)
	return w.dst
}

// MarshalJSON implements json.Marshaler.
func (s Subscription) MarshalJSON() ([]byte, error) { return append(s.AppendMembers(nil), '}'), nil }

func (p SnssaiDnnPair) appendJSON(dst []byte) []byte {
	w := objectWriter{dst: append(dst, '{')}
	w.text("dnn", string(p.Dnn))
	w.snssai("snssai", p.Snssai)
	return append(w.dst, '}')
}

func (s *Subscription) document(id ID) *Document {
	return &Document{Kind: KindSubscription, ID: id, Keys: []string{SubscriptionKey(s.Supi)}, Body: append(s.AppendMembers(nil), '}')}
}
