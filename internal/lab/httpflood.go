package lab

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// httpFlood offers registrations; each class is a consumer with connections of
// its own. The class is in 3gpp-Sbi-Message-Priority.
type httpFlood struct {
	root    string
	clients [classes][]*http.Client
	next    atomic.Int64
}

// priorityOf is the message priority of a class.
func priorityOf(c class) string { return strconv.Itoa([classes]int{2, 14, 24}[c]) }

func newHTTPFlood(root string) *httpFlood {
	f := &httpFlood{root: root}
	for c := range f.clients {
		for range 2 {
			t := &http.Transport{Protocols: new(http.Protocols), MaxConnsPerHost: 1}
			t.Protocols.SetUnencryptedHTTP2(true)
			t.Protocols.SetHTTP2(true)
			f.clients[c] = append(f.clients[c], &http.Client{Transport: t})
		}
	}
	return f
}

func (f *httpFlood) close() {
	for _, list := range f.clients {
		for _, c := range list {
			c.CloseIdleConnections()
		}
	}
}

// httpRun is one run of the flood.
type httpRun struct {
	*httpFlood
	start time.Time
	mu    sync.Mutex
	of    [classes]tally
	wg    sync.WaitGroup
}

// run implements flood.
func (f *httpFlood) run(ctx context.Context, rate float64, inflight int, d time.Duration) (outcome, error) {
	r := &httpRun{httpFlood: f, start: time.Now()}
	if rate > 0 {
		r.open(ctx, rate, d)
	} else {
		r.closed(ctx, inflight, d)
	}
	took := time.Since(r.start)
	r.wg.Wait()
	return outcome{took: took, of: r.of}, ctx.Err()
}

// open sends each request when it is due.
func (r *httpRun) open(ctx context.Context, rate float64, d time.Duration) {
	sent := 0
	for elapsed := time.Duration(0); elapsed < d && ctx.Err() == nil; elapsed = time.Since(r.start) {
		for until := int(rate * elapsed.Seconds()); sent < until; sent++ {
			due := time.Duration(float64(sent) / rate * float64(time.Second))
			i := int(r.next.Add(1))
			r.wg.Go(func() { r.one(ctx, i, due) })
		}
		time.Sleep(pace)
	}
}

// closed keeps so many requests under way.
func (r *httpRun) closed(ctx context.Context, inflight int, d time.Duration) {
	var workers sync.WaitGroup
	for range inflight {
		workers.Go(func() {
			for ctx.Err() == nil {
				elapsed := time.Since(r.start)
				if elapsed >= d {
					return
				}
				r.one(ctx, int(r.next.Add(1)), elapsed)
			}
		})
	}
	workers.Wait()
}

// one sends a request and notes what becomes of it.
func (r *httpRun) one(ctx context.Context, i int, due time.Duration) {
	c := classOf(i)
	ctx, cancel := context.WithDeadline(ctx, r.start.Add(due+senderPatience))
	defer cancel()
	status := r.post(ctx, r.clients[c][i%len(r.clients[c])], c, i)
	latency := time.Since(r.start) - due
	r.mu.Lock()
	defer r.mu.Unlock()
	t := &r.of[c]
	t.offered++
	switch {
	case status == http.StatusCreated && latency <= senderPatience:
		t.served++
		t.latencies = append(t.latencies, latency)
	case status != 0:
		t.refused++
	}
}

// post is the status of a registration, 0 for none.
func (r *httpRun) post(ctx context.Context, h *http.Client, c class, i int) int {
	b := body(nil, i%rxBindings, benchPCF)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.root+apiPath+"/pcfBindings", strings.NewReader(string(b)))
	if err != nil {
		return 0
	}
	req.Header["Content-Type"] = []string{"application/json"}
	req.Header["3gpp-Sbi-Message-Priority"] = []string{priorityOf(c)}
	resp, err := h.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return 0
	}
	return resp.StatusCode
}
