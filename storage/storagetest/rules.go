package storagetest

import (
	"net/netip"
	"testing"
	"time"

	"bsfd/bsf"
	"bsfd/internal/tgpp"
	"bsfd/storage"
)

func testRules(t *testing.T, e Engine) {
	t.Run("supersede", func(t *testing.T) {
		for _, c := range []struct {
			name   string
			change func(old, fresh *bsf.PcfBinding)
			gone   bool
		}{
			{"the same addresses", func(_, _ *bsf.PcfBinding) {}, true},
			{"the same IPv4 address alone", func(_, f *bsf.PcfBinding) { f.Ipv6Prefix = netip.MustParsePrefix("2001:db8:5::/64") }, true},
			{"the same IPv6 prefix alone", func(_, f *bsf.PcfBinding) { f.Ipv4Addr = netip.MustParseAddr("10.9.9.9") }, true},
			{"another SUPI and PCF", func(_, f *bsf.PcfBinding) { f.Supi, f.PcfId = "imsi-999999999999999", "" }, true},
			{"another spelling of DNN and S-NSSAI", func(_, f *bsf.PcfBinding) {
				f.Dnn, f.Snssai.Sd = "Internet.mnc001.mcc001.gprs", "0000ab"
			}, true},
			{"another ipDomain", func(_, f *bsf.PcfBinding) { f.IpDomain, f.Ipv6Prefix = "dom2", netip.Prefix{} }, false},
			{"another DNN", func(_, f *bsf.PcfBinding) { f.Dnn = "ims" }, false},
			{"another S-NSSAI", func(_, f *bsf.PcfBinding) { f.Snssai.Sst = 2 }, false},
			{"other addresses", func(_, f *bsf.PcfBinding) {
				f.Ipv4Addr, f.Ipv6Prefix = netip.MustParseAddr("10.9.9.9"), netip.Prefix{}
			}, false},
			{"an additional prefix of the old", func(o, f *bsf.PcfBinding) {
				o.AddIpv6Prefixes = []netip.Prefix{netip.MustParsePrefix("2001:db8:5::/64")}
				f.Ipv4Addr, f.Ipv6Prefix = netip.Addr{}, netip.MustParsePrefix("2001:db8:5::/64")
			}, true},
			{"an additional prefix of the new", func(_, f *bsf.PcfBinding) {
				f.AddIpv6Prefixes = []netip.Prefix{f.Ipv6Prefix}
				f.Ipv4Addr, f.Ipv6Prefix = netip.Addr{}, netip.MustParsePrefix("2001:db8:5::/64")
			}, true},
			{"a framed route only", func(_, f *bsf.PcfBinding) {
				f.Ipv4FrameRouteList = []netip.Prefix{netip.PrefixFrom(f.Ipv4Addr, 32)}
				f.Ipv4Addr, f.Ipv6Prefix = netip.MustParseAddr("10.9.9.9"), netip.Prefix{}
			}, false},
			{"a host prefix", func(o, f *bsf.PcfBinding) {
				o.Ipv6Prefix = netip.MustParsePrefix("2001:db8::1/128")
				f.Ipv4Addr, f.Ipv6Prefix = netip.Addr{}, netip.MustParsePrefix("2001:db8::1/128")
			}, true},
		} {
			t.Run(c.name, func(t *testing.T) {
				s := open(t, e)
				old, fresh := record(1), record(1)
				c.change(&old.Binding, &fresh.Binding)
				create(t, s, old, supersede)
				out := create(t, s, fresh, supersede)
				if removed := len(out.Remove) == 1 && out.Remove[0].Record.ID == old.ID && out.Remove[0].Reason == bsf.ReasonSuperseded; removed != c.gone {
					t.Errorf("removed: %+v, want %v", out.Remove, c.gone)
				}
				if n, err := s.Count(testContext(t)); err != nil || n != int64(map[bool]int{true: 1, false: 2}[c.gone]) {
					t.Errorf("%d records, %v", n, err)
				}
			})
		}
	})

	t.Run("supersede of Ethernet sessions", func(t *testing.T) {
		s := open(t, e)
		old, fresh := macRecord(1), macRecord(1)
		fresh.Binding.MacAddr48, fresh.Binding.AddMacAddrs = "02-00-5e-11-00-01", nil
		create(t, s, old, supersede)
		if out := create(t, s, fresh, supersede); len(out.Remove) != 1 {
			t.Errorf("removed: %+v", out.Remove)
		}
	})

	t.Run("two old bindings make way for one", func(t *testing.T) {
		s := open(t, e)
		a, b := record(1), record(2)
		fresh := record(3)
		fresh.Binding.Ipv4Addr, fresh.Binding.Ipv6Prefix = a.Binding.Ipv4Addr, b.Binding.Ipv6Prefix
		create(t, s, a, supersede)
		create(t, s, b, supersede)
		if out := create(t, s, fresh, supersede); len(out.Remove) != 2 {
			t.Errorf("removed: %+v", out.Remove)
		}
	})

	t.Run("keep", func(t *testing.T) {
		s := open(t, e)
		keep := bsf.Rules{SameAddress: bsf.Keep}
		create(t, s, record(1), keep)
		create(t, s, record(1), keep)
		if ids := found(t, s, prefixKey("10.0.0.1/32")); len(ids) != 2 {
			t.Errorf("%d records", len(ids))
		}
		if out := create(t, s, record(1), supersede); len(out.Remove) != 2 {
			t.Errorf("supersede after keep removes %d", len(out.Remove))
		}
	})

	t.Run("SamePcf", func(t *testing.T) { testSamePcf(t, e) })
	t.Run("revalidation", func(t *testing.T) { testRevalidation(t, e) })
	t.Run("collision", func(t *testing.T) { testCollision(t, e) })
}

// withParaCom gives a record the SamePcf check and addresses of its own.
func withParaCom(n int, pcf tgpp.NfInstanceId) *bsf.Record {
	r := record(n)
	r.Binding.Supi = "imsi-001010000000001"
	r.Binding.PcfId, r.Binding.PcfFqdn = pcf, ""
	r.Binding.PcfSmFqdn = "pcfsm.example.com"
	r.Binding.ParaCom = &bsf.ParameterCombination{Supi: r.Binding.Supi, Dnn: r.Binding.Dnn, Snssai: &r.Binding.Snssai}
	return r
}

func testSamePcf(t *testing.T, e Engine) {
	const pcf1, pcf2 = "00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"
	for _, c := range []struct {
		name     string
		pcf      tgpp.NfInstanceId
		change   func(*bsf.PcfBinding)
		conflict bool
	}{
		{"another PCF", pcf2, func(*bsf.PcfBinding) {}, true},
		{"the same PCF", pcf1, func(*bsf.PcfBinding) {}, false},
		{"another DNN", pcf2, func(b *bsf.PcfBinding) { b.Dnn, b.ParaCom.Dnn = "ims", "ims" }, false},
		{"another slice", pcf2, func(b *bsf.PcfBinding) { b.ParaCom.Snssai = &tgpp.Snssai{Sst: 9} }, false},
		{"only the SUPI is compared", pcf2, func(b *bsf.PcfBinding) {
			b.Dnn, b.ParaCom.Dnn, b.ParaCom.Snssai = "ims", "", nil
		}, true},
		{"the feature was not negotiated", pcf2, func(b *bsf.PcfBinding) {
			f := bsf.FeatureMultiUeAddr
			b.SuppFeat = &f
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, e)
			create(t, s, withParaCom(1, pcf1), supersede)
			fresh := withParaCom(2, c.pcf)
			c.change(&fresh.Binding)
			out := create(t, s, fresh, supersede)
			if (out.Conflict != nil) != c.conflict {
				t.Fatalf("conflict: %+v", out.Conflict)
			}
			if c.conflict && out.Conflict.Holder.PcfSmFqdn != "pcfsm.example.com" {
				t.Errorf("holder: %+v", out.Conflict.Holder)
			}
			if got := len(found(t, s, prefixKey("10.0.0.2/32"))); got != map[bool]int{true: 0, false: 1}[c.conflict] {
				t.Errorf("%d records stored", got)
			}
		})
	}
}

func testRevalidation(t *testing.T, e Engine) {
	rules := bsf.Rules{SameAddress: bsf.Supersede, Revalidate: true}
	s := open(t, e)
	first := record(1)
	if out := create(t, s, first, rules); out.Duplicate != nil || len(out.Remove) != 0 {
		t.Fatalf("a missing binding is created: %+v", out)
	}
	if out := create(t, s, record(1), rules); out.Duplicate == nil || out.Duplicate.ID != first.ID {
		t.Fatalf("an unchanged binding is found: %+v", out)
	}
	changed := record(1)
	changed.Binding.Gpsi = "msisdn-12345"
	out := create(t, s, changed, rules)
	if out.Duplicate != nil || len(out.Remove) != 1 || out.Remove[0].Reason != bsf.ReasonRevalidated {
		t.Fatalf("a changed binding is created again: %+v", out)
	}
	assertOnly(t, s, changed)
}

func testCollision(t *testing.T, e Engine) {
	at := func(ms int64) time.Time { return time.UnixMilli(1700000000000 + ms).UTC() }
	headers := bsf.CollisionRules{Enabled: true, TimerHeaders: true, Origination: true, CustomSender: true, Sender: true}
	senderOnly := headers
	senderOnly.TimerHeaders = false
	for _, c := range []struct {
		name  string
		rules bsf.CollisionRules
		old   bsf.Record
		fresh bsf.Record
		loses bool
	}{
		{"newer origination wins", headers, bsf.Record{Origination: at(1)}, bsf.Record{Origination: at(2)}, false},
		{"older origination loses", headers, bsf.Record{Origination: at(2)}, bsf.Record{Origination: at(1)}, true},
		{"custom sender breaks the tie", headers, bsf.Record{Origination: at(1), CustomSender: at(9)},
			bsf.Record{Origination: at(1), CustomSender: at(8)}, true},
		{"full tie: the later request wins", headers, bsf.Record{Origination: at(1), CustomSender: at(9)},
			bsf.Record{Origination: at(1), CustomSender: at(9)}, false},
		{"no header: the later request wins", headers, bsf.Record{Origination: at(9)}, bsf.Record{}, false},
		{"sender is not compared with timer headers", headers, bsf.Record{Sender: at(9)}, bsf.Record{Sender: at(1)}, false},
		{"older sender loses without timer headers", senderOnly, bsf.Record{Sender: at(9)}, bsf.Record{Sender: at(1)}, true},
		{"switched off", bsf.CollisionRules{}, bsf.Record{Origination: at(2)}, bsf.Record{Origination: at(1)}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, e)
			old, fresh := record(1), record(1)
			fresh.Binding.PcfId = "00000000-0000-4000-8000-000000000002"
			old.Origination, old.Sender, old.CustomSender = c.old.Origination, c.old.Sender, c.old.CustomSender
			fresh.Origination, fresh.Sender, fresh.CustomSender = c.fresh.Origination, c.fresh.Sender, c.fresh.CustomSender
			rules := bsf.Rules{SameAddress: bsf.Supersede, Collision: c.rules}
			create(t, s, old, rules)
			out := create(t, s, fresh, rules)
			if lost := out.Conflict != nil && out.Conflict.Older; lost != c.loses {
				t.Fatalf("conflict: %+v", out.Conflict)
			}
			if c.loses {
				assertOnly(t, s, old)
			} else {
				assertOnly(t, s, fresh)
			}
		})
	}
}

// assertOnly fails unless the record is the only one.
func assertOnly(t *testing.T, s storage.Store, r *bsf.Record) {
	t.Helper()
	n, err := s.Count(testContext(t))
	if ids := found(t, s, r.Keys(nil)[0]); err != nil || n != 1 || !ids[r.ID] {
		t.Errorf("%d records (%v), under the address: %v", n, err, ids)
	}
}
