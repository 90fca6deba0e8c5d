package lab

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// httpFlood offers registrations; each class is a consumer with connections of
// its own. The class is in 3gpp-Sbi-Message-Priority. The connections are
// written by hand: what an HTTP client needs for a request is more than what
// the target needs, and would be missing there.
type httpFlood struct {
	conns [classes][]*floodConn
	next  int
}

// connsOfClass is how many connections each class has.
const connsOfClass = 2

// priorityOf is the message priority of a class.
func priorityOf(c class) string { return strconv.Itoa([classes]int{2, 14, 24}[c]) }

func newHTTPFlood(ctx context.Context, root string) (*httpFlood, error) {
	bodies := floodBodies()
	f := &httpFlood{}
	for c := range class(classes) {
		for range connsOfClass {
			conn, err := dialFlood(ctx, root, priorityOf(c), bodies)
			if err != nil {
				f.close()
				return nil, err
			}
			f.conns[c] = append(f.conns[c], conn)
		}
	}
	return f, nil
}

// floodBodies are registrations whose bodies are equally long, so that their
// headers are the same.
func floodBodies() (list [][]byte) {
	want := len(body(nil, rxBindings-1, benchPCF))
	for i := range rxBindings {
		if b := body(nil, i, benchPCF); len(b) == want {
			list = append(list, b)
		}
	}
	return list
}

func (f *httpFlood) close() {
	for _, c := range slices.Concat(f.conns[:]...) {
		c.close()
	}
}

// run implements flood.
func (f *httpFlood) run(ctx context.Context, rate float64, inflight int, d time.Duration) (outcome, error) {
	start := time.Now()
	var under atomic.Int64
	run, stop := context.WithCancel(ctx)
	defer stop()
	var group errgroup.Group
	for _, c := range slices.Concat(f.conns[:]...) {
		c.begin(start, &under)
		group.Go(func() error { return c.send(run) })
	}
	group.Go(func() error { return f.nudge(run) })
	offered := f.offer(ctx, start, rate, inflight, d, &under)
	took := time.Since(start)
	// What is under way has time to come back.
	for wait := time.Now(); under.Load() > 0 && time.Since(wait) < 2*senderPatience; {
		time.Sleep(time.Millisecond)
	}
	stop()
	err := group.Wait()
	o := outcome{took: took}
	for c := range class(classes) {
		for _, conn := range f.conns[c] {
			t := conn.end()
			o.of[c].served += t.served
			o.of[c].refused += t.refused
			o.of[c].latencies = append(o.of[c].latencies, t.latencies...)
			err = errors.Join(err, conn.err())
		}
		o.of[c].offered = offered[c]
	}
	return o, errors.Join(err, ctx.Err())
}

// nudge lets the connections look for what has to be given up.
func (f *httpFlood) nudge(ctx context.Context) error {
	const often = 50 * time.Millisecond
	t := time.NewTicker(often)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		for _, c := range slices.Concat(f.conns[:]...) {
			c.wake.Signal()
		}
	}
}

// offer deals out what is due until the time is over.
func (f *httpFlood) offer(ctx context.Context, start time.Time, rate float64, inflight int, d time.Duration, under *atomic.Int64) (offered [classes]int) {
	const pace = time.Millisecond
	var lists [classes][connsOfClass][]time.Duration
	sent := 0
	for elapsed := time.Duration(0); elapsed < d && ctx.Err() == nil; elapsed = time.Since(start) {
		until := sent + inflight - int(under.Load())
		if rate > 0 {
			until = int(rate * elapsed.Seconds())
		}
		for ; sent < until; sent++ {
			due := elapsed
			if rate > 0 {
				due = time.Duration(float64(sent) / rate * float64(time.Second))
			}
			c := classOf(f.next)
			offered[c]++
			under.Add(1)
			list := &lists[c][f.next/10%connsOfClass]
			*list = append(*list, due)
			f.next++
		}
		for c := range lists {
			for i, list := range lists[c] {
				if len(list) > 0 {
					f.conns[c][i].push(list)
					lists[c][i] = list[:0]
				}
			}
		}
		time.Sleep(pace)
	}
	return offered
}
