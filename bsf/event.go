package bsf

import (
	"slices"
	"time"

	"bsfd/internal/tgpp"
)

// Event is a change that subscribers may want to hear of. It is stored in the
// step that makes the change, when somebody has subscribed to the SUPI, so
// that no notification is lost with a process.
type Event struct {
	ID   ID        `json:"id"`
	At   time.Time `json:"at"`
	Supi tgpp.Supi `json:"supi"`
	// Gone is set for a deregistration.
	Gone bool `json:"gone,omitempty"`
	// Binding or UeBinding is what was registered or deregistered.
	Binding   *PcfBinding      `json:"binding,omitempty"`
	UeBinding *PcfForUeBinding `json:"ueBinding,omitempty"`
	// Remaining is how many bindings of the subscriber have the DNN and
	// S-NSSAI of Binding after the change: 1 after a registration makes it the
	// first, 0 after a deregistration the last.
	Remaining int `json:"remaining,omitempty"`
}

// BindingEvent is the event for a binding that came or went.
func BindingEvent(b *PcfBinding, gone bool, remaining int) *Event {
	return &Event{ID: NewID(), At: time.Now().UTC(), Supi: b.Supi, Gone: gone, Binding: b, Remaining: remaining}
}

func ueEvent(b *PcfForUeBinding, gone bool) *Event {
	return &Event{ID: NewID(), At: time.Now().UTC(), Supi: b.Supi, Gone: gone, UeBinding: b}
}

// Notification is what one subscriber is told about one event or, in the
// answer to its subscription, about what already holds (TS 29.521 §5.6.2.10,
// BsfNotification).
type Notification struct {
	NotifCorreId string              `json:"notifCorreId"`
	PcfId        tgpp.NfInstanceId   `json:"pcfId,omitempty"`
	PcfSetId     tgpp.NfSetId        `json:"pcfSetId,omitempty"`
	BindLevel    string              `json:"bindLevel,omitempty"`
	EventNotifs  []EventNotification `json:"eventNotifs"`
}

// EventNotification is one event of a Notification (TS 29.521 §5.6.2.11).
type EventNotification struct {
	Event              string                 `json:"event"`
	PcfForUeInfo       *PcfForUeInfo          `json:"pcfForUeInfo,omitempty"`
	PcfForPduSessInfos []PcfForPduSessionInfo `json:"pcfForPduSessInfos,omitempty"`
	MatchSnssaiDnns    []SnssaiDnnPair        `json:"matchSnssaiDnns,omitempty"`
}

// PcfForUeInfo is the PCF that serves a UE (TS 29.521 §5.6.2.13).
type PcfForUeInfo struct {
	PcfFqdn        tgpp.Fqdn         `json:"pcfFqdn,omitempty"`
	PcfIpEndPoints []tgpp.IpEndPoint `json:"pcfIpEndPoints,omitempty"`
	PcfId          tgpp.NfInstanceId `json:"pcfId,omitempty"`
	PcfSetId       tgpp.NfSetId      `json:"pcfSetId,omitempty"`
	BindLevel      string            `json:"bindLevel,omitempty"`
}

// PcfForPduSessionInfo is the PCF that serves a PDU session (TS 29.521
// §5.6.2.14).
type PcfForPduSessionInfo struct {
	Dnn            tgpp.Dnn          `json:"dnn"`
	Snssai         tgpp.Snssai       `json:"snssai"`
	PcfFqdn        tgpp.Fqdn         `json:"pcfFqdn,omitempty"`
	PcfIpEndPoints []tgpp.IpEndPoint `json:"pcfIpEndPoints,omitempty"`
	Ipv4Addr       string            `json:"ipv4Addr,omitempty"`
	IpDomain       string            `json:"ipDomain,omitempty"`
	Ipv6Prefixes   []string          `json:"ipv6Prefixes,omitempty"`
	MacAddrs       []tgpp.MacAddr48  `json:"macAddrs,omitempty"`
	PcfId          tgpp.NfInstanceId `json:"pcfId,omitempty"`
	PcfSetId       tgpp.NfSetId      `json:"pcfSetId,omitempty"`
	BindLevel      string            `json:"bindLevel,omitempty"`
}

// Notify returns what the subscriber is told about the event, or nil when the
// subscription does not cover it.
func (s *Subscription) Notify(e *Event) *Notification {
	n := &Notification{NotifCorreId: s.NotifCorreId}
	switch {
	case e.UeBinding != nil:
		event := pick(e.Gone, EventUeDeregistration, EventUeRegistration)
		if !slices.Contains(s.Events, event) {
			return nil
		}
		n.add(EventNotification{Event: event, PcfForUeInfo: ueInfo(e.UeBinding)})
		n.from(e.UeBinding.PcfId, e.UeBinding.PcfSetId, e.UeBinding.BindLevel)
	case e.Binding != nil:
		pair, ok := s.wants(e.Binding)
		if !ok {
			return nil
		}
		if event := pick(e.Gone, EventPduDeregistration, EventPduRegistration); slices.Contains(s.Events, event) {
			n.add(EventNotification{Event: event, PcfForPduSessInfos: []PcfForPduSessionInfo{sessionInfo(e.Binding)}})
		}
		edge := e.Gone && e.Remaining == 0 || !e.Gone && e.Remaining == 1
		if event := pick(e.Gone, EventSnssaiDeregistration, EventSnssaiRegistration); edge && slices.Contains(s.Events, event) {
			n.add(EventNotification{Event: event, MatchSnssaiDnns: []SnssaiDnnPair{pair}})
		}
		n.from(e.Binding.PcfId, e.Binding.PcfSetId, e.Binding.BindLevel)
	}
	if len(n.EventNotifs) == 0 {
		return nil
	}
	return n
}

// Met returns what a new subscriber is told about registrations that already
// hold (TS 29.521 §4.2.6.2), or nil when none does.
func (s *Subscription) Met(sessions []*Record, ues []PcfForUeBinding) *Notification {
	n := &Notification{NotifCorreId: s.NotifCorreId}
	var infos []PcfForPduSessionInfo
	var pairs []SnssaiDnnPair
	for _, r := range sessions {
		pair, ok := s.wants(&r.Binding)
		if !ok {
			continue
		}
		infos = append(infos, sessionInfo(&r.Binding))
		if !slices.Contains(pairs, pair) {
			pairs = append(pairs, pair)
		}
	}
	if len(infos) > 0 && slices.Contains(s.Events, EventPduRegistration) {
		n.add(EventNotification{Event: EventPduRegistration, PcfForPduSessInfos: infos})
	}
	if len(pairs) > 0 && slices.Contains(s.Events, EventSnssaiRegistration) {
		n.add(EventNotification{Event: EventSnssaiRegistration, MatchSnssaiDnns: pairs})
	}
	if slices.Contains(s.Events, EventUeRegistration) {
		for i := range ues {
			n.add(EventNotification{Event: EventUeRegistration, PcfForUeInfo: ueInfo(&ues[i])})
		}
	}
	if len(n.EventNotifs) == 0 {
		return nil
	}
	return n
}

func (n *Notification) add(e EventNotification) { n.EventNotifs = append(n.EventNotifs, e) }

func (n *Notification) from(id tgpp.NfInstanceId, set tgpp.NfSetId, level string) {
	n.PcfId, n.PcfSetId, n.BindLevel = id, set, level
}

func pick(gone bool, a, b string) string {
	if gone {
		return a
	}
	return b
}

func ueInfo(b *PcfForUeBinding) *PcfForUeInfo {
	return &PcfForUeInfo{b.PcfForUeFqdn, b.PcfForUeIpEndPoints, b.PcfId, b.PcfSetId, b.BindLevel}
}

func sessionInfo(b *PcfBinding) PcfForPduSessionInfo {
	info := PcfForPduSessionInfo{
		Dnn: b.Dnn, Snssai: b.Snssai, PcfFqdn: b.PcfFqdn, PcfIpEndPoints: b.PcfIpEndPoints,
		IpDomain: b.IpDomain, PcfId: b.PcfId, PcfSetId: b.PcfSetId, BindLevel: b.BindLevel,
	}
	if b.Ipv4Addr.IsValid() {
		info.Ipv4Addr = b.Ipv4Addr.String()
	}
	for p := range b.ipv6Addresses {
		info.Ipv6Prefixes = append(info.Ipv6Prefixes, string(tgpp.AppendIpv6Prefix(nil, p)))
	}
	for m := range b.macAddresses {
		info.MacAddrs = append(info.MacAddrs, m)
	}
	return info
}
