package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
)

// rxBindings is how many UE addresses the AARs of the bench go through.
const rxBindings = 10000

// rxReferences are the agents that bsfd is compared with, with the flags that
// serve them.
var rxReferences = []struct{ name, flag string }{{"go-diameter", "--serve-go-diameter"}, {"raw", "--serve-raw"}}

// rxBench is the part of the bench that drives Rx.
type rxBench struct {
	*bench
	target     *rxTarget
	references []*rxTarget
}

// startRx brings up what is measured on Rx.
func (b *bench) startRx(ctx context.Context) (*rxBench, error) {
	r := &rxBench{bench: b}
	if b.o.reference {
		for _, ref := range rxReferences {
			c, address, err := spawn(ctx, prefixed(relayPrefix), "bench", ref.flag)
			if err != nil {
				return nil, err
			}
			b.children = append(b.children, c)
			r.references = append(r.references, &rxTarget{address: address, pid: c.pid()})
		}
	}
	var err error
	if b.o.rx != "" {
		r.target = &rxTarget{address: b.o.rx}
		if b.o.sbi != "" {
			err = registerForRx(ctx, b.o.sbi)
		}
	} else {
		err = r.startOwn(ctx)
	}
	if err != nil {
		return nil, err
	}
	for _, t := range append(r.references, r.target) {
		if err := t.connect(ctx); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// startOwn starts a bsfd with the bindings of the bench.
func (r *rxBench) startOwn(ctx context.Context) error {
	own, err := r.ownForRx(ctx)
	if err != nil {
		return err
	}
	r.target = &rxTarget{address: own.rx, pid: own.pid}
	return registerForRx(ctx, own.sbi)
}

// ownForRx starts a bsfd that lets the nodes of the bench in.
func (b *bench) ownForRx(ctx context.Context, flags ...string) (o own, err error) {
	dir, err := os.MkdirTemp("", "bsfd-bench-")
	if err != nil {
		return o, err
	}
	b.dirs = append(b.dirs, dir)
	args := append([]string{
		"serve", "--storage.engine", b.o.engine, "--storage.dataDir", dir, "--storage.postgres.dsn", b.o.dsn, "--sbi.listen", "127.0.0.1:0",
		"--oam.listen", "127.0.0.1:0", "--diameter.listen", "127.0.0.1:0", "--diameter.originHost", benchBSF,
		"--diameter.originRealm", benchRealm, "--diameter.allowedRealms", benchRealm,
	}, flags...)
	c, _, err := spawnIn(ctx, b.group, o.ready, args...)
	if err != nil {
		return o, err
	}
	b.children = append(b.children, c)
	o.pid = c.pid()
	return o, nil
}

// registerForRx registers the bindings of the bench.
func registerForRx(ctx context.Context, root string) error {
	c := newClient(load{conns: 2, inflight: 64}, rxBindings)
	defer c.close()
	c.pcf = func(int) string { return benchPCF }
	got := c.run(ctx, target{root: root}, "register", 0, rxBindings)
	return got.firstErr
}

func (r *rxBench) close() {
	for _, t := range append(r.references, r.target) {
		if t != nil {
			t.close()
		}
	}
}

// measure runs one operation on the target and the references in turns.
func (r *rxBench) measure(ctx context.Context, op string) ([]Row, float64, error) {
	var got result
	refs := make([]result, len(r.references))
	per := max(1, r.o.n/r.o.rounds)
	for round := range r.o.rounds {
		for i, t := range r.references {
			refs[i].add(r.turn(ctx, t, op, per, round*per, 0))
		}
		got.add(r.turn(ctx, r.target, op, per, round*per, 0))
		fmt.Fprintf(r.stderr, "\r%-12s round %d of %d, %.0f/s   ", op, round+1, r.o.rounds, got.rate())
	}
	fmt.Fprintln(r.stderr)
	rows, err := r.rows(op, got, refs)
	return rows, got.rate(), err
}

// half measures at half the rate.
func (r *rxBench) half(ctx context.Context, op string, rate float64) ([]Row, error) {
	n := min(r.o.n, int(rate*10))
	got := r.turn(ctx, r.target, op, n, r.o.n, rate)
	refs := make([]result, len(r.references))
	for i, t := range r.references {
		refs[i] = r.turn(ctx, t, op, n, r.o.n, rate)
	}
	return r.rows(op+"@half", got, refs)
}

func (r *rxBench) rows(op string, got result, refs []result) ([]Row, error) {
	errs := []error{got.firstErr}
	for _, ref := range refs {
		errs = append(errs, ref.firstErr)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	none := result{}
	if len(refs) == 0 {
		return []Row{r.row(op, "", &got, &none)}, nil
	}
	var rows []Row
	for i := range refs {
		rows = append(rows, r.row(op, rxReferences[i].name, &got, &refs[i]))
	}
	return rows, nil
}

// turn drives one agent: one side sends, the other one answers.
func (r *rxBench) turn(ctx context.Context, t *rxTarget, op string, n, first int, rate float64) result {
	from, to, host := t.af, t.pcf, benchPCF
	if rxOps[op].byPCF {
		from, to, host = t.pcf, t.af, benchAF
	}
	if err := to.SetDeadline(time.Time{}); err != nil {
		return result{n: n, firstErr: err}
	}
	var group errgroup.Group
	group.Go(func() error { return respond(to, host) })
	before := cpuTime(t.pid)
	d := &driver{c: from, reqs: numbering(template(op), rxBindings), n: n, inflight: r.o.inflight, rate: rate}
	got := d.run(ctx, first)
	if t.pid != 0 {
		got.cpu = cpuTime(t.pid) - before
	}
	// The deadline that has passed ends the other side, which is expected.
	got.firstErr = errors.Join(got.firstErr, to.SetReadDeadline(time.Unix(1, 0)))
	if err := group.Wait(); !errors.Is(err, os.ErrDeadlineExceeded) {
		got.firstErr = errors.Join(got.firstErr, err)
	}
	return got
}
