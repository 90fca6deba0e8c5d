package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"bsfd/diameter/rx"
)

// rxFlood offers AARs that begin sessions, all classes on one connection of an
// AF, as a P-CSCF would. The class is in the DRMP.
type rxFlood struct {
	af, pcf net.Conn
	reqs    [classes]numbered
	next    int
}

// drmpOf is the DRMP of a class.
func drmpOf(c class) byte { return [classes]byte{1, 7, 12}[c] }

func newRxFlood(ctx context.Context, address string) (*rxFlood, error) {
	t := &rxTarget{address: address}
	if err := t.connect(ctx); err != nil {
		t.close()
		return nil, err
	}
	f := &rxFlood{af: t.af, pcf: t.pcf}
	for c := range class(classes) {
		f.reqs[c] = numbering(template("aar", rx.Encode(rx.DRMP, 0, 0, []byte{0, 0, 0, drmpOf(c)})), rxBindings)
	}
	return f, nil
}

func (f *rxFlood) close() {
	_ = f.af.Close()
	_ = f.pcf.Close()
}

// rxSlots is how many requests may be without an answer.
const rxSlots = 1 << 21

// waiting is a request that has no answer yet.
type waiting struct {
	due   atomic.Int64 // nanoseconds since the begin, plus one; 0 when free
	class class
}

// rxRun is one run of the flood.
type rxRun struct {
	*rxFlood
	start    time.Time
	slots    []waiting
	inflight atomic.Int64
	answered [classes]tally // of the reader
	offered  [classes]int   // of the sender
}

// run implements flood.
func (f *rxFlood) run(ctx context.Context, rate float64, inflight int, d time.Duration) (outcome, error) {
	if err := errors.Join(f.pcf.SetDeadline(time.Time{}), f.af.SetDeadline(time.Time{})); err != nil {
		return outcome{}, err
	}
	r := &rxRun{rxFlood: f, start: time.Now(), slots: make([]waiting, rxSlots)}
	var group, other errgroup.Group
	other.Go(func() error { return respond(f.pcf, benchPCF) })
	group.Go(r.read)
	err := r.send(ctx, rate, inflight, d)
	took := time.Since(r.start)
	// What is under way has time to come back: an agent cuts off a peer that
	// leaves its answers lying.
	for wait := time.Now(); r.inflight.Load() > 0 && time.Since(wait) < longestRecovery; {
		time.Sleep(time.Millisecond)
	}
	// Deadlines that have passed end both readers, which is expected.
	err = errors.Join(err, f.pcf.SetReadDeadline(time.Unix(1, 0)), f.af.SetReadDeadline(time.Unix(1, 0)))
	for _, g := range []*errgroup.Group{&group, &other} {
		if e := g.Wait(); !errors.Is(e, os.ErrDeadlineExceeded) {
			err = errors.Join(err, e)
		}
	}
	o := outcome{took: took, of: r.answered}
	for c := range o.of {
		o.of[c].offered = r.offered[c]
	}
	return o, err
}

// pace is how often the sender looks at what is due.
const pace = 200 * time.Microsecond

// send sends what is due until the time is over. What was not sent for longer
// than anybody waits is given up.
func (r *rxRun) send(ctx context.Context, rate float64, inflight int, d time.Duration) error {
	var buf []byte
	sent := 0
	for elapsed := time.Duration(0); elapsed < d && ctx.Err() == nil; elapsed = time.Since(r.start) {
		until := sent + inflight - int(r.inflight.Load())
		if rate > 0 {
			until = int(rate * elapsed.Seconds())
		}
		buf = buf[:0]
		for ; sent < until && len(buf) < 60<<10; sent++ {
			due := elapsed
			if rate > 0 {
				due = time.Duration(float64(sent) / rate * float64(time.Second))
			}
			c := classOf(r.next)
			r.offered[c]++
			if elapsed-due < senderPatience {
				buf = r.append(buf, c, due)
			}
			r.next++
		}
		if len(buf) == 0 {
			time.Sleep(pace)
			continue
		}
		if err := r.af.SetWriteDeadline(r.start.Add(d + senderPatience)); err != nil {
			return err
		}
		if _, err := r.af.Write(buf); err != nil {
			return fmt.Errorf("the agent takes nothing any more: %w", err)
		}
	}
	return ctx.Err()
}

func (r *rxRun) append(buf []byte, c class, due time.Duration) []byte {
	s := &r.slots[r.next%rxSlots]
	s.class = c
	s.due.Store(int64(due) + 1)
	r.inflight.Add(1)
	return r.reqs[c].append(buf, r.next, uint32(r.next%rxSlots))
}

// read takes the answers.
func (r *rxRun) read() error {
	in := frames{c: r.af}
	for {
		var now time.Duration
		err := in.next(func(m []byte) {
			h := rx.ParseHeader(m)
			if h.Request() || int(h.HopByHop) >= len(r.slots) {
				return
			}
			s := &r.slots[h.HopByHop]
			due := s.due.Swap(0)
			if due == 0 {
				return
			}
			if now == 0 {
				now = time.Since(r.start)
			}
			r.inflight.Add(-1)
			t, latency := &r.answered[s.class], now-time.Duration(due-1)
			switch {
			case latency > senderPatience:
			case bytes.Contains(m, success):
				t.served++
				t.latencies = append(t.latencies, latency)
			default:
				t.refused++
			}
		})
		if err != nil {
			return err
		}
	}
}
