package diameter_test

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"bsfd/diameter/rx"
	"bsfd/internal/rxnode"
)

// change returns the message with something wrong.
func change(m []byte, f func([]byte)) []byte {
	m = append([]byte(nil), m...)
	f(m)
	return m
}

// extend appends octets and sets the length of the message.
func extend(m []byte, more ...byte) []byte {
	m = append(append([]byte(nil), m...), more...)
	binary.BigEndian.PutUint32(m, rx.Version<<24|uint32(len(m)))
	return m
}

// TestMalformed proves RX-032, RX-035, RX-070 and RX-004: each malformed
// request gets the answer that RFC 6733 has for it; where the next message
// cannot be found any more the connection ends, otherwise it goes on.
func TestMalformed(t *testing.T) {
	n := start(t)
	pcf := answering(rx.Success)
	n.join("pcf1.epc.example", "epc.example", pcf.handle)
	n.bind("pcf1.epc.example", "10.0.0.1")
	good := session("s;1").AAR(ue)
	without := func(code rx.Code) []byte {
		m := append([]byte(nil), good[:rx.HeaderLen]...)
		for _, a := range avps(good) {
			if a.Code != code {
				m = append(m, rx.Encode(a.Code, a.Flags, a.Vendor, a.Data)...)
			}
		}
		return extend(m)
	}
	for name, x := range map[string]struct {
		msg    []byte
		want   string
		failed string // the code in the Failed-AVP
		ends   bool
	}{
		"an unknown command":             {change(good, func(m []byte) { m[6], m[7] = 1, 77 }), "3001", "", false},
		"an unknown application":         {change(good, func(m []byte) { m[11]++ }), "3007", "", false},
		"a base command":                 {change(good, func(m []byte) { copy(m[4:], []byte{0x80, 0, 1, 60, 0, 0, 0, 0}) }), "3001", "", false},
		"a second CER":                   {change(good, func(m []byte) { copy(m[4:], []byte{0x80, 0, 1, 1, 0, 0, 0, 0}) }), "3001", "", false},
		"the E bit in a request":         {change(good, func(m []byte) { m[4] |= rx.FlagError }), "3008", "", false},
		"no P bit":                       {change(good, func(m []byte) { m[4] &^= rx.FlagProxiable }), "3008", "", false},
		"reserved flags of a known AVP":  {extend(good, rx.Encode(rx.DestinationHost, 0x41, 0, []byte("x"))...), "3009", "\x00\x00\x01\x25", false},
		"this node in a Route-Record":    {extend(good, rxnode.Text(rx.RouteRecord, "BSF.epc.example")...), "3005", "", false},
		"too many Route-Records":         {extend(good, repeat(rxnode.Text(rx.RouteRecord, "x.example"), 17)...), "3005", "", false},
		"no Session-Id":                  {without(rx.SessionID), "5005", "\x00\x00\x01\x07", false},
		"no Origin-Host":                 {without(rx.OriginHost), "5005", "\x00\x00\x01\x08", false},
		"no Origin-Realm":                {without(rx.OriginRealm), "5005", "\x00\x00\x01\x28", false},
		"no Destination-Realm":           {without(rx.DestinationRealm), "5005", "\x00\x00\x01\x1b", false},
		"two Destination-Hosts":          {extend(good, append(rxnode.Text(rx.DestinationHost, "a"), rxnode.Text(rx.DestinationHost, "b")...)...), "5009", "\x00\x00\x01\x25", false},
		"an AVP longer than the message": {extend(good, 0, 0, 0, 8, 0x40, 0, 1, 0), "5014", "\x00\x00\x00\x08", false},
		"an AVP shorter than its header": {extend(good, 0, 0, 0, 8, 0x40, 0, 0, 7), "5014", "\x00\x00\x00\x08", false},
		"a vendor's AVP of 8 octets":     {extend(good, 0, 0, 0, 8, 0xc0, 0, 0, 8), "5014", "\x00\x00\x00\x08", false},
		"half an AVP header":             {extend(good, 0, 0, 0, 8), "5014", "\x00\x00\x00\x08", false},
		"another version":                {change(good, func(m []byte) { m[0] = 2 }), "5011", "", true},
		"a length of 19":                 {change(good, func(m []byte) { m[1], m[2], m[3] = 0, 0, 19 }), "5015", "", true},
		"a length of 0":                  {change(good, func(m []byte) { m[1], m[2], m[3] = 0, 0, 0 }), "5015", "", true},
		"a length that is not even":      {change(good, func(m []byte) { m[3]++ }), "5015", "", true},
		"a length of 16 MB":              {change(good, func(m []byte) { m[1], m[2], m[3] = 0xff, 0xff, 0xfc }), "5015", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			before := pcf.count()
			af := n.joinAs(rxnode.Identity{Host: "m.ims.example", Realm: "ims.example"}, nil)
			defer n.disconnect("m.ims.example")
			a := ask(t, af, x.msg)
			wantResult(t, a, x.want)
			if pcf.count() != before {
				t.Error("it was forwarded")
			}
			if a.EndToEnd != binary.BigEndian.Uint32(x.msg[16:]) || a.Flags&rx.FlagRequest != 0 || a.Flags&rx.FlagProxiable != x.msg[4]&rx.FlagProxiable {
				t.Errorf("flags %x", a.Flags)
			}
			if string(a.OriginHost.Data) != "bsf.epc.example" || string(a.OriginRealm.Data) != "epc.example" {
				t.Errorf("of %s", a.OriginHost.Data)
			}
			failed := values(a, rx.FailedAVP)
			if len(failed) == 1 != (x.failed != "") || len(failed) == 1 && failed[0][:4] != x.failed {
				t.Errorf("Failed-AVP %q", failed)
			}
			if x.ends {
				<-af.Done()
				return
			}
			wantResult(t, ask(t, af, session("s;2").AAR(ue)), "2001")
		})
	}
}

func repeat(b []byte, n int) (list []byte) {
	for range n {
		list = append(list, b...)
	}
	return list
}

// TestMalformedAnswer proves that an answer that cannot be read costs the AF
// nothing but an error, and that one to nothing is dropped (RX-033).
func TestMalformedAnswer(t *testing.T) {
	n := start(t)
	broken := []byte{0, 0, 0, 8, 0x40, 0, 1, 0}
	n.join("pcf1.epc.example", "epc.example", func(p *rxnode.Node, v *rx.View) []byte {
		a := p.Answer(v, rx.Base(rx.Success))
		stray := change(a, func(m []byte) { m[12]++ })
		return append(stray, extend(a, broken...)...)
	})
	n.bind("pcf1.epc.example", "10.0.0.1")
	wantResult(t, ask(t, n.af(), session("s;1").AAR(ue)), "5012")
	if n.metric("ocbsf_diam_answer_discarded_total") != 1 {
		t.Error("the answer to nothing was not discarded")
	}
}

// TestPartialMessages proves that it does not matter how octets arrive: one by
// one, many messages at once, and large ones.
func TestPartialMessages(t *testing.T) {
	n := start(t)
	pcf := answering(rx.Success)
	n.join("pcf1.epc.example", "epc.example", pcf.handle)
	n.bind("pcf1.epc.example", "10.0.0.1")
	af := n.af()
	m := session("s;1").AAR(ue)
	rx.SetHopByHop(m, 7)
	for i := range m {
		if err := af.Send(m[i : i+1]); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "it arrives", func() bool { return pcf.count() == 1 })
	var many []byte
	for range 1000 {
		many = append(many, session("s;1").AAR(ue)...)
	}
	if err := af.Send(many); err != nil {
		t.Fatal(err)
	}
	until(t, "all arrive", func() bool { return pcf.count() == 1001 })
	wantResult(t, ask(t, af, session("s;1").AAR(ue, rx.Encode(9999, 0, 4711, make([]byte, 60000)))), "2001")
}

// FuzzConnection proves that whatever a peer sends after its CER ends at most
// its own connection: nothing crashes, nothing hangs, others are served.
func FuzzConnection(f *testing.F) {
	good := session("s;1").AAR(ue)
	f.Add(good)
	f.Add(append(append([]byte(nil), good...), good[:40]...))
	f.Add(extend(good, 0, 0, 0, 8, 0x40, 0, 1, 0))
	f.Add(rx.DPR(rx.Origin{Host: "fuzz.ims.example", Realm: "ims.example"}, rx.Busy, 1, 2))
	f.Add(withHost(session("s;1"), "other.ims.example").Other(rx.SessionTermination))
	n := start(f)
	n.bind("other.ims.example", "10.0.0.1")
	other := n.join("other.ims.example", "ims.example", func(p *rxnode.Node, v *rx.View) []byte { return p.Answer(v, rx.Base(rx.Success)) })
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := net.Dial("tcp", n.address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		id := rx.Capabilities{Origin: rx.Origin{Host: "fuzz.ims.example", Realm: "ims.example"}, Applications: []uint32{rx.ApplicationID}, HostIPAddresses: []netip.Addr{ue}}
		if _, err := c.Write(append(id.CER(1, 1), b...)); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(c.(*net.TCPConn).CloseWrite(), c.SetReadDeadline(time.Now().Add(20*time.Second))); err != nil {
			t.Fatal(err)
		}
		var timeout net.Error
		if _, err := io.Copy(io.Discard, c); errors.As(err, &timeout) && timeout.Timeout() {
			t.Fatal("the connection hangs")
		}
		wantResult(t, ask(t, other, session("s;2").AAR(mustAddr("10.9.9.9"))), "10415:5065")
	})
}
