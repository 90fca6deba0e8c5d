package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"bsfd/internal/tgpp"
)

// target is a server under load.
type target struct {
	root string // http://host:port
	bare bool
	pid  int // 0 when not known
}

// load is how hard the client works.
type load struct {
	conns, inflight int
	rate            float64 // requests a second; 0 is as fast as it goes
}

// client drives one operation over bindings 0..n-1 of a target.
type client struct {
	load
	conns []*http.Client
	ids   []string           // of bindings, by number, once registered
	pcf   func(i int) string // pcfDiamHost of a binding
}

func newClient(l load, n int) *client {
	c := &client{load: l, ids: make([]string, n), pcf: func(i int) string { return fmt.Sprintf("pcf%d.rx.example.com", i%16) }}
	for range l.conns {
		t := &http.Transport{Protocols: new(http.Protocols), MaxConnsPerHost: 1}
		t.Protocols.SetUnencryptedHTTP2(true)
		t.Protocols.SetHTTP2(true)
		c.conns = append(c.conns, &http.Client{Transport: t, Timeout: 30 * time.Second})
	}
	return c
}

func (c *client) close() {
	for _, h := range c.conns {
		h.CloseIdleConnections()
	}
}

// result is what one run of an operation gave.
type result struct {
	n, errors int
	took      time.Duration
	latencies []time.Duration
	cpu       time.Duration // of the server, 0 when not known
	firstErr  error
}

func (r *result) add(o result) {
	r.n += o.n
	r.errors += o.errors
	r.took += o.took
	r.cpu += o.cpu
	r.latencies = append(r.latencies, o.latencies...)
	if r.firstErr == nil {
		r.firstErr = o.firstErr
	}
}

func (r *result) rate() float64 { return float64(r.n-r.errors) / r.took.Seconds() }

// quantile is the latency that a share q of the requests stayed below.
func (r *result) quantile(q float64) time.Duration {
	if len(r.latencies) == 0 {
		return 0
	}
	slices.Sort(r.latencies)
	return r.latencies[min(int(q*float64(len(r.latencies))), len(r.latencies)-1)]
}

// run performs the operation on bindings from..to-1.
func (c *client) run(ctx context.Context, t target, op string, from, to int) result {
	var next, failed atomic.Int64
	next.Store(int64(from))
	var mu sync.Mutex
	out := result{n: to - from}
	before := cpuTime(t.pid)
	start := time.Now()
	var wg sync.WaitGroup
	for w := range c.inflight {
		wg.Go(func() {
			h := c.conns[w%len(c.conns)]
			mine := make([]time.Duration, 0, 2*(to-from)/c.inflight)
			var buf bytes.Buffer
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= to {
					break
				}
				if c.rate > 0 {
					due := start.Add(time.Duration(float64(i-from) / c.rate * float64(time.Second)))
					time.Sleep(time.Until(due))
				}
				began := time.Now()
				if err := c.do(ctx, h, t, op, i, &buf); err != nil {
					failed.Add(1)
					mu.Lock()
					if out.firstErr == nil {
						out.firstErr = err
					}
					mu.Unlock()
				}
				mine = append(mine, time.Since(began))
			}
			mu.Lock()
			out.latencies = append(out.latencies, mine...)
			mu.Unlock()
		})
	}
	wg.Wait()
	out.took = time.Since(start)
	out.errors = int(failed.Load())
	if before > 0 {
		out.cpu = cpuTime(t.pid) - before
	}
	if ctx.Err() != nil {
		out.firstErr = ctx.Err()
	}
	return out
}

func (c *client) do(ctx context.Context, h *http.Client, t target, op string, i int, buf *bytes.Buffer) error {
	method, path, want := "", "", 0
	buf.Reset()
	switch op {
	case "register":
		method, path, want = http.MethodPost, "/pcfBindings", http.StatusCreated
		buf.Write(body(buf.AvailableBuffer(), i, c.pcf(i)))
	case "discover":
		method, path, want = http.MethodGet, "/pcfBindings?ipv4Addr="+address(i), http.StatusOK
	case "deregister":
		method, want = http.MethodDelete, http.StatusNoContent
	}
	url := t.root + apiPath + path
	if op == "deregister" {
		url = t.root + apiPath + "/pcfBindings/" + c.ids[i]
	}
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(buf.Bytes()))
	if err != nil {
		return err
	}
	if op == "register" {
		req.Header["Content-Type"] = []string{"application/json"}
	} else {
		req.Body, req.ContentLength, req.GetBody = nil, 0, nil
	}
	resp, err := h.Do(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	err = errors.Join(err, resp.Body.Close())
	if resp.StatusCode != want {
		return fmt.Errorf("%s answered %d, not %d", op, resp.StatusCode, want)
	}
	if op == "register" && !t.bare {
		location := resp.Header.Get("Location")
		c.ids[i] = location[strings.LastIndexByte(location, '/')+1:]
	}
	return err
}

// body is a typical registration of about 400 bytes, of a PCF with the
// pcfDiamHost.
func body(dst []byte, i int, pcf string) []byte {
	return fmt.Appendf(dst, `{"supi":"imsi-00101%010d","gpsi":"msisdn-467%08d","ipv4Addr":"%s","ipv6Prefix":"%s",`+
		`"dnn":"internet","snssai":{"sst":1,"sd":"0000AB"},"pcfFqdn":"pcf%d.example.com","pcfDiamHost":"%s",`+
		`"pcfDiamRealm":"example.com","pcfId":"54804518-4191-46b3-955c-ac631f953e%02d","pcfSetId":"set1.pcfset.5gc.mnc001.mcc001",`+
		`"bindLevel":"NF_SET","suppFeat":"7"}`, i, i, address(i), tgpp.AppendIpv6Prefix(nil, prefix(i)), i%16, pcf, i%16)
}
