package storagetest

import (
	"context"
	"errors"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"bsfd/bsf"
	"bsfd/internal/tgpp"
)

func testBindings(t *testing.T, e Engine) {
	t.Run("a record comes back as it was stored, by every key", func(t *testing.T) {
		s := open(t, e)
		for _, r := range []*bsf.Record{record(1), fullRecord(2), macRecord(3)} {
			create(t, s, r, supersede)
			for _, k := range r.Keys(nil) {
				list := find(t, s, k)
				if len(list) != 1 || !reflect.DeepEqual(list[0], r) {
					t.Errorf("key %+v:\n got %+v\nwant %+v", k, list, r)
				}
			}
		}
	})

	t.Run("prefixes answer for what they contain and nothing else", func(t *testing.T) {
		s := open(t, e)
		a := record(1)
		a.Binding.Ipv6Prefix = netip.MustParsePrefix("2001:db8:1:2::/64")
		a.Binding.Ipv4FrameRouteList = []netip.Prefix{netip.MustParsePrefix("172.16.5.9/12")}
		a.Binding.Ipv6FrameRouteList = []netip.Prefix{netip.MustParsePrefix("2001:db8:f000::/36")}
		b := record(2)
		b.Binding.Ipv6Prefix = netip.MustParsePrefix("2001:db8:9::7/128")
		create(t, s, a, supersede)
		create(t, s, b, supersede)
		for _, c := range []struct {
			query string
			want  *bsf.Record
		}{
			{"2001:db8:1:2::/64", a}, {"2001:db8:1:2::5/128", a}, {"2001:db8:1:2:8000::/65", a},
			{"2001:db8:1:2::/63", nil}, {"2001:db8:1:3::/64", nil}, {"2001:db8::/32", nil}, {"::/0", nil},
			{"2001:db8:9::7/128", b}, {"2001:db8:9::6/128", nil}, {"2001:db8:9::/64", nil},
			{"2001:db8:f123:4::1/128", a}, {"2001:db8:e123::1/128", nil}, {"2001:db8:f000::/35", nil},
			{"172.16.0.1/32", a}, {"172.31.255.255/32", a}, {"172.32.0.0/32", nil}, {"10.0.0.1/32", a}, {"10.0.0.3/32", nil},
		} {
			ids := found(t, s, prefixKey(c.query))
			if c.want == nil && len(ids) != 0 || c.want != nil && (len(ids) != 1 || !ids[c.want.ID]) {
				t.Errorf("%s: %v", c.query, ids)
			}
		}
	})

	t.Run("a default route answers for everything", func(t *testing.T) {
		s := open(t, e)
		r := record(1)
		r.Binding.Ipv4FrameRouteList = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}
		r.Binding.Ipv6FrameRouteList = []netip.Prefix{netip.MustParsePrefix("::/0")}
		create(t, s, r, supersede)
		for _, q := range []string{"8.8.8.8/32", "10.0.0.1/32", "2600::1/128", "::/0"} {
			if ids := found(t, s, prefixKey(q)); len(ids) != 1 {
				t.Errorf("%s: %d records", q, len(ids))
			}
		}
	})

	t.Run("MAC addresses are found whatever their case", func(t *testing.T) {
		s := open(t, e)
		r := macRecord(0xabcd)
		create(t, s, r, supersede)
		for _, m := range []tgpp.MacAddr48{"02-00-5e-10-ab-cd", "02-00-5E-10-AB-CD", "02-00-5E-11-AB-CD"} {
			if ids := found(t, s, bsf.MacKey(m)); !ids[r.ID] {
				t.Errorf("%s is not found", m)
			}
		}
	})

	t.Run("a deleted record is gone under every key", func(t *testing.T) {
		s := open(t, e)
		for _, r := range []*bsf.Record{record(1), fullRecord(2), macRecord(3)} {
			create(t, s, r, supersede)
			out, err := s.Delete(testContext(t), r.ID)
			if err != nil || !reflect.DeepEqual(out.Record, r) {
				t.Fatalf("delete: %v, %+v", err, out.Record)
			}
			for _, k := range r.Keys(nil) {
				if list := find(t, s, k); len(list) != 0 {
					t.Errorf("key %+v still answers", k)
				}
			}
			if _, err := s.Delete(testContext(t), r.ID); !errors.Is(err, bsf.ErrNotFound) {
				t.Errorf("second delete: %v", err)
			}
		}
	})

	t.Run("an update moves the record to its new keys", func(t *testing.T) {
		s := open(t, e)
		r := fullRecord(1)
		create(t, s, r, supersede)
		out, err := s.Update(testContext(t), r.ID, supersede, func(old bsf.Record) (*bsf.Record, error) {
			n := old.Clone()
			n.Binding.Ipv4Addr, n.Binding.IpDomain = netip.Addr{}, ""
			n.Binding.Ipv6Prefix = netip.MustParsePrefix("2001:db8:77::/64")
			n.Binding.AddIpv6Prefixes = nil
			n.Binding.PcfFqdn = "pcf2.example.com"
			return n, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range []string{"10.0.0.1/32", "2001:db8:0:1::/64", "2001:db8:ffff::/64"} {
			if list := find(t, s, prefixKey(q)); len(list) != 0 {
				t.Errorf("%s still answers", q)
			}
		}
		list := find(t, s, prefixKey("2001:db8:77::1/128"))
		if len(list) != 1 || !reflect.DeepEqual(list[0], out.Record) || list[0].Binding.PcfFqdn != "pcf2.example.com" {
			t.Errorf("got %+v", list)
		}
		if !list[0].Created.Equal(r.Created) || list[0].ID != r.ID {
			t.Error("id or creation time changed")
		}
	})

	t.Run("a refused update changes nothing", func(t *testing.T) {
		s := open(t, e)
		r := record(1)
		create(t, s, r, supersede)
		refusal := &bsf.Violation{Fault: bsf.FaultIncorrect, Param: "/dnn", Reason: "no"}
		_, err := s.Update(testContext(t), r.ID, supersede, func(bsf.Record) (*bsf.Record, error) { return nil, refusal })
		if !errors.Is(err, refusal) {
			t.Errorf("error: %v", err)
		}
		if list := find(t, s, r.Keys(nil)[0]); len(list) != 1 || !reflect.DeepEqual(list[0], r) {
			t.Errorf("got %+v", list)
		}
		_, err = s.Update(testContext(t), bsf.NewID(), supersede, func(old bsf.Record) (*bsf.Record, error) { return &old, nil })
		if !errors.Is(err, bsf.ErrNotFound) {
			t.Errorf("unknown id: %v", err)
		}
	})

	t.Run("an update takes an address over", func(t *testing.T) {
		s := open(t, e)
		a, b := record(1), record(2)
		create(t, s, a, supersede)
		create(t, s, b, supersede)
		out, err := s.Update(testContext(t), b.ID, supersede, func(old bsf.Record) (*bsf.Record, error) {
			n := old.Clone()
			n.Binding.Ipv4Addr = a.Binding.Ipv4Addr
			return n, nil
		})
		if err != nil || len(out.Remove) != 1 || out.Remove[0].Record.ID != a.ID {
			t.Fatalf("%v, removed %+v", err, out.Remove)
		}
		if ids := found(t, s, prefixKey("10.0.0.1/32")); len(ids) != 1 || !ids[b.ID] {
			t.Errorf("got %v", ids)
		}
	})

	t.Run("SBI-073 work that nobody waits for is not begun", func(t *testing.T) {
		s := open(t, e)
		if e.Reopen == nil {
			t.Skip("memory has no queue in which a deadline could pass")
		}
		r := record(1)
		_, err := s.Create(lateContext{testContext(t)}, r, supersede)
		if !errors.Is(err, bsf.ErrExpired) {
			t.Errorf("create: %v", err)
		}
		if ids := found(t, s, r.Keys(nil)[0]); len(ids) != 0 {
			t.Error("the record is stored")
		}
	})

	t.Run("many records of one subscriber", func(t *testing.T) {
		s := open(t, e)
		const n = 40
		var ids []bsf.ID
		for i := range n {
			r := record(i)
			r.Binding.Supi = "imsi-001010000000001"
			create(t, s, r, supersede)
			ids = append(ids, r.ID)
		}
		if got := found(t, s, bsf.SupiKey("imsi-001010000000001")); len(got) != n {
			t.Errorf("%d records", len(got))
		}
		for i, id := range ids {
			if _, err := s.Delete(testContext(t), id); err != nil {
				t.Fatal(err)
			}
			if got := found(t, s, bsf.SupiKey("imsi-001010000000001")); len(got) != n-i-1 || got[id] {
				t.Fatalf("%d records after %d deletions", len(got), i+1)
			}
		}
	})
}

// lateContext has a deadline that has passed, and does not end by itself.
type lateContext struct{ context.Context }

// Deadline implements context.Context.
func (lateContext) Deadline() (time.Time, bool) { return time.Now().Add(-time.Second), true }
