package bsf

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"bsfd/internal/tgpp"
)

// Binding levels (TS 29.521 §5.6.3.2). Other values are kept as they came.
const (
	BindLevelNfSet      = "NF_SET"
	BindLevelNfInstance = "NF_INSTANCE"
)

// PcfBinding is an Individual PCF for a PDU Session binding (TS 29.521
// §5.6.2.2). Every attribute but Dnn and Snssai may be absent; Check tells
// which combinations are legal.
type PcfBinding struct {
	Supi               tgpp.Supi             `json:"supi,omitempty"`
	Gpsi               tgpp.Gpsi             `json:"gpsi,omitempty"`
	Ipv4Addr           netip.Addr            `json:"ipv4Addr,omitzero"`
	Ipv6Prefix         netip.Prefix          `json:"ipv6Prefix,omitzero"`
	AddIpv6Prefixes    []netip.Prefix        `json:"addIpv6Prefixes,omitempty"`
	IpDomain           string                `json:"ipDomain,omitempty"`
	MacAddr48          tgpp.MacAddr48        `json:"macAddr48,omitempty"`
	AddMacAddrs        []tgpp.MacAddr48      `json:"addMacAddrs,omitempty"`
	Dnn                tgpp.Dnn              `json:"dnn"`
	PcfFqdn            tgpp.Fqdn             `json:"pcfFqdn,omitempty"`
	PcfIpEndPoints     []tgpp.IpEndPoint     `json:"pcfIpEndPoints,omitempty"`
	PcfDiamHost        tgpp.Fqdn             `json:"pcfDiamHost,omitempty"`
	PcfDiamRealm       tgpp.Fqdn             `json:"pcfDiamRealm,omitempty"`
	PcfSmFqdn          tgpp.Fqdn             `json:"pcfSmFqdn,omitempty"`
	PcfSmIpEndPoints   []tgpp.IpEndPoint     `json:"pcfSmIpEndPoints,omitempty"`
	Snssai             tgpp.Snssai           `json:"snssai"`
	SuppFeat           *tgpp.Features        `json:"suppFeat,omitempty"`
	PcfId              tgpp.NfInstanceId     `json:"pcfId,omitempty"`
	PcfSetId           tgpp.NfSetId          `json:"pcfSetId,omitempty"`
	RecoveryTime       tgpp.DateTime         `json:"recoveryTime,omitempty"`
	ParaCom            *ParameterCombination `json:"paraCom,omitempty"`
	BindLevel          string                `json:"bindLevel,omitempty"`
	Ipv4FrameRouteList []netip.Prefix        `json:"ipv4FrameRouteList,omitempty"`
	Ipv6FrameRouteList []netip.Prefix        `json:"ipv6FrameRouteList,omitempty"`
}

// ParameterCombination is what the SamePcf feature compares (TS 29.521
// §5.6.2.5). Absent members are not compared.
type ParameterCombination struct {
	Supi   tgpp.Supi    `json:"supi,omitempty"`
	Dnn    tgpp.Dnn     `json:"dnn,omitempty"`
	Snssai *tgpp.Snssai `json:"snssai,omitempty"`
}

// Features negotiated by suppFeat (TS 29.521 §5.8).
const (
	FeatureMultiUeAddr     tgpp.Features = 1 << 0
	FeatureBindingUpdate   tgpp.Features = 1 << 1
	FeatureSamePcf         tgpp.Features = 1 << 2
	FeatureExtendedSamePcf tgpp.Features = 1 << 4

	// SupportedFeatures is what this BSF offers unless configured otherwise.
	SupportedFeatures = FeatureMultiUeAddr | FeatureBindingUpdate | FeatureSamePcf | FeatureExtendedSamePcf
)

// Negotiated reports whether feature f applies to the binding.
func (b *PcfBinding) Negotiated(f tgpp.Features) bool {
	return b.SuppFeat != nil && b.SuppFeat.Has(f)
}

// negotiatedNothing reports whether the PCF of the binding has no feature in
// common with this BSF, or did not say which it has.
func (b *PcfBinding) negotiatedNothing() bool { return b.SuppFeat == nil || *b.SuppFeat == 0 }

// SamePcf reports whether both bindings are held by one PCF. The strongest
// identity that both carry decides: pcfId, then the FQDN, the Diameter host,
// the end points, and the same for Npcf_SMPolicyControl. Bindings with no
// identity in common belong to different PCFs.
func (b *PcfBinding) SamePcf(o *PcfBinding) bool {
	for _, pair := range [...][2]string{
		{string(b.PcfId), string(o.PcfId)},
		{string(b.PcfFqdn), string(o.PcfFqdn)},
		{string(b.PcfDiamHost), string(o.PcfDiamHost)},
		{string(b.PcfSmFqdn), string(o.PcfSmFqdn)},
	} {
		if pair[0] != "" && pair[1] != "" {
			return strings.EqualFold(pair[0], pair[1])
		}
	}
	if len(b.PcfIpEndPoints) > 0 && len(o.PcfIpEndPoints) > 0 {
		return slices.EqualFunc(b.PcfIpEndPoints, o.PcfIpEndPoints, tgpp.IpEndPoint.Equal)
	}
	return len(b.PcfSmIpEndPoints) > 0 &&
		slices.EqualFunc(b.PcfSmIpEndPoints, o.PcfSmIpEndPoints, tgpp.IpEndPoint.Equal)
}

// SameSlice reports whether both bindings are for one DNN, by its network
// identifier, and S-NSSAI.
func (b *PcfBinding) SameSlice(o *PcfBinding) bool {
	return b.Snssai.Equal(o.Snssai) && b.Dnn.SameNetwork(o.Dnn)
}

// SharesAddress reports whether a UE address of b, framed routes aside, is
// also one of o. IPv4 addresses are the same only in the same ipDomain.
func (b *PcfBinding) SharesAddress(o *PcfBinding) bool {
	if b.Ipv4Addr.IsValid() && b.Ipv4Addr == o.Ipv4Addr && b.IpDomain == o.IpDomain {
		return true
	}
	for p := range b.ipv6Addresses {
		for q := range o.ipv6Addresses {
			if p.Masked() == q.Masked() {
				return true
			}
		}
	}
	for m := range b.macAddresses {
		for n := range o.macAddresses {
			if strings.EqualFold(string(m), string(n)) {
				return true
			}
		}
	}
	return false
}

// AddressKeys lists the keys under which the addresses of the UE are found,
// framed routes aside.
func (b *PcfBinding) AddressKeys(dst []Key) []Key {
	b.addressKeys(func(k Key) bool { dst = append(dst, k); return true })
	return dst
}

// RouteKeys lists the keys of the framed routes.
func (b *PcfBinding) RouteKeys(dst []Key) []Key {
	b.routeKeys(func(k Key) bool { dst = append(dst, k); return true })
	return dst
}

// AllKeys yields the keys of the addresses and of the framed routes.
func (b *PcfBinding) AllKeys(yield func(Key) bool) {
	if b.addressKeys(yield) {
		b.routeKeys(yield)
	}
}

func (b *PcfBinding) addressKeys(yield func(Key) bool) bool {
	if b.Ipv4Addr.IsValid() && !yield(PrefixKey(netip.PrefixFrom(b.Ipv4Addr, 32))) {
		return false
	}
	for p := range b.ipv6Addresses {
		if !yield(PrefixKey(p)) {
			return false
		}
	}
	for m := range b.macAddresses {
		if !yield(MacKey(m)) {
			return false
		}
	}
	return true
}

func (b *PcfBinding) routeKeys(yield func(Key) bool) bool {
	for _, list := range [...][]netip.Prefix{b.Ipv4FrameRouteList, b.Ipv6FrameRouteList} {
		for _, p := range list {
			if !yield(PrefixKey(p)) {
				return false
			}
		}
	}
	return true
}

func (b *PcfBinding) ipv6Addresses(yield func(netip.Prefix) bool) {
	if b.Ipv6Prefix.IsValid() && !yield(b.Ipv6Prefix) {
		return
	}
	for _, p := range b.AddIpv6Prefixes {
		if !yield(p) {
			return
		}
	}
}

func (b *PcfBinding) macAddresses(yield func(tgpp.MacAddr48) bool) {
	if b.MacAddr48 != "" && !yield(b.MacAddr48) {
		return
	}
	for _, m := range b.AddMacAddrs {
		if !yield(m) {
			return
		}
	}
}

// Hide makes the binding what a consumer that supports features f may see of
// it (TS 29.500 §6.6.2): attributes of other features are taken out and
// suppFeat becomes the common set.
func (b *PcfBinding) Hide(f tgpp.Features) {
	if b.SuppFeat != nil {
		common := *b.SuppFeat & f
		b.SuppFeat = &common
	}
	if !f.Has(FeatureMultiUeAddr) {
		b.AddIpv6Prefixes, b.AddMacAddrs = nil, nil
	}
	if f&(FeatureSamePcf|FeatureExtendedSamePcf) == 0 {
		b.ParaCom = nil
	}
}

// Check reports the first rule of TS 29.521 §5.6.2.2 that the binding breaks,
// as a *Violation, and drops attributes of features that were not negotiated.
func (b *PcfBinding) Check() error {
	if !b.Negotiated(FeatureMultiUeAddr) {
		b.AddIpv6Prefixes, b.AddMacAddrs = nil, nil
	}
	samePcf := b.checksSamePcf()
	if !samePcf {
		b.ParaCom = nil
	}
	hasIP := b.Ipv4Addr.IsValid() || b.Ipv6Prefix.IsValid()
	hasMac := b.MacAddr48 != ""
	switch {
	case b.Dnn == "":
		return missing("/dnn", "required")
	case !b.hasSnssai():
		return missing("/snssai", "required")
	case hasIP && hasMac:
		return incorrect("/macAddr48", "a session has IP addresses or a MAC address, not both")
	case b.IpDomain != "" && !b.Ipv4Addr.IsValid():
		return optional("/ipDomain", "only together with ipv4Addr")
	case len(b.AddIpv6Prefixes) > 0 && !b.Ipv6Prefix.IsValid():
		return optional("/addIpv6Prefixes", "only together with ipv6Prefix")
	case len(b.AddMacAddrs) > 0 && !hasMac:
		return optional("/addMacAddrs", "only together with macAddr48")
	case !hasIP && !hasMac && !(b.Negotiated(FeatureExtendedSamePcf) && b.ParaCom != nil):
		return missing("/ipv4Addr", "one of ipv4Addr, ipv6Prefix and macAddr48 is required")
	case b.PcfDiamHost != "" && b.PcfDiamRealm == "":
		return missing("/pcfDiamRealm", "required together with pcfDiamHost")
	case b.PcfDiamRealm != "" && b.PcfDiamHost == "":
		return missing("/pcfDiamHost", "required together with pcfDiamRealm")
	case b.PcfFqdn == "" && !anyAddress(b.PcfIpEndPoints) && b.PcfDiamHost == "":
		return missing("/pcfFqdn", "one of pcfFqdn, pcfIpEndPoints, and pcfDiamHost with pcfDiamRealm is required")
	case samePcf && b.PcfSmFqdn == "" && !anyAddress(b.PcfSmIpEndPoints):
		return missing("/pcfSmFqdn", "pcfSmFqdn or pcfSmIpEndPoints is required together with paraCom")
	}
	return nil
}

// anyAddress reports whether an end point has an address. One with a port alone
// goes with an FQDN.
func anyAddress(list []tgpp.IpEndPoint) bool {
	return slices.ContainsFunc(list, func(e tgpp.IpEndPoint) bool {
		return e.Ipv4Address.IsValid() || e.Ipv6Address.IsValid()
	})
}

// checksSamePcf reports whether the paraCom check applies (TS 29.521
// §4.2.2.2): the attribute is there and its feature was negotiated.
func (b *PcfBinding) checksSamePcf() bool {
	return b.ParaCom != nil && (b.Negotiated(FeatureSamePcf) || b.Negotiated(FeatureExtendedSamePcf))
}

func (b *PcfBinding) hasSnssai() bool { return b.Snssai != absentSnssai }

// absentSnssai marks a binding whose snssai was not given; no legal Sd looks
// like it.
var absentSnssai = tgpp.Snssai{Sd: "-"}

// NewPcfBinding returns a binding in which every attribute is absent.
func NewPcfBinding() PcfBinding { return PcfBinding{Snssai: absentSnssai} }

// AppendJSON appends the binding as TS 29.521 §5.6.2.2 writes it, attributes
// in the order of the OpenAPI file.
func (b *PcfBinding) AppendJSON(dst []byte) []byte {
	w := objectWriter{dst: append(dst, '{')}
	w.text("supi", string(b.Supi))
	w.text("gpsi", string(b.Gpsi))
	if b.Ipv4Addr.IsValid() {
		w.name("ipv4Addr")
		w.dst = append(b.Ipv4Addr.AppendTo(append(w.dst, '"')), '"')
	}
	if b.Ipv6Prefix.IsValid() {
		w.name("ipv6Prefix")
		w.dst = append(tgpp.AppendIpv6Prefix(append(w.dst, '"'), b.Ipv6Prefix), '"')
	}
	w.prefixes("addIpv6Prefixes", b.AddIpv6Prefixes)
	w.text("ipDomain", b.IpDomain)
	w.text("macAddr48", string(b.MacAddr48))
	w.macs("addMacAddrs", b.AddMacAddrs)
	w.text("dnn", string(b.Dnn))
	w.text("pcfFqdn", string(b.PcfFqdn))
	w.endPoints("pcfIpEndPoints", b.PcfIpEndPoints)
	w.text("pcfDiamHost", string(b.PcfDiamHost))
	w.text("pcfDiamRealm", string(b.PcfDiamRealm))
	w.text("pcfSmFqdn", string(b.PcfSmFqdn))
	w.endPoints("pcfSmIpEndPoints", b.PcfSmIpEndPoints)
	w.snssai("snssai", b.Snssai)
	w.features("suppFeat", b.SuppFeat)
	w.text("pcfId", string(b.PcfId))
	w.text("pcfSetId", string(b.PcfSetId))
	w.text("recoveryTime", string(b.RecoveryTime))
	if b.ParaCom != nil {
		w.name("paraCom")
		w.dst = b.ParaCom.appendJSON(w.dst)
	}
	w.text("bindLevel", b.BindLevel)
	w.prefixes("ipv4FrameRouteList", b.Ipv4FrameRouteList)
	w.prefixes("ipv6FrameRouteList", b.Ipv6FrameRouteList)
	return append(w.dst, '}')
}

// MarshalJSON implements json.Marshaler with AppendJSON.
func (b PcfBinding) MarshalJSON() ([]byte, error) { return b.AppendJSON(nil), nil }

func (p *ParameterCombination) appendJSON(dst []byte) []byte {
	w := objectWriter{dst: append(dst, '{')}
	w.text("supi", string(p.Supi))
	w.text("dnn", string(p.Dnn))
	if p.Snssai != nil {
		w.snssai("snssai", *p.Snssai)
	}
	return append(w.dst, '}')
}

// objectWriter appends the members of one JSON object, leaving out absent
// ones.
type objectWriter struct {
	dst []byte
}

func (w *objectWriter) name(n string) {
	if w.dst[len(w.dst)-1] != '{' {
		w.dst = append(w.dst, ',')
	}
	w.dst = append(w.dst, '"')
	w.dst = append(w.dst, n...)
	w.dst = append(w.dst, '"', ':')
}

func (w *objectWriter) text(n, v string) {
	if v != "" {
		w.name(n)
		w.dst = tgpp.AppendJSONString(w.dst, v)
	}
}

func (w *objectWriter) prefixes(n string, list []netip.Prefix) {
	if len(list) == 0 {
		return
	}
	w.name(n)
	w.dst = append(w.dst, '[')
	for i, p := range list {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.dst = append(tgpp.AppendIpv6Prefix(append(w.dst, '"'), p), '"')
	}
	w.dst = append(w.dst, ']')
}

func (w *objectWriter) macs(n string, list []tgpp.MacAddr48) {
	if len(list) == 0 {
		return
	}
	w.name(n)
	w.dst = append(w.dst, '[')
	for i, m := range list {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.dst = tgpp.AppendJSONString(w.dst, string(m))
	}
	w.dst = append(w.dst, ']')
}

func (w *objectWriter) endPoints(n string, list []tgpp.IpEndPoint) {
	if len(list) == 0 {
		return
	}
	w.name(n)
	w.dst = append(w.dst, '[')
	for i := range list {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.dst = list[i].AppendJSON(w.dst)
	}
	w.dst = append(w.dst, ']')
}

func (w *objectWriter) snssai(n string, s tgpp.Snssai) {
	w.name(n)
	w.dst = append(w.dst, `{"sst":`...)
	w.dst = strconv.AppendUint(w.dst, uint64(s.Sst), 10)
	if s.Sd != "" {
		w.dst = append(w.dst, `,"sd":`...)
		w.dst = tgpp.AppendJSONString(w.dst, s.Sd)
	}
	w.dst = append(w.dst, '}')
}

func (w *objectWriter) features(n string, f *tgpp.Features) {
	if f != nil {
		w.name(n)
		w.dst = append(w.dst, '"')
		w.dst = strconv.AppendUint(w.dst, uint64(*f), 16)
		w.dst = append(w.dst, '"')
	}
}
