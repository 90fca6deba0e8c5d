package diameter_test

import (
	"encoding/binary"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bsfd/bsf"
	"bsfd/diameter"
	"bsfd/diameter/rx"
	"bsfd/internal/rxnode"
)

// strictly is a gateway that tolerates nothing.
func strictly(c *diameter.Config) { c.Tolerate = nil }

// TestTolerancesOfAAR proves for each odd AVP of an AAR that the PCF is found,
// that the AVP passes as it came, that the use is counted, and what strict mode
// answers.
func TestTolerancesOfAAR(t *testing.T) {
	prefix := func(b ...byte) []byte { return rx.Encode(rx.FramedIPv6Prefix, rx.AVPMandatory, 0, b) }
	who := func(kind rx.SubscriptionKind, data string) []byte {
		return rx.Encode(rx.SubscriptionID, rx.AVPMandatory, 0, append(rxnode.Number(rx.SubscriptionIDType, uint32(kind)), rxnode.Text(rx.SubscriptionIDData, data)...))
	}
	address := netip.MustParseAddr("2001:db8:1::5").As16()
	for _, x := range []struct {
		name, what, strict string
		avp                []byte
	}{
		{"an address of 16 octets", "barePrefix", "5004", prefix(address[:]...)},
		{"128 bits", "", "2001", prefix(append([]byte{0, 128}, address[:]...)...)},
		{"14 octets behind the length", "", "2001", prefix(append([]byte{0, 112}, address[:14]...)...)},
		{"bits beyond the length", "prefixBits", "5004", prefix(append([]byte{0, 64}, address[:]...)...)},
		{"IMSI with prefix", "subscriptionText", "10415:5065", who(rx.SubscriptionIMSI, "imsi-001010000000001")},
		{"E.164 with plus", "subscriptionText", "10415:5065", who(rx.SubscriptionE164, "+4670001")},
		{"E.164 as a tel URI", "subscriptionText", "10415:5065", who(rx.SubscriptionE164, "tel:+4670001")},
		{"E.164 with prefix", "subscriptionText", "10415:5065", who(rx.SubscriptionE164, "msisdn-4670001")},
		{"the realm twice", "repeatedAVP", "5009", rxnode.Text(rx.DestinationRealm, "epc.example")},
		{"a SIP URI", "", "2001", who(2, "sip:user@example.com")},
		{"the DNN in upper case with operator identifier", "", "2001", rxnode.Text(rx.CalledStationID, "IMS.MNC001.MCC001.GPRS")},
	} {
		t.Run(x.name, func(t *testing.T) {
			try := func(want string, change ...func(*diameter.Config)) *network {
				n := start(t, change...)
				pcf := answering(rx.Success)
				n.join("pcf1.epc.example", "epc.example", pcf.handle)
				n.register(bsf.PcfBinding{
					Ipv4Addr: ue, Ipv6Prefix: netip.MustParsePrefix("2001:db8:1::/64"), Dnn: "ims",
					Supi: "imsi-001010000000001", Gpsi: "msisdn-4670001", PcfDiamHost: "pcf1.epc.example", PcfDiamRealm: "epc.example",
				})
				a := ask(t, n.af(), session("s;1").AAR(ue, x.avp))
				wantResult(t, a, want)
				if x.what == "repeatedAVP" && want == "2001" && len(values(pcf.last(t), rx.DestinationRealm)) != 1 {
					t.Error("it was passed on twice")
				}
				if want == "2001" && !strings.Contains(string(pcf.last(t).Raw), string(x.avp)) {
					t.Error("the AVP did not pass as it came")
				}
				if (want == "5004" || want == "5009") && len(values(a, rx.FailedAVP)) != 1 {
					t.Error("no Failed-AVP")
				}
				return n
			}
			n := try("2001")
			if got := n.metric("ocbsf_diam_tolerated_total", "what="+x.what+" "); x.what != "" && got < 1 {
				t.Errorf("counted %v", got)
			}
			if got := n.metric("ocbsf_diam_tolerated_total"); x.what == "" && got != 0 {
				t.Errorf("counted %v although nothing is odd", got)
			}
			try(x.strict, strictly)
		})
	}
}

// TestTwoValuesAreNoRepetition proves that an AVP with two values is refused in
// every mode.
func TestTwoValuesAreNoRepetition(t *testing.T) {
	n := start(t)
	n.join("pcf1.epc.example", "epc.example", answering(rx.Success).handle)
	n.bind("pcf1.epc.example", "10.0.0.1")
	wantResult(t, ask(t, n.af(), session("s;1").AAR(ue, rxnode.Text(rx.DestinationRealm, "other.example"))), "5009")
}

// TestRealmInOtherCase proves that case does not count in a Destination-Realm.
func TestRealmInOtherCase(t *testing.T) {
	n := start(t, strictly)
	n.join("pcf1.epc.example", "epc.example", answering(rx.Success).handle)
	n.bind("pcf1.epc.example", "10.0.0.1")
	s := session("s;1")
	s.DestRealm = "EPC.Example"
	wantResult(t, ask(t, n.af(), s.AAR(ue)), "2001")
}

// TestNameWithDot proves that a Diameter host that was registered with a dot at
// its end is the peer without it.
func TestNameWithDot(t *testing.T) {
	n := start(t)
	n.join("pcf1.epc.example", "epc.example", answering(rx.Success).handle)
	n.bind("pcf1.epc.example.", "10.0.0.1")
	wantResult(t, ask(t, n.af(), session("s;1").AAR(ue)), "2001")
}

// TestCapabilitiesInBothForms proves that Rx is offered inside
// Vendor-Specific-Application-Id and beside it, and that a CER without
// Host-IP-Address is refused in strict mode alone.
func TestCapabilitiesInBothForms(t *testing.T) {
	cer := func(n *network) []byte {
		m := rxnode.Message(rx.CapabilitiesExchange, rx.FlagRequest, 1,
			rxnode.Text(rx.OriginHost, "af.ims.example"), rxnode.Text(rx.OriginRealm, "ims.example"),
			rxnode.Number(rx.VendorID, 0), rxnode.Text(rx.ProductName, "x"), rxnode.Number(rx.AuthApplicationID, rx.ApplicationID))
		binary.BigEndian.PutUint32(m[8:], 0)
		c := n.raw()
		if _, err := c.Write(m); err != nil {
			t.Fatal(err)
		}
		cea, err := rxnode.ReadMessage(c)
		if err != nil {
			t.Fatal(err)
		}
		return cea
	}
	n := start(t)
	cea := cer(n)
	if got := rxnode.ResultOf(cea); got != rx.Base(rx.Success) {
		t.Fatalf("CEA with %s", got)
	}
	forms := map[rx.Code]int{}
	for _, a := range avps(cea) {
		forms[a.Code]++
	}
	if forms[rx.VendorSpecificApplicationID] != 1 || forms[rx.AuthApplicationID] != 1 {
		t.Errorf("%v", forms)
	}
	if got := n.metric("ocbsf_diam_tolerated_total", "what=hostIPAddress"); got != 1 {
		t.Errorf("counted %v", got)
	}
	if got := rxnode.ResultOf(cer(start(t, strictly))); got != rx.Base(rx.MissingAVP) {
		t.Errorf("strict: CEA with %s", got)
	}
}

// TestAbortTowardsKamailio proves the whole life of an abort with an AF that
// sends its ASA with Application-Id 0 and to the node in Origin-Host: the PCF
// gets the answer as of Rx, and the STR that follows reaches it.
func TestAbortTowardsKamailio(t *testing.T) {
	for name, change := range map[string]func(*diameter.Config){
		"by realm": func(c *diameter.Config) { c.OwnOriginRealms = []string{"IMS.example"} },
		"by peer": func(c *diameter.Config) {
			c.Peers = []diameter.Peer{{Host: "af.ims.example", Realm: "ims.example", OwnOrigin: true}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := start(t, change)
			pcf := answering(rx.Success)
			p := n.join("pcf1.epc.example", "epc.example", pcf.handle)
			n.bind("pcf1.epc.example", "10.0.0.1")
			var got rx.View
			a := n.join("af.ims.example", "ims.example", func(af *rxnode.Node, v *rx.View) []byte {
				if err := got.Scan(append([]byte(nil), v.Raw...)); err != nil {
					t.Error(err)
				}
				answer := af.Answer(v, rx.Base(rx.Success))
				rx.SetApplication(answer, 0)
				return answer
			})
			wantResult(t, ask(t, a, session("s;1").AAR(ue)), "2001")
			fromPCF := &rxnode.Session{ID: "s;1", Host: "pcf1.epc.example", Realm: "epc.example", DestRealm: "ims.example", DestHost: "af.ims.example"}
			for _, command := range []rx.Command{rx.ReAuth, rx.AbortSession} {
				asa := ask(t, p, fromPCF.Other(command))
				wantResult(t, asa, "2001")
				if asa.Application != rx.ApplicationID || string(asa.OriginHost.Data) != "af.ims.example" {
					t.Errorf("%s: application %d of %s", command.Answer(), asa.Application, asa.OriginHost.Data)
				}
				if string(got.OriginHost.Data) != "bsf.epc.example" || string(got.OriginRealm.Data) != "epc.example" || got.Command != command {
					t.Errorf("the AF got a %s of %s, %s", got.Command.Request(), got.OriginHost.Data, got.OriginRealm.Data)
				}
			}
			// The STR names the node that asked for the abort.
			wantResult(t, ask(t, a, withHost(session("s;1"), "bsf.epc.example").Other(rx.SessionTermination)), "2001")
			if last := pcf.last(t); last.Command != rx.SessionTermination || string(last.DestinationHost.Data) != "pcf1.epc.example" {
				t.Errorf("the PCF got %s to %s", last.Command.Request(), last.DestinationHost.Data)
			}
			if got := n.metric("ocbsf_diam_tolerated_total", "what=answerApplication"); got != 2 {
				t.Errorf("counted %v", got)
			}
		})
	}
}

// TestAnswerOfAnotherApplication proves that strict mode answers the PCF in
// place of such an answer, and counts why.
func TestAnswerOfAnotherApplication(t *testing.T) {
	n := start(t, strictly)
	p := n.join("pcf1.epc.example", "epc.example", answering(rx.Success).handle)
	n.join("af.ims.example", "ims.example", func(af *rxnode.Node, v *rx.View) []byte {
		if string(v.OriginHost.Data) != "pcf1.epc.example" {
			t.Errorf("an ASR of %s", v.OriginHost.Data)
		}
		answer := af.Answer(v, rx.Base(rx.Success))
		rx.SetApplication(answer, 0)
		return answer
	})
	fromPCF := &rxnode.Session{ID: "s;1", Host: "pcf1.epc.example", Realm: "epc.example", DestRealm: "ims.example", DestHost: "af.ims.example"}
	wantResult(t, ask(t, p, fromPCF.Other(rx.AbortSession)), "5012")
	if got := n.metric("ocbsf_diam_answer_discarded_total", "another application"); got != 1 {
		t.Errorf("counted %v", got)
	}
}

// TestDocumentedTolerances holds the table of the documentation against
// Tolerances.
func TestDocumentedTolerances(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "interoperability.md"))
	if err != nil {
		t.Fatal(err)
	}
	if want := diameter.Tolerances.Markdown(); !strings.Contains(string(page), want) {
		t.Errorf("docs/interoperability.md does not have this table:\n%s", want)
	}
}
