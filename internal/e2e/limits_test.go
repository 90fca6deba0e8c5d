package e2e

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

func TestLimits(t *testing.T) {
	p := launch(t, "--storage.engine", "memory", "--sbi.maxBodyBytes", "4096", "--sbi.maxUriBytes", "1024", "--sbi.maxHeaderBytes", "8192")
	c := newClient(nil)
	big := with(e1, "x", `"`+strings.Repeat("x", 5000)+`"`)
	if a := do(t, c, "POST", p.sbi+base+"/pcfBindings", big); a.status != 413 {
		t.Errorf("body: %d", a.status)
	}
	req, err := http.NewRequest("POST", p.sbi+base+"/pcfBindings", io.MultiReader(strings.NewReader(big)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != 413 {
		t.Errorf("body without a length: %d", resp.StatusCode)
	}
	if a := do(t, c, "GET", p.sbi+base+"/pcfBindings?ipv4Addr="+strings.Repeat("1", 2000), ""); a.status != 414 {
		t.Errorf("URI: %d", a.status)
	}
	if a, err := request(c, "GET", p.sbi+base+"/pcfBindings", "", "X-Big", strings.Repeat("x", 20000)); err == nil && a.status != 431 {
		t.Errorf("header: %d", a.status)
	}
	if a := do(t, c, "GET", p.sbi+base+"/pcfBindings?ipv4Addr=10.0.0.1", ""); a.status != 204 {
		t.Errorf("afterwards: %d", a.status)
	}
}

// TestWhatIsFarTooLargeIsAnswered proves that a request of 8 MB, a target of
// 100 KB and a header of 100 KB get an answer that the client can read.
func TestWhatIsFarTooLargeIsAnswered(t *testing.T) {
	p := launch(t, "--storage.engine", "memory")
	for version, c := range versions() {
		for name, x := range map[string]struct {
			method, query, body string
			header              []string
			want                int
		}{
			"body":   {"POST", "", with(e1, "x", `"`+strings.Repeat("x", 8<<20)+`"`), nil, 413},
			"target": {"GET", "?ipv4Addr=" + strings.Repeat("1", 100<<10), "", nil, 414},
			"header": {"GET", "?ipv4Addr=10.0.0.1", "", []string{"X-Big", strings.Repeat("x", 100<<10)}, 431},
		} {
			for range 5 {
				a, err := request(c, x.method, p.sbi+base+"/pcfBindings"+x.query, x.body, x.header...)
				if err != nil || a.status != x.want || !strings.Contains(string(a.body), "too l") {
					t.Errorf("%s over %s: %d %s %v", name, version, a.status, a.body, err)
				}
			}
		}
	}
}

// closed reports whether the peer closes the connection within the limit.
func closed(conn net.Conn, limit time.Duration) bool {
	_ = conn.SetReadDeadline(time.Now().Add(limit))
	_, err := io.Copy(io.Discard, conn)
	var timeout net.Error
	return !errors.As(err, &timeout) || !timeout.Timeout()
}

// h2conn is a connection on which frames are written by hand.
type h2conn struct {
	net.Conn
	*http2.Framer
}

func dialH2(t *testing.T, p *process, settings ...http2.Setting) h2conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.sbi, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	c := h2conn{conn, http2.NewFramer(conn, conn)}
	if err := c.WriteSettings(settings...); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c h2conn) headers(stream uint32, end bool, method, path string) error {
	var b strings.Builder
	e := hpack.NewEncoder(&b)
	for _, f := range []hpack.HeaderField{
		{Name: ":method", Value: method}, {Name: ":scheme", Value: "http"}, {Name: ":authority", Value: "x"},
		{Name: ":path", Value: base + path}, {Name: "content-type", Value: "application/json"},
	} {
		if err := e.WriteField(f); err != nil {
			return err
		}
	}
	return c.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: []byte(b.String()), EndStream: end, EndHeaders: true})
}

// gone fails unless the server closes every connection that is not idle.
func gone(t *testing.T, p *process) {
	t.Helper()
	if !eventually(20*time.Second, func() bool { n := p.metric("ocbsf_http_connections"); return n == "0" || n == "1" }) {
		t.Errorf("%s connections stay", p.metric("ocbsf_http_connections"))
	}
}

// TestSlowPeers proves that peers which do not finish what they begin, or do
// not read, cost only their own connection.
func TestSlowPeers(t *testing.T) {
	p := launch(t, "--storage.engine", "memory", "--sbi.headerTimeout", "500ms", "--sbi.stallTimeout", "1s", "--sbi.idleTimeout", "2s")
	good := newClient(nil)
	served := func() {
		t.Helper()
		if a := do(t, good, "GET", p.sbi+base+"/pcfBindings?ipv4Addr=10.0.0.1", ""); a.status != 204 {
			t.Errorf("another client gets %d", a.status)
		}
	}
	t.Run("half an HTTP/1.1 header", func(t *testing.T) {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.sbi, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nX-Slow: ", base)
		served()
		if !closed(conn, 10*time.Second) {
			t.Error("the connection stays")
		}
	})
	t.Run("half a body", func(t *testing.T) {
		c := dialH2(t, p)
		if err := c.headers(1, false, "POST", "/pcfBindings"); err != nil {
			t.Fatal(err)
		}
		if err := c.WriteData(1, false, []byte(`{"dnn":`)); err != nil {
			t.Fatal(err)
		}
		served()
		if !closed(c, 15*time.Second) {
			t.Error("the connection stays")
		}
	})
	t.Run("a window that never opens", func(t *testing.T) {
		c := dialH2(t, p, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		if err := c.headers(1, true, "GET", "/pcfBindings"); err != nil {
			t.Fatal(err)
		}
		served()
		gone(t, p)
	})
	t.Run("a peer that does not read", func(t *testing.T) {
		c := dialH2(t, p, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 30})
		_ = c.WriteWindowUpdate(0, 1<<30)
		_ = c.Conn.(*net.TCPConn).SetReadBuffer(1024)
		_ = c.SetWriteDeadline(time.Now().Add(5 * time.Second))
		for stream := uint32(1); stream < 60001; stream += 2 {
			if c.headers(stream, true, "GET", "/pcfBindings") != nil {
				break
			}
		}
		served()
		gone(t, p)
		served()
	})
	t.Run("a peer that says nothing", func(t *testing.T) {
		c := dialH2(t, p)
		if !closed(c, 15*time.Second) {
			t.Error("the connection stays")
		}
	})
}

// TestClientGone proves that a consumer which vanishes in mid-request leaves
// nothing half done.
func TestClientGone(t *testing.T) {
	p := launch(t, "--storage.dataDir", t.TempDir())
	body := binding(1)
	for cut := 0; cut <= len(body); cut += 10 {
		c := dialH2(t, p)
		if err := c.headers(1, false, "POST", "/pcfBindings"); err != nil {
			t.Fatal(err)
		}
		if err := c.WriteData(1, cut >= len(body)-9, []byte(body[:min(cut, len(body))])); err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
	}
	if !eventually(10*time.Second, func() bool { return p.metric("ocbsf_ingress_pending") == "0" }) {
		t.Error("requests stay under way")
	}
	c := newClient(nil)
	a := do(t, c, "GET", p.sbi+base+"/pcfBindings?ipv4Addr="+ipv4(1), "")
	if n := p.metric("ocbsf_bindings"); a.status == 204 && n != "0" || a.status == 200 && n != "1" {
		t.Errorf("%s bindings, discovery %d", n, a.status)
	}
}

// TestMalformedHTTP2 proves that garbage costs only its own connection.
func TestMalformedHTTP2(t *testing.T) {
	p := launch(t, "--storage.engine", "memory")
	good := newClient(nil)
	for name, garbage := range map[string]string{
		"no protocol":         "\x16\x03\x01garbage garbage garbage\r\n\r\n",
		"frame too long":      http2.ClientPreface + "\xff\xff\xff\x00\x00\x00\x00\x00\x01",
		"data on stream 0":    http2.ClientPreface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00" + "\x00\x00\x01\x00\x00\x00\x00\x00\x00x",
		"continuation alone":  http2.ClientPreface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00" + "\x00\x00\x01\x09\x04\x00\x00\x00\x01x",
		"broken header block": http2.ClientPreface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00" + "\x00\x00\x02\x01\x05\x00\x00\x00\x01\xff\xff",
		"two lengths":         "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", strings.TrimPrefix(p.sbi, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, garbage); err != nil {
				t.Fatal(err)
			}
			if !closed(conn, 15*time.Second) {
				t.Error("the connection stays")
			}
			if a := do(t, good, "GET", p.sbi+base+"/pcfBindings?ipv4Addr=10.0.0.1", ""); a.status != 204 {
				t.Errorf("another client gets %d", a.status)
			}
		})
	}
}
