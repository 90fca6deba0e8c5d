package memory

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strings"
	"time"
	"unsafe"

	"bsfd/bsf"
	"bsfd/internal/tgpp"
)

// The binary form of a record has three parts. The head has fixed places: the
// id, the instants and the number of audits. The body holds what is particular
// to one session. The profile holds what the sessions of one PCF share. In
// memory the profile is interned and the head ends in its number; on disk the
// profile follows the head.
const (
	offID       = 0
	offCreated  = 16
	offAudited  = 24
	offAttempts = 32
	offProfile  = 33
	headSize    = 37
)

var errCorrupt = errors.New("stored record is corrupt")

// Bits of the body, in the order in which the attributes follow.
const (
	hasSupi = 1 << iota
	hasGpsi
	hasIpv4
	hasIpv6
	hasAddIpv6
	hasMac
	hasAddMac
	hasParaCom
	hasParaSupi
	hasParaOwnSupi
	hasParaDnn
	hasParaSnssai
	hasIpv4Routes
	hasIpv6Routes
	hasOrigination
	hasSender
	hasCustomSender
	hasCookie
	hasURL
)

// appendHead appends the head of a record.
func appendHead(dst []byte, r *bsf.Record, profile uint32) []byte {
	dst = append(dst, r.ID[:]...)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(r.Created.UnixMicro()))
	dst = binary.LittleEndian.AppendUint64(dst, uint64(r.Audited.UnixMicro()))
	dst = append(dst, r.Attempts)
	return binary.LittleEndian.AppendUint32(dst, profile)
}

// appendBody appends what is particular to a record.
func appendBody(dst []byte, r *bsf.Record) []byte {
	b := &r.Binding
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	var bits uint32
	mark := func(present bool, bit uint32) bool {
		if present {
			bits |= bit
		}
		return present
	}
	if mark(b.Supi != "", hasSupi) {
		dst = appendIdentity(dst, string(b.Supi))
	}
	if mark(b.Gpsi != "", hasGpsi) {
		dst = appendIdentity(dst, string(b.Gpsi))
	}
	if mark(b.Ipv4Addr.IsValid(), hasIpv4) {
		a := b.Ipv4Addr.As4()
		dst = append(dst, a[:]...)
	}
	if mark(b.Ipv6Prefix.IsValid(), hasIpv6) {
		dst = appendPrefix(dst, b.Ipv6Prefix)
	}
	if mark(len(b.AddIpv6Prefixes) > 0, hasAddIpv6) {
		dst = appendPrefixes(dst, b.AddIpv6Prefixes)
	}
	if mark(b.MacAddr48 != "", hasMac) {
		dst = append(dst, b.MacAddr48...)
	}
	if mark(len(b.AddMacAddrs) > 0, hasAddMac) {
		dst = binary.AppendUvarint(dst, uint64(len(b.AddMacAddrs)))
		for _, m := range b.AddMacAddrs {
			dst = append(dst, m...)
		}
	}
	if p := b.ParaCom; mark(p != nil, hasParaCom) {
		if !mark(p.Supi != "" && p.Supi == b.Supi, hasParaOwnSupi) && mark(p.Supi != "", hasParaSupi) {
			dst = appendIdentity(dst, string(p.Supi))
		}
		if mark(p.Dnn != "", hasParaDnn) {
			dst = appendText(dst, string(p.Dnn))
		}
		if mark(p.Snssai != nil, hasParaSnssai) {
			dst = appendText(append(dst, p.Snssai.Sst), p.Snssai.Sd)
		}
	}
	if mark(len(b.Ipv4FrameRouteList) > 0, hasIpv4Routes) {
		dst = appendPrefixes(dst, b.Ipv4FrameRouteList)
	}
	if mark(len(b.Ipv6FrameRouteList) > 0, hasIpv6Routes) {
		dst = appendPrefixes(dst, b.Ipv6FrameRouteList)
	}
	for _, t := range [...]struct {
		at  time.Time
		bit uint32
	}{{r.Origination, hasOrigination}, {r.Sender, hasSender}, {r.CustomSender, hasCustomSender}} {
		if mark(!t.at.IsZero(), t.bit) {
			dst = binary.LittleEndian.AppendUint64(dst, uint64(t.at.UnixMilli()))
		}
	}
	if mark(r.Cookie != "", hasCookie) {
		dst = appendText(dst, r.Cookie)
	}
	if mark(r.NotificationURL != "", hasURL) {
		dst = appendText(dst, r.NotificationURL)
	}
	binary.LittleEndian.PutUint32(dst[at:], bits)
	return dst
}

// appendProfile appends what the sessions of one PCF share.
func appendProfile(dst []byte, b *bsf.PcfBinding) []byte {
	for _, s := range [...]string{
		b.IpDomain, string(b.Dnn), string(b.PcfFqdn), string(b.PcfDiamHost), string(b.PcfDiamRealm),
		string(b.PcfSmFqdn), string(b.PcfId), string(b.PcfSetId), string(b.RecoveryTime), b.BindLevel, b.Snssai.Sd,
	} {
		dst = appendText(dst, s)
	}
	dst = append(dst, b.Snssai.Sst)
	if b.SuppFeat == nil {
		dst = append(dst, 0)
	} else {
		dst = binary.LittleEndian.AppendUint64(append(dst, 1), uint64(*b.SuppFeat))
	}
	return appendEndPoints(appendEndPoints(dst, b.PcfIpEndPoints), b.PcfSmIpEndPoints)
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// identityPrefixes are the identities whose digits are packed two a byte.
var identityPrefixes = [...]string{1: "imsi-", 2: "msisdn-"}

// appendIdentity appends a SUPI or GPSI: a byte that tells the form, the
// length, and the digits or the text.
func appendIdentity(dst []byte, s string) []byte {
	for form := 1; form < len(identityPrefixes); form++ {
		digits, ok := strings.CutPrefix(s, identityPrefixes[form])
		if !ok || len(digits) > math.MaxUint8 || !allDigits(digits) {
			continue
		}
		dst = append(dst, byte(form), byte(len(digits)))
		for i := 0; i < len(digits); i += 2 {
			b := digits[i] - '0'
			if i+1 < len(digits) {
				b |= (digits[i+1] - '0') << 4
			}
			dst = append(dst, b)
		}
		return dst
	}
	return appendText(append(dst, 0), s)
}

func allDigits(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// wholeAddress, in the place of a length below 128, says that the length and
// all 16 bytes of the address follow.
const wholeAddress = 0x80

// appendPrefix appends the length and the address of a prefix. Host bits are
// kept; those of an IPv6 prefix up to /64 are rarely set, so the lower half
// follows only when it is not zero.
func appendPrefix(dst []byte, p netip.Prefix) []byte {
	if p.Addr().Is4() {
		a := p.Addr().As4()
		return append(append(dst, byte(p.Bits())), a[:]...)
	}
	a := p.Addr().As16()
	if p.Bits() < 128 && binary.BigEndian.Uint64(a[8:]) == 0 {
		return append(append(dst, byte(p.Bits())), a[:8]...)
	}
	return append(append(dst, wholeAddress, byte(p.Bits())), a[:]...)
}

func appendPrefixes(dst []byte, list []netip.Prefix) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(list)))
	for _, p := range list {
		dst = appendPrefix(dst, p)
	}
	return dst
}

func appendEndPoints(dst []byte, list []tgpp.IpEndPoint) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(list)))
	for _, e := range list {
		dst = appendText(dst, addrText(e.Ipv4Address))
		dst = appendText(dst, addrText(e.Ipv6Address))
		dst = appendText(dst, e.Transport)
		if e.Port == nil {
			dst = append(dst, 0)
		} else {
			dst = binary.LittleEndian.AppendUint16(append(dst, 1), *e.Port)
		}
	}
	return dst
}

func addrText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

// decoder reads the binary form. After a fault it returns zero values; the
// fault stays in err.
type decoder struct {
	src []byte
	err error
}

func (d *decoder) take(n int) []byte {
	if n < 0 || n > len(d.src) {
		d.err, d.src = errCorrupt, nil
		return make([]byte, min(max(n, 0), 16))
	}
	b := d.src[:n]
	d.src = d.src[n:]
	return b
}

func (d *decoder) byte() byte     { return d.take(1)[0] }
func (d *decoder) uint64() uint64 { return binary.LittleEndian.Uint64(d.take(8)) }

// count reads a number of things of at least one byte each.
func (d *decoder) count() int {
	v, n := binary.Uvarint(d.src)
	if n <= 0 || v > uint64(len(d.src)) {
		d.err, d.src = errCorrupt, nil
		return 0
	}
	d.src = d.src[n:]
	return int(v)
}

func (d *decoder) text() string {
	n := d.count()
	if n == 0 {
		return ""
	}
	return string(d.take(n))
}

func (d *decoder) identity() string {
	form := int(d.byte())
	if form == 0 {
		return d.text()
	}
	if form >= len(identityPrefixes) {
		d.err = errCorrupt
		return ""
	}
	n := int(d.byte())
	packed := d.take((n + 1) / 2)
	if d.err != nil {
		return ""
	}
	return unpack(identityPrefixes[form], packed, n)
}

// unpack is a prefix with n digits, packed two a byte.
func unpack(prefix string, packed []byte, n int) string {
	s := make([]byte, len(prefix)+n)
	copy(s, prefix)
	for i := range n {
		s[len(prefix)+i] = '0' + packed[i/2]>>(i%2*4)&15
	}
	return unsafe.String(unsafe.SliceData(s), len(s))
}

func (d *decoder) prefix4() netip.Prefix {
	n := int(d.byte())
	p := netip.PrefixFrom(netip.AddrFrom4([4]byte(d.take(4))), n)
	if !p.IsValid() {
		d.err = errCorrupt
	}
	return p
}

func (d *decoder) prefix6() netip.Prefix {
	n := d.byte()
	var a [16]byte
	if n == wholeAddress {
		n = d.byte()
		copy(a[:], d.take(16))
	} else {
		copy(a[:], d.take(8))
	}
	p := netip.PrefixFrom(netip.AddrFrom16(a), int(n))
	if !p.IsValid() {
		d.err = errCorrupt
	}
	return p
}

// prefixes reads a list of prefixes of one family. It takes no function for
// one of them: the decoder would escape to the heap.
func (d *decoder) prefixes(ipv6 bool) []netip.Prefix {
	n := d.count()
	list := make([]netip.Prefix, 0, n)
	for range n {
		if ipv6 {
			list = append(list, d.prefix6())
		} else {
			list = append(list, d.prefix4())
		}
	}
	return list
}

func (d *decoder) instant() time.Time { return time.UnixMilli(int64(d.uint64())).UTC() }

// decodeHead fills the record from the head and returns the profile number.
func (d *decoder) decodeHead(r *bsf.Record) (profile uint32) {
	copy(r.ID[:], d.take(16))
	r.Created = time.UnixMicro(int64(d.uint64())).UTC()
	r.Audited = time.UnixMicro(int64(d.uint64())).UTC()
	r.Attempts = d.byte()
	return binary.LittleEndian.Uint32(d.take(4))
}

// decodeBody fills the record from the body.
func (d *decoder) decodeBody(r *bsf.Record) {
	b := &r.Binding
	bits := binary.LittleEndian.Uint32(d.take(4))
	has := func(bit uint32) bool { return bits&bit != 0 && d.err == nil }
	if has(hasSupi) {
		b.Supi = tgpp.Supi(d.identity())
	}
	if has(hasGpsi) {
		b.Gpsi = tgpp.Gpsi(d.identity())
	}
	if has(hasIpv4) {
		b.Ipv4Addr = netip.AddrFrom4([4]byte(d.take(4)))
	}
	if has(hasIpv6) {
		b.Ipv6Prefix = d.prefix6()
	}
	if has(hasAddIpv6) {
		b.AddIpv6Prefixes = d.prefixes(true)
	}
	if has(hasMac) {
		b.MacAddr48 = tgpp.MacAddr48(d.take(17))
	}
	if has(hasAddMac) {
		for range d.count() {
			b.AddMacAddrs = append(b.AddMacAddrs, tgpp.MacAddr48(d.take(17)))
		}
	}
	if has(hasParaCom) {
		b.ParaCom = d.paraCom(has, b.Supi)
	}
	if has(hasIpv4Routes) {
		b.Ipv4FrameRouteList = d.prefixes(false)
	}
	if has(hasIpv6Routes) {
		b.Ipv6FrameRouteList = d.prefixes(true)
	}
	if has(hasOrigination) {
		r.Origination = d.instant()
	}
	if has(hasSender) {
		r.Sender = d.instant()
	}
	if has(hasCustomSender) {
		r.CustomSender = d.instant()
	}
	if has(hasCookie) {
		r.Cookie = d.text()
	}
	if has(hasURL) {
		r.NotificationURL = d.text()
	}
}

func (d *decoder) paraCom(has func(uint32) bool, own tgpp.Supi) *bsf.ParameterCombination {
	p := &bsf.ParameterCombination{}
	switch {
	case has(hasParaOwnSupi):
		p.Supi = own
	case has(hasParaSupi):
		p.Supi = tgpp.Supi(d.identity())
	}
	if has(hasParaDnn) {
		p.Dnn = tgpp.Dnn(d.text())
	}
	if has(hasParaSnssai) {
		p.Snssai = &tgpp.Snssai{Sst: d.byte(), Sd: d.text()}
	}
	return p
}

// decodeProfile returns a binding with the attributes of a profile.
func decodeProfile(src []byte) (*bsf.PcfBinding, error) {
	d := decoder{src: src}
	b := &bsf.PcfBinding{}
	b.IpDomain = d.text()
	b.Dnn = tgpp.Dnn(d.text())
	b.PcfFqdn = tgpp.Fqdn(d.text())
	b.PcfDiamHost = tgpp.Fqdn(d.text())
	b.PcfDiamRealm = tgpp.Fqdn(d.text())
	b.PcfSmFqdn = tgpp.Fqdn(d.text())
	b.PcfId = tgpp.NfInstanceId(d.text())
	b.PcfSetId = tgpp.NfSetId(d.text())
	b.RecoveryTime = tgpp.DateTime(d.text())
	b.BindLevel = d.text()
	b.Snssai.Sd = d.text()
	b.Snssai.Sst = d.byte()
	if d.byte() == 1 {
		f := tgpp.Features(d.uint64())
		b.SuppFeat = &f
	}
	b.PcfIpEndPoints = d.endPoints()
	b.PcfSmIpEndPoints = d.endPoints()
	if d.err == nil && len(d.src) > 0 {
		d.err = errCorrupt
	}
	return b, d.err
}

func (d *decoder) endPoints() []tgpp.IpEndPoint {
	var list []tgpp.IpEndPoint
	for range d.count() {
		e := tgpp.IpEndPoint{Ipv4Address: d.addr(), Ipv6Address: d.addr(), Transport: d.text()}
		if d.byte() == 1 {
			port := binary.LittleEndian.Uint16(d.take(2))
			e.Port = &port
		}
		list = append(list, e)
	}
	return list
}

func (d *decoder) addr() netip.Addr {
	s := d.text()
	if s == "" {
		return netip.Addr{}
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		d.err = errCorrupt
	}
	return a
}

// AppendRecord appends the self-contained binary form of a record, as the
// embedded engine writes it to disk.
func AppendRecord(dst []byte, r *bsf.Record) []byte {
	dst = appendHead(dst, r, 0)
	at := len(dst)
	dst = appendProfile(dst, &r.Binding)
	binary.LittleEndian.PutUint32(dst[at-4:], uint32(len(dst)-at))
	return appendBody(dst, r)
}

// splitRecord takes the self-contained form apart.
func splitRecord(src []byte) (head, profile, body []byte, err error) {
	if len(src) < headSize {
		return nil, nil, nil, errCorrupt
	}
	head, rest := src[:headSize], src[headSize:]
	n := binary.LittleEndian.Uint32(head[offProfile:])
	if uint64(n) > uint64(len(rest)) {
		return nil, nil, nil, errCorrupt
	}
	return head, rest[:n], rest[n:], nil
}

// DecodeRecord reads the form that AppendRecord writes.
func DecodeRecord(src []byte) (*bsf.Record, error) {
	head, profile, body, err := splitRecord(src)
	if err != nil {
		return nil, err
	}
	b, err := decodeProfile(profile)
	if err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	r := &bsf.Record{Binding: *b}
	return r, decodeInto(r, head, body)
}

// decodeInto fills a record whose profile attributes are set.
func decodeInto(r *bsf.Record, head, body []byte) error {
	h := decoder{src: head}
	h.decodeHead(r)
	d := decoder{src: body}
	d.decodeBody(r)
	switch {
	case h.err != nil:
		return h.err
	case d.err == nil && len(d.src) > 0:
		return errCorrupt
	}
	return d.err
}
