package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// class is one of the priorities of the overload bench.
type class int

const (
	high class = iota
	medium
	low
	classes = iota
)

// classOf deals requests out: one of ten is of high priority, three are of
// medium, six of low.
func classOf(i int) class {
	switch i % 10 {
	case 0:
		return high
	case 3, 6, 9:
		return medium
	}
	return low
}

// senderPatience is how long the sender of a request waits from when it was due.
const senderPatience = time.Second

// tally is what became of the requests of a class.
type tally struct {
	offered, served, refused int
	latencies                []time.Duration // of those that were served
}

// outcome is what became of a stage.
type outcome struct {
	took time.Duration
	of   [classes]tally
}

func (o *outcome) served() (n int) {
	for _, t := range o.of {
		n += t.served
	}
	return n
}

func (o *outcome) goodput() float64 { return float64(o.served()) / o.took.Seconds() }

func (t *tally) quantile(q float64) time.Duration {
	r := result{latencies: t.latencies}
	return r.quantile(q)
}

// flood offers requests of all classes for a while: rate requests a second,
// whether they are answered or not, or, when that is 0, so many at once that
// inflight are under way.
type flood interface {
	run(ctx context.Context, rate float64, inflight int, d time.Duration) (outcome, error)
	close()
}

// Stage is one line of the overload bench.
type Stage struct {
	Interface string  `json:"interface"`
	Loop      string  `json:"loop"`
	Control   bool    `json:"control"`
	Factor    float64 `json:"factor"`
	TopRate   float64 `json:"top_rate"`
	Offered   float64 `json:"offered"`
	Goodput   float64 `json:"goodput"`
	// Share is the goodput over the top rate.
	Share       float64 `json:"share"`
	HighSuccess float64 `json:"high_success"`
	HighP99     int64   `json:"high_p99_us"`
	MedSuccess  float64 `json:"medium_success"`
	LowSuccess  float64 `json:"low_success"`
	Refused     float64 `json:"refused"`
	ServerCPU   float64 `json:"server_cpu_us"`
	// Recovery is how long after the end of the load the congestion state is
	// NORMAL and nothing is shed, in milliseconds; after the last stage only.
	Recovery int64 `json:"recovery_ms,omitempty"`
}

// overloadFactors are the multiples of the top rate that are offered.
var overloadFactors = []float64{.5, 1, 1.5, 2, 3, 5}

// runOverload offers more than the target can serve, without and with control.
func (b *bench) runOverload(ctx context.Context) error {
	var all []Stage
	for _, name := range strings.Split(b.o.overload, ",") {
		for _, control := range []bool{false, true} {
			stages, err := b.overloadRun(ctx, name, control)
			if err != nil {
				return err
			}
			all = append(all, stages...)
		}
	}
	if b.o.svg != "" {
		if err := os.WriteFile(b.o.svg, plot(all), 0o644); err != nil { //nolint:gosec // a picture
			return err
		}
	}
	return printStages(b.stdout, all, b.o.json)
}

// overloadRun is one run of all stages on a target of its own.
func (b *bench) overloadRun(ctx context.Context, name string, control bool) (stages []Stage, err error) {
	release, err := b.limitCPU()
	if err != nil {
		return nil, err
	}
	defer release()
	own, err := b.ownForRx(ctx)
	if err != nil {
		return nil, err
	}
	defer b.stopLast()
	// What is in a database may be of another run.
	if err := setControl(ctx, own.oam, false); err != nil {
		return nil, err
	}
	f, err := b.flood(ctx, name, own)
	if err != nil {
		return nil, err
	}
	defer f.close()
	top, err := b.topRate(ctx, f)
	if err != nil {
		return nil, err
	}
	if err := setControl(ctx, own.oam, control); err != nil {
		return nil, err
	}
	for _, loop := range []string{"open", "closed"} {
		for _, factor := range overloadFactors {
			rate, inflight := factor*top, 0
			if loop == "closed" {
				rate, inflight = 0, max(1, int(factor*float64(b.o.inflight)))
			}
			before := cpuTime(own.pid)
			o, err := f.run(ctx, rate, inflight, b.o.duration)
			if err != nil {
				return nil, err
			}
			s := stage(&o, top)
			s.Interface, s.Loop, s.Control, s.Factor = name, loop, control, factor
			if o.served() > 0 {
				s.ServerCPU = float64((cpuTime(own.pid) - before).Microseconds()) / float64(o.served())
			}
			if factor == overloadFactors[len(overloadFactors)-1] {
				if s.Recovery, err = recovery(ctx, own.oam); err != nil {
					return nil, err
				}
			}
			stages = append(stages, s)
			fmt.Fprintf(b.stderr, "%s %s control=%t %.1f: offered %.0f/s, goodput %.0f/s (%.2f), high %.4f p99 %d us\n",
				name, loop, control, factor, s.Offered, s.Goodput, s.Share, s.HighSuccess, s.HighP99)
		}
	}
	return stages, nil
}

func (b *bench) flood(ctx context.Context, name string, o own) (flood, error) {
	if err := registerForRx(ctx, o.sbi); err != nil {
		return nil, err
	}
	if name == "sbi" {
		return newHTTPFlood(ctx, o.sbi)
	}
	return newRxFlood(ctx, o.rx)
}

// topRate is the rate that is served without a queue: the best of some closed
// loops.
func (b *bench) topRate(ctx context.Context, f flood) (top float64, err error) {
	for _, inflight := range []int{b.o.inflight, 2 * b.o.inflight, 4 * b.o.inflight} {
		o, err := f.run(ctx, 0, inflight, b.o.duration/2)
		if err != nil {
			return 0, err
		}
		top = max(top, o.goodput())
	}
	if top == 0 {
		return 0, errors.New("nothing is served")
	}
	fmt.Fprintf(b.stderr, "top rate %.0f/s\n", top)
	return top, nil
}

func stage(o *outcome, top float64) Stage {
	success := func(c class) float64 {
		if o.of[c].offered == 0 {
			return 1
		}
		return float64(o.of[c].served) / float64(o.of[c].offered)
	}
	offered, refused := 0, 0
	for _, t := range o.of {
		offered += t.offered
		refused += t.refused
	}
	return Stage{
		TopRate: top, Offered: float64(offered) / o.took.Seconds(), Goodput: o.goodput(), Share: o.goodput() / top,
		HighSuccess: success(high), MedSuccess: success(medium), LowSuccess: success(low),
		HighP99: o.of[high].quantile(.99).Microseconds(), Refused: float64(refused) / o.took.Seconds(),
	}
}

// setControl switches the control on or off through the configuration API.
func setControl(ctx context.Context, oam string, on bool) error {
	settings := fmt.Sprintf(`{"management":{"enabled":%t,"pending":256},"diameter":{"enabled":%t,"pending":256}}`, on, on)
	req, err := http.NewRequestWithContext(ctx, http.MethodPatch, oam+"/oc-bsf-configuration/v1/adaptiveShedding", strings.NewReader(settings))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("adaptiveShedding: %s", resp.Status)
	}
	return nil
}

// longestRecovery bounds the wait for the end of an overload.
const longestRecovery = 30 * time.Second

// recovery waits until the states are those of no load, and returns how long
// that took in milliseconds.
func recovery(ctx context.Context, oam string) (int64, error) {
	start := time.Now()
	for time.Since(start) < longestRecovery {
		text, err := fetch(ctx, oam+"/metrics")
		if err != nil {
			return 0, err
		}
		calm := true
		for line := range strings.SplitSeq(text, "\n") {
			if strings.HasPrefix(line, "pod_congestion_state{") || strings.HasPrefix(line, "ocbsf_adaptive_reduction{") {
				calm = calm && strings.HasSuffix(line, " 0")
			}
		}
		if calm {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	return time.Since(start).Milliseconds(), nil
}

func fetch(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

// stopLast stops the child that was started last.
func (b *bench) stopLast() {
	last := len(b.children) - 1
	b.children[last].stop()
	b.children = slices.Delete(b.children, last, last+1)
}

func printStages(w io.Writer, stages []Stage, asJSON bool) error {
	if asJSON {
		return printLines(w, stages)
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "interface\tloop\tcontrol\ttimes top\toffered/s\tserved/s\tof top\trefused/s\thigh\tmedium\tlow\thigh p99 µs\tCPU µs\trecovery ms\t")
	for _, s := range stages {
		control := map[bool]string{true: "on", false: "off"}[s.Control]
		fmt.Fprintf(t, "%s\t%s\t%s\t%.1f\t%.0f\t%.0f\t%.2f\t%.0f\t%.2f %%\t%.2f %%\t%.2f %%\t%d\t%.1f\t%d\t\n", s.Interface, s.Loop, control, s.Factor,
			s.Offered, s.Goodput, s.Share, s.Refused, 100*s.HighSuccess, 100*s.MedSuccess, 100*s.LowSuccess, s.HighP99, s.ServerCPU, s.Recovery)
	}
	return t.Flush()
}
