package storagetest

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"bsfd/bsf"
	"bsfd/internal/tgpp"
	"bsfd/storage"
)

// Engine is an engine under test.
type Engine struct {
	// Open returns a store on empty storage; it is closed by the suite.
	Open func(t *testing.T) storage.Store
	// Reopen, for durable engines, returns another store on the storage of
	// the last Open, after that was closed.
	Reopen func(t *testing.T) storage.Store
	// Join, for shared engines, returns a second store on the storage of the
	// last Open, while that is in use.
	Join func(t *testing.T) storage.Store
}

// Run runs the suite.
func Run(t *testing.T, e Engine) {
	for _, group := range []struct {
		name string
		test func(*testing.T, Engine)
	}{
		{"Bindings", testBindings},
		{"Rules", testRules},
		{"Races", testRaces},
		{"Pages", testPages},
		{"Documents", testDocuments},
		{"Events", testEvents},
		{"Reopen", testReopen},
	} {
		t.Run(group.name, func(t *testing.T) { group.test(t, e) })
	}
}

// open returns a store that is closed when the test ends.
func open(t *testing.T, e Engine) storage.Store {
	t.Helper()
	s := e.Open(t)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// context returns one that bounds a hanging test.
func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	t.Cleanup(cancel)
	// The stores take the deadline of a context for that of a consumer.
	return context.WithoutCancel(ctx)
}

var supersede = bsf.Rules{SameAddress: bsf.Supersede}

// record returns a typical record; n makes its UE.
func record(n int) *bsf.Record {
	features := bsf.SupportedFeatures
	now := time.Now().UTC().Truncate(time.Microsecond)
	return &bsf.Record{
		ID: bsf.NewID(), Created: now, Audited: now,
		Binding: bsf.PcfBinding{
			Supi: tgpp.Supi(fmt.Sprintf("imsi-00101%010d", n)), Gpsi: tgpp.Gpsi(fmt.Sprintf("msisdn-467%07d", n)),
			Ipv4Addr:   netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}),
			Ipv6Prefix: netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 0, byte(n >> 16), byte(n >> 8), byte(n)}), 64),
			Dnn:        "internet", Snssai: tgpp.Snssai{Sst: 1, Sd: "0000AB"}, SuppFeat: &features,
			PcfFqdn: "pcf1.example.com", PcfId: "54804518-4191-46b3-955c-ac631f953ed8",
			PcfSetId: "set1.pcfset.5gc.mnc001.mcc001", PcfDiamHost: "pcf1.rx.example.com", PcfDiamRealm: "example.com",
			BindLevel: bsf.BindLevelNfSet,
		},
	}
}

// fullRecord returns a record with every attribute that IP sessions have.
func fullRecord(n int) *bsf.Record {
	r := record(n)
	port := uint16(8080)
	b := &r.Binding
	b.AddIpv6Prefixes = []netip.Prefix{netip.MustParsePrefix("2001:db8:ffff::/64"), netip.MustParsePrefix("2001:db8:fffe::1/128")}
	b.IpDomain = "dom1"
	b.PcfIpEndPoints = []tgpp.IpEndPoint{{Ipv4Address: netip.MustParseAddr("192.0.2.1"), Transport: "TCP", Port: &port}}
	b.PcfSmFqdn = "pcf1sm.example.com"
	b.PcfSmIpEndPoints = []tgpp.IpEndPoint{{Ipv6Address: netip.MustParseAddr("2001:db8::1")}}
	b.RecoveryTime = "2026-01-02T03:04:05.678+02:00"
	b.ParaCom = &bsf.ParameterCombination{Supi: b.Supi, Dnn: "internet", Snssai: &tgpp.Snssai{Sst: 1, Sd: "0000AB"}}
	b.Ipv4FrameRouteList = []netip.Prefix{netip.MustParsePrefix("192.168.0.0/16")}
	b.Ipv6FrameRouteList = []netip.Prefix{netip.MustParsePrefix("2001:db8:aaaa::/48"), netip.MustParsePrefix("2001:db8:bbbb::1/128")}
	r.Origination = time.UnixMilli(1700000000123).UTC()
	r.Sender = time.UnixMilli(1700000000456).UTC()
	r.CustomSender = time.UnixMilli(1700000000789).UTC()
	r.Cookie = `{"cookieOwner":"PCF-SM"}`
	r.NotificationURL = "http://pcf1.example.com/audit"
	return r
}

// macRecord returns an Ethernet session.
func macRecord(n int) *bsf.Record {
	r := record(n)
	b := &r.Binding
	b.Ipv4Addr, b.Ipv6Prefix = netip.Addr{}, netip.Prefix{}
	b.MacAddr48 = tgpp.MacAddr48(fmt.Sprintf("02-00-5E-10-%02X-%02X", n>>8&255, n&255))
	b.AddMacAddrs = []tgpp.MacAddr48{tgpp.MacAddr48(fmt.Sprintf("02-00-5e-11-%02x-%02x", n>>8&255, n&255))}
	return r
}

func create(t *testing.T, s storage.Store, r *bsf.Record, rules bsf.Rules) bsf.Outcome {
	t.Helper()
	out, err := s.Create(testContext(t), r, rules)
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	return out
}

func find(t *testing.T, s storage.Store, k bsf.Key) []*bsf.Record {
	t.Helper()
	found, err := s.Find(testContext(t), k)
	if err != nil {
		t.Fatalf("find: %v", err)
	}
	return found
}

// found reports the ids under a key, for messages and comparison.
func found(t *testing.T, s storage.Store, k bsf.Key) map[bsf.ID]bool {
	t.Helper()
	ids := make(map[bsf.ID]bool)
	for _, r := range find(t, s, k) {
		if ids[r.ID] {
			t.Errorf("record %s found twice", r.ID)
		}
		ids[r.ID] = true
	}
	return ids
}

func prefixKey(s string) bsf.Key { return bsf.PrefixKey(netip.MustParsePrefix(s)) }
