package rx_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"bsfd/diameter/rx"
)

// same checks that a glance at a request says what reading it says, and that
// its refusal is the answer that is made with time.
func same(t *testing.T, b []byte) {
	t.Helper()
	var v rx.View
	var g rx.Glance
	h := rx.ParseHeader(b)
	if v.Scan(b) != nil || !g.Glance(h, b) {
		return
	}
	for name, x := range map[string][2][]byte{
		"DRMP": {v.DRMP.Data, g.DRMP}, "Rx-Request-Type": {v.RxRequestType.Data, g.RxRequestType},
		"Destination-Host": {v.DestinationHost.Data, g.DestinationHost}, "Called-Station-Id": {v.CalledStationID.Data, g.CalledStationID},
		"Session-Id": {v.SessionID.Data, g.SessionID},
	} {
		if !bytes.Equal(x[0], x[1]) {
			t.Errorf("%s: %x, and at a glance %x", name, x[0], x[1])
		}
	}
	if v.Urgent() != g.Urgent {
		t.Errorf("urgent: %v, and at a glance %v", v.Urgent(), g.Urgent)
	}
	if !g.Plain {
		return
	}
	o := rx.Origin{Host: "bsf.epc.example", Realm: "epc.example", StateID: 7}
	f, ok := rx.NewRefusal(o, rx.Base(rx.TooBusy), "is in CONGESTED")
	if !ok {
		t.Fatal("no refusal")
	}
	want := rx.AppendAnswer(nil, &v, o, &rx.Answer{Result: rx.Base(rx.TooBusy), Text: "is in CONGESTED"})
	if got := g.Refuse(nil, &f); !bytes.Equal(got, want) {
		t.Errorf("refused with %x, not %x", got, want)
	}
}

// TestGlanceSeesWhatScanSees proves that deciding in haste decides as with
// time.
func TestGlanceSeesWhatScanSees(t *testing.T) {
	sos := rx.Encode(rx.ServiceURN, 0, rx.Vendor3GPP, []byte("urn:service:SOS.fire"))
	for name, extra := range map[string][]byte{
		"plain": nil, "DRMP": rx.Encode(rx.DRMP, 0, 0, []byte{0, 0, 0, 3}), "sos": sos,
		"sosta":       rx.Encode(rx.ServiceURN, 0, rx.Vendor3GPP, []byte("sosta")),
		"MPS":         rx.Encode(rx.MPSIdentifier, 0, rx.Vendor3GPP, []byte("x")),
		"priority":    rx.Encode(rx.ReservationPriority, 0, rx.VendorETSI, []byte{0, 0, 0, 2}),
		"no priority": rx.Encode(rx.ReservationPriority, 0, rx.VendorETSI, []byte{0, 0, 0, 0}),
		"proxy":       rx.Encode(rx.ProxyInfo, 0x40, 0, rx.Encode(rx.ProxyHost, 0x40, 0, []byte("p"))),
		"supported":   rx.AppendSupported(nil),
	} {
		m := append(aar(t), extra...)
		m[1], m[2], m[3] = byte(len(m)>>16), byte(len(m)>>8), byte(len(m))
		same(t, m)
		var g rx.Glance
		if !g.Glance(rx.ParseHeader(m), m) || g.Plain != !slices.Contains([]string{"proxy", "supported"}, name) ||
			g.Urgent != slices.Contains([]string{"sos", "MPS", "priority"}, name) {
			t.Errorf("%s: plain %v, urgent %v", name, g.Plain, g.Urgent)
		}
	}
}

// FuzzGlance proves that no request crashes the glance, nor the readers of
// reports, and that it sees what Scan sees.
func FuzzGlance(f *testing.F) {
	f.Add(aar(f))
	f.Add(append(aar(f), rx.AppendOLR(rx.AppendSupported(nil), &rx.OLR{Sequence: 1, Reduction: 50, Validity: time.Minute})...))
	f.Add(append(aar(f), rx.AppendLoad(nil, rx.LoadPeer, 7, "a.example")...))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < rx.HeaderLen || len(b)%4 != 0 {
			return
		}
		same(t, b)
		if olr, ok := rx.ParseOLR(b); ok && (olr.Type > rx.ReportRealm || olr.Validity < 0) {
			t.Errorf("%+v", olr)
		}
		if l, ok := rx.ParseLoad(b); ok && len(l.SourceID) == 0 {
			t.Errorf("%+v", l)
		}
	})
}
