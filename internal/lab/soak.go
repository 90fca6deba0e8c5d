package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"bsfd/diameter/rx"
	"bsfd/internal/rxnode"
)

// The size of a soak.
const (
	soakPCFs    = 4
	soakAFs     = 3
	soakWorkers = 8 // of each AF
	soakPause   = 5 * time.Millisecond
)

// soak runs Rx sessions against a bsfd while their nodes are killed, hang,
// leave and misbehave at random, and then looks whether anything is left over.
type soak struct {
	address string // of the gateway
	metrics string // URL of its metrics
	stderr  io.Writer
	until   time.Time
	quiet   time.Duration // before the process is looked at

	pcfs, afs []*soakNode

	requests, answered, lost, unanswered, chaos atomic.Int64
	results                                     sync.Map // text of the result to *atomic.Int64
	first                                       atomic.Pointer[string]
}

// soakNode is a node that dies and comes back.
type soakNode struct {
	s    *soak
	id   rxnode.Identity
	mute atomic.Bool

	mu   sync.Mutex
	node *rxnode.Node // nil while it is away
	life int          // which connection it is
}

// SoakReport is what a soak found.
type SoakReport struct {
	Duration   string           `json:"duration"`
	Requests   int64            `json:"requests"`
	Answered   int64            `json:"answered"`
	Lost       int64            `json:"lostWithTheAF"`
	Unanswered int64            `json:"unanswered"`
	Chaos      int64            `json:"disturbances"`
	Results    map[string]int64 `json:"results"`
	Before     SoakState        `json:"before"`
	After      SoakState        `json:"after"`
	FirstError string           `json:"firstError,omitempty"`
}

// SoakState is what a process holds.
type SoakState struct {
	Goroutines  int   `json:"goroutines"`
	HeapBytes   int64 `json:"heapBytes"`
	Pending     int   `json:"pending"`
	Connections int   `json:"connections"`
}

// Check reports what has not returned to its start.
func (r *SoakReport) Check() error {
	const heapSlack = 32 << 20
	switch {
	case r.Unanswered > 0:
		return fmt.Errorf("%d requests went unanswered: %s", r.Unanswered, r.FirstError)
	case r.Requests == 0:
		return errors.New("nothing was sent")
	case r.After.Pending != r.Before.Pending:
		return fmt.Errorf("%d requests are pending", r.After.Pending)
	case r.After.Connections != r.Before.Connections:
		return fmt.Errorf("%d connections, %d before", r.After.Connections, r.Before.Connections)
	case r.After.Goroutines > r.Before.Goroutines+2:
		return fmt.Errorf("%d goroutines, %d before", r.After.Goroutines, r.Before.Goroutines)
	case r.After.HeapBytes > r.Before.HeapBytes+heapSlack:
		return fmt.Errorf("%d octets of heap, %d before", r.After.HeapBytes, r.Before.HeapBytes)
	}
	return nil
}

// runSoak starts a bsfd and soaks it for the time.
func (b *bench) runSoak(ctx context.Context, length time.Duration) (*SoakReport, error) {
	a, err := b.ownForRx(ctx, "--diameter.transport.watchdog", "6s", "--diameter.transport.disconnect", "1s",
		"--diameter.retry.enabled", "--process.gcHeadroom", strconv.Itoa(16<<20))
	if err != nil {
		return nil, err
	}
	s := &soak{address: a.rx, metrics: a.oam + "/metrics", stderr: b.stderr, quiet: min(restTime, length)}
	c := newClient(load{conns: 2, inflight: 64}, rxBindings)
	defer c.close()
	c.pcf = func(i int) string { return soakHost("pcf", i%soakPCFs) }
	if got := c.run(ctx, target{root: a.sbi}, "register", 0, rxBindings); got.firstErr != nil {
		return nil, got.firstErr
	}
	return s.run(ctx, length)
}

func soakHost(role string, i int) string { return fmt.Sprintf("%s%d.%s", role, i, benchRealm) }

func (s *soak) run(ctx context.Context, length time.Duration) (*SoakReport, error) {
	for i := range soakPCFs {
		s.pcfs = append(s.pcfs, &soakNode{s: s, id: rxnode.Identity{Host: soakHost("pcf", i), Realm: benchRealm}})
	}
	for i := range soakAFs {
		s.afs = append(s.afs, &soakNode{s: s, id: rxnode.Identity{Host: soakHost("af", i), Realm: benchRealm}})
	}
	defer s.close()
	report := &SoakReport{Duration: length.String(), Results: make(map[string]int64)}
	var err error
	if report.Before, err = s.rest(ctx); err != nil {
		return nil, err
	}
	s.until = time.Now().Add(length)
	s.storm(ctx)
	if report.After, err = s.rest(ctx); err != nil {
		return nil, err
	}
	report.Requests, report.Answered, report.Lost = s.requests.Load(), s.answered.Load(), s.lost.Load()
	report.Unanswered, report.Chaos = s.unanswered.Load(), s.chaos.Load()
	s.results.Range(func(k, v any) bool {
		report.Results[k.(string)] = v.(*atomic.Int64).Load()
		return true
	})
	if p := s.first.Load(); p != nil {
		report.FirstError = *p
	}
	return report, ctx.Err()
}

// storm is the time of load and disturbance.
func (s *soak) storm(ctx context.Context) {
	var wg sync.WaitGroup
	for _, af := range s.afs {
		for w := range soakWorkers {
			wg.Go(func() { s.work(ctx, af, w) })
		}
	}
	wg.Go(func() { s.disturb(ctx) })
	wg.Go(func() { s.tell(ctx) })
	wg.Wait()
}

func (s *soak) going(ctx context.Context) bool { return ctx.Err() == nil && time.Now().Before(s.until) }

// tell prints how it goes.
func (s *soak) tell(ctx context.Context) {
	for s.going(ctx) {
		sleep(ctx, 10*time.Second)
		fmt.Fprintf(s.stderr, "\rsoak: %s left, %d requests, %d answered, %d lost with their AF, %d unanswered, %d disturbances   ",
			time.Until(s.until).Truncate(time.Second), s.requests.Load(), s.answered.Load(), s.lost.Load(), s.unanswered.Load(), s.chaos.Load())
	}
	fmt.Fprintln(s.stderr)
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// work runs one Rx session after the other on an AF.
func (s *soak) work(ctx context.Context, af *soakNode, worker int) {
	for i := 0; s.going(ctx); i++ {
		sleep(ctx, soakPause)
		node, life := af.get()
		if node == nil {
			continue
		}
		n := rand.IntN(rxBindings)
		session := &rxnode.Session{
			ID: fmt.Sprintf("%s;%d;%d;%d", af.id.Host, life, worker, i), Host: af.id.Host, Realm: benchRealm, DestRealm: benchRealm,
		}
		answer := s.ask(ctx, af, node, life, session.AAR(netip.MustParseAddr(address(n))))
		var v rx.View
		if answer == nil || v.Scan(answer) != nil {
			continue
		}
		if r, _ := v.Result(); r.Success() {
			session.DestHost = string(v.OriginHost.Data)
			s.ask(ctx, af, node, life, session.Other(rx.SessionTermination))
		}
	}
}

// patience is how long an AF waits. It is longer than the gateway tries.
const patience = 20 * time.Second

// ask sends a request and notes what became of it.
func (s *soak) ask(ctx context.Context, af *soakNode, node *rxnode.Node, life int, m []byte) []byte {
	s.requests.Add(1)
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	a, err := node.Request(wait, m)
	switch {
	case err == nil:
		s.answered.Add(1)
		n, _ := s.results.LoadOrStore(rxnode.ResultOf(a).String(), new(atomic.Int64))
		n.(*atomic.Int64).Add(1)
		return a
	case !af.is(life) || ctx.Err() != nil:
		s.lost.Add(1)
	default:
		s.unanswered.Add(1)
		text := fmt.Sprintf("%s of %s: %v", rx.ParseHeader(m).Command.Request(), af.id.Host, err)
		s.first.CompareAndSwap(nil, &text)
	}
	return nil
}

// disturb does something bad now and then.
func (s *soak) disturb(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	acts := []func(context.Context){
		func(ctx context.Context) { s.outage(ctx, pick(s.pcfs), false) },
		func(ctx context.Context) { s.outage(ctx, pick(s.pcfs), true) },
		func(ctx context.Context) { s.outage(ctx, pick(s.afs), false) },
		s.hang, s.garbage, s.noRead,
	}
	for s.going(ctx) {
		sleep(ctx, 200*time.Millisecond+rand.N(time.Second))
		act := pick(acts)
		s.chaos.Add(1)
		wg.Go(func() { act(ctx) })
	}
}

func pick[T any](list []T) T { return list[rand.IntN(len(list))] }

// outage takes a node away for a while, with or without a DPR.
func (s *soak) outage(ctx context.Context, n *soakNode, politely bool) {
	n.leave(politely)
	sleep(ctx, rand.N(3*time.Second))
	n.join(ctx)
}

// hang lets a PCF leave everything unanswered, which the watchdog notices
// when it lasts.
func (s *soak) hang(ctx context.Context) {
	n := pick(s.pcfs)
	if !n.mute.CompareAndSwap(false, true) {
		return
	}
	n.setMute(true)
	sleep(ctx, rand.N(20*time.Second))
	n.mute.Store(false)
	n.setMute(false)
	n.join(ctx)
}

// garbage sends nonsense, with and without capabilities exchange.
func (s *soak) garbage(ctx context.Context) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", s.address)
	if err != nil {
		return
	}
	defer c.Close()
	nonsense := make([]byte, 4*rand.IntN(500))
	for i := range nonsense {
		nonsense[i] = byte(rand.Uint32())
	}
	if len(nonsense) >= rx.HeaderLen {
		// With a right length and version it comes further.
		nonsense[0], nonsense[1], nonsense[2], nonsense[3] = 1, 0, byte(len(nonsense)>>8), byte(len(nonsense))
	}
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	if rand.IntN(2) == 0 {
		if _, err := rxnode.Join(c, rxnode.Identity{Host: soakHost("rogue", rand.IntN(100)), Realm: benchRealm}, nil); err != nil {
			return
		}
	}
	_, _ = c.Write(nonsense)
	sleep(ctx, rand.N(time.Second))
}

// noRead asks without reading the answers.
func (s *soak) noRead(ctx context.Context) {
	host := soakHost("deaf", rand.IntN(100))
	c, err := introduce(ctx, s.address, host)
	if err != nil {
		return
	}
	defer c.Close()
	session := &rxnode.Session{ID: host + ";1", Host: host, Realm: benchRealm, DestRealm: benchRealm}
	_ = c.SetDeadline(time.Now().Add(time.Second))
	for range 2000 {
		if _, err := c.Write(session.AAR(netip.MustParseAddr("192.0.2.1"))); err != nil {
			return
		}
	}
}

// get is the node's connection, nil while it is away.
func (n *soakNode) get() (*rxnode.Node, int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.node, n.life
}

// is reports whether the connection is still the same one.
func (n *soakNode) is(life int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.node != nil && n.life == life
}

// handle answers the requests that come. One in 20 is answered with an error.
func (n *soakNode) handle(node *rxnode.Node, v *rx.View) []byte {
	if rand.IntN(20) == 0 {
		return node.Answer(v, rx.Base(rx.UnableToComply))
	}
	return node.Answer(v, rx.Base(rx.Success))
}

func (n *soakNode) setMute(on bool) {
	if node, _ := n.get(); node != nil {
		node.Mute(on)
	}
}

// leave ends the connection.
func (n *soakNode) leave(politely bool) {
	n.mu.Lock()
	node := n.node
	n.node = nil
	n.life++
	n.mu.Unlock()
	if node == nil {
		return
	}
	if politely {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		// It goes all the same when the other side does not answer.
		_, _ = node.Request(ctx, rx.DPR(rx.Origin{Host: n.id.Host, Realm: n.id.Realm}, rx.Rebooting, 0, 1))
		cancel()
	}
	node.Close()
}

// join connects until it works. A connection that the gateway has ended makes
// way for a new one.
func (n *soakNode) join(ctx context.Context) {
	for ctx.Err() == nil {
		n.mu.Lock()
		if n.node != nil {
			select {
			case <-n.node.Done():
				n.node = nil
				n.life++
			default:
				n.mu.Unlock()
				return
			}
		}
		node, err := rxnode.Dial(ctx, n.s.address, n.id, n.handle)
		if err == nil {
			node.Mute(n.mute.Load())
			n.node = node
			n.life++
		}
		n.mu.Unlock()
		if err == nil {
			return
		}
		sleep(ctx, 200*time.Millisecond)
	}
}

// restTime is how long a gateway is left alone before it is looked at, unless
// the soak is shorter: a process that has nothing to do collects its garbage
// every two minutes.
const restTime = 130 * time.Second

// rest connects every node, leaves the gateway alone and looks at what it
// holds. A node whose connection the gateway has ended comes again.
func (s *soak) rest(ctx context.Context) (SoakState, error) {
	for until := time.Now().Add(s.quiet); time.Now().Before(until) && ctx.Err() == nil; {
		for _, n := range s.nodes() {
			n.mute.Store(false)
			n.setMute(false)
			n.join(ctx)
		}
		sleep(ctx, time.Second)
	}
	return s.look(ctx)
}

// look reads the metrics of the process.
func (s *soak) look(ctx context.Context) (state SoakState, err error) {
	text, err := fetch(ctx, s.metrics)
	if err != nil {
		return state, err
	}
	for line := range strings.SplitSeq(text, "\n") {
		name, value, _ := strings.Cut(line, " ")
		f, err := strconv.ParseFloat(value, 64)
		if err != nil {
			continue
		}
		switch name {
		case "go_goroutines":
			state.Goroutines = int(f)
		case "go_gc_heap_live_bytes":
			state.HeapBytes = int64(f)
		case "ocbsf_diam_pending_requests":
			state.Pending = int(f)
		case "ocbsf_diam_connections":
			state.Connections = int(f)
		}
	}
	return state, nil
}

// nodes are the PCFs and the AFs.
func (s *soak) nodes() []*soakNode { return slices.Concat(s.pcfs, s.afs) }

func (s *soak) close() {
	for _, n := range s.nodes() {
		n.leave(false)
	}
}
