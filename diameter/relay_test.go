package diameter_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"bsfd/bsf"
	"bsfd/diameter"
	"bsfd/diameter/rx"
	"bsfd/internal/rxnode"
	"bsfd/internal/tgpp"
)

// TestAARGoesToThePcfOfTheBinding proves RX-001, RX-002 (PA1), RX-003, RX-020,
// RX-031, RX-033 and RX-034: a request that names no host reaches the PCF of
// the UE address with what a proxy changes and nothing else, and the answer
// comes back as the PCF made it.
func TestAARGoesToThePcfOfTheBinding(t *testing.T) {
	n := start(t)
	pcf := answering(rx.Success)
	n.join("pcf1.epc.example", "epc.example", pcf.handle)
	n.bind("pcf1.epc.example", "10.0.0.1")
	af := n.af()
	sent := session("s;1").AAR(ue)
	a := ask(t, af, sent)
	wantResult(t, a, "2001")
	got := pcf.last(t)
	s := new(rx.View)
	if err := s.Scan(sent); err != nil {
		t.Fatal(err)
	}
	switch {
	case got.EndToEnd != s.EndToEnd || a.EndToEnd != s.EndToEnd:
		t.Errorf("End-to-End Identifiers %x %x %x", s.EndToEnd, got.EndToEnd, a.EndToEnd)
	case got.HopByHop == s.HopByHop || a.HopByHop != s.HopByHop:
		t.Errorf("Hop-by-Hop Identifiers %x %x %x", s.HopByHop, got.HopByHop, a.HopByHop)
	case string(got.DestinationHost.Data) != "pcf1.epc.example" || string(got.DestinationRealm.Data) != "epc.example":
		t.Errorf("to %s of %s", got.DestinationHost.Data, got.DestinationRealm.Data)
	case fmt.Sprint(values(got, rx.RouteRecord)) != "[af.ims.example]":
		t.Errorf("Route-Record %q", values(got, rx.RouteRecord))
	case string(a.OriginHost.Data) != "pcf1.epc.example":
		t.Errorf("the answer is of %s", a.OriginHost.Data)
	case got.Flags != s.Flags:
		t.Errorf("flags %x became %x", s.Flags, got.Flags)
	}
}

// TestFailureOfThePcfIsNotChanged proves RX-034 and RX-050: an error of the
// PCF comes back octet for octet, with the Hop-by-Hop Identifier of the AF.
func TestFailureOfThePcfIsNotChanged(t *testing.T) {
	n := start(t)
	var answer []byte
	n.join("pcf1.epc.example", "epc.example", func(p *rxnode.Node, v *rx.View) []byte {
		answer = rx.AppendAnswer(nil, v, rx.Origin{Host: p.Host, Realm: p.Realm}, &rx.Answer{
			Result: rx.Result{Code: 5063, Vendor: rx.Vendor3GPP}, Text: "no",
		})
		return answer
	})
	n.bind("pcf1.epc.example", "10.0.0.1")
	got := ask(t, n.af(), session("s;1").AAR(ue))
	wantResult(t, got, "10415:5063")
	want := append([]byte(nil), answer...)
	rx.SetHopByHop(want, got.HopByHop)
	if !bytes.Equal(got.Raw, want) {
		t.Errorf("got  %x\nwant %x", got.Raw, want)
	}
}

// TestWhatIsNotUnderstoodPassesUnchanged proves RX-011, RX-022 and RX-080: AVPs
// that the gateway does not know pass octet for octet and in order, whatever
// their flags, padding, vendor and size.
func TestWhatIsNotUnderstoodPassesUnchanged(t *testing.T) {
	odd := [][]byte{
		rx.Encode(9999, 0xff, 4711, []byte{1, 2, 3}),                // every flag
		{0, 0, 0x27, 0x10, 0x40, 0, 0, 9, 0x55, 0xaa, 0xbb, 0xcc},   // padding that is not 0
		rx.Encode(458, 0, 13019, []byte{0, 0, 0, 1}),                // shares its code with a base AVP
		rx.Encode(rx.ResultCode, rx.AVPMandatory, 42, []byte{1, 2}), // a base code of another vendor
		rx.Encode(517, rx.AVPMandatory, rx.Vendor3GPP, rx.Encode(518, rx.AVPMandatory, rx.Vendor3GPP, []byte("deep"))),
		rx.Encode(25, rx.AVPMandatory, 0, nil),                                          // empty
		rx.Encode(513, rx.AVPMandatory, rx.Vendor3GPP, []byte{9, 9, 9, 9, 9}),           // a number of five octets
		rx.Encode(rx.DRMP, 0, 0, []byte{0, 0, 0, 3}),                                    // priority
		rx.Encode(628, 0, rx.Vendor3GPP, []byte{0, 0, 1, 10, 0x40, 0, 0, 200, 1, 2, 3}), // a group that is none
	}
	n := start(t)
	pcf := answering(rx.Success)
	n.join("pcf1.epc.example", "epc.example", pcf.handle)
	n.bind("pcf1.epc.example", "10.0.0.1")
	af := n.af()
	s := session("s;1")
	for _, request := range [][]byte{s.AAR(ue, odd...), withHost(s, "pcf1.epc.example").Other(rx.SessionTermination, odd...)} {
		ask(t, af, request)
		var before, after []byte
		for _, a := range avps(request) {
			if a.Code != rx.DestinationHost {
				before = append(before, a.Raw...)
			}
		}
		got := pcf.last(t)
		for _, a := range avps(got.Raw) {
			if a.Code != rx.DestinationHost && a.Code != rx.RouteRecord {
				after = append(after, a.Raw...)
			}
		}
		if !bytes.Equal(before, after) {
			t.Errorf("sent %x\ngot  %x", before, after)
		}
		if !bytes.Contains(got.Raw, odd[1]) {
			t.Error("the padding was changed")
		}
	}
}

func withHost(s *rxnode.Session, host string) *rxnode.Session {
	return &rxnode.Session{ID: s.ID, Host: s.Host, Realm: s.Realm, DestRealm: s.DestRealm, DestHost: host}
}

func prefixAVP(b ...byte) []byte { return rx.Encode(rx.FramedIPv6Prefix, rx.AVPMandatory, 0, b) }

func subscription(kind byte, data string) []byte {
	group := rx.Encode(rx.SubscriptionIDType, rx.AVPMandatory, 0, []byte{0, 0, 0, kind})
	return rx.Encode(rx.SubscriptionID, rx.AVPMandatory, 0, append(group, rxnode.Text(rx.SubscriptionIDData, data)...))
}

// TestLookup proves RX-012, RX-013, RX-014, RX-021, RX-023, RX-024, RX-025,
// RX-026 and RX-027: what an AAR says about the UE finds the binding, or gets
// the answer that says why not.
func TestLookup(t *testing.T) {
	n := start(t)
	pcf := answering(rx.Success)
	n.join("pcf1.epc.example", "epc.example", pcf.handle)
	v4 := func(a string) netip.Addr { return netip.MustParseAddr(a) }
	n.register(bsf.PcfBinding{
		Ipv4Addr: v4("10.0.0.1"), Ipv6Prefix: netip.MustParsePrefix("2001:db8:1::/64"), IpDomain: "dom1",
		Supi: "imsi-001010000000001", Gpsi: "msisdn-4670001", PcfDiamHost: "pcf1.epc.example", PcfDiamRealm: "epc.example",
	})
	n.register(bsf.PcfBinding{Ipv4Addr: v4("10.0.0.2"), Supi: "nai-user@example.com", PcfDiamHost: "pcf1.epc.example", PcfDiamRealm: "epc.example"})
	n.register(bsf.PcfBinding{Ipv4Addr: v4("10.0.0.3")})
	for _, domain := range []string{"a", "b"} {
		n.register(bsf.PcfBinding{Ipv4Addr: v4("10.0.0.4"), IpDomain: domain, PcfDiamHost: "pcf1.epc.example", PcfDiamRealm: "epc.example"})
	}
	ip := func(a string) []byte {
		x := v4(a).As4()
		return rx.Encode(rx.FramedIPAddress, rx.AVPMandatory, 0, x[:])
	}
	domain := func(s string) []byte { return rx.Encode(rx.IPDomainID, 0, rx.Vendor3GPP, []byte(s)) }
	dnn := func(s string) []byte { return rxnode.Text(rx.CalledStationID, s) }
	join := func(avps ...[]byte) [][]byte { return avps }
	host64 := []byte{0, 64, 0x20, 1, 0xd, 0xb8, 0, 1, 0, 0}
	host128 := append([]byte{0, 128, 0x20, 1, 0xd, 0xb8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}, 0, 5)
	af := n.af()
	for name, x := range map[string]struct {
		avps [][]byte
		want string
	}{
		"an IPv4 address":                          {join(ip("10.0.0.1")), "2001"},
		"an address that nobody has":               {join(ip("10.9.9.9")), "10415:5065"},
		"the IP domain":                            {join(ip("10.0.0.1"), domain("dom1")), "2001"},
		"another IP domain":                        {join(ip("10.0.0.1"), domain("dom2")), "10415:5065"},
		"an IP domain in other case":               {join(ip("10.0.0.1"), domain("DOM1")), "10415:5065"},
		"an IP domain that the binding lacks":      {join(ip("10.0.0.2"), domain("dom1")), "10415:5065"},
		"a prefix of 64 bits, short form":          {join(prefixAVP(host64...)), "2001"},
		"an address as prefix of 128 bits":         {join(prefixAVP(host128...)), "2001"},
		"a prefix that contains the binding's":     {join(prefixAVP(0, 32, 0x20, 1, 0xd, 0xb8)), "10415:5065"},
		"a prefix of 0 bits":                       {join(prefixAVP(0, 0)), "10415:5065"},
		"both addresses of one session":            {join(ip("10.0.0.1"), prefixAVP(host64...)), "2001"},
		"addresses of two sessions":                {join(ip("10.0.0.2"), prefixAVP(host64...)), "10415:5065"},
		"the DNN":                                  {join(ip("10.0.0.1"), dnn("ims")), "2001"},
		"the DNN in other case and with operator":  {join(ip("10.0.0.1"), dnn("IMS.mnc001.mcc001.gprs")), "2001"},
		"another DNN":                              {join(ip("10.0.0.1"), dnn("internet")), "10415:5065"},
		"the IMSI":                                 {join(ip("10.0.0.1"), subscription(1, "001010000000001")), "2001"},
		"another IMSI":                             {join(ip("10.0.0.1"), subscription(1, "001010000000002")), "10415:5065"},
		"the E.164 number":                         {join(ip("10.0.0.1"), subscription(0, "4670001")), "2001"},
		"a SIP URI, which says nothing":            {join(ip("10.0.0.1"), subscription(2, "sip:x@example.com")), "2001"},
		"the NAI":                                  {join(ip("10.0.0.2"), subscription(3, "user@example.com")), "2001"},
		"several identities":                       {join(ip("10.0.0.1"), subscription(2, "sip:x"), subscription(1, "001010000000001"), subscription(0, "4670001")), "2001"},
		"a PCF without Diameter identity":          {join(ip("10.0.0.3")), "10415:5065"},
		"two bindings":                             {join(ip("10.0.0.4")), "5012"},
		"one of two by its domain":                 {join(ip("10.0.0.4"), domain("b")), "2001"},
		"no address":                               {join(dnn("ims"), subscription(1, "001010000000001")), "5005"},
		"an IPv4 address of 3 octets":              {join(rx.Encode(rx.FramedIPAddress, rx.AVPMandatory, 0, []byte{1, 2, 3})), "5014"},
		"an IPv4 address of 16 octets":             {join(rx.Encode(rx.FramedIPAddress, rx.AVPMandatory, 0, make([]byte, 16))), "5014"},
		"a prefix of 129 bits":                     {join(prefixAVP(append([]byte{0, 129}, make([]byte, 16)...)...)), "5004"},
		"a prefix with too few octets":             {join(prefixAVP(0, 64, 0x20, 1)), "5014"},
		"a prefix without length":                  {join(prefixAVP(0)), "5014"},
		"a prefix that is too long":                {join(prefixAVP(make([]byte, 19)...)), "5014"},
		"an IPv4 address twice":                    {join(ip("10.0.0.1"), ip("10.0.0.2")), "5009"},
		"a Subscription-Id that is no group":       {join(ip("10.0.0.1"), rx.Encode(rx.SubscriptionID, rx.AVPMandatory, 0, []byte{1, 2, 3})), "5014"},
		"a Subscription-Id-Type of the wrong size": {join(ip("10.0.0.1"), rx.Encode(rx.SubscriptionID, rx.AVPMandatory, 0, rx.Encode(rx.SubscriptionIDType, 0, 0, []byte{1}))), "5014"},
	} {
		t.Run(name, func(t *testing.T) {
			before := pcf.count()
			a := ask(t, af, session("s;"+name).AAR(netip.Addr{}, x.avps...))
			wantResult(t, a, x.want)
			if (pcf.count() > before) != (x.want == "2001") {
				t.Errorf("the PCF got %d requests", pcf.count()-before)
			}
			failed := values(a, rx.FailedAVP)
			if (len(failed) == 1) != (x.want[0] == '5' && x.want != "5012") {
				t.Errorf("Failed-AVP %q", failed)
			}
			if x.want == "5005" && failed[0] != string(rx.Encode(rx.FramedIPAddress, rx.AVPMandatory, 0, make([]byte, 4))) {
				t.Errorf("Failed-AVP %x", failed[0])
			}
		})
	}
}

// TestLookupBySubscription proves the option of RX-024.
func TestLookupBySubscription(t *testing.T) {
	n := start(t, func(c *diameter.Config) { c.LookupBySubscription = true })
	pcf := answering(rx.Success)
	n.join("pcf1.epc.example", "epc.example", pcf.handle)
	n.register(bsf.PcfBinding{Ipv4Addr: ue, Supi: "imsi-001010000000001", PcfDiamHost: "pcf1.epc.example", PcfDiamRealm: "epc.example"})
	af := n.af()
	imsi, dnn := subscription(1, "001010000000001"), rxnode.Text(rx.CalledStationID, "ims")
	wantResult(t, ask(t, af, session("s;1").AAR(netip.Addr{}, imsi, dnn)), "2001")
	wantResult(t, ask(t, af, session("s;2").AAR(netip.Addr{}, imsi, rxnode.Text(rx.CalledStationID, "internet"))), "10415:5065")
	wantResult(t, ask(t, af, session("s;3").AAR(netip.Addr{}, imsi)), "5005")
}

// fixed answers every lookup alike.
type fixed struct {
	err  error
	hold chan struct{}
}

func (f fixed) Discover(ctx context.Context, _ *bsf.Query) (*bsf.Record, error) {
	if f.hold != nil {
		select {
		case <-f.hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return nil, f.err
}

func (fixed) Remove(context.Context, bsf.ID, bsf.Reason) error { return nil }

// TestStorageFailure proves RX-030: a database that fails, does not answer in
// time or is asked too much gives an error at once and blocks nothing else.
func TestStorageFailure(t *testing.T) {
	failing := startWith(t, fixed{err: errors.New("connection refused")})
	wantResult(t, ask(t, failing.af(), session("s;1").AAR(ue)), "5012")

	hold := make(chan struct{})
	defer close(hold)
	slow := startWith(t, fixed{hold: hold}, func(c *diameter.Config) {
		c.DiscoveryTimeout, c.Limits.Lookups = 300*time.Millisecond, 1
	})
	af := slow.af()
	results := make(map[string]int)
	var waits []<-chan []byte
	for i := range 20 {
		ch, err := af.Begin(session(fmt.Sprint("s;", i)).AAR(ue))
		if err != nil {
			t.Fatal(err)
		}
		waits = append(waits, ch)
	}
	for _, ch := range waits {
		results[rxnode.ResultOf(<-ch).String()]++
	}
	if results["5012"] < 1 || results["5012"] > 9 || results["5012"]+results["3004"] != 20 {
		t.Errorf("%v", results)
	}
}

// TestRealm proves RX-028 and the three switches of realms.
func TestRealm(t *testing.T) {
	for name, x := range map[string]struct {
		change    func(*diameter.Config)
		realm     string
		binding   string
		want      string
		forwarded string
	}{
		"a realm that is served":             {func(*diameter.Config) {}, "EPC.example", "pcf.example", "2001", "pcf.example"},
		"a realm of a peer":                  {func(c *diameter.Config) { c.Peers = []diameter.Peer{{Host: "x.other", Realm: "other"}} }, "other", "epc.example", "2001", "epc.example"},
		"a realm of a route":                 {func(c *diameter.Config) { c.Routes = []diameter.Route{{Realm: "far", Peers: []string{"dra"}}} }, "far", "epc.example", "2001", "epc.example"},
		"a realm that is not served":         {func(*diameter.Config) {}, "nowhere", "epc.example", "3003", ""},
		"a realm by configuration":           {func(c *diameter.Config) { c.ServedRealms = []string{"nowhere"} }, "nowhere", "epc.example", "2001", "epc.example"},
		"every realm":                        {func(c *diameter.Config) { c.ServedRealms = []string{"*"} }, "nowhere", "epc.example", "2001", "epc.example"},
		"no validation":                      {func(c *diameter.Config) { c.ValidateRealm = false }, "nowhere", "epc.example", "2001", "epc.example"},
		"another result":                     {func(c *diameter.Config) { c.Results.RealmNotServed = "10415:5063" }, "nowhere", "epc.example", "10415:5063", ""},
		"the realm of the binding":           {func(c *diameter.Config) { c.ValidateBindingRealm = true }, "epc.example", "epc.example", "2001", "epc.example"},
		"a realm that is not the binding's":  {func(c *diameter.Config) { c.ValidateBindingRealm = true }, "epc.example", "pcf.example", "3003", ""},
		"the realm as the AF has written it": {func(c *diameter.Config) { c.OverwriteRealm = false }, "epc.example", "pcf.example", "2001", "epc.example"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := start(t, x.change)
			pcf := answering(rx.Success)
			n.join("pcf1.epc.example", "epc.example", pcf.handle)
			b := bsf.PcfBinding{Ipv4Addr: ue, PcfDiamHost: "pcf1.epc.example", PcfDiamRealm: "epc.example"}
			b.PcfDiamRealm = tgpp.Fqdn(x.binding)
			n.register(b)
			s := session("s;1")
			s.DestRealm = x.realm
			wantResult(t, ask(t, n.af(), s.AAR(ue)), x.want)
			if x.want != "2001" {
				if n.metric("ocbsf_diam_realm_validation_failed_total") != 1 {
					t.Error("not counted")
				}
				return
			}
			if got := string(pcf.last(t).DestinationRealm.Data); got != x.forwarded {
				t.Errorf("Destination-Realm %s", got)
			}
		})
	}
}
