package nbsf

import (
	"bytes"
	"strings"

	"bsfd/bsf"
	"bsfd/internal/tolerate"
	"bsfd/web/sbi"
)

// patchable are the members of a resource of type T that a PATCH may change.
type patchable[T any] []patchMember[T]

// patchMember is a member of a resource.
type patchMember[T any] struct {
	name string
	// nullable is set where the OpenAPI file lets null remove the member.
	nullable bool
	copy     func(dst, src *T)
}

// patch holds new values of some members of a resource (RFC 7396). Members
// that it sets and that are absent from values are removed.
type patch[T any] struct {
	members patchable[T]
	set     uint32 // bit i stands for members[i]
	values  T
}

// apply changes a resource.
func (p *patch[T]) apply(dst *T) {
	for i := range p.members {
		if p.set&(1<<i) != 0 {
			p.members[i].copy(dst, &p.values)
		}
	}
}

// assign sets a member by its name.
func (p *patch[T]) assign(name string) {
	for i := range p.members {
		if p.members[i].name == name {
			p.set |= 1 << i
		}
	}
}

// merge returns the reader of a merge patch; read reads a member into the
// values. Members that are no part of the patch type are ignored, and so are
// empty texts and lists that stand for absent members.
func (p *patch[T]) merge(d *decoder, read func(name string)) func(name string) {
	return func(name string) {
		for i := range p.members {
			m := &p.members[i]
			if m.name != name {
				continue
			}
			d.next()
			start := d.at
			if !m.nullable || !d.null() {
				read(name)
			}
			if d.err == nil && !isEmptyValue(d.text[start:d.at]) {
				p.set |= 1 << i
			}
			return
		}
		d.skip()
	}
}

// isEmptyValue reports whether a JSON value is an empty text, or a list with
// nothing in it but null.
func isEmptyValue(raw string) bool {
	return raw == `""` || raw[0] == '[' && strings.Trim(raw, "[]nul, \t\r\n") == ""
}

// patcher is what a PATCH of one type of resources needs.
type patcher[T any] struct {
	members patchable[T]
	// fresh is a resource in which everything is absent.
	fresh func() T
	// read returns the reader of the members of a resource.
	read func(d *decoder, b *T) func(name string)
	// encode appends a resource as JSON.
	encode func(b *T, dst []byte) []byte
	// hasEndPoints reports whether a resource has end points, the member of
	// that name.
	endPoints    string
	hasEndPoints func(b *T) bool
}

// change is what a PATCH does to a resource, and which tolerances that takes.
// It may run more than once, and on another goroutine than the call.
type change[T any] func(*T) (tolerate.Set, error)

// readPatch reads the body of a PATCH.
func readPatch[T any](a *API, c *call, t *patcher[T]) (change[T], error) {
	d := a.decoders.get()
	c.d = d
	if p := sbi.ReadBody(c.r, &d.in, a.cfg.MaxBodyBytes); p != nil {
		return nil, p
	}
	array := bytes.HasPrefix(bytes.TrimLeft(d.in.Bytes(), " \t\r\n"), []byte("["))
	switch {
	case c.patchType == typeMergePatch:
	case array && c.tolerate(tol(tolJSONPatch)):
		return readJSONPatch(a, c, t)
	case c.patchType == typeJSONPatch && !c.tolerate(tol(tolPatchType)):
		return nil, sbi.Fail(sbi.UnsupportedMediaType, "the body must be "+typeMergePatch).With("Accept", typeMergePatch)
	}
	p := &patch[T]{members: t.members, values: t.fresh()}
	if problem := d.decode(p.merge(d, t.read(d, &p.values))); problem != nil {
		return nil, problem
	}
	if t.hasEndPoints(&p.values) {
		// They may come from the URI of another member.
		p.assign(t.endPoints)
	}
	return func(b *T) (tolerate.Set, error) { p.apply(b); return 0, nil }, nil
}

// bindingMembers are the members of a PcfBindingPatch (TS 29.521 §5.6.2.16).
var bindingMembers = patchable[bsf.PcfBinding]{
	{"ipv4Addr", true, func(dst, src *bsf.PcfBinding) { dst.Ipv4Addr = src.Ipv4Addr }},
	{"ipDomain", true, func(dst, src *bsf.PcfBinding) { dst.IpDomain = src.IpDomain }},
	{"ipv6Prefix", true, func(dst, src *bsf.PcfBinding) { dst.Ipv6Prefix = src.Ipv6Prefix }},
	{"addIpv6Prefixes", true, func(dst, src *bsf.PcfBinding) { dst.AddIpv6Prefixes = src.AddIpv6Prefixes }},
	{"macAddr48", true, func(dst, src *bsf.PcfBinding) { dst.MacAddr48 = src.MacAddr48 }},
	{"addMacAddrs", true, func(dst, src *bsf.PcfBinding) { dst.AddMacAddrs = src.AddMacAddrs }},
	{"pcfId", false, func(dst, src *bsf.PcfBinding) { dst.PcfId = src.PcfId }},
	{"pcfFqdn", false, func(dst, src *bsf.PcfBinding) { dst.PcfFqdn = src.PcfFqdn }},
	{"pcfIpEndPoints", false, func(dst, src *bsf.PcfBinding) { dst.PcfIpEndPoints = src.PcfIpEndPoints }},
	{"pcfDiamHost", false, func(dst, src *bsf.PcfBinding) { dst.PcfDiamHost = src.PcfDiamHost }},
	{"pcfDiamRealm", false, func(dst, src *bsf.PcfBinding) { dst.PcfDiamRealm = src.PcfDiamRealm }},
	{"snssai", false, func(dst, src *bsf.PcfBinding) { dst.Snssai = src.Snssai }},
}

// ueMembers are those of a PcfForUeBindingPatch.
var ueMembers = patchable[bsf.PcfForUeBinding]{
	{"pcfForUeFqdn", false, func(dst, src *bsf.PcfForUeBinding) { dst.PcfForUeFqdn = src.PcfForUeFqdn }},
	{"pcfForUeIpEndPoints", false, func(dst, src *bsf.PcfForUeBinding) { dst.PcfForUeIpEndPoints = src.PcfForUeIpEndPoints }},
	{"pcfId", false, func(dst, src *bsf.PcfForUeBinding) { dst.PcfId = src.PcfId }},
}

// mbsMembers are those of a PcfMbsBindingPatch.
var mbsMembers = patchable[bsf.PcfMbsBinding]{
	{"pcfFqdn", false, func(dst, src *bsf.PcfMbsBinding) { dst.PcfFqdn = src.PcfFqdn }},
	{"pcfIpEndPoints", false, func(dst, src *bsf.PcfMbsBinding) { dst.PcfIpEndPoints = src.PcfIpEndPoints }},
	{"pcfId", false, func(dst, src *bsf.PcfMbsBinding) { dst.PcfId = src.PcfId }},
}

// The patchers of the three kinds of bindings.
var (
	bindingPatcher = &patcher[bsf.PcfBinding]{
		bindingMembers, bsf.NewPcfBinding,
		func(d *decoder, b *bsf.PcfBinding) func(string) { return d.pcfBinding(b, nil) },
		(*bsf.PcfBinding).AppendJSON,
		"pcfIpEndPoints", func(b *bsf.PcfBinding) bool { return b.PcfIpEndPoints != nil },
	}
	uePatcher = &patcher[bsf.PcfForUeBinding]{
		ueMembers, func() (b bsf.PcfForUeBinding) { return },
		(*decoder).pcfForUeBinding,
		(*bsf.PcfForUeBinding).AppendJSON,
		"pcfForUeIpEndPoints", func(b *bsf.PcfForUeBinding) bool { return b.PcfForUeIpEndPoints != nil },
	}
	mbsPatcher = &patcher[bsf.PcfMbsBinding]{
		mbsMembers, func() (b bsf.PcfMbsBinding) { return },
		(*decoder).pcfMbsBinding,
		(*bsf.PcfMbsBinding).AppendJSON,
		"pcfIpEndPoints", func(b *bsf.PcfMbsBinding) bool { return b.PcfIpEndPoints != nil },
	}
)
