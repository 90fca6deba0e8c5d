package tgpp

import (
	"net/netip"
	"strings"
	"testing"
	"time"
)

func accepts[T any](parse func(string) (T, error)) func(string) bool {
	return func(s string) bool { _, err := parse(s); return err == nil }
}

// TestParsersFollowThePatterns checks the parsers against the patterns of
// TS 29.571.
func TestParsersFollowThePatterns(t *testing.T) {
	for _, c := range []struct {
		name    string
		accept  func(string) bool
		good    []string
		refused []string
	}{
		{"Ipv4Addr", accepts(ParseIpv4Addr), []string{"0.0.0.0", "255.255.255.255", "198.51.100.1"},
			[]string{"", "1.2.3", "1.2.3.4.5", "256.0.0.1", "01.2.3.4", "1.2.3.4/32", "::1", " 1.2.3.4", "::ffff:1.2.3.4"}},
		{"Ipv4AddrMask", accepts(ParseIpv4AddrMask), []string{"198.51.0.0/16", "0.0.0.0/0", "1.2.3.4/32"},
			[]string{"198.51.0.0", "198.51.0.0/33", "198.51.0.0/-1", "2001:db8::/32", "198.51.0.0/"}},
		{"Ipv6Prefix", accepts(ParseIpv6Prefix), []string{"2001:db8:abcd:12::0/64", "::/0", "::1/128", "2001:db8::/32", "1:2:3:4:5:6:7:8/128"},
			[]string{"", "2001:db8::", "2001:DB8::/32", "2001:0db8::/32", "2001:db8::/129", "::ffff:1.2.3.4/128", "fe80::1%eth0/64", "1.2.3.4/8", "2001:db8:::/32"}},
		{"Ipv6Addr", accepts(ParseIpv6Addr), []string{"2001:db8:85a3::8a2e:370:7334", "::"}, []string{"::ffff:1.2.3.4", "FE80::1", "fe80::1%1", "2001:db8::/64", "1.2.3.4"}},
		{"MacAddr48", accepts(ParseMacAddr48), []string{"00-00-00-00-00-00", "0A-1b-2C-3d-4E-5f"}, []string{"", "00:00:00:00:00:00", "00-00-00-00-00", "00-00-00-00-00-0g", "000-0-00-00-00-00"}},
		{"Fqdn", accepts(ParseFqdn), []string{"a.bc", "pcf1.example.com", "pcf1.example.com.", "1.2.xn", strings.Repeat("a", 63) + ".com"},
			[]string{"", "com", "a.b", "-a.com", "a-.com", "a_b.com", "a..com", "a.c0m", strings.Repeat("a", 64) + ".com", strings.Repeat("a.", 130) + "com"}},
		{"Dnn", accepts(ParseDnn), []string{"internet", "ims.mnc001.mcc001.gprs", "Label-1.label2"}, []string{"", ".", "a..b", "a b", "ä", strings.Repeat("a", 64), strings.Repeat("a.", 60)}},
		{"Supi", accepts(ParseSupi), []string{"imsi-001010000000001", "nai-user@example.com", "x"}, []string{"", "a\nb", "\xff", strings.Repeat("x", 513)}},
		{"NfInstanceId", accepts(ParseNfInstanceId), []string{"54804518-4191-46b3-955c-ac631f953ed8", "54804518-4191-46B3-955C-AC631F953ED8"}, []string{"", "54804518419146b3955cac631f953ed8", "54804518-4191-46b3-955c-ac631f953edg", "5480451804191-46b3-955c-ac631f953ed8"}},
		{"NfSetId", accepts(ParseNfSetId), []string{"set1.pcfset.5gc.mnc001.mcc001", "setA-1.bsfset.5gc.nid0123456789a.mnc001.mcc001"}, []string{"", "set.pcfset.5gc.mnc001.mcc001", "set1.pcfset.5gc.mnc01.mcc001", "set1.pcf.5gc.mnc001.mcc001", "set1-.pcfset.5gc.mnc001.mcc001"}},
		{"Sd", accepts(ParseSd), []string{"0000AB", "abcdef"}, []string{"", "ABC", "0000AG", "0000ABC"}},
		{"SupportedFeatures", accepts(ParseFeatures), []string{"", "0", "7", "aBcDeF", strings.Repeat("f", 100)}, []string{"x", "0x1", "-1", " 1"}},
		{"DateTime", accepts(ParseDateTime), []string{"2026-01-02T03:04:05Z", "2026-01-02T03:04:05.678+02:00"}, []string{"", "2026-01-02", "2026-13-02T03:04:05Z", "yesterday"}},
		{"Nid", accepts(ParseNid), []string{"0123456789a"}, []string{"", "0123456789", "0123456789g"}},
		{"MbsServiceId", accepts(ParseMbsServiceId), []string{"0A0B0C"}, []string{"", "0A0B", "0A0B0G"}},
	} {
		for _, s := range c.good {
			if !c.accept(s) {
				t.Errorf("%s refuses %q", c.name, s)
			}
		}
		for _, s := range c.refused {
			if c.accept(s) {
				t.Errorf("%s accepts %q", c.name, s)
			}
		}
	}
}

// TestTimestamps proves the grammar of SBI-072.
func TestTimestamps(t *testing.T) {
	want := time.Date(2019, 8, 4, 8, 49, 37, 845e6, time.UTC)
	for s, ok := range map[string]bool{
		"Sun, 04 Aug 2019 08:49:37.845 GMT": true, " Sun, 04 Aug 2019 08:49:37.845 GMT\t": true, "Sun, 04 Aug 2019 08:49:37.845 UTC": true,
		"Sun, 04 Aug 2019 14:19:37.845 IST": true, "Sun, 04 Aug 2019 00:49:37.845 PST": true,
		"Sun, 04 Aug 2019 08:49:37 GMT": false, "Sun, 4 Aug 2019 08:49:37.845 GMT": false, "Mon, 04 Aug 2019 08:49:37.845 GMT": false,
		"Sun, 04 Aug 2019 08:49:37.845 CET": false, "Sun, 04 Aug 2019 08:49:37.845": false, "2019-08-04T08:49:37.845Z": false, "": false,
		"Sun, 04 Aug 2019 24:49:37.845 GMT": false, "Sun, 04 Aug 2019 08:49:37.8450 GMT": false,
	} {
		got, err := ParseTimestamp(s)
		if (err == nil) != ok || ok && !got.Equal(want) {
			t.Errorf("%q: %v, %v", s, got, err)
		}
	}
	if s := FormatTimestamp(want); s != "Sun, 04 Aug 2019 08:49:37.845 GMT" {
		t.Errorf("formatted: %s", s)
	}
}

// FuzzParsers proves that no text crashes a parser, and that IPv6 prefixes are
// written as they may be read.
func FuzzParsers(f *testing.F) {
	for _, s := range []string{"2001:db8::/64", "::ffff:1:2/128", "10.0.0.1", "internet.mnc001.mcc001.gprs", "Sun, 04 Aug 2019 08:49:37.845 GMT"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if p, err := ParseIpv6Prefix(s); err == nil {
			text := string(AppendIpv6Prefix(nil, p))
			if again, err := ParseIpv6Prefix(text); err != nil || again != p {
				t.Errorf("%q is written as %q: %v", s, text, err)
			}
		}
		if d, err := ParseDnn(s); err == nil && !(d.Match(d) && d.SameNetwork(d)) {
			t.Errorf("%q does not match itself", s)
		}
		if m, err := ParseMacAddr48(s); err == nil && s != "00-00-00-00-00-00" && m.Octets() == [6]byte{} {
			t.Errorf("%q has no octets", s)
		}
		if at, err := ParseTimestamp(s); err == nil && FormatTimestamp(at) == "" {
			t.Error("no text")
		}
		_, _ = ParseNfSetId(s)
		_, _ = ParseFqdn(s)
		if a, err := netip.ParseAddr(s); err == nil && a.Is6() && a.Zone() == "" {
			if back, err := ParseIpv6Addr(string(AppendIpv6Addr(nil, a))); err != nil || back != a {
				t.Errorf("%s: %v, %v", a, back, err)
			}
		}
	})
}
