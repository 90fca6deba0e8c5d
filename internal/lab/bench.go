package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/pflag"
)

// ErrUsage is wrapped by errors about flags.
var ErrUsage = errors.New("wrong usage")

// options are the flags of bench.
type options struct {
	sbi       string
	rx        string
	ops       []string
	n         int
	conns     int
	inflight  int
	rounds    int
	preload   int
	engine    string
	dsn       string
	reference bool
	half      bool
	json      bool
	soak      time.Duration
	idle      int
	overload  string // interfaces, empty for none
	cores     float64
	beside    int
	duration  time.Duration
	svg       string
	serve     [3]bool // bare, raw, go-diameter
}

// rounds is into how many turns a run is cut: target and reference alternate,
// so that both see the same neighbours on the machine.
const defaultRounds = 5

// Bench is the subcommand bench.
func Bench(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stdout)
	if err != nil || o == nil {
		return err
	}
	for i, serve := range []func(context.Context, io.Writer) error{serveBare, serveRaw, serveGoDiameter} {
		if o.serve[i] {
			return serve(ctx, stdout)
		}
	}
	b := &bench{o: o, stdout: stdout, stderr: stderr}
	defer b.stop()
	return b.run(ctx)
}

func parse(args []string, stdout io.Writer) (*options, error) {
	o := &options{}
	f := pflag.NewFlagSet("bsfd bench", pflag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&o.sbi, "sbi", "", "URL of a running bsfd, such as http://127.0.0.1:8000; one of its own otherwise")
	f.StringVar(&o.rx, "rx", "", "host:port of a running Rx gateway that lets "+benchRealm+" in; with --sbi the bindings are registered there")
	f.StringSliceVar(&o.ops, "ops", []string{"register", "discover", "deregister"}, "operations, in this order: register, discover, deregister, aar, str, rar")
	f.IntVar(&o.n, "n", 100000, "requests for each operation")
	f.IntVar(&o.conns, "conns", 4, "HTTP/2 connections")
	f.IntVar(&o.inflight, "inflight", 64, "requests under way at once")
	f.IntVar(&o.rounds, "rounds", defaultRounds, "turns in which target and reference alternate")
	f.IntVar(&o.preload, "preload", 0, "bindings that are stored before bsfd starts (not with --sbi)")
	f.StringVar(&o.engine, "engine", "embedded", "storage engine of its own bsfd: embedded, memory or postgres")
	f.StringVar(&o.dsn, "dsn", "", "database of the engine postgres, an empty one")
	f.BoolVar(&o.reference, "reference", false, "measure references in the same run: a bare handler of the same HTTP stack; on Rx a proxy of go-diameter and a raw relay")
	f.BoolVar(&o.half, "half", false, "measure latencies at half the top rate, too")
	f.DurationVar(&o.soak, "soak", 0, "instead of all that, run Rx sessions for so long while nodes die and misbehave, and see what is left over")
	f.IntVar(&o.idle, "idle-peers", 0, "instead of all that, connect so many Diameter peers that do nothing, and see what they cost")
	f.StringVar(&o.overload, "overload", "", "instead of all that, offer 0.5 to 5 times the top rate with three priorities, without and with overload control: rx, sbi or rx,sbi")
	f.Float64Var(&o.cores, "cores", 0, "with --overload: give bsfd only so many processors, through a control group (needs root); 0 for all")
	f.IntVar(&o.beside, "beside", 0, "with --cores: process id that shares the bound with its children, such as the server of PostgreSQL")
	f.DurationVar(&o.duration, "duration", 5*time.Second, "with --overload: how long each load is offered")
	f.StringVar(&o.svg, "svg", "", "with --overload: write a plot to this file")
	f.BoolVar(&o.json, "json", false, "print one JSON object a line")
	for i, name := range []string{"serve-bare", "serve-raw", "serve-go-diameter"} {
		f.BoolVar(&o.serve[i], name, false, "serve this reference and nothing else")
	}
	if err := f.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			_, err := fmt.Fprintf(stdout, "bsfd bench puts load on a bsfd.\n\n%s", f.FlagUsages())
			return nil, err
		}
		return nil, fmt.Errorf("%w: %w", ErrUsage, err)
	}
	for _, op := range o.ops {
		if _, onRx := rxOps[op]; !onRx && op != "register" && op != "discover" && op != "deregister" {
			return nil, fmt.Errorf("%w: --ops: unknown operation %q", ErrUsage, op)
		}
	}
	switch {
	case o.n < 1 || o.n > 100_000_000:
		return nil, fmt.Errorf("%w: --n: must be 1 to 100000000", ErrUsage)
	case o.conns < 1 || o.inflight < 1 || o.inflight > 10000 || o.rounds < 1:
		return nil, fmt.Errorf("%w: --conns, --inflight and --rounds must be positive", ErrUsage)
	case o.sbi != "" && o.preload > 0:
		return nil, fmt.Errorf("%w: --preload: not together with --sbi", ErrUsage)
	case o.overload != "" && o.overload != "rx" && o.overload != "sbi" && o.overload != "rx,sbi":
		return nil, fmt.Errorf("%w: --overload: must be rx, sbi or rx,sbi", ErrUsage)
	case o.cores < 0 || o.cores > 0 && o.cores < .2 || o.duration < 100*time.Millisecond || o.duration > time.Minute:
		return nil, fmt.Errorf("%w: --cores must be 0 or 0.2 and more, --duration 100ms to 1m", ErrUsage)
	case o.beside < 0 || o.beside > 0 && o.cores == 0:
		return nil, fmt.Errorf("%w: --beside: a process id, together with --cores", ErrUsage)
	case o.engine != "embedded" && o.engine != "memory" && o.engine != "postgres":
		return nil, fmt.Errorf("%w: --engine: must be embedded, memory or postgres", ErrUsage)
	case (o.engine == "postgres") != (o.dsn != ""):
		return nil, fmt.Errorf("%w: --dsn: belongs to --engine postgres", ErrUsage)
	}
	if err := loopbackOnly("--rx", o.rx); err != nil {
		return nil, err
	}
	return o, loopbackOnly("--sbi", o.sbi)
}

// loopbackOnly refuses to put load on anything but this machine.
func loopbackOnly(flag, url string) error {
	if url == "" {
		return nil
	}
	host := strings.TrimPrefix(strings.TrimPrefix(url, "http://"), "https://")
	host, _, _ = strings.Cut(host, "/")
	a, err := netip.ParseAddrPort(strings.Replace(host, "localhost", "127.0.0.1", 1))
	if err != nil || !a.Addr().IsLoopback() {
		return fmt.Errorf("%w: %s: must be an address of the loopback interface with its port", ErrUsage, flag)
	}
	return nil
}

// bench is one run of the subcommand.
type bench struct {
	o        *options
	stdout   io.Writer
	stderr   io.Writer
	target   target
	bare     target
	children []*child
	group    string // control group of the next child, empty for none
	dirs     []string
}

// Row is one line of the result.
type Row struct {
	Op            string  `json:"op"`
	Reference     string  `json:"reference,omitempty"`
	N             int     `json:"n"`
	Errors        int     `json:"errors"`
	Rate          float64 `json:"rate"`
	P50           int64   `json:"p50_us"`
	P99           int64   `json:"p99_us"`
	P999          int64   `json:"p999_us"`
	ServerCPU     float64 `json:"server_cpu_us,omitempty"`
	ReferenceRate float64 `json:"reference_rate,omitempty"`
	ReferenceP99  int64   `json:"reference_p99_us,omitempty"`
	ReferenceCPU  float64 `json:"reference_cpu_us,omitempty"`
	Ratio         float64 `json:"ratio,omitempty"`
}

func (b *bench) run(ctx context.Context) error {
	switch {
	case b.o.overload != "":
		return b.runOverload(ctx)
	case b.o.soak > 0:
		report, err := b.runSoak(ctx, b.o.soak)
		if err != nil {
			return err
		}
		return errors.Join(b.show(report), report.Check())
	case b.o.idle > 0:
		report, err := b.runIdle(ctx, b.o.idle)
		if err != nil {
			return err
		}
		return b.show(report)
	}
	var onHTTP, onRx []string
	for _, op := range b.o.ops {
		if _, ok := rxOps[op]; ok {
			onRx = append(onRx, op)
		} else {
			onHTTP = append(onHTTP, op)
		}
	}
	rows, err := b.runHTTP(ctx, onHTTP)
	if err != nil {
		return err
	}
	more, err := b.runRx(ctx, onRx)
	if err != nil {
		return err
	}
	return printRows(b.stdout, append(rows, more...), b.o.json)
}

// show prints a report.
func (b *bench) show(report any) error {
	enc := json.NewEncoder(b.stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(report)
}

func (b *bench) runHTTP(ctx context.Context, ops []string) (rows []Row, err error) {
	if len(ops) == 0 {
		return nil, nil
	}
	if err := b.start(ctx); err != nil {
		return nil, err
	}
	c := newClient(load{conns: b.o.conns, inflight: b.o.inflight}, b.o.preload+b.o.n)
	defer c.close()
	for _, op := range ops {
		row, err := b.measure(ctx, c, op)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
		if b.o.half && op != "deregister" {
			row, err := b.atHalf(ctx, op, row.Rate/2)
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
	}
	if b.target.pid != 0 {
		fmt.Fprintf(b.stderr, "resident memory of bsfd: %d MiB\n", residentMemory(b.target.pid)>>20)
	}
	return rows, nil
}

func (b *bench) runRx(ctx context.Context, ops []string) (rows []Row, err error) {
	if len(ops) == 0 {
		return nil, nil
	}
	r, err := b.startRx(ctx)
	if err != nil {
		return nil, err
	}
	defer r.close()
	for _, op := range ops {
		some, rate, err := r.measure(ctx, op)
		if err != nil {
			return nil, err
		}
		rows = append(rows, some...)
		if b.o.half {
			if some, err = r.half(ctx, op, rate/2); err != nil {
				return nil, err
			}
			rows = append(rows, some...)
		}
	}
	return rows, nil
}

// measure runs one operation, target and reference in turns.
func (b *bench) measure(ctx context.Context, c *client, op string) (Row, error) {
	var got, ref result
	per := b.o.n / b.o.rounds
	for r := range b.o.rounds {
		from := b.o.preload + r*per
		to := from + per
		if b.o.reference {
			ref.add(c.run(ctx, b.bare, op, from, to))
		}
		got.add(c.run(ctx, b.target, op, from, to))
		fmt.Fprintf(b.stderr, "\r%-12s round %d of %d, %.0f/s   ", op, r+1, b.o.rounds, got.rate())
	}
	fmt.Fprintln(b.stderr)
	if err := errors.Join(got.firstErr, ref.firstErr); err != nil {
		return Row{}, fmt.Errorf("%s: %d of %d requests failed, first: %w", op, got.errors, got.n, err)
	}
	return b.row(op, b.referenceName(), &got, &ref), nil
}

// atHalf measures latencies at a fixed rate, on bindings of its own for a
// registration.
func (b *bench) atHalf(ctx context.Context, op string, rate float64) (Row, error) {
	n := min(b.o.n, int(rate*10))
	from := b.o.preload
	if op == "register" {
		from += b.o.n
	}
	c := newClient(load{conns: b.o.conns, inflight: b.o.inflight, rate: rate}, from+n)
	defer c.close()
	got := c.run(ctx, b.target, op, from, from+n)
	var ref result
	if b.o.reference {
		ref = c.run(ctx, b.bare, op, from, from+n)
	}
	if err := errors.Join(got.firstErr, ref.firstErr); err != nil {
		return Row{}, err
	}
	return b.row(op+"@half", b.referenceName(), &got, &ref), nil
}

// referenceName is the reference of operations on HTTP, empty for none.
func (b *bench) referenceName() string {
	if b.o.reference {
		return "bare"
	}
	return ""
}

func (b *bench) row(op, reference string, got, ref *result) Row {
	r := Row{
		Op: op, N: got.n, Errors: got.errors, Rate: got.rate(),
		P50: got.quantile(.5).Microseconds(), P99: got.quantile(.99).Microseconds(), P999: got.quantile(.999).Microseconds(),
		ServerCPU: float64(got.cpu.Microseconds()) / float64(got.n),
	}
	if reference != "" {
		r.Reference, r.ReferenceRate, r.Ratio = reference, ref.rate(), got.rate()/ref.rate()
		r.ReferenceP99 = ref.quantile(.99).Microseconds()
		r.ReferenceCPU = float64(ref.cpu.Microseconds()) / float64(ref.n)
	}
	return r
}

// printLines prints each element as JSON in a line of its own.
func printLines[T any](w io.Writer, list []T) error {
	enc := json.NewEncoder(w)
	for i := range list {
		if err := enc.Encode(&list[i]); err != nil {
			return err
		}
	}
	return nil
}

func printRows(w io.Writer, rows []Row, asJSON bool) error {
	if asJSON {
		return printLines(w, rows)
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "op\tn\terrors\trate/s\tp50 µs\tp99 µs\tp99.9 µs\tCPU µs\treference\trate/s\tp99 µs\tCPU µs\tratio\t")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%d\t%d\t%.0f\t%d\t%d\t%d\t%.1f\t%s\t%.0f\t%d\t%.1f\t%.2f\t\n", r.Op, r.N, r.Errors, r.Rate,
			r.P50, r.P99, r.P999, r.ServerCPU, r.Reference, r.ReferenceRate, r.ReferenceP99, r.ReferenceCPU, r.Ratio)
	}
	return t.Flush()
}

// start brings up what is measured.
func (b *bench) start(ctx context.Context) error {
	if b.o.reference {
		c, root, err := spawn(ctx, prefixed(barePrefix), "bench", "--serve-bare")
		if err != nil {
			return err
		}
		b.children = append(b.children, c)
		b.bare = target{root: root, bare: true, pid: c.pid()}
	}
	if b.o.sbi != "" {
		b.target = target{root: strings.TrimSuffix(b.o.sbi, "/")}
		return nil
	}
	dir, err := os.MkdirTemp("", "bsfd-bench-")
	if err != nil {
		return err
	}
	b.dirs = append(b.dirs, dir)
	if err := b.fill(ctx, dir); err != nil {
		return err
	}
	began := time.Now()
	c, root, err := spawn(ctx, new(own).ready, "serve", "--storage.engine", b.o.engine, "--storage.dataDir", dir, "--storage.postgres.dsn", b.o.dsn,
		"--sbi.listen", "127.0.0.1:0", "--oam.listen", "127.0.0.1:0", "--diameter.enabled=false", "--log.level", "info")
	if err != nil {
		return err
	}
	fmt.Fprintf(b.stderr, "bsfd with %d bindings ready after %s\n", b.o.preload, time.Since(began).Round(time.Millisecond))
	b.children = append(b.children, c)
	b.target = target{root: root, pid: c.pid()}
	return nil
}

func (b *bench) stop() {
	for _, c := range b.children {
		c.stop()
	}
	for _, dir := range b.dirs {
		_ = os.RemoveAll(dir)
	}
}
