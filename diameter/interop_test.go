package diameter_test

import (
	"testing"
	"time"

	"github.com/fiorix/go-diameter/v4/diam"
	"github.com/fiorix/go-diameter/v4/diam/avp"
	"github.com/fiorix/go-diameter/v4/diam/datatype"
	"github.com/fiorix/go-diameter/v4/diam/dict"
	"github.com/fiorix/go-diameter/v4/diam/sm"

	"bsfd/diameter/rx"
)

// TestGoDiameterClient proves capabilities exchange, watchdogs and an AAR with
// the client of another implementation (RX-060, RX-065).
func TestGoDiameterClient(t *testing.T) {
	n := start(t)
	n.join("pcf1.epc.example", "epc.example", answering(rx.Success).handle)
	n.bind("pcf1.epc.example", "10.0.0.1")
	machine := sm.New(&sm.Settings{
		OriginHost: "go.ims.example", OriginRealm: "ims.example", VendorID: 0, ProductName: "go-diameter", OriginStateID: 1,
	})
	answers := make(chan *diam.Message, 1)
	machine.HandleFunc("AAA", func(_ diam.Conn, m *diam.Message) { answers <- m })
	client := &sm.Client{
		Dict: dict.Default, Handler: machine, EnableWatchdog: true, WatchdogInterval: 50 * time.Millisecond,
		// This client loses a DWA that comes before it waits for it, and closes
		// the connection when it has sent its last DWR.
		RetransmitInterval: 100 * time.Millisecond, MaxRetransmits: 1000,
		AuthApplicationID: []*diam.AVP{diam.NewAVP(avp.AuthApplicationID, avp.Mbit, 0, datatype.Unsigned32(rx.ApplicationID))},
	}
	conn, err := client.DialNetwork("tcp", n.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	m := diam.NewRequest(diam.AA, rx.ApplicationID, dict.Default)
	m.Header.CommandFlags |= diam.ProxiableFlag
	for _, a := range []*diam.AVP{
		diam.NewAVP(avp.SessionID, avp.Mbit, 0, datatype.UTF8String("go.ims.example;1")),
		diam.NewAVP(avp.AuthApplicationID, avp.Mbit, 0, datatype.Unsigned32(rx.ApplicationID)),
		diam.NewAVP(avp.OriginHost, avp.Mbit, 0, datatype.DiameterIdentity("go.ims.example")),
		diam.NewAVP(avp.OriginRealm, avp.Mbit, 0, datatype.DiameterIdentity("ims.example")),
		diam.NewAVP(avp.DestinationRealm, avp.Mbit, 0, datatype.DiameterIdentity("epc.example")),
		diam.NewAVP(avp.FramedIPAddress, avp.Mbit, 0, datatype.OctetString(ue.AsSlice())),
	} {
		m.AddAVP(a)
	}
	if _, err := m.WriteTo(conn); err != nil {
		t.Fatal(err)
	}
	select {
	case a := <-answers:
		if code, err := a.FindAVP(avp.ResultCode, 0); err != nil || code.Data != datatype.Unsigned32(rx.Success) {
			t.Errorf("%v %v", code, err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("no answer")
	}
	until(t, "some watchdogs have passed", func() bool { return n.state("go.ims.example").AnswersOut >= 4 })
}
