package nbsf

import (
	"net/netip"

	"bsfd/bsf"
	"bsfd/internal/tgpp"
)

// bindingPatch collects the changes of a PcfBindingPatch (TS 29.521
// §5.6.2.16, RFC 7396). Members that are no part of the type are ignored.
type bindingPatch struct {
	changes []func(*bsf.PcfBinding)
}

func (p *bindingPatch) apply(b *bsf.PcfBinding) {
	for _, change := range p.changes {
		change(b)
	}
}

// set reads a member by read and notes a change that assigns it. A nullable
// member that is null is deleted.
func set[T any](p *bindingPatch, d *decoder, nullable bool, field func(*bsf.PcfBinding) *T, read func(*T)) {
	var v T
	if !nullable || !d.null() {
		read(&v)
	}
	p.changes = append(p.changes, func(b *bsf.PcfBinding) { *field(b) = v })
}

func (d *decoder) pcfBindingPatch(p *bindingPatch) func(name string) {
	return func(name string) {
		switch name {
		case "ipv4Addr":
			set(p, d, true, func(b *bsf.PcfBinding) *ipv4 { return &b.Ipv4Addr },
				func(v *ipv4) { text(d, "ipv4Addr", mandatory, v, tgpp.ParseIpv4Addr) })
		case "ipDomain":
			set(p, d, true, func(b *bsf.PcfBinding) *string { return &b.IpDomain },
				func(v *string) { text(d, "ipDomain", mandatory, v, tgpp.ParseIPDomain) })
		case "ipv6Prefix":
			set(p, d, true, func(b *bsf.PcfBinding) *ipv6 { return &b.Ipv6Prefix },
				func(v *ipv6) { text(d, "ipv6Prefix", mandatory, v, tgpp.ParseIpv6Prefix) })
		case "addIpv6Prefixes":
			set(p, d, true, func(b *bsf.PcfBinding) *[]ipv6 { return &b.AddIpv6Prefixes },
				func(v *[]ipv6) { texts(d, "addIpv6Prefixes", optional, v, tgpp.ParseIpv6Prefix) })
		case "macAddr48":
			set(p, d, true, func(b *bsf.PcfBinding) *tgpp.MacAddr48 { return &b.MacAddr48 },
				func(v *tgpp.MacAddr48) { text(d, "macAddr48", mandatory, v, tgpp.ParseMacAddr48) })
		case "addMacAddrs":
			set(p, d, true, func(b *bsf.PcfBinding) *[]tgpp.MacAddr48 { return &b.AddMacAddrs },
				func(v *[]tgpp.MacAddr48) { texts(d, "addMacAddrs", optional, v, tgpp.ParseMacAddr48) })
		case "pcfId":
			set(p, d, false, func(b *bsf.PcfBinding) *tgpp.NfInstanceId { return &b.PcfId },
				func(v *tgpp.NfInstanceId) { text(d, "pcfId", optional, v, tgpp.ParseNfInstanceId) })
		case "pcfFqdn":
			set(p, d, false, func(b *bsf.PcfBinding) *tgpp.Fqdn { return &b.PcfFqdn },
				func(v *tgpp.Fqdn) { text(d, "pcfFqdn", mandatory, v, tgpp.ParseFqdn) })
		case "pcfIpEndPoints":
			set(p, d, false, func(b *bsf.PcfBinding) *[]tgpp.IpEndPoint { return &b.PcfIpEndPoints },
				func(v *[]tgpp.IpEndPoint) { d.endPoints("pcfIpEndPoints", mandatory, v) })
		case "pcfDiamHost":
			set(p, d, false, func(b *bsf.PcfBinding) *tgpp.Fqdn { return &b.PcfDiamHost },
				func(v *tgpp.Fqdn) { text(d, "pcfDiamHost", mandatory, v, tgpp.ParseFqdn) })
		case "pcfDiamRealm":
			set(p, d, false, func(b *bsf.PcfBinding) *tgpp.Fqdn { return &b.PcfDiamRealm },
				func(v *tgpp.Fqdn) { text(d, "pcfDiamRealm", mandatory, v, tgpp.ParseFqdn) })
		case "snssai":
			set(p, d, false, func(b *bsf.PcfBinding) *tgpp.Snssai { return &b.Snssai },
				func(v *tgpp.Snssai) { d.snssai("snssai", mandatory, v) })
		default:
			d.skip()
		}
	}
}

// pcfPatch holds the changes of a PcfForUeBindingPatch or a
// PcfMbsBindingPatch, which differ in the names of two attributes.
type pcfPatch struct {
	fqdn      tgpp.Fqdn
	endPoints []tgpp.IpEndPoint
	pcfID     tgpp.NfInstanceId
}

func (d *decoder) pcfPatch(p *pcfPatch, fqdn, endPoints string) func(name string) {
	return func(name string) {
		switch name {
		case fqdn:
			text(d, fqdn, mandatory, &p.fqdn, tgpp.ParseFqdn)
		case endPoints:
			d.endPoints(endPoints, mandatory, &p.endPoints)
		case "pcfId":
			text(d, "pcfId", optional, &p.pcfID, tgpp.ParseNfInstanceId)
		default:
			d.skip()
		}
	}
}

// assign overwrites the attributes that the patch gives.
func (p *pcfPatch) assign(fqdn *tgpp.Fqdn, endPoints *[]tgpp.IpEndPoint, id *tgpp.NfInstanceId) {
	if p.fqdn != "" {
		*fqdn = p.fqdn
	}
	if p.endPoints != nil {
		*endPoints = p.endPoints
	}
	if p.pcfID != "" {
		*id = p.pcfID
	}
}

type (
	ipv4 = netip.Addr
	ipv6 = netip.Prefix
)
