package rx_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"

	"github.com/fiorix/go-diameter/v4/diam"
	"github.com/fiorix/go-diameter/v4/diam/avp"
	"github.com/fiorix/go-diameter/v4/diam/datatype"
	"github.com/fiorix/go-diameter/v4/diam/dict"

	"bsfd/diameter/rx"
)

// aar is an AAR as another implementation writes it.
func aar(t testing.TB) []byte {
	t.Helper()
	m := diam.NewRequest(265, rx.ApplicationID, dict.Default)
	m.Header.CommandFlags |= rx.FlagProxiable
	for _, a := range []*diam.AVP{
		diam.NewAVP(avp.SessionID, avp.Mbit, 0, datatype.UTF8String("af.ims.example;1;2;3")),
		diam.NewAVP(avp.AuthApplicationID, avp.Mbit, 0, datatype.Unsigned32(rx.ApplicationID)),
		diam.NewAVP(avp.OriginHost, avp.Mbit, 0, datatype.DiameterIdentity("af.ims.example")),
		diam.NewAVP(avp.OriginRealm, avp.Mbit, 0, datatype.DiameterIdentity("ims.example")),
		diam.NewAVP(avp.DestinationRealm, avp.Mbit, 0, datatype.DiameterIdentity("epc.example")),
		diam.NewAVP(avp.FramedIPAddress, avp.Mbit, 0, datatype.OctetString([]byte{10, 0, 0, 1})),
		diam.NewAVP(avp.SubscriptionID, avp.Mbit, 0, &diam.GroupedAVP{AVP: []*diam.AVP{
			diam.NewAVP(avp.SubscriptionIDType, avp.Mbit, 0, datatype.Enumerated(1)),
			diam.NewAVP(avp.SubscriptionIDData, avp.Mbit, 0, datatype.UTF8String("001010000000001")),
		}}),
		diam.NewAVP(avp.RouteRecord, avp.Mbit, 0, datatype.DiameterIdentity("af.ims.example")),
		diam.NewAVP(avp.DestinationHost, avp.Mbit, 0, datatype.DiameterIdentity("bsf")),
	} {
		m.AddAVP(a)
	}
	b, err := m.Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func scan(t testing.TB, b []byte) *rx.View {
	t.Helper()
	v := new(rx.View)
	if err := v.Scan(b); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestScan proves RX-003, RX-004 and RX-010 against another implementation:
// what it writes is read as it is meant.
func TestScan(t *testing.T) {
	v := scan(t, aar(t))
	if v.Command != rx.AA || v.Application != 16777236 || v.Flags != rx.FlagRequest|rx.FlagProxiable || int(v.Length) != len(v.Raw) {
		t.Errorf("%+v", v.Header)
	}
	k, err := v.Key()
	if err != nil || k.Ipv4 != netip.MustParseAddr("10.0.0.1") || string(k.IMSI) != "001010000000001" {
		t.Errorf("%+v %v", k, err)
	}
	if string(v.SessionID.Data) != "af.ims.example;1;2;3" || string(v.DestinationHost.Data) != "bsf" || !v.Visited("AF.ims.example") || v.Visited("bsf") {
		t.Error("wrong places")
	}
	if err := v.CheckRequest(); err != nil {
		t.Error(err)
	}
}

// TestRequestIsPatched proves RX-031: another implementation reads what was
// patched, and everything else is as it was.
func TestRequestIsPatched(t *testing.T) {
	raw := aar(t)
	v := scan(t, raw)
	out := rx.AppendRequest([]byte("before"), v, &rx.Patch{
		HopByHop: 7, DestinationHost: "pcf1.example", DestinationRealm: "example.org", RouteRecord: "dra.example",
		ProxyHost: "bsf", State: 9, Extra: rx.Encode(3601, 0, 111, []byte("cookie")),
	})[len("before"):]
	m, err := diam.ReadMessage(bytes.NewReader(out), dict.Default)
	if err != nil {
		t.Fatal(err)
	}
	text := func(code uint32) (list []string) {
		for _, a := range m.AVP {
			if a.Code == code {
				list = append(list, fmt.Sprint(a.Data))
			}
		}
		return list
	}
	if m.Header.HopByHopID != 7 || m.Header.EndToEndID != v.EndToEnd || int(m.Header.MessageLength) != len(out) {
		t.Errorf("%+v", m.Header)
	}
	for code, want := range map[uint32]string{
		avp.DestinationHost:  "[DiameterIdentity{pcf1.example},Padding:0]",
		avp.DestinationRealm: "[DiameterIdentity{example.org},Padding:1]",
		avp.RouteRecord:      "[DiameterIdentity{af.ims.example},Padding:2 DiameterIdentity{dra.example},Padding:1]",
	} {
		if got := fmt.Sprint(text(code)); got != want {
			t.Errorf("%d: %s", code, got)
		}
	}
	own, ok := scan(t, out).OwnProxyInfo("BSF")
	if !ok || !own.Present() {
		t.Error("no Proxy-Info")
	}
}

// TestPatchNothing proves that a patch of nothing gives the same octets, in
// every order of the two AVPs that may be replaced.
func TestPatchNothing(t *testing.T) {
	raw := aar(t)
	if got := rx.AppendRequest(nil, scan(t, raw), &rx.Patch{HopByHop: rx.ParseHeader(raw).HopByHop}); !bytes.Equal(got, raw) {
		t.Errorf("%x", got)
	}
	host, realm := rx.Encode(rx.DestinationHost, 0x40, 0, []byte("h")), rx.Encode(rx.DestinationRealm, 0x40, 0, []byte("r"))
	for name, avps := range map[string][][]byte{"host first": {host, realm}, "realm first": {realm, host}, "no host": {realm}, "no realm": {host}, "neither": nil} {
		m := make([]byte, rx.HeaderLen)
		copy(m, raw[:rx.HeaderLen])
		for _, a := range avps {
			m = append(m, a...)
		}
		m = append(m, rx.Encode(1, 0, 0, []byte("last"))...)
		m[1], m[2], m[3] = 0, 0, byte(len(m))
		v := scan(t, rx.AppendRequest(nil, scan(t, m), &rx.Patch{DestinationHost: "newhost", DestinationRealm: "newrealm"}))
		if string(v.DestinationHost.Data) != "newhost" || string(v.DestinationRealm.Data) != "newrealm" {
			t.Errorf("%s: %x", name, v.Raw)
		}
	}
}

// TestResults proves RX-050 and RX-035: protocol errors have the E bit and
// nothing else has, and an answer has one result.
func TestResults(t *testing.T) {
	v := scan(t, aar(t))
	for _, x := range []struct {
		result rx.Result
		e      bool
	}{
		{rx.Base(2001), false}, {rx.Base(3002), true}, {rx.Base(3006), true}, {rx.Base(5012), false},
		{rx.Result{Code: 5065, Vendor: rx.Vendor3GPP}, false}, {rx.Result{Code: 3999, Vendor: rx.Vendor3GPP}, false},
	} {
		out := rx.AppendAnswer(nil, v, rx.Origin{Host: "bsf", Realm: "example"}, &rx.Answer{Result: x.result, Text: "why"})
		a := scan(t, out)
		got, ok := a.Result()
		if !ok || got != x.result || a.Flags&rx.FlagError != 0 != x.e || a.ResultCode.Present() == a.Experimental.Present() {
			t.Errorf("%s: %s, flags %x", x.result, got, a.Flags)
		}
		if _, err := diam.ReadMessage(bytes.NewReader(out), dict.Default); err != nil {
			t.Errorf("%s: %v", x.result, err)
		}
	}
}

// TestCapabilitiesAreReadByOthers proves RX-060 and RX-065 against another
// implementation.
func TestCapabilitiesAreReadByOthers(t *testing.T) {
	c := &rx.Capabilities{
		Origin: rx.Origin{Host: "bsf.example", Realm: "example", StateID: 5}, ProductName: "bsfd", Firmware: 1,
		HostIPAddresses: []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("2001:db8::1")},
		Applications:    []uint32{rx.ApplicationID, rx.RelayID}, InbandSecurity: []uint32{0},
	}
	for name, b := range map[string][]byte{
		"CER": c.CER(1, 2), "CEA": c.CEA(rx.Header{HopByHop: 1, EndToEnd: 2}, 3010, "who", rx.Encode(264, 0x40, 0, []byte("x"))),
		"DWR": rx.DWR(c.Origin, 1, 2), "DPR": rx.DPR(c.Origin, rx.Busy, 1, 2),
	} {
		m, err := diam.ReadMessage(bytes.NewReader(b), dict.Default)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if m.Header.HopByHopID != 1 || m.Header.EndToEndID != 2 || m.Header.ApplicationID != 0 {
			t.Errorf("%s: %+v", name, m.Header)
		}
		if name == "DPR" && rx.DisconnectCauseOf(scan(t, b)) != rx.Busy {
			t.Error("the cause is lost")
		}
		if name[0] != 'C' {
			continue
		}
		got, err := rx.ParseCapabilities(scan(t, b))
		if err != nil || got.Host != c.Host || got.StateID != 5 || fmt.Sprint(got.HostIPAddresses) != "[10.0.0.1 2001:db8::1]" || fmt.Sprint(got.Applications) != fmt.Sprint(c.Applications) {
			t.Errorf("%s: %+v %v", name, got, err)
		}
	}
}

// TestIdentities proves the comparison of RX-062: octet by octet, without
// regard to case, a longer identity above its beginning.
func TestIdentities(t *testing.T) {
	for _, x := range []struct {
		a, b string
		want int
	}{{"b", "a", 1}, {"a", "b", -1}, {"B", "a", 1}, {"b", "A", 1}, {"ab", "a", 1}, {"a", "ab", -1}, {"a", "A", 0}, {"", "", 0}} {
		if got := rx.CompareIdentity(x.a, x.b); got != x.want || rx.EqualIdentity(x.a, x.b) != (x.want == 0) {
			t.Errorf("%q and %q: %d", x.a, x.b, got)
		}
	}
}

// FuzzScan proves that no octets crash the scanner, that what it accepts can be
// patched and answered, and that the results can be scanned again.
func FuzzScan(f *testing.F) {
	f.Add(aar(f))
	c := &rx.Capabilities{Origin: rx.Origin{Host: "a", Realm: "b"}, Applications: []uint32{rx.ApplicationID}, HostIPAddresses: []netip.Addr{netip.IPv4Unspecified()}}
	f.Add(c.CER(1, 2))
	f.Add(rx.AppendAnswer(nil, scan(f, aar(f)), rx.Origin{Host: "a", Realm: "b"}, &rx.Answer{Result: rx.Result{Code: 5065, Vendor: 10415}, Failed: []byte{}, Redirect: []string{"aaa://x"}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < rx.HeaderLen || len(b)%4 != 0 {
			return
		}
		var v rx.View
		if v.Scan(b) != nil {
			_ = rx.AppendAnswer(nil, &v, rx.Origin{Host: "bsf", Realm: "r"}, &rx.Answer{Result: rx.Base(5014)})
			return
		}
		_, _ = v.Key()
		_, _ = v.Result()
		_ = v.CheckRequest()
		_, _ = rx.ParseCapabilities(&v)
		v.ForgetProxyInfo("bsf")
		scan(t, rx.AppendAnswer(nil, &v, rx.Origin{Host: "bsf", Realm: "r"}, &rx.Answer{Result: rx.Base(3002)}))
		var again rx.View
		patch := &rx.Patch{DestinationHost: "h", DestinationRealm: "r", ProxyHost: "bsf", HopByHop: 3}
		if err := again.Scan(rx.AppendRequest(nil, &v, patch)); err != nil {
			t.Fatal(err)
		}
		if string(again.DestinationHost.Data) != "h" || string(again.DestinationRealm.Data) != "r" {
			t.Fatal("not patched")
		}
		if own, ok := again.OwnProxyInfo("bsf"); ok {
			if err := again.Scan(rx.AppendForwardedAnswer(nil, &again, 5, own)); err != nil {
				t.Fatal(err)
			}
		}
	})
}
