package lab

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"bsfd/diameter/rx"
	"bsfd/internal/rxnode"
)

// The nodes of the Rx bench. All are of one realm.
const (
	benchRealm = "bench.example"
	benchAF    = "af." + benchRealm
	benchPCF   = "pcf." + benchRealm
	benchBSF   = "bsf." + benchRealm
)

// rxOps are the operations on Rx and who sends them.
var rxOps = map[string]struct {
	command rx.Command
	byPCF   bool
}{
	"aar": {rx.AA, false}, "str": {rx.SessionTermination, false}, "rar": {rx.ReAuth, true},
}

// rxTarget is an agent under load, with one connection of an AF and one of a
// PCF.
type rxTarget struct {
	address string
	pid     int // 0 when not known
	af, pcf net.Conn
}

// connect makes the connections.
func (t *rxTarget) connect(ctx context.Context) (err error) {
	if t.af, err = introduce(ctx, t.address, benchAF); err != nil {
		return err
	}
	t.pcf, err = introduce(ctx, t.address, benchPCF)
	return err
}

func (t *rxTarget) close() {
	for _, c := range []net.Conn{t.af, t.pcf} {
		if c != nil {
			_ = c.Close()
		}
	}
}

// introduce connects a node and exchanges capabilities.
func introduce(ctx context.Context, address, host string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	caps := rx.Capabilities{
		Origin: rx.Origin{Host: host, Realm: benchRealm, StateID: 1}, ProductName: "bsfd bench",
		HostIPAddresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")}, Applications: []uint32{rx.ApplicationID},
	}
	if _, err := c.Write(caps.CER(1, 1)); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	cea, err := rxnode.ReadMessage(c)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("CEA for %s: %w", host, err), c.Close())
	}
	if r := rxnode.ResultOf(cea); !r.Success() {
		return nil, errors.Join(fmt.Errorf("CEA for %s with %s (diameter.allowedRealms: %s)", host, r, benchRealm), c.Close())
	}
	return c, nil
}

// template is a request of the operation, an AAR with more AVPs.
func template(op string, more ...[]byte) []byte {
	s := &rxnode.Session{ID: benchAF + ";1857562503;0000000000", Host: benchAF, Realm: benchRealm, DestRealm: benchRealm, DestHost: benchPCF}
	if rxOps[op].byPCF {
		s.Host, s.DestHost = benchPCF, benchAF
	}
	if op != "aar" {
		return s.Other(rxOps[op].command)
	}
	s.DestHost = ""
	// What an IMS call has: a session of audio with two flows.
	flow := func(n byte) []byte {
		return rx.Encode(519, rx.AVPMandatory, rx.Vendor3GPP, append(rx.Encode(509, rx.AVPMandatory, rx.Vendor3GPP, []byte{0, 0, 0, n}),
			append(rx.Encode(507, rx.AVPMandatory, rx.Vendor3GPP, []byte("permit in ip from 10.45.0.1 to 192.0.2.10 49152")),
				rx.Encode(507, rx.AVPMandatory, rx.Vendor3GPP, []byte("permit out ip from 192.0.2.10 to 10.45.0.1 49152"))...)...))
	}
	media := rx.Encode(518, rx.AVPMandatory, rx.Vendor3GPP, []byte{0, 0, 0, 1})
	media = append(media, rx.Encode(520, rx.AVPMandatory, rx.Vendor3GPP, []byte{0, 0, 0, 0})...)
	media = append(append(media, flow(1)...), flow(2)...)
	return s.AAR(netip.MustParseAddr("10.0.0.0"), append(more,
		rx.Encode(504, rx.AVPMandatory, rx.Vendor3GPP, []byte("urn:urn-7:3gpp-service.ims.icsi.mmtel")),
		rx.Encode(517, rx.AVPMandatory, rx.Vendor3GPP, media),
		rx.Encode(rx.SpecificAction, rx.AVPMandatory, rx.Vendor3GPP, []byte{0, 0, 0, 2}),
		rx.Encode(rx.RxRequestType, 0, rx.Vendor3GPP, []byte{0, 0, 0, 0}))...)
}

// numbered is a request of which each one gets a number, in its identifiers,
// its Session-Id and its address.
type numbered struct {
	msg      []byte
	session  int // where the digits of the Session-Id end
	address  int // where the address is, 0 for none
	bindings int // how many addresses there are
}

func numbering(msg []byte, bindings int) numbered {
	var v rx.View
	n := numbered{msg: msg, bindings: bindings}
	if v.Scan(msg) == nil {
		n.session = v.SessionID.At + 8 + len(v.SessionID.Data)
		if v.FramedIPAddress.Present() {
			n.address = v.FramedIPAddress.At + 8
		}
	}
	return n
}

// append appends request i.
func (n *numbered) append(dst []byte, i int, hopByHop uint32) []byte {
	rx.SetHopByHop(n.msg, hopByHop)
	binary.BigEndian.PutUint32(n.msg[16:], uint32(i))
	for k, v := n.session-1, i; k >= n.session-10; k-- {
		n.msg[k] = byte('0' + v%10)
		v /= 10
	}
	if n.address > 0 {
		j := i % n.bindings
		copy(n.msg[n.address:], []byte{10 + byte(j>>24), byte(j >> 16), byte(j >> 8), byte(j)})
	}
	return append(dst, n.msg...)
}

// frames reads whole messages from a connection, as many as there are.
type frames struct {
	c        net.Conn
	buf      []byte
	from, to int
}

// next gives every whole message that is there to f, after waiting for at
// least one.
func (r *frames) next(f func(m []byte)) error {
	if r.buf == nil {
		r.buf = make([]byte, 256<<10)
	}
	for n := 0; n == 0; {
		got, err := r.c.Read(r.buf[r.to:])
		if err != nil {
			return err
		}
		r.to += got
		for r.to-r.from >= rx.HeaderLen {
			length := int(rx.ParseHeader(r.buf[r.from:]).Length)
			if length < rx.HeaderLen || length > len(r.buf)/2 {
				return fmt.Errorf("a message of %d octets", length)
			}
			if r.to-r.from < length {
				break
			}
			f(r.buf[r.from : r.from+length])
			r.from += length
			n++
		}
		r.to = copy(r.buf, r.buf[r.from:r.to])
		r.from = 0
	}
	return nil
}

// respond answers everything on the connection with success until it ends, or
// until its deadline.
func respond(c net.Conn, host string) error {
	in := frames{c: c}
	var out []byte
	var v rx.View
	for {
		out = out[:0]
		err := in.next(func(m []byte) {
			if v.Scan(m) == nil && v.Request() {
				out = rx.AppendAnswer(out, &v, rx.Origin{Host: host, Realm: benchRealm}, &rx.Answer{Result: rx.Base(rx.Success)})
			}
		})
		if err != nil {
			return err
		}
		if _, err := c.Write(out); err != nil {
			return err
		}
	}
}

// driver sends the requests of one run and takes the time of their answers.
type driver struct {
	c        net.Conn
	reqs     numbered
	n        int
	inflight int
	rate     float64 // requests a second; 0 is as fast as it goes

	sent   int
	now    time.Time   // when the answers at hand were read
	began  []time.Time // by hop-by-hop identifier
	free   []uint32
	out    []byte
	result result
}

// run performs n requests, from number first on.
func (d *driver) run(ctx context.Context, first int) result {
	d.began = make([]time.Time, d.inflight)
	for i := range d.inflight {
		d.free = append(d.free, uint32(i))
	}
	d.result.n = d.n
	d.result.latencies = make([]time.Duration, 0, d.n)
	start := time.Now()
	d.result.firstErr = d.loop(ctx, first, start)
	d.result.took = time.Since(start)
	return d.result
}

func (d *driver) loop(ctx context.Context, first int, start time.Time) error {
	in := frames{c: d.c}
	if err := d.send(first, start); err != nil {
		return err
	}
	for answered := 0; answered < d.n; {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := d.c.SetReadDeadline(d.wake(start)); err != nil {
			return err
		}
		d.now = time.Time{}
		err := in.next(func(m []byte) { answered += d.take(m) })
		var timeout net.Error
		switch {
		case errors.As(err, &timeout) && timeout.Timeout() && (d.rate > 0 && d.sent < d.n):
		case err != nil:
			return fmt.Errorf("%d of %d answered: %w", answered, d.n, err)
		}
		if err := d.send(first, start); err != nil {
			return err
		}
	}
	return d.c.SetReadDeadline(time.Time{})
}

// answerTime bounds the wait for an answer.
const answerTime = 20 * time.Second

// wake is until when to wait for answers: the next request may be due before.
func (d *driver) wake(start time.Time) time.Time {
	if d.rate > 0 && d.sent < d.n && len(d.free) > 0 {
		return start.Add(time.Duration(float64(d.sent) / d.rate * float64(time.Second)))
	}
	return time.Now().Add(answerTime)
}

// send sends what is due and fits into the window.
func (d *driver) send(first int, start time.Time) error {
	now := time.Now()
	d.out = d.out[:0]
	for d.sent < d.n && len(d.free) > 0 {
		if d.rate > 0 && now.Sub(start).Seconds()*d.rate < float64(d.sent) {
			break
		}
		hop := d.free[len(d.free)-1]
		d.free = d.free[:len(d.free)-1]
		d.began[hop] = now
		d.out = d.reqs.append(d.out, first+d.sent, hop)
		d.sent++
	}
	if len(d.out) == 0 {
		return nil
	}
	_, err := d.c.Write(d.out)
	return err
}

// take notes an answer.
func (d *driver) take(m []byte) int {
	h := rx.ParseHeader(m)
	if h.Request() || int(h.HopByHop) >= len(d.began) {
		return 0
	}
	if d.now.IsZero() {
		d.now = time.Now()
	}
	d.result.latencies = append(d.result.latencies, d.now.Sub(d.began[h.HopByHop]))
	d.free = append(d.free, h.HopByHop)
	if !bytes.Contains(m, success) {
		d.result.errors++
		if d.result.firstErr == nil {
			d.result.firstErr = fmt.Errorf("answered with %s", rxnode.ResultOf(m))
		}
	}
	return 1
}

// success is the Result-Code AVP of DIAMETER_SUCCESS.
var success = rxnode.Number(rx.ResultCode, rx.Success)
