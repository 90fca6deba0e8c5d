package rx

import (
	"bytes"
	"encoding/binary"
)

// Patch is what an agent changes in a request that it forwards (RFC 6733
// §6.1.9). The texts that are empty change nothing.
type Patch struct {
	HopByHop uint32
	// DestinationHost and DestinationRealm replace the AVPs or add them.
	DestinationHost  string
	DestinationRealm string
	// RouteRecord is the identity of the peer the request came from.
	RouteRecord string
	// ProxyHost adds a Proxy-Info with it and State.
	ProxyHost string
	State     uint64
	// Extra is appended: AVPs with their padding.
	Extra []byte
}

// AppendRequest appends the request with the changes. All other AVPs stay as
// they are, in their order.
func AppendRequest(dst []byte, v *View, p *Patch) []byte {
	start := len(dst)
	host, realm := v.DestinationHost, v.DestinationRealm
	if p.DestinationHost == "" {
		host = Field{}
	}
	if p.DestinationRealm == "" {
		realm = Field{}
	}
	first, second := host, realm
	firstCode, secondCode := DestinationHost, DestinationRealm
	firstText, secondText := p.DestinationHost, p.DestinationRealm
	if realm.Present() && (!host.Present() || realm.At < host.At) {
		first, second = realm, host
		firstCode, secondCode = secondCode, firstCode
		firstText, secondText = secondText, firstText
	}
	from := 0
	if first.Present() {
		dst = append(dst, v.Raw[:first.At]...)
		dst = appendAVP(dst, firstCode, AVPMandatory, 0, firstText)
		from = first.End
	}
	if second.Present() {
		dst = append(dst, v.Raw[from:second.At]...)
		dst = appendAVP(dst, secondCode, AVPMandatory, 0, secondText)
		from = second.End
	}
	dst = append(dst, v.Raw[from:]...)
	if p.DestinationHost != "" && !host.Present() {
		dst = appendAVP(dst, DestinationHost, AVPMandatory, 0, p.DestinationHost)
	}
	if p.DestinationRealm != "" && !realm.Present() {
		dst = appendAVP(dst, DestinationRealm, AVPMandatory, 0, p.DestinationRealm)
	}
	dst = append(dst, p.Extra...)
	if p.ProxyHost != "" {
		var group [512]byte
		g := appendAVP(group[:0], ProxyHost, AVPMandatory, 0, p.ProxyHost)
		var state [8]byte
		binary.BigEndian.PutUint64(state[:], p.State)
		dst = appendAVP(dst, ProxyInfo, AVPMandatory, 0, appendAVP(g, ProxyState, AVPMandatory, 0, state[:]))
	}
	if p.RouteRecord != "" {
		dst = appendAVP(dst, RouteRecord, AVPMandatory, 0, p.RouteRecord)
	}
	SetHopByHop(dst[start:], p.HopByHop)
	return finish(dst, start)
}

// WithOrigin is the request with another Origin-Host and Origin-Realm, for a
// peer that answers to whoever these name.
func WithOrigin(message []byte, o Origin) []byte {
	out := append(make([]byte, 0, len(message)+len(o.Host)+len(o.Realm)), message[:HeaderLen]...)
	for off := HeaderLen; off < len(message); {
		a, next, err := Next(message, off)
		if err != nil {
			// Scan has read it before.
			return message
		}
		switch {
		case a.is(OriginHost, 0):
			out = appendAVP(out, OriginHost, AVPMandatory, 0, o.Host)
		case a.is(OriginRealm, 0):
			out = appendAVP(out, OriginRealm, AVPMandatory, 0, o.Realm)
		default:
			out = append(out, message[off:next]...)
		}
		off = next
	}
	return finish(out, 0)
}

// WithoutRepeats is the message without AVPs that are there a second time with
// the same value, of those that Scan lets occur once.
func WithoutRepeats(message []byte) []byte {
	var v View
	out := append(make([]byte, 0, len(message)), message[:HeaderLen]...)
	for off := HeaderLen; off < len(message); {
		a, next, err := Next(message, off)
		if err != nil {
			return message
		}
		f := v.field(a.Code, a.Vendor)
		if f == nil || !f.Present() || !bytes.Equal(f.Data, a.Data) {
			out = append(out, message[off:next]...)
		}
		if f != nil {
			*f = Field{off, next, a.Data}
		}
		off = next
	}
	return finish(out, 0)
}

// AppendForwardedAnswer appends an answer for the peer that sent the request:
// with its Hop-by-Hop Identifier, and without the Proxy-Info at drop when that
// is present (RFC 6733 §6.2.2). Everything else stays as it is.
func AppendForwardedAnswer(dst []byte, v *View, hopByHop uint32, drop Field) []byte {
	start := len(dst)
	if drop.Present() {
		dst = append(dst, v.Raw[:drop.At]...)
		dst = append(dst, v.Raw[drop.End:]...)
		dst = finish(dst, start)
	} else {
		dst = append(dst, v.Raw...)
	}
	SetHopByHop(dst[start:], hopByHop)
	return dst
}

// Origin is the identity that a node puts into messages of its own.
type Origin struct {
	Host, Realm string
	StateID     uint32
}

// Answer is an answer that this node makes itself.
type Answer struct {
	Result Result
	// Failed is the content of the Failed-AVP, nil for none.
	Failed []byte
	// Text is the Error-Message, empty for none.
	Text string
	// Redirect lists Redirect-Hosts; Usage and CacheTime (in seconds) go with
	// them.
	Redirect         []string
	Usage, CacheTime uint32
	// Extra is appended: AVPs with their padding.
	Extra []byte
}

// AppendAnswer appends the answer to a request (RFC 6733 §6.2, §7.2). Session-
// Id and Proxy-Info are those of the request. A protocol error has the E bit
// and the generic form; others are the command's own answer.
func AppendAnswer(dst []byte, v *View, o Origin, a *Answer) []byte {
	start := len(dst)
	h := v.Header
	h.Flags &= FlagProxiable
	if a.Result.Protocol() {
		h.Flags |= FlagError
	}
	dst = appendHeader(dst, h)
	if v.SessionID.Present() {
		dst = append(dst, v.Raw[v.SessionID.At:v.SessionID.End]...)
	}
	if v.Command == AA && v.Application == ApplicationID && !a.Result.Protocol() {
		dst = appendUint32(dst, AuthApplicationID, AVPMandatory, 0, ApplicationID)
	}
	dst = appendAVP(dst, OriginHost, AVPMandatory, 0, o.Host)
	dst = appendAVP(dst, OriginRealm, AVPMandatory, 0, o.Realm)
	dst = a.Result.append(dst)
	if o.StateID != 0 {
		dst = appendUint32(dst, OriginStateID, AVPMandatory, 0, o.StateID)
	}
	for _, uri := range a.Redirect {
		dst = appendAVP(dst, RedirectHost, AVPMandatory, 0, uri)
	}
	if len(a.Redirect) > 0 {
		dst = appendUint32(dst, RedirectHostUsage, AVPMandatory, 0, a.Usage)
		if a.Usage != 0 {
			dst = appendUint32(dst, RedirectMaxCacheTime, AVPMandatory, 0, a.CacheTime)
		}
	}
	if a.Text != "" {
		dst = appendAVP(dst, ErrorMessage, 0, 0, a.Text)
	}
	if a.Failed != nil {
		dst = appendAVP(dst, FailedAVP, AVPMandatory, 0, a.Failed)
	}
	dst = append(dst, a.Extra...)
	return finish(v.appendProxyInfos(dst), start)
}

// appendProxyInfos copies the Proxy-Infos of the message in their order.
func (v *View) appendProxyInfos(dst []byte) []byte {
	if !v.ProxyInfo.Present() {
		return dst
	}
	for off := HeaderLen; off < v.ProxyInfo.End; {
		a, next, err := Next(v.Raw, off)
		if err != nil {
			return dst
		}
		if a.is(ProxyInfo, 0) {
			dst = append(dst, v.Raw[off:next]...)
		}
		off = next
	}
	return dst
}
