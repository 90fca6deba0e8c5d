package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"bsfd/diameter/rx"
)

// IdleReport is what many idle peers cost.
type IdleReport struct {
	Peers int `json:"peers"`
	// BytesPerPeer is the growth of the resident set by a connected peer.
	BytesPerPeer int64 `json:"bytesPerPeer"`
	// ServerCPU is the CPU time that a second with all of them takes.
	ServerCPU float64 `json:"cpuMsPerSecond"`
	// Watchdogs is how many DWRs came. The intervals between those of one peer
	// should be Tw, 6 s, with a jitter of 2 s to either side.
	Watchdogs   int     `json:"watchdogs"`
	IntervalMin float64 `json:"intervalMinSeconds"`
	IntervalP50 float64 `json:"intervalMedianSeconds"`
	IntervalMax float64 `json:"intervalMaxSeconds"`
	Lost        int64   `json:"lost"`
}

// idleTime is how long the peers stay.
const idleTime = 30 * time.Second

// idlePeers are peers that only answer watchdogs.
type idlePeers struct {
	mu        sync.Mutex
	conns     []net.Conn
	intervals []time.Duration
	lost      atomic.Int64
	leaving   atomic.Bool
	wg        sync.WaitGroup
}

// runIdle connects peers to a bsfd of its own and looks what they cost.
func (b *bench) runIdle(ctx context.Context, n int) (*IdleReport, error) {
	o, err := b.ownForRx(ctx, "--diameter.transport.watchdog", "6s", "--diameter.limits.connections", fmt.Sprint(n+10),
		"--process.gcHeadroom", fmt.Sprint(16<<20))
	if err != nil {
		return nil, err
	}
	before := residentMemory(o.pid)
	p := &idlePeers{}
	defer p.close()
	if err := p.join(ctx, o.rx, n); err != nil {
		return nil, err
	}
	start, cpu := time.Now(), cpuTime(o.pid)
	sleep(ctx, idleTime)
	used := cpuTime(o.pid) - cpu
	r := &IdleReport{
		Peers: n, BytesPerPeer: (residentMemory(o.pid) - before) / int64(n), Lost: p.lost.Load(),
		ServerCPU: float64(used.Milliseconds()) / time.Since(start).Seconds(),
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Watchdogs = len(p.intervals); r.Watchdogs == 0 {
		return nil, errors.New("no watchdog came")
	}
	slices.Sort(p.intervals)
	r.IntervalMin = p.intervals[0].Seconds()
	r.IntervalP50 = p.intervals[len(p.intervals)/2].Seconds()
	r.IntervalMax = p.intervals[len(p.intervals)-1].Seconds()
	return r, ctx.Err()
}

// join connects the peers, a few at once.
func (p *idlePeers) join(ctx context.Context, address string, n int) error {
	const workers = 16
	var next atomic.Int64
	errs := make(chan error, workers)
	for range workers {
		go func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				c, err := introduce(ctx, address, fmt.Sprintf("idle%d.%s", i, benchRealm))
				if err != nil {
					errs <- err
					return
				}
				p.mu.Lock()
				p.conns = append(p.conns, c)
				p.mu.Unlock()
				p.wg.Go(func() { p.stay(c) })
			}
			errs <- nil
		}()
	}
	var err error
	for range workers {
		err = errors.Join(err, <-errs)
	}
	return err
}

// stay answers watchdogs until the connection ends.
func (p *idlePeers) stay(c net.Conn) {
	buf := make([]byte, 1024)
	var last time.Time
	var v rx.View
	for {
		n, err := c.Read(buf)
		if err != nil {
			if !p.leaving.Load() {
				p.lost.Add(1)
			}
			return
		}
		if v.Scan(buf[:n]) != nil || !v.Request() {
			continue
		}
		now := time.Now()
		if !last.IsZero() {
			p.mu.Lock()
			p.intervals = append(p.intervals, now.Sub(last))
			p.mu.Unlock()
		}
		last = now
		a := rx.AppendAnswer(nil, &v, rx.Origin{Host: "idle." + benchRealm, Realm: benchRealm}, &rx.Answer{Result: rx.Base(rx.Success)})
		if _, err := c.Write(a); err != nil {
			p.lost.Add(1)
			return
		}
	}
}

func (p *idlePeers) close() {
	p.leaving.Store(true)
	p.mu.Lock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.wg.Wait()
}
