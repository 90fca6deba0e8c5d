package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"bsfd/internal/spectest"
)

// core is how the network functions of a public core speak, taken from their
// sources: header fields and bodies are what those send, to the byte, but for
// the identifiers of the UE.
type core struct {
	name     string
	header   []string // of requests with a body
	register func(n int) string
	// patch and its type are empty where the PCF sends none.
	patch      func(n int) string
	patchType  string
	removal    []string // header fields of DELETE
	discovery  func(n int) string
	asks       []string // header fields of GET
	strict     int      // answer to its registration in strict mode
	strictEnds int      // answer to its DELETE in strict mode
}

// cores are those that docs/interoperability.md lists.
var cores = []core{
	{
		name:   "free5GC",
		header: []string{"Content-Type", "application/json", "Accept", "application/json", "User-Agent", "Go-http-client/1.1"},
		register: func(n int) string {
			return fmt.Sprintf(`{"supi":"imsi-20893%010d","gpsi":"msisdn-09%08d","ipv4Addr":"%s","dnn":"internet","pcfFqdn":"http://127.0.0.7:29507",`+
				`"pcfIpEndPoints":[{"ipv4Address":"127.0.0.7","transport":"TCP","port":29507}],"snssai":{"sst":1,"sd":"010203"},"pcfId":"54804518-4191-46b3-955c-ac631f953ed8"}`, n, n, ipv4(n))
		},
		patch: func(n int) string {
			return fmt.Sprintf(`{"ipv4Addr":"%s","pcfFqdn":"http://127.0.0.7:29507","pcfIpEndPoints":[{"ipv4Address":"127.0.0.7","transport":"TCP","port":29507}]}`, ipv4(n))
		},
		patchType: "application/json-patch+json",
		removal:   []string{"User-Agent", "Go-http-client/1.1"},
		discovery: func(n int) string { return "ipv4Addr=" + ipv4(n) },
		asks:      []string{"Accept", "application/json,application/problem+json", "User-Agent", "OpenAPI-Generator/1.0.0/go"},
		strict:    400, strictEnds: 204,
	},
	{
		name: "open5GS",
		header: []string{"Content-Type", "application/json", "Accept", "application/json,application/problem+json", "User-Agent", "PCF",
			"3gpp-Sbi-Sender-Timestamp", "NOW", "3gpp-Sbi-Max-Rsp-Time", "10000"},
		register: func(n int) string {
			return fmt.Sprintf(`{"supi":"imsi-99970%010d","ipv4Addr":"%s","ipv6Prefix":"2001:db8:cafe:%x::/64","dnn":"internet","pcfFqdn":"pcf.open5gs.org",`+
				`"pcfIpEndPoints":[{"ipv4Address":"127.0.0.13","port":7777}],"snssai":{"sst":1,"sd":"ffffff"},"suppFeat":"4000000"}`, n, ipv4(n), n&0xffff)
		},
		removal:   []string{"Accept", "application/problem+json", "User-Agent", "PCF", "3gpp-Sbi-Sender-Timestamp", "NOW", "3gpp-Sbi-Max-Rsp-Time", "10000"},
		discovery: func(n int) string { return "ipv4Addr=" + ipv4(n) },
		asks:      []string{"Accept", "application/json,application/problem+json", "User-Agent", "AF"},
		strict:    201, strictEnds: 406,
	},
	{
		name: "open5GS on both address families",
		header: []string{"Content-Type", "application/json", "Accept", "application/json,application/problem+json", "User-Agent", "PCF",
			"3gpp-Sbi-Sender-Timestamp", "NOW", "3gpp-Sbi-Max-Rsp-Time", "10000"},
		register: func(n int) string {
			return fmt.Sprintf(`{"supi":"imsi-99970%010d","ipv4Addr":"%s","dnn":"internet",`+
				`"pcfIpEndPoints":[{"ipv4Address":"127.0.0.13","ipv6Address":"::1","port":7777}],"snssai":{"sst":1}}`, n, ipv4(n))
		},
		removal:   []string{"Accept", "application/problem+json", "User-Agent", "PCF", "3gpp-Sbi-Sender-Timestamp", "NOW", "3gpp-Sbi-Max-Rsp-Time", "10000"},
		discovery: func(n int) string { return "ipv4Addr=" + ipv4(n) },
		asks:      []string{"Accept", "application/json,application/problem+json", "User-Agent", "AF"},
		strict:    400, strictEnds: 406,
	},
	{
		name:   "a core in Java",
		header: []string{"Content-Type", "application/json;charset=UTF-8", "Accept", "application/json, application/*+json", "User-Agent", "PCF-5480 pcf.example.com"},
		register: func(n int) string {
			return fmt.Sprintf(`{"supi":"imsi-00101%010d","gpsi":null,"ipv4Addr":"%s","ipv6Prefix":null,"addIpv6Prefixes":[],"ipDomain":null,"macAddr48":null,"addMacAddrs":[],`+
				`"dnn":"internet","pcfFqdn":"pcf.example.com","pcfIpEndPoints":[{"ipv4Address":"192.0.2.7","ipv6Address":null,"transport":"TCP","port":8080}],`+
				`"pcfDiamHost":null,"pcfDiamRealm":null,"pcfSmFqdn":null,"pcfSmIpEndPoints":null,"snssai":{"sst":1,"sd":null},"suppFeat":"2","pcfId":null,"pcfSetId":null,`+
				`"recoveryTime":null,"paraCom":null,"bindLevel":null,"ipv4FrameRouteList":null,"ipv6FrameRouteList":null}`, n, ipv4(n))
		},
		patch: func(n int) string {
			return fmt.Sprintf(`{"ipv6Prefix":"2001:DB8:CAFE:%X::/64","snssai":{"sst":1,"sd":null}}`, n&0xffff)
		},
		patchType: "application/merge-patch+json",
		removal:   []string{"Accept", "*/*"},
		discovery: func(n int) string { return "ipv4Addr=" + ipv4(n) + "&snssai=%7B%22sst%22%3A1%2C%22sd%22%3Anull%7D" },
		asks:      []string{"Accept", "application/json, application/*+json"},
		strict:    400, strictEnds: 204,
	},
	{
		name:   "a lab with compose names",
		header: []string{"Content-Type", "", "User-Agent", "curl/8.5.0", "Accept", "*/*"},
		register: func(n int) string {
			return fmt.Sprintf(`{"ipv6Prefix":"2001:DB8:CAFE:%X::","dnn":"internet","snssai":{"sst":"1"},"pcfFqdn":"pcf","pcfDiamHost":"pcf_1.core.svc.cluster.local","suppFeat":"0x2"}`, n&0xffff)
		},
		patch:     func(n int) string { return `[{"op":"replace","path":"/pcfFqdn","value":"pcf_2"}]` },
		patchType: "application/json",
		removal:   []string{"Accept", "*/*"},
		discovery: func(n int) string { return fmt.Sprintf("ipv6Prefix=2001:DB8:CAFE:%X::5&snssai=1&who=me", n&0xffff) },
		asks:      []string{"Accept", "*/*"},
		strict:    415, strictEnds: 204,
	},
}

// stamped puts the time of now into a header.
func stamped(header []string) []string {
	out := append([]string(nil), header...)
	for i, v := range out {
		if v == "NOW" {
			out[i] = time.Now().UTC().Format("Mon, 02 Jan 2006 15:04:05.000") + " GMT"
		}
	}
	return out
}

// versions are clients for HTTP/2 with prior knowledge and HTTP/1.1.
func versions() map[string]*http.Client {
	return map[string]*http.Client{
		"HTTP/2":   newClient(nil),
		"HTTP/1.1": {Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: 30 * time.Second},
	}
}

// TestCores lets each core register, find, change and remove a session, and
// proves what strict mode says to it.
func TestCores(t *testing.T) {
	lenient := launch(t, "--storage.engine", "memory")
	strict := launch(t, "--storage.engine", "memory", "--sbi.strict")
	schema := spectest.Load(t, "../..")
	for version, client := range versions() {
		for i := range cores {
			t.Run(cores[i].name+" over "+version, func(t *testing.T) {
				w := &walker{t: t, p: lenient, c: client, schema: schema}
				if strings.Contains(cores[i].name, "compose") {
					w.schema = nil // names that the pattern of the OpenAPI file does not allow are kept
				}
				cores[i].call(w, 1)
				cores[i].callStrictly(&walker{t: t, p: strict, c: client, schema: schema}, 2)
			})
		}
	}
	if n := lenient.count("ocbsf_bindings"); n != 0 {
		t.Errorf("%d bindings are left", n)
	}
}

// call is the life of session n.
func (c *core) call(w *walker, n int) {
	w.t.Helper()
	a := w.do("POST", "/pcfBindings", c.register(n), stamped(c.header)...)
	w.expect(a, 201)
	if strings.Contains(string(a.body), "://") {
		w.t.Errorf("the answer holds a URI: %s", a.body)
	}
	location := a.header.Get("Location")
	found := w.do("GET", "/pcfBindings?"+c.discovery(n), "", stamped(c.asks)...)
	w.expect(found, 200)
	w.sameJSON(string(found.body), string(a.body))
	if c.patch != nil {
		w.expect(w.do("PATCH", location, c.patch(n), append(stamped(c.header), "Content-Type", c.patchType)...), 200)
	}
	w.expect(w.do("DELETE", location, "", stamped(c.removal)...), 204)
	w.expect(w.do("GET", "/pcfBindings?"+c.discovery(n), "", stamped(c.asks)...), 204)
}

// callStrictly proves what strict mode answers.
func (c *core) callStrictly(w *walker, n int) {
	w.t.Helper()
	w.expect(w.do("POST", "/pcfBindings", c.register(n), stamped(c.header)...), c.strict)
	location := w.create("/pcfBindings", binding(n))
	w.expect(w.do("DELETE", location, "", stamped(c.removal)...), c.strictEnds)
	w.do("DELETE", location, "")
}

// TestNothingLeaks runs 10,000 sessions of all cores, many at once, with
// random endings, and proves that nothing is left of them.
func TestNothingLeaks(t *testing.T) {
	p := launch(t, "--storage.engine", "memory")
	sessions := 10000
	if raceEnabled {
		sessions = 2000
	}
	clients := versions()
	var group sync.WaitGroup
	numbers := make(chan int)
	for i := range 8 {
		client := clients["HTTP/2"]
		if i%4 == 0 {
			client = clients["HTTP/1.1"]
		}
		group.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(i), 5))
			for n := range numbers {
				if err := cores[n%len(cores)].end(client, p.sbi+base, n, rnd.IntN(5)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for n := range sessions {
		numbers <- n + 1
	}
	close(numbers)
	group.Wait()
	if n := p.count("ocbsf_bindings"); n != 0 {
		t.Errorf("%d bindings are left", n)
	}
	for _, client := range clients {
		client.CloseIdleConnections()
	}
	if !eventually(10*time.Second, func() bool { return p.count("ocbsf_http_connections") == 0 && p.count("ocbsf_ingress_pending") == 0 }) {
		t.Errorf("%d connections, %d requests are left", p.count("ocbsf_http_connections"), p.count("ocbsf_ingress_pending"))
	}
	if n := p.count("go_goroutines"); n > 60 {
		t.Errorf("%d goroutines are left", n)
	}
}

// end registers a session and lets it end in one of five ways.
func (c *core) end(client *http.Client, api string, n, way int) error {
	post := func() (string, error) {
		a, err := request(client, "POST", api+"/pcfBindings", c.register(n), stamped(c.header)...)
		if err == nil && a.status != 201 {
			err = fmt.Errorf("%s: POST: %d %s", c.name, a.status, a.body)
		}
		return a.header.Get("Location"), err
	}
	location, err := post()
	if err != nil {
		return err
	}
	remove := func(location string, wanted int) error {
		a, err := request(client, "DELETE", location, "", stamped(c.removal)...)
		if err == nil && a.status != wanted {
			err = fmt.Errorf("%s: DELETE: %d %s, want %d", c.name, a.status, a.body, wanted)
		}
		return err
	}
	switch way {
	case 1: // the PCF repeats its DELETE
		if err := remove(location, 204); err != nil {
			return err
		}
		return remove(location, 404)
	case 2: // the PCF lost the answer and registers again
		again, err := post()
		if err != nil {
			return err
		}
		if err := remove(location, 404); err != nil {
			return err
		}
		return remove(again, 204)
	case 3: // a change before the end
		if c.patch == nil {
			break
		}
		a, err := request(client, "PATCH", location, c.patch(n), append(stamped(c.header), "Content-Type", c.patchType)...)
		if err != nil || a.status != 200 {
			return fmt.Errorf("%s: PATCH: %d %s %w", c.name, a.status, a.body, err)
		}
	case 4: // the API root of the PCF ends in a slash
		location = strings.Replace(location, "/nbsf", "//nbsf", 1) + "/"
	}
	return remove(location, 204)
}
