package nbsf

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"bsfd/bsf"
	"bsfd/internal/tolerate"
	"bsfd/storage/memory"
	"bsfd/web/sbi"
)

// rig is an API with what it logs and counts.
type rig struct {
	t   *testing.T
	api *API
	log bytes.Buffer
}

func newRig(t *testing.T, names ...string) *rig {
	t.Helper()
	g := &rig{t: t}
	reg, s := prometheus.NewRegistry(), memory.New()
	r, err := bsf.NewRegistry(bsf.Config{SameAddress: bsf.Supersede, MultipleMatches: bsf.MatchError, Features: bsf.SupportedFeatures},
		s, s, sleeper{}, zerolog.Nop(), reg)
	if err != nil {
		t.Fatal(err)
	}
	errs := sbi.NewErrors(sbi.ErrorConfig{}, nowhere{}, reg)
	cfg := Config{MaxBodyBytes: 64 << 10, BindingHeader: "off", Scheme: "http", Tolerate: names, DiamRealm: "epc.example"}
	if g.api, err = New(cfg, r, everybody{}, errs, zerolog.New(&g.log), reg); err != nil {
		t.Fatal(err)
	}
	return g
}

// send sends a request; header fields come in pairs, and an empty value leaves
// a field out.
func (g *rig) send(method, target, body string, header ...string) *httptest.ResponseRecorder {
	if !strings.HasPrefix(target, "http:") {
		target = "http://bsf" + BasePath + target
	}
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	switch method {
	case http.MethodPost, http.MethodPut:
		r.Header.Set("Content-Type", typeJSON)
	case http.MethodPatch:
		r.Header.Set("Content-Type", typeMergePatch)
	}
	r.Header.Set("User-Agent", "PCF")
	for i := 0; i+1 < len(header); i += 2 {
		if r.Header.Set(header[i], header[i+1]); header[i+1] == "" {
			r.Header.Del(header[i])
		}
	}
	w := httptest.NewRecorder()
	g.api.ServeHTTP(w, r)
	return w
}

// count is how often a tolerance was used.
func (g *rig) count(name string) int {
	for i, k := range Tolerances {
		if k.Name == name {
			return int(testutil.ToFloat64(g.api.tolerated.Counter(i)))
		}
	}
	g.t.Fatalf("no tolerance %q", name)
	return 0
}

// changed replaces members of a JSON object; an empty value removes one.
func changed(object string, pairs ...string) string {
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(object), &m); err != nil {
		panic(err)
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if m[pairs[i]] = json.RawMessage(pairs[i+1]); pairs[i+1] == "" {
			delete(m, pairs[i])
		}
	}
	out, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return string(out)
}

func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

const (
	plain    = `{"ipv4Addr":"10.45.0.2","dnn":"internet","snssai":{"sst":1,"sd":"0000AB"},"pcfFqdn":"pcf.example.com"}`
	lan      = `{"macAddr48":"02-00-5e-10-00-01","dnn":"lan","snssai":{"sst":1},"pcfFqdn":"pcf.example.com"}`
	ue       = `{"supi":"imsi-001010000000001","pcfForUeFqdn":"pcf.example.com"}`
	mbs      = `{"mbsSessionId":{"tmgi":{"mbsServiceId":"0A0B0C","plmnId":{"mcc":"001","mnc":"01"}}},"pcfFqdn":"pcf.example.com"}`
	follower = `{"events":["PCF_PDU_SESSION_BINDING_REGISTRATION"],"notifUri":"http://nf.example.com/cb","notifCorreId":"c","supi":"imsi-001010000000001"}`
	mandIe   = "MANDATORY_IE_INCORRECT"
	optIe    = "OPTIONAL_IE_INCORRECT"
	mandQ    = "MANDATORY_QUERY_PARAM_INCORRECT"
	optQ     = "OPTIONAL_QUERY_PARAM_INCORRECT"
)

// posts are bodies that are served by a tolerance: what is answered, and with
// which cause they are refused without it.
var posts = []struct {
	names      string // tolerances, separated by spaces
	collection string
	sent, kept string
	cause      string
}{
	{"null", "/pcfBindings", changed(plain, "supi", "null", "ipv6Prefix", "null", "addIpv6Prefixes", "null", "paraCom", "null", "suppFeat", "null", "recoveryTime", "null", "pcfIpEndPoints", "null"), plain, mandIe},
	{"null", "/pcfBindings", changed(plain, "snssai", `{"sst":1,"sd":null}`), changed(plain, "snssai", `{"sst":1}`), mandIe},
	{"null", "/pcfBindings", changed(plain, "pcfIpEndPoints", `[{"ipv4Address":"192.0.2.1","ipv6Address":null,"transport":null,"port":null},null]`),
		changed(plain, "pcfIpEndPoints", `[{"ipv4Address":"192.0.2.1"}]`), mandIe},
	{"null", "/pcfBindings", changed(plain, "suppFeat", `"4"`, "paraCom", `{"supi":null,"dnn":"internet","snssai":null}`, "pcfSmFqdn", `"pcf.example.com"`),
		changed(plain, "suppFeat", `"4"`, "paraCom", `{"dnn":"internet"}`, "pcfSmFqdn", `"pcf.example.com"`), optIe},
	{"null", "/pcf-ue-bindings", changed(ue, "gpsi", "null", "pcfForUeIpEndPoints", "null"), ue, mandIe},
	{"null", "/pcf-mbs-bindings", changed(mbs, "mbsSessionId", `{"ssm":null,"nid":null,"tmgi":{"mbsServiceId":"0A0B0C","plmnId":{"mcc":"001","mnc":"01"}}}`), mbs, mandIe},
	{"null", "/subscriptions", changed(follower, "gpsi", "null", "snssaiDnnPairs", "null", "addSnssaiDnnPairs", "null"), follower, mandIe},
	{"emptyText", "/pcfBindings", changed(plain, "supi", `""`, "gpsi", `""`, "ipv6Prefix", `""`, "ipDomain", `""`, "macAddr48", `""`, "pcfDiamHost", `""`, "pcfDiamRealm", `""`, "pcfId", `""`, "pcfSmFqdn", `""`),
		plain, mandIe},
	{"emptyText", "/pcfBindings", changed(plain, "snssai", `{"sst":1,"sd":""}`), changed(plain, "snssai", `{"sst":1}`), mandIe},
	{"emptyText", "/pcfBindings", changed(plain, "pcfFqdn", `""`, "pcfIpEndPoints", `[{"ipv4Address":"192.0.2.1","ipv6Address":"","transport":""}]`),
		changed(plain, "pcfFqdn", "", "pcfIpEndPoints", `[{"ipv4Address":"192.0.2.1"}]`), mandIe},
	{"emptyText", "/subscriptions", changed(follower, "gpsi", `""`), follower, optIe},
	{"emptyArray", "/pcfBindings", changed(plain, "addIpv6Prefixes", "[]", "addMacAddrs", "[ ]", "pcfIpEndPoints", "[]", "ipv4FrameRouteList", "[]"), plain, mandIe},
	{"emptyArray", "/pcf-ue-bindings", changed(ue, "pcfForUeIpEndPoints", "[]"), ue, mandIe},
	{"emptyArray", "/subscriptions", changed(follower, "addSnssaiDnnPairs", "[]"), follower, optIe},
	{"name", "/pcfBindings", changed(plain, "pcfFqdn", `"pcf"`), changed(plain, "pcfFqdn", `"pcf"`), mandIe},
	{"name", "/pcfBindings", changed(plain, "pcfFqdn", `"pcf_1.core.svc.cluster.local"`), changed(plain, "pcfFqdn", `"pcf_1.core.svc.cluster.local"`), mandIe},
	{"name", "/pcfBindings", changed(plain, "pcfSmFqdn", `"PCF-1.lab1."`), changed(plain, "pcfSmFqdn", `"PCF-1.lab1."`), mandIe},
	{"name", "/pcfBindings", changed(plain, "pcfDiamHost", `"10.0.0.7"`, "pcfDiamRealm", `"lab"`), changed(plain, "pcfDiamHost", `"10.0.0.7"`, "pcfDiamRealm", `"lab"`), mandIe},
	{"name", "/pcf-ue-bindings", changed(ue, "pcfForUeFqdn", `"pcf"`), changed(ue, "pcfForUeFqdn", `"pcf"`), mandIe},
	{"name", "/pcf-mbs-bindings", changed(mbs, "pcfFqdn", `"pcf"`), changed(mbs, "pcfFqdn", `"pcf"`), mandIe},
	{"uri", "/pcfBindings", changed(plain, "pcfFqdn", `"http://127.0.0.7:29507"`), changed(plain, "pcfFqdn", "", "pcfIpEndPoints", `[{"ipv4Address":"127.0.0.7","transport":"TCP","port":29507}]`), mandIe},
	{"uri", "/pcfBindings", changed(plain, "pcfFqdn", `"http://127.0.0.7:29507/"`, "pcfIpEndPoints", `[{"ipv4Address":"127.0.0.7","port":29507}]`),
		changed(plain, "pcfFqdn", "", "pcfIpEndPoints", `[{"ipv4Address":"127.0.0.7","port":29507}]`), mandIe},
	{"uri", "/pcfBindings", changed(plain, "pcfFqdn", `"http://127.0.0.7:29507"`, "pcfIpEndPoints", `[{"ipv4Address":"127.0.0.8","port":29507}]`),
		changed(plain, "pcfFqdn", "", "pcfIpEndPoints", `[{"ipv4Address":"127.0.0.8","port":29507},{"ipv4Address":"127.0.0.7","transport":"TCP","port":29507}]`), mandIe},
	{"uri", "/pcfBindings", changed(plain, "pcfFqdn", `"https://[2001:DB8::7]"`), changed(plain, "pcfFqdn", "", "pcfIpEndPoints", `[{"ipv6Address":"2001:db8::7","transport":"TCP","port":443}]`), mandIe},
	{"uri", "/pcfBindings", changed(plain, "pcfFqdn", `"192.0.2.7"`), changed(plain, "pcfFqdn", "", "pcfIpEndPoints", `[{"ipv4Address":"192.0.2.7","transport":"TCP"}]`), mandIe},
	{"uri", "/pcfBindings", changed(plain, "pcfFqdn", `"http://pcf.example.com"`), plain, mandIe},
	{"uri", "/pcfBindings", changed(plain, "pcfFqdn", `"http://pcf.example.com:8000"`), changed(plain, "pcfIpEndPoints", `[{"transport":"TCP","port":8000}]`), mandIe},
	{"uri name", "/pcfBindings", changed(plain, "pcfFqdn", `"http://pcf:8000"`, "pcfIpEndPoints", `[{"ipv4Address":"192.0.2.1","port":8000}]`),
		changed(plain, "pcfFqdn", `"pcf"`, "pcfIpEndPoints", `[{"ipv4Address":"192.0.2.1","port":8000}]`), mandIe},
	{"uri", "/pcfBindings", changed(plain, "suppFeat", `"4"`, "pcfSmFqdn", `"http://127.0.0.7:29507"`), changed(plain, "suppFeat", `"4"`, "pcfSmIpEndPoints", `[{"ipv4Address":"127.0.0.7","transport":"TCP","port":29507}]`), mandIe},
	{"uri", "/pcfBindings", changed(plain, "pcfDiamHost", `"aaa://pcf.example.com:3868;transport=tcp"`, "pcfDiamRealm", `"example.com"`), changed(plain, "pcfDiamHost", `"pcf.example.com"`, "pcfDiamRealm", `"example.com"`), mandIe},
	{"uri", "/pcf-ue-bindings", changed(ue, "pcfForUeFqdn", `"http://127.0.0.7:29507"`), changed(ue, "pcfForUeFqdn", "", "pcfForUeIpEndPoints", `[{"ipv4Address":"127.0.0.7","transport":"TCP","port":29507}]`), mandIe},
	{"diamRealm", "/pcfBindings", changed(plain, "pcfDiamHost", `"pcf.epc.example.com"`), changed(plain, "pcfDiamHost", `"pcf.epc.example.com"`, "pcfDiamRealm", `"epc.example.com"`), "MANDATORY_IE_MISSING"},
	{"diamRealm name", "/pcfBindings", changed(plain, "pcfDiamHost", `"pcf"`), changed(plain, "pcfDiamHost", `"pcf"`, "pcfDiamRealm", `"epc.example"`), mandIe},
	{"ipv6Text", "/pcfBindings", changed(plain, "ipv6Prefix", `"2001:DB8:0:0:0:0:0:0/64"`), changed(plain, "ipv6Prefix", `"2001:db8::/64"`), mandIe},
	{"ipv6Text", "/pcfBindings", changed(plain, "ipv6Prefix", `"2001:db8::/64"`, "suppFeat", `"1"`, "addIpv6Prefixes", `["2001:0db8:0001::/64"]`),
		changed(plain, "ipv6Prefix", `"2001:db8::/64"`, "suppFeat", `"1"`, "addIpv6Prefixes", `["2001:db8:1::/64"]`), optIe},
	{"ipv6Text", "/pcfBindings", changed(plain, "pcfIpEndPoints", `[{"ipv6Address":"2001:DB8::1"}]`), changed(plain, "pcfIpEndPoints", `[{"ipv6Address":"2001:db8::1"}]`), mandIe},
	{"prefixLength", "/pcfBindings", changed(plain, "ipv6Prefix", `"2001:db8::"`), changed(plain, "ipv6Prefix", `"2001:db8::/64"`), mandIe},
	{"prefixLength", "/pcfBindings", changed(plain, "ipv6Prefix", `"2001:db8::7:5"`), changed(plain, "ipv6Prefix", `"2001:db8::/64"`), mandIe},
	{"prefixLength", "/pcfBindings", changed(plain, "ipv4FrameRouteList", `["192.0.2.1"]`), changed(plain, "ipv4FrameRouteList", `["192.0.2.1/32"]`), optIe},
	{"prefixBits", "/pcfBindings", changed(plain, "ipv6Prefix", `"2001:db8::7:5/64"`), changed(plain, "ipv6Prefix", `"2001:db8::/64"`), mandIe},
	{"prefixBits", "/pcfBindings", changed(plain, "ipv4FrameRouteList", `["192.0.2.9/24"]`), changed(plain, "ipv4FrameRouteList", `["192.0.2.0/24"]`), optIe},
	{"ipv4Mapped", "/pcfBindings", changed(plain, "ipv4Addr", `"::ffff:10.45.0.2"`), plain, mandIe},
	{"ipv4Mapped", "/pcfBindings", changed(plain, "pcfIpEndPoints", `[{"ipv4Address":"::ffff:192.0.2.1","port":80}]`), changed(plain, "pcfIpEndPoints", `[{"ipv4Address":"192.0.2.1","port":80}]`), mandIe},
	{"dualEndPoint", "/pcfBindings", changed(plain, "pcfIpEndPoints", `[{"ipv4Address":"192.0.2.1","ipv6Address":"2001:db8::1","port":7777}]`),
		changed(plain, "pcfIpEndPoints", `[{"ipv4Address":"192.0.2.1","port":7777},{"ipv6Address":"2001:db8::1","port":7777}]`), mandIe},
	{"macText", "/pcfBindings", changed(lan, "macAddr48", `"02:00:5E:10:00:01"`), lan, mandIe},
	{"macText", "/pcfBindings", changed(lan, "macAddr48", `"02005e100001"`), lan, mandIe},
	{"macText", "/pcfBindings", changed(lan, "suppFeat", `"1"`, "addMacAddrs", `["0200.5E10.0002"]`), changed(lan, "suppFeat", `"1"`, "addMacAddrs", `["02-00-5e-10-00-02"]`), optIe},
	{"sstText", "/pcfBindings", changed(plain, "snssai", `{"sst":"1","sd":"0000AB"}`), plain, mandIe},
	{"featuresPrefix", "/pcfBindings", changed(plain, "suppFeat", `"0x3"`), changed(plain, "suppFeat", `"3"`), mandIe},
	{"featuresPrefix", "/subscriptions", changed(follower, "suppFeat", `"0X0"`), changed(follower, "suppFeat", `"0"`), mandIe},
}

// TestPostsThatAreTolerated proves for each body what is stored, answered,
// counted and logged, and that it is refused without the tolerance.
func TestPostsThatAreTolerated(t *testing.T) {
	for _, c := range posts {
		t.Run(c.names+" "+c.sent, func(t *testing.T) {
			names := strings.Fields(c.names)
			g := newRig(t, names...)
			w := g.send("POST", c.collection, c.sent)
			if w.Code != http.StatusCreated || !sameJSON(w.Body.String(), c.kept) {
				t.Fatalf("%d %s\nwant %s", w.Code, w.Body, c.kept)
			}
			if strings.Contains(w.Body.String(), `://`) && c.collection != "/subscriptions" {
				t.Errorf("an answer holds a URI: %s", w.Body)
			}
			for _, name := range names {
				if g.count(name) != 1 || !strings.Contains(g.log.String(), `"peer":"PCF","what":"`+name+`"`) {
					t.Errorf("%s: counted %d, logged %s", name, g.count(name), g.log.String())
				}
			}
			g.send("POST", c.collection, c.sent)
			if lines := strings.Count(g.log.String(), "\n"); lines != len(names) {
				t.Errorf("%d lines", lines)
			}
			for _, name := range names {
				g := newRig(t, without(names, name)...)
				w := g.send("POST", c.collection, c.sent)
				if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), `"invalidParams":[`) {
					t.Errorf("without %s: %d %s", name, w.Code, w.Body)
				}
			}
			w = newRig(t).send("POST", c.collection, c.sent)
			if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), `"cause":"`+c.cause+`"`) {
				t.Errorf("strict: %d %s, want %s", w.Code, w.Body, c.cause)
			}
			if w := newRig(t).send("POST", c.collection, c.kept); w.Code != http.StatusCreated && !strings.Contains(c.names, "name") {
				t.Errorf("strict, what was answered: %d %s", w.Code, w.Body)
			}
		})
	}
}

func without(list []string, name string) (rest []string) {
	for _, s := range list {
		if s != name {
			rest = append(rest, s)
		}
	}
	return rest
}

// requests are served by a tolerance that does not lie in a registered body.
var requests = []struct {
	names          string
	method, target string // ID stands for a binding as in plain or, in other collections, as there
	body           string
	header         []string
	status         int
	answer         string // where not empty
	strict         int
	cause          string
}{
	{"null", "PATCH", "/pcfBindings/ID", `{"pcfFqdn":null,"pcfIpEndPoints":[{"ipv4Address":"192.0.2.1"}]}`, nil, 200,
		changed(plain, "suppFeat", `"2"`, "pcfFqdn", "", "pcfIpEndPoints", `[{"ipv4Address":"192.0.2.1"}]`), 400, mandIe},
	{"emptyText emptyArray", "PATCH", "/pcfBindings/ID", `{"pcfFqdn":"","ipDomain":"","pcfIpEndPoints":[],"ipv4Addr":"10.45.0.3"}`, nil, 200,
		changed(plain, "suppFeat", `"2"`, "ipv4Addr", `"10.45.0.3"`), 400, mandIe},
	{"uri", "PATCH", "/pcfBindings/ID", `{"pcfFqdn":"http://127.0.0.7:8000"}`, nil, 200,
		changed(plain, "suppFeat", `"2"`, "pcfFqdn", "", "pcfIpEndPoints", `[{"ipv4Address":"127.0.0.7","transport":"TCP","port":8000}]`), 400, mandIe},
	{"diamRealm", "PATCH", "/pcfBindings/ID", `{"pcfDiamHost":"pcf.epc.example.com"}`, nil, 200,
		changed(plain, "suppFeat", `"2"`, "pcfDiamHost", `"pcf.epc.example.com"`, "pcfDiamRealm", `"epc.example.com"`), 400, "MANDATORY_IE_MISSING"},
	{"prefixBits", "PATCH", "/pcfBindings/ID", `{"ipv6Prefix":"2001:db8::1/64"}`, nil, 200, changed(plain, "suppFeat", `"2"`, "ipv6Prefix", `"2001:db8::/64"`), 400, mandIe},
	{"mediaType", "POST", "/pcfBindings", plain, []string{"Content-Type", ""}, 201, plain, 415, ""},
	{"mediaType", "POST", "/pcfBindings", plain, []string{"Content-Type", "text/json; charset=utf-8"}, 201, plain, 415, ""},
	{"mediaType", "POST", "/subscriptions", follower, []string{"Content-Type", ""}, 201, follower, 415, ""},
	{"patchType", "PATCH", "/pcfBindings/ID", `{"ipv4Addr":"10.45.0.3"}`, []string{"Content-Type", ""}, 200, changed(plain, "suppFeat", `"2"`, "ipv4Addr", `"10.45.0.3"`), 415, ""},
	{"patchType", "PATCH", "/pcfBindings/ID", `{"ipv4Addr":"10.45.0.3"}`, []string{"Content-Type", "application/json"}, 200, changed(plain, "suppFeat", `"2"`, "ipv4Addr", `"10.45.0.3"`), 415, ""},
	{"patchType", "PATCH", "/pcfBindings/ID", `{"ipv4Addr":"10.45.0.3"}`, []string{"Content-Type", typeJSONPatch}, 200, changed(plain, "suppFeat", `"2"`, "ipv4Addr", `"10.45.0.3"`), 415, ""},
	{"patchType jsonPatch", "PATCH", "/pcfBindings/ID", ` [{"op":"replace","path":"/ipv4Addr","value":"10.45.0.3"}]`, []string{"Content-Type", "application/json"}, 200,
		changed(plain, "suppFeat", `"2"`, "ipv4Addr", `"10.45.0.3"`), 415, ""},
	{"jsonPatch", "PATCH", "/pcfBindings/ID", `[{"op":"test","path":"/dnn","value":"internet"},{"op":"remove","path":"/ipv4Addr"},{"op":"add","path":"/ipv6Prefix","value":"2001:db8::/64"}]`,
		[]string{"Content-Type", typeJSONPatch}, 200, changed(plain, "suppFeat", `"2"`, "ipv4Addr", "", "ipv6Prefix", `"2001:db8::/64"`), 415, ""},
	{"jsonPatch", "PATCH", "/pcfBindings/ID", `[{"op":"replace","path":"/snssai/sd","value":"000001"},{"op":"add","path":"/pcfIpEndPoints","value":[{"ipv4Address":"192.0.2.1"}]},{"op":"copy","from":"/pcfIpEndPoints/0","path":"/pcfIpEndPoints/-"},{"op":"move","from":"/pcfFqdn","path":"/pcfDiamHost"},{"op":"copy","from":"/pcfDiamHost","path":"/pcfDiamRealm"}]`,
		[]string{"Content-Type", typeJSONPatch}, 200, changed(plain, "suppFeat", `"2"`, "snssai", `{"sst":1,"sd":"000001"}`, "pcfFqdn", "", "pcfDiamHost", `"pcf.example.com"`, "pcfDiamRealm", `"pcf.example.com"`,
			"pcfIpEndPoints", `[{"ipv4Address":"192.0.2.1"},{"ipv4Address":"192.0.2.1"}]`), 415, ""},
	{"jsonPatch", "PATCH", "/pcf-ue-bindings/ID", `[{"op":"replace","path":"/pcfForUeFqdn","value":"pcf2.example.com"}]`, []string{"Content-Type", typeJSONPatch}, 200, changed(ue, "pcfForUeFqdn", `"pcf2.example.com"`), 415, ""},
	{"jsonPatch", "PATCH", "/pcf-mbs-bindings/ID", `[{"op":"replace","path":"/pcfFqdn","value":"pcf2.example.com"}]`, []string{"Content-Type", typeJSONPatch}, 200, changed(mbs, "pcfFqdn", `"pcf2.example.com"`), 415, ""},
	{"patchType", "PATCH", "/pcf-ue-bindings/ID", `{"pcfForUeFqdn":"pcf2.example.com"}`, []string{"Content-Type", ""}, 200, changed(ue, "pcfForUeFqdn", `"pcf2.example.com"`), 415, ""},
	{"accept", "DELETE", "/pcfBindings/ID", "", []string{"Accept", "application/problem+json"}, 204, "", 406, ""},
	{"accept", "GET", "/pcfBindings?ipv4Addr=10.45.0.2", "", []string{"Accept", "text/html"}, 200, "", 406, ""},
	{"path", "POST", "/pcfBindings/", plain, nil, 201, plain, 404, "RESOURCE_URI_STRUCTURE_NOT_FOUND"},
	{"path", "DELETE", "//pcfBindings//ID/", "", nil, 204, "", 404, "RESOURCE_URI_STRUCTURE_NOT_FOUND"},
	{"path", "GET", "http://bsf//nbsf-management//v1/pcfBindings?ipv4Addr=10.45.0.2", "", nil, 200, "", 400, "INVALID_API"},
	{"queryUnknown", "GET", "/pcfBindings?ipv4Addr=10.45.0.2&later=1", "", nil, 200, "", 400, "INVALID_QUERY_PARAM"},
	{"queryUnknown", "GET", "/pcf-ue-bindings?supi=imsi-1&later=1", "", nil, 200, "[]", 400, "INVALID_QUERY_PARAM"},
	{"queryQuoted", "GET", `/pcfBindings?ipv4Addr=%2210.45.0.2%22&dnn=%22internet%22`, "", nil, 200, "", 400, mandQ},
	{"queryQuoted", "GET", `/pcf-ue-bindings?supi=%22imsi-001010000000001%22`, "", nil, 200, "", 0, ""},
	{"querySnssai", "GET", "/pcfBindings?ipv4Addr=10.45.0.2&snssai=1-0000ab", "", nil, 200, "", 400, optQ},
	{"querySnssai", "GET", "/pcfBindings?ipv4Addr=10.45.0.2&snssai=010000AB", "", nil, 200, "", 400, optQ},
	{"querySnssai", "GET", "/pcfBindings?ipv4Addr=10.45.0.2&snssai=1", "", nil, 204, "", 400, optQ},
	{"sstText", "GET", "/pcfBindings?ipv4Addr=10.45.0.2&snssai=%7b%22sst%22:%221%22,%22sd%22:%220000AB%22%7d", "", nil, 200, "", 400, optQ},
	{"emptyText", "GET", "/pcfBindings?ipv4Addr=10.45.0.2&ipv6Prefix=&dnn=&snssai=&supi=&supp-feat=", "", nil, 200, "", 400, mandQ},
	{"ipv6Text", "GET", "/pcfBindings?ipv6Prefix=2001:DB8::1/128", "", nil, 204, "", 400, mandQ},
	{"prefixLength", "GET", "/pcfBindings?ipv6Prefix=2001:db8::1", "", nil, 204, "", 400, mandQ},
	{"ipv4Mapped", "GET", "/pcfBindings?ipv4Addr=::ffff:10.45.0.2", "", nil, 200, "", 400, mandQ},
	{"macText", "GET", "/pcfBindings?macAddr48=02:00:5e:10:00:01", "", nil, 204, "", 400, mandQ},
	{"featuresPrefix", "GET", "/pcfBindings?ipv4Addr=10.45.0.2&supp-feat=0x7", "", nil, 200, "", 400, optQ},
}

// TestRequestsThatAreTolerated does the same for queries, patches, media types
// and paths.
func TestRequestsThatAreTolerated(t *testing.T) {
	for _, c := range requests {
		t.Run(c.names+" "+c.method+" "+c.target, func(t *testing.T) {
			names := strings.Fields(c.names)
			g := newRig(t, names...)
			w := g.prepared(c.method, c.target, c.body, c.header)
			if w.Code != c.status || c.answer != "" && !sameJSON(w.Body.String(), c.answer) {
				t.Fatalf("%d %s\nwant %d %s", w.Code, w.Body, c.status, c.answer)
			}
			for _, name := range names {
				if g.count(name) != 1 || !strings.Contains(g.log.String(), `"peer":"PCF","what":"`+name+`"`) {
					t.Errorf("%s: counted %d, logged %s", name, g.count(name), g.log.String())
				}
			}
			if c.strict == 0 {
				return
			}
			w = newRig(t).prepared(c.method, c.target, c.body, c.header)
			if w.Code != c.strict || c.cause != "" && !strings.Contains(w.Body.String(), `"cause":"`+c.cause+`"`) {
				t.Errorf("strict: %d %s, want %d %s", w.Code, w.Body, c.strict, c.cause)
			}
		})
	}
}

// prepared sends a request to an API that has a binding of each kind, whose id
// stands for ID in the target.
func (g *rig) prepared(method, target, body string, header []string) *httptest.ResponseRecorder {
	g.t.Helper()
	before, _, named := strings.Cut(target, "ID")
	for collection, resource := range map[string]string{
		"/pcfBindings": changed(plain, "suppFeat", `"2"`), "/pcf-ue-bindings": ue, "/pcf-mbs-bindings": mbs, "/subscriptions": follower,
	} {
		w := g.send("POST", collection, resource)
		if w.Code != http.StatusCreated {
			g.t.Fatalf("%d %s", w.Code, w.Body)
		}
		if named && strings.Contains(before, collection) {
			location := w.Header().Get("Location")
			target = strings.Replace(target, "ID", location[strings.LastIndex(location, "/")+1:], 1)
		}
	}
	return g.send(method, target, body, header...)
}

// TestMappedEndPoint proves that IPv4 in an IPv6 address is answered as IPv4,
// in the notation that the OpenAPI file allows, too.
func TestMappedEndPoint(t *testing.T) {
	for _, text := range []string{"::ffff:192.0.2.1", "::ffff:c000:201", "0:0:0:0:0:FFFF:C000:201"} {
		g := newRig(t, tolerate.All)
		w := g.send("POST", "/pcfBindings", changed(plain, "pcfIpEndPoints", `[{"ipv6Address":"`+text+`"}]`))
		if want := changed(plain, "pcfIpEndPoints", `[{"ipv4Address":"192.0.2.1"}]`); w.Code != 201 || !sameJSON(w.Body.String(), want) || g.count("ipv4Mapped") != 1 {
			t.Errorf("%s: %d %s", text, w.Code, w.Body)
		}
	}
}

// TestPatchWithoutFeatures proves who is served a PATCH that negotiated none.
func TestPatchWithoutFeatures(t *testing.T) {
	for _, c := range []struct {
		features string
		names    []string
		status   int
	}{
		{`null`, []string{"null", "patchFeature"}, 200}, {`"0"`, []string{"patchFeature"}, 200},
		{`"0"`, nil, 403}, {`"1"`, []string{"patchFeature"}, 403}, {`"2"`, nil, 200},
	} {
		g := newRig(t, c.names...)
		location := g.send("POST", "/pcfBindings", changed(plain, "suppFeat", c.features)).Header().Get("Location")
		w := g.send("PATCH", location, `{"ipv4Addr":"10.45.0.3"}`)
		if w.Code != c.status || c.status == 200 && !strings.Contains(w.Body.String(), "10.45.0.3") {
			t.Errorf("suppFeat %s, %v: %d %s", c.features, c.names, w.Code, w.Body)
		}
		if c.features != `"2"` && c.status == 200 && g.count("patchFeature") != 1 {
			t.Error("not counted")
		}
	}
}

// TestJSONPatchRefusals proves what a JSON Patch cannot do, and that nothing
// of it is done then.
func TestJSONPatchRefusals(t *testing.T) {
	for _, c := range []struct {
		body   string
		status int
		wanted string
	}{
		{`[{"op":"replace","path":"/dnn","value":"ims"}]`, 403, `"param":"/dnn"`},
		{`[{"op":"replace","path":"/ipv4Addr","value":"10.45.0.9"},{"op":"remove","path":"/supi"}]`, 403, `"param":"/supi"`},
		{`[{"op":"replace","path":"","value":{}}]`, 403, `MODIFICATION_NOT_ALLOWED`},
		{`[{"op":"move","from":"/dnn","path":"/pcfFqdn"}]`, 403, `"param":"/dnn"`},
		{`[{"op":"replace","path":"/ipv4Addr","value":"10.45.0.9"},{"op":"test","path":"/dnn","value":"ims"}]`, 409, `"param":"/dnn"`},
		{`[{"op":"test","path":"/pcfId","value":"x"}]`, 409, `/pcfId`},
		{`[{"op":"replace","path":"/ipv4Addr","value":"10.45.0.9"},{"op":"remove","path":"/ipv6Prefix"}]`, 400, `"param":"/ipv6Prefix"`},
		{`[{"op":"replace","path":"/ipv4Addr","value":"10.45.0.900"}]`, 400, `"param":"/ipv4Addr"`},
		{`[{"op":"remove","path":"/ipv4Addr"}]`, 400, `MANDATORY_IE_MISSING`},
		{`[{"op":"change","path":"/ipv4Addr"}]`, 400, `INVALID_MSG_FORMAT`},
		{`[{"op":"add","path":"ipv4Addr","value":1}]`, 400, `"param":"/0/path"`},
		{`[{"op":"add","path":"/ipv4Addr"}]`, 400, `INVALID_MSG_FORMAT`},
		{`[{"op":"test","path":"/ipv4Addr"}]`, 400, `"param":"/0/value"`},
		{`[{"op":"copy","path":"/ipv4Addr"}]`, 400, `INVALID_MSG_FORMAT`},
		{`[{"op":"add","op":"remove","path":"/ipv4Addr"}]`, 400, `INVALID_MSG_FORMAT`},
		{`[1]`, 400, `INVALID_MSG_FORMAT`}, {`[`, 400, `INVALID_MSG_FORMAT`},
		{`[` + strings.Repeat(`{"op":"copy","from":"/pcfIpEndPoints","path":"/pcfIpEndPoints/-"},`, 40) + `{"op":"test","path":"/dnn","value":"internet"}]`, 400, `cannot be applied`},
	} {
		g := newRig(t, tolerate.All)
		location := g.send("POST", "/pcfBindings", changed(plain, "pcfIpEndPoints", `[{"ipv4Address":"192.0.2.1"}]`)).Header().Get("Location")
		w := g.send("PATCH", location, c.body, "Content-Type", typeJSONPatch)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.wanted) {
			t.Errorf("%.200s: %d %s, want %d %s", c.body, w.Code, w.Body, c.status, c.wanted)
		}
		if w := g.send("GET", "/pcfBindings?ipv4Addr=10.45.0.2", ""); w.Code != http.StatusOK {
			t.Errorf("%.200s: something was done: %d", c.body, w.Code)
		}
	}
}

// TestWhatNobodyCanServe proves that no tolerance makes a guess.
func TestWhatNobodyCanServe(t *testing.T) {
	for _, c := range []struct{ body, cause, param string }{
		{changed(plain, "ipv4Addr", ""), "MANDATORY_IE_MISSING", "/ipv4Addr"},
		{changed(plain, "ipv4Addr", `null`), "MANDATORY_IE_MISSING", "/ipv4Addr"},
		{changed(plain, "ipv4Addr", `""`), "MANDATORY_IE_MISSING", "/ipv4Addr"},
		{changed(plain, "pcfFqdn", ""), "MANDATORY_IE_MISSING", "/pcfFqdn"},
		{changed(plain, "pcfFqdn", `null`, "pcfIpEndPoints", `[{"port":80}]`), "MANDATORY_IE_MISSING", "/pcfFqdn"},
		{changed(plain, "pcfFqdn", `"http://"`), mandIe, "/pcfFqdn"},
		{changed(plain, "pcfFqdn", `"http://:80"`), mandIe, "/pcfFqdn"},
		{changed(plain, "pcfFqdn", `"http://pcf.example.com:99999"`), mandIe, "/pcfFqdn"},
		{changed(plain, "pcfFqdn", `"ftp://pcf.example.com"`), mandIe, "/pcfFqdn"},
		{changed(plain, "pcfFqdn", `"http://user@pcf.example.com"`), mandIe, "/pcfFqdn"},
		{changed(plain, "pcfFqdn", `"pcf example"`), mandIe, "/pcfFqdn"},
		{changed(plain, "pcfFqdn", `"."`), mandIe, "/pcfFqdn"},
		{changed(plain, "pcfFqdn", `"a..b"`), mandIe, "/pcfFqdn"},
		{changed(plain, "pcfFqdn", `"pcf\u0000"`), mandIe, "/pcfFqdn"},
		{changed(plain, "pcfFqdn", `"fe80::1%eth0"`), mandIe, "/pcfFqdn"},
		{changed(plain, "pcfDiamRealm", `"example.com"`), "MANDATORY_IE_MISSING", "/pcfDiamHost"},
		{changed(plain, "dnn", ""), "MANDATORY_IE_MISSING", "/dnn"},
		{changed(plain, "dnn", `""`), mandIe, "/dnn"},
		{changed(plain, "dnn", `null`), "MANDATORY_IE_MISSING", "/dnn"},
		{changed(plain, "dnn", `5`), mandIe, "/dnn"},
		{changed(plain, "snssai", `{"sst":256}`), mandIe, "/snssai/sst"},
		{changed(plain, "snssai", `{"sst":"256"}`), mandIe, "/snssai/sst"},
		{changed(plain, "snssai", `{"sst":"01"}`), mandIe, "/snssai/sst"},
		{changed(plain, "snssai", `{"sst":"+1"}`), mandIe, "/snssai/sst"},
		{changed(plain, "snssai", `{"sst":1.0}`), mandIe, "/snssai/sst"},
		{changed(plain, "snssai", `{"sst":null}`), mandIe, "/snssai/sst"},
		{changed(plain, "snssai", `{"sst":true}`), mandIe, "/snssai/sst"},
		{changed(plain, "snssai", `{"sst":1,"sd":"12345"}`), mandIe, "/snssai/sd"},
		{changed(plain, "snssai", `null`), "MANDATORY_IE_MISSING", "/snssai"},
		{changed(plain, "snssai", `[]`), mandIe, "/snssai"},
		{changed(plain, "ipv4Addr", `"10.45.0.300"`), mandIe, "/ipv4Addr"},
		{changed(plain, "ipv4Addr", `"010.45.0.2"`), mandIe, "/ipv4Addr"},
		{changed(plain, "ipv4Addr", `170721282`), mandIe, "/ipv4Addr"},
		{changed(plain, "ipv6Prefix", `"2001:db8::/129"`), mandIe, "/ipv6Prefix"},
		{changed(plain, "ipv6Prefix", `"10.0.0.1"`), mandIe, "/ipv6Prefix"},
		{changed(plain, "ipv6Prefix", `"fe80::1%eth0"`), mandIe, "/ipv6Prefix"},
		{changed(lan, "macAddr48", `"02-00-5e-10-00"`), mandIe, "/macAddr48"},
		{changed(lan, "macAddr48", `"02-00-5e-10-00-01-02-03"`), mandIe, "/macAddr48"},
		{changed(plain, "macAddr48", `"02-00-5e-10-00-01"`), mandIe, "/macAddr48"},
		{changed(plain, "supi", `"imsi-\n"`), optIe, "/supi"},
		{changed(plain, "supi", `"`+strings.Repeat("x", 513)+`"`), optIe, "/supi"},
		{changed(plain, "suppFeat", `"xyz"`), mandIe, "/suppFeat"},
		{changed(plain, "suppFeat", `"0x"`), mandIe, "/suppFeat"},
		{changed(plain, "suppFeat", `3`), mandIe, "/suppFeat"},
		{changed(plain, "pcfIpEndPoints", `[{"ipv4Address":"192.0.2.1","port":"80"}]`), mandIe, "/pcfIpEndPoints/0/port"},
		{changed(plain, "pcfIpEndPoints", `{}`), mandIe, "/pcfIpEndPoints"},
		{changed(plain, "pcfId", `"pcf-1"`), optIe, "/pcfId"},
		{strings.Replace(plain, "{", `{"dnn":"ims",`, 1), "INVALID_MSG_FORMAT", ""},
		{`[` + plain + `]`, "INVALID_MSG_FORMAT", ""},
		{``, "INVALID_MSG_FORMAT", ""},
	} {
		for _, names := range [][]string{{tolerate.All}, nil} {
			w := newRig(t, names...).send("POST", "/pcfBindings", c.body)
			if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), c.param) ||
				names != nil && !strings.Contains(w.Body.String(), `"cause":"`+c.cause+`"`) {
				t.Errorf("tolerate %v, %s: %d %s", names, c.body, w.Code, w.Body)
			}
		}
	}
	for _, c := range []struct{ target, cause string }{
		{"/pcfBindings", "MANDATORY_QUERY_PARAM_MISSING"}, {"/pcfBindings?dnn=internet", "MANDATORY_QUERY_PARAM_MISSING"},
		{"/pcfBindings?ipv4Addr=", "MANDATORY_QUERY_PARAM_MISSING"}, {"/pcfBindings?ipv4Addr=x", mandQ},
		{"/pcfBindings?ipv4Addr=10.0.0.1&ipv4Addr=10.0.0.1", "INVALID_QUERY_PARAM"}, {"/pcfBindings?ipv4Addr=10.0.0.1&snssai=256", optQ},
		{"/pcfBindings?ipv4Addr=10.0.0.1&snssai=01-010203", optQ}, {"/pcfBindings?ipv4Addr=10.0.0.1&snssai=1-01", optQ},
		{"/pcfBindings?ipv4Addr=10.0.0.1&macAddr48=02-00-5e-10-00-01", mandQ}, {"/pcfBindings?ipv4Addr=10.0.0.1&dnn=%ZZ", "INVALID_QUERY_PARAM"},
		{"/pcf-ue-bindings", "MANDATORY_QUERY_PARAM_MISSING"}, {"/pcf-mbs-bindings?mbs-session-id={}", mandQ},
	} {
		if w := newRig(t, tolerate.All).send("GET", c.target, ""); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), `"cause":"`+c.cause+`"`) {
			t.Errorf("%s: %d %s", c.target, w.Code, w.Body)
		}
	}
}

// TestEveryToleranceHasATest proves that the tables above leave none out.
func TestEveryToleranceHasATest(t *testing.T) {
	tested := map[string]bool{"patchFeature": true}
	for _, c := range posts {
		for _, name := range strings.Fields(c.names) {
			tested[name] = true
		}
	}
	for _, c := range requests {
		for _, name := range strings.Fields(c.names) {
			tested[name] = true
		}
	}
	for _, k := range Tolerances {
		if !tested[k.Name] {
			t.Errorf("%s has no test", k.Name)
		}
		if k.Accepts == "" || k.Keeps == "" || k.Seen == "" {
			t.Errorf("%s is not described", k.Name)
		}
	}
}

// TestDocumentedTolerances holds the table of the documentation against
// Tolerances.
func TestDocumentedTolerances(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "interoperability.md"))
	if err != nil {
		t.Fatal(err)
	}
	if want := Tolerances.Markdown(); !strings.Contains(string(page), want) {
		t.Errorf("docs/interoperability.md does not have this table:\n%s", want)
	}
}
