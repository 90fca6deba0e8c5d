package postgres

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"bsfd/bsf"
)

// row is a record in the form of its columns.
type row struct {
	id                         bsf.ID
	created, audited           time.Time
	attempts                   int16
	supi, ipv4, ipv6, mac      *string
	ipDomain, dnn, snssai, dup string
	pcfID, pcfSetID            *string
	document                   string
	routes                     []route
}

// route is a row of binding_route.
type route struct {
	family int16
	bits   string
}

// Families of routes.
const (
	familyIPv4 = 4
	familyIPv6 = 6
	familyMac  = 48
)

func rowOf(r *bsf.Record, policy bsf.SameAddress) (*row, error) {
	doc, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	b := &r.Binding
	x := &row{
		id: r.ID, created: r.Created, audited: r.Audited, attempts: int16(r.Attempts),
		supi: optional(string(b.Supi)), ipDomain: b.IpDomain, dnn: b.Dnn.Key(), snssai: b.Snssai.Key(),
		pcfID: optional(string(b.PcfId)), pcfSetID: optional(string(b.PcfSetId)), document: string(doc),
	}
	if policy == bsf.Keep {
		x.dup = r.ID.String()
	}
	for _, k := range b.AddressKeys(nil) {
		switch {
		case k.Kind == bsf.KeyMac && x.mac == nil:
			x.mac = optional(macText(k))
		case k.Kind == bsf.KeyPrefix && k.Prefix.Addr().Is4():
			x.ipv4 = optional(k.Prefix.Addr().String())
		case k.Kind == bsf.KeyPrefix && x.ipv6 == nil && k.Prefix.Bits() == 64:
			x.ipv6 = optional(k.Prefix.Addr().String())
		default:
			x.routes = append(x.routes, routeOf(k))
		}
	}
	for _, k := range b.RouteKeys(nil) {
		if rt := routeOf(k); !containsRoute(x.routes, rt) {
			x.routes = append(x.routes, rt)
		}
	}
	return x, nil
}

// asRoute is the address of a row that another binding may have as a route of
// its own; IPv4 addresses are none.
func (x *row) asRoute() (family int16, bits string) {
	switch {
	case x.mac != nil:
		return familyMac, *x.mac
	case x.ipv6 != nil:
		return prefixBits(netip.PrefixFrom(netip.MustParseAddr(*x.ipv6), 64))
	}
	return 0, ""
}

func containsRoute(list []route, r route) bool {
	for _, x := range list {
		if x == r {
			return true
		}
	}
	return false
}

func routeOf(k bsf.Key) route {
	if k.Kind == bsf.KeyMac {
		return route{familyMac, macText(k)}
	}
	family, bits := prefixBits(k.Prefix)
	return route{family, bits}
}

func macText(k bsf.Key) string { return fmt.Sprintf("%x", k.Mac) }

// prefixBits is a prefix as zeros and ones.
func prefixBits(p netip.Prefix) (family int16, bits string) {
	family = familyIPv6
	if p.Addr().Is4() {
		family = familyIPv4
	}
	var b strings.Builder
	for _, octet := range p.Addr().AsSlice() {
		fmt.Fprintf(&b, "%08b", octet)
	}
	return family, b.String()[:p.Bits()]
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// recordOf reads a record from its document and the columns that audits change.
func recordOf(document string, audited time.Time, attempts int16) (*bsf.Record, error) {
	r := new(bsf.Record)
	if err := jsonv2.Unmarshal([]byte(document), r); err != nil {
		return nil, fmt.Errorf("stored binding: %w", err)
	}
	r.Audited, r.Attempts = audited.UTC(), uint8(attempts)
	return r, nil
}
