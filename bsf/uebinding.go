package bsf

import (
	"bsfd/internal/tgpp"
)

// PcfForUeBinding is an Individual PCF for a UE binding (TS 29.521 §5.6.2.12).
type PcfForUeBinding struct {
	Supi                tgpp.Supi         `json:"supi"`
	Gpsi                tgpp.Gpsi         `json:"gpsi,omitempty"`
	PcfForUeFqdn        tgpp.Fqdn         `json:"pcfForUeFqdn,omitempty"`
	PcfForUeIpEndPoints []tgpp.IpEndPoint `json:"pcfForUeIpEndPoints,omitempty"`
	PcfId               tgpp.NfInstanceId `json:"pcfId,omitempty"`
	PcfSetId            tgpp.NfSetId      `json:"pcfSetId,omitempty"`
	BindLevel           string            `json:"bindLevel,omitempty"`
	SuppFeat            *tgpp.Features    `json:"suppFeat,omitempty"`
}

// Check reports the first rule that the binding breaks, as a *Violation.
func (b *PcfForUeBinding) Check() error {
	switch {
	case b.Supi == "":
		return missing("/supi", "required")
	case b.PcfForUeFqdn == "" && !anyAddress(b.PcfForUeIpEndPoints):
		return missing("/pcfForUeFqdn", "pcfForUeFqdn or pcfForUeIpEndPoints is required")
	}
	return nil
}

// AppendJSON appends the binding as TS 29.521 §5.6.2.12 writes it.
func (b *PcfForUeBinding) AppendJSON(dst []byte) []byte {
	w := objectWriter{dst: append(dst, '{')}
	w.text("supi", string(b.Supi))
	w.text("gpsi", string(b.Gpsi))
	w.text("pcfForUeFqdn", string(b.PcfForUeFqdn))
	w.endPoints("pcfForUeIpEndPoints", b.PcfForUeIpEndPoints)
	w.text("pcfId", string(b.PcfId))
	w.text("pcfSetId", string(b.PcfSetId))
	w.text("bindLevel", b.BindLevel)
	w.features("suppFeat", b.SuppFeat)
	return append(w.dst, '}')
}

// MarshalJSON implements json.Marshaler with AppendJSON.
func (b PcfForUeBinding) MarshalJSON() ([]byte, error) { return b.AppendJSON(nil), nil }

func (b *PcfForUeBinding) document(id ID) *Document {
	d := &Document{Kind: KindUeBinding, ID: id, Keys: []string{supiText(b.Supi)}, Body: b.AppendJSON(nil)}
	if b.Gpsi != "" {
		d.Keys = append(d.Keys, gpsiText(b.Gpsi))
	}
	return d
}

// supiText and gpsiText are the keys of documents that belong to a subscriber.
func supiText(s tgpp.Supi) string { return "supi:" + string(s) }
func gpsiText(g tgpp.Gpsi) string { return "gpsi:" + string(g) }

// SubscriptionKey is the key under which the subscriptions to a subscriber
// are found.
func SubscriptionKey(s tgpp.Supi) string { return supiText(s) }
