package memory

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"bsfd/bsf"
	"bsfd/internal/tgpp"
)

// samples are records of every shape.
func samples() []*bsf.Record {
	features, port := tgpp.Features(7), uint16(443)
	at := time.UnixMicro(1700000000123456).UTC()
	ip := bsf.PcfBinding{
		Supi: "imsi-001010000000001", Gpsi: "msisdn-4670000001", Ipv4Addr: netip.MustParseAddr("10.0.0.1"),
		Ipv6Prefix: netip.MustParsePrefix("2001:db8::/64"), IpDomain: "d", Dnn: "internet", Snssai: tgpp.Snssai{Sst: 1, Sd: "0000AB"},
		PcfFqdn: "pcf1.example.com", PcfDiamHost: "a.b.ex", PcfDiamRealm: "b.ex", SuppFeat: &features, PcfId: "x", PcfSetId: "y",
		RecoveryTime: "2026-01-01T00:00:00Z", BindLevel: "NF_SET",
		PcfIpEndPoints: []tgpp.IpEndPoint{{Ipv4Address: netip.MustParseAddr("192.0.2.1"), Port: &port, Transport: "TCP"}},
	}
	odd := ip
	odd.Supi, odd.Gpsi, odd.Ipv4Addr = "nai-user@example.com", "imsi-", netip.Addr{}
	odd.Ipv6Prefix = netip.MustParsePrefix("2001:db8::1/128")
	odd.AddIpv6Prefixes = []netip.Prefix{netip.MustParsePrefix("::/0"), netip.MustParsePrefix("2001:db8:1::/128"), netip.MustParsePrefix("::ffff:10.0.0.1/127")}
	odd.Ipv4FrameRouteList = []netip.Prefix{netip.MustParsePrefix("10.1.2.3/8")}
	odd.Ipv6FrameRouteList = []netip.Prefix{netip.MustParsePrefix("2001:db8::5/64")}
	odd.ParaCom = &bsf.ParameterCombination{Supi: "imsi-12345", Dnn: "ims", Snssai: &tgpp.Snssai{Sst: 9}}
	odd.PcfSmIpEndPoints = []tgpp.IpEndPoint{{Ipv6Address: netip.MustParseAddr("2001:db8::1")}, {}}
	own := ip
	own.ParaCom = &bsf.ParameterCombination{Supi: own.Supi}
	mac := bsf.PcfBinding{MacAddr48: "02-00-5e-10-00-01", AddMacAddrs: []tgpp.MacAddr48{"02-00-5E-10-00-02"}, Dnn: "lan"}
	var list []*bsf.Record
	for _, b := range []bsf.PcfBinding{ip, odd, own, mac, {Dnn: "x"}} {
		list = append(list, &bsf.Record{ID: bsf.NewID(), Binding: b, Created: at, Audited: at.Add(time.Second), Attempts: 3})
	}
	list[0].Cookie, list[0].NotificationURL = `{"a":1}`, "http://pcf/x"
	list[1].Origination, list[1].Sender, list[1].CustomSender = at.Truncate(time.Millisecond), at.Truncate(time.Millisecond), at.Truncate(time.Millisecond)
	return list
}

func TestRecordsSurviveTheBinaryForm(t *testing.T) {
	for i, r := range samples() {
		got, err := DecodeRecord(AppendRecord(nil, r))
		if err != nil || !reflect.DeepEqual(got, r) {
			t.Errorf("record %d: %v\n got %+v\nwant %+v", i, err, got, r)
		}
	}
}

// FuzzDecodeRecord proves that damaged storage gives an error, never a crash,
// and that what decodes is stable.
func FuzzDecodeRecord(f *testing.F) {
	for _, r := range samples() {
		b := AppendRecord(nil, r)
		f.Add(b)
		f.Add(b[:len(b)/2])
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		r, err := DecodeRecord(src)
		if err != nil {
			return
		}
		again, err := DecodeRecord(AppendRecord(nil, r))
		if err != nil {
			t.Fatalf("what was decoded does not decode again: %v", err)
		}
		a, _ := json.Marshal(r)
		b, _ := json.Marshal(again)
		if string(a) != string(b) {
			t.Fatalf("got %s\nwant %s", b, a)
		}
	})
}

// FuzzDecodeDocument proves the same for documents.
func FuzzDecodeDocument(f *testing.F) {
	f.Add(AppendDocument(nil, &bsf.Document{Kind: bsf.KindSubscription, ID: bsf.NewID(), Keys: []string{"a", "b"}, Unique: "u", Body: []byte("{}")}))
	f.Fuzz(func(t *testing.T, src []byte) {
		d, err := DecodeDocument(src)
		if err != nil {
			return
		}
		again, err := DecodeDocument(AppendDocument(nil, d))
		if err != nil || !reflect.DeepEqual(again, d) {
			t.Fatalf("%v: got %+v, want %+v", err, again, d)
		}
	})
}

// TestIndexAgainstAModel runs random changes on a shard and on a map.
func TestIndexAgainstAModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var s shard
	model := make(map[uint32][]ref)
	tags := make([]uint32, 50)
	for i := range tags {
		tags[i] = rnd.Uint32()
		if i%5 == 0 {
			tags[i] = uint32(i) // near neighbours
		}
	}
	for step := range 200000 {
		tag := tags[rnd.IntN(len(tags))]
		// Every other phase shrinks the table again.
		if grow := step/5000%2 == 0; rnd.IntN(3) > 0 == grow {
			r := ref(rnd.Uint32N(1<<31) + 1)
			s.add(tag, r)
			model[tag] = append(model[tag], r)
		} else if list := model[tag]; len(list) > 0 {
			i := rnd.IntN(len(list))
			s.remove(tag, list[i])
			model[tag] = slices.Delete(list, i, i+1)
		}
		if step%997 == 0 {
			for tag, want := range model {
				got := s.find(tag, nil)
				slices.Sort(got)
				want = slices.Sorted(slices.Values(want))
				if !slices.Equal(got, want) {
					t.Fatalf("step %d, tag %x: %v, want %v", step, tag, got, want)
				}
			}
		}
	}
}

// TestArenaUsesFreedSlotsAgain proves that changing records does not grow the
// arena.
func TestArenaUsesFreedSlotsAgain(t *testing.T) {
	var a arena
	put := func(n int) ref {
		r, err := a.put(make([]byte, n))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for range 100000 {
		r, q := put(100), put(300)
		a.drop(r)
		a.drop(q)
	}
	if a.n != 1 || a.used != 0 {
		t.Errorf("%d chunks, %d bytes in use", a.n, a.used)
	}
	if _, err := a.put(make([]byte, maxSlot+1)); err == nil {
		t.Error("a record larger than a slot is stored")
	}
}

// TestProfilesAreGivenBack proves that bindings which are gone leave nothing.
func TestProfilesAreGivenBack(t *testing.T) {
	s := New()
	var ids []bsf.ID
	for i := range 1000 {
		r := samples()[0]
		r.Binding.Ipv4Addr = netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
		r.Binding.PcfFqdn = tgpp.Fqdn(fmt.Sprintf("pcf%d.example.com", i%100))
		r.Binding.Ipv6Prefix = netip.Prefix{}
		if _, err := s.Create(t.Context(), r, bsf.Rules{SameAddress: bsf.Supersede}); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.ID)
	}
	if n := len(s.bindings.profiles.byKey); n != 100 {
		t.Errorf("%d profiles", n)
	}
	for _, id := range ids {
		if _, err := s.Delete(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.bindings.profiles.byKey); n != 0 || s.bindings.arena.used != 0 || s.bindings.order.Len() != 0 {
		t.Errorf("%d profiles, %d bytes, %d in order", n, s.bindings.arena.used, s.bindings.order.Len())
	}
}

func BenchmarkFind(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := New()
			for i := range n {
				r := samples()[0]
				r.Binding.Ipv4Addr = netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
				r.Binding.Ipv6Prefix = netip.Prefix{}
				if _, err := s.Create(b.Context(), r, bsf.Rules{SameAddress: bsf.Keep}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i = (i + 7919) % n
				k := bsf.PrefixKey(netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 32))
				if found, err := s.Find(b.Context(), k); err != nil || len(found) != 1 {
					b.Fatal(err, len(found))
				}
			}
		})
	}
}
