package bsf

import (
	"encoding/json"

	"bsfd/internal/tgpp"
)

// PcfMbsBinding is an Individual PCF for an MBS Session binding (TS 29.521
// §5.6.2.17).
type PcfMbsBinding struct {
	MbsSessionId   *tgpp.MbsSessionId `json:"mbsSessionId"`
	PcfFqdn        tgpp.Fqdn          `json:"pcfFqdn,omitempty"`
	PcfIpEndPoints []tgpp.IpEndPoint  `json:"pcfIpEndPoints,omitempty"`
	PcfId          tgpp.NfInstanceId  `json:"pcfId,omitempty"`
	PcfSetId       tgpp.NfSetId       `json:"pcfSetId,omitempty"`
	BindLevel      string             `json:"bindLevel,omitempty"`
	RecoveryTime   tgpp.DateTime      `json:"recoveryTime,omitempty"`
	SuppFeat       *tgpp.Features     `json:"suppFeat,omitempty"`
}

// Check reports the first rule that the binding breaks, as a *Violation.
func (b *PcfMbsBinding) Check() error {
	switch {
	case b.MbsSessionId == nil:
		return missing("/mbsSessionId", "required")
	case b.PcfFqdn == "" && !anyAddress(b.PcfIpEndPoints):
		return missing("/pcfFqdn", "pcfFqdn or pcfIpEndPoints is required")
	}
	return nil
}

// AppendJSON appends the binding as TS 29.521 §5.6.2.17 writes it.
func (b *PcfMbsBinding) AppendJSON(dst []byte) []byte {
	w := objectWriter{dst: append(dst, '{')}
	if b.MbsSessionId != nil {
		w.name("mbsSessionId")
		w.dst = appendMbsSessionId(w.dst, b.MbsSessionId)
	}
	w.text("pcfFqdn", string(b.PcfFqdn))
	w.endPoints("pcfIpEndPoints", b.PcfIpEndPoints)
	w.text("pcfId", string(b.PcfId))
	w.text("pcfSetId", string(b.PcfSetId))
	w.text("bindLevel", b.BindLevel)
	w.text("recoveryTime", string(b.RecoveryTime))
	w.features("suppFeat", b.SuppFeat)
	return append(w.dst, '}')
}

// MarshalJSON implements json.Marshaler with AppendJSON.
func (b PcfMbsBinding) MarshalJSON() ([]byte, error) { return b.AppendJSON(nil), nil }

// AppendHolder appends the address of a PCF that holds a binding as further
// members of an object, each with its leading comma (BindingResp and
// MbsBindingResp, TS 29.521 §5.6.2.8 and §5.6.2.19).
func AppendHolder(dst []byte, fqdnName string, fqdn tgpp.Fqdn, endPointsName string, endPoints []tgpp.IpEndPoint) []byte {
	w := objectWriter{dst: dst}
	w.text(fqdnName, string(fqdn))
	w.endPoints(endPointsName, endPoints)
	return w.dst
}

func (b *PcfMbsBinding) document(id ID) *Document {
	key := b.MbsSessionId.Key()
	return &Document{Kind: KindMbsBinding, ID: id, Keys: []string{key}, Unique: key, Body: b.AppendJSON(nil)}
}

// appendMbsSessionId writes the identifier with encoding/json: MBS sessions
// are few, and their addresses need no other notation than Go's.
func appendMbsSessionId(dst []byte, m *tgpp.MbsSessionId) []byte {
	b, err := json.Marshal(m)
	if err != nil {
		// Every member is text that a parser accepted.
		panic(err)
	}
	return append(dst, b...)
}
