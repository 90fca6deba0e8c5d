package nbsf

import (
	"encoding/json"
	"flag"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"bsfd/bsf"
	"bsfd/internal/spectest"
	"bsfd/internal/tolerate"
)

// readers decode, complete and check a resource of each kind, and return its
// answer. Nothing is stored.
var readers = []struct {
	schema string
	read   func(a *API, text string) (answer []byte, used tolerate.Set)
}{
	{"PcfBinding", func(a *API, text string) ([]byte, tolerate.Set) {
		b := bsf.NewPcfBinding()
		used, ok := a.try(text, func(d *decoder) func(string) { return d.pcfBinding(&b, nil) })
		if !ok {
			return nil, 0
		}
		used |= a.completeRealm(&b)
		if b.Check() != nil {
			return nil, 0
		}
		return b.AppendJSON(nil), used
	}},
	{"PcfForUeBinding", func(a *API, text string) ([]byte, tolerate.Set) {
		var b bsf.PcfForUeBinding
		used, ok := a.try(text, func(d *decoder) func(string) { return d.pcfForUeBinding(&b) })
		if !ok || b.Check() != nil {
			return nil, 0
		}
		return b.AppendJSON(nil), used
	}},
	{"PcfMbsBinding", func(a *API, text string) ([]byte, tolerate.Set) {
		var b bsf.PcfMbsBinding
		used, ok := a.try(text, func(d *decoder) func(string) { return d.pcfMbsBinding(&b) })
		if !ok || b.Check() != nil {
			return nil, 0
		}
		return b.AppendJSON(nil), used
	}},
	{"BsfSubscription", func(a *API, text string) ([]byte, tolerate.Set) {
		var s bsf.Subscription
		used, ok := a.try(text, func(d *decoder) func(string) { return d.subscription(&s) })
		if !ok || s.Check() != nil {
			return nil, 0
		}
		return append(s.AppendMembers(nil), '}'), used
	}},
}

// try decodes a text.
func (a *API) try(text string, members func(*decoder) func(string)) (used tolerate.Set, ok bool) {
	d := a.decoders.get()
	defer a.decoders.put(d)
	d.in.WriteString(text)
	problem := d.decode(members(d))
	return d.used, problem == nil
}

// FuzzTolerance proves of every body that is accepted, as it is or by
// tolerance, that the answer fits the OpenAPI file of 3GPP, and that what was
// answered is accepted in strict mode and answered again as it is. A name that
// is kept as it came is the one exception: it needs that tolerance again.
func FuzzTolerance(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	for _, c := range posts {
		f.Add(c.sent)
		f.Add(c.kept)
	}
	h := newHolder(f)
	f.Fuzz(func(t *testing.T, text string) { h.hold(t, text) })
}

// holder has what the property of FuzzTolerance takes.
type holder struct {
	lenient, strict, names *API
	schema                 *spectest.Schema
	accepted, tolerated    int
}

func newHolder(t testing.TB) *holder {
	return &holder{
		lenient: &API{cfg: Config{DiamRealm: "epc.example"}, allowed: everything, decoders: newDecoders(everything)},
		strict:  &API{decoders: newDecoders(0)},
		names:   &API{allowed: tol(tolName), decoders: newDecoders(tol(tolName))},
		schema:  spectest.Load(t, "../.."),
	}
}

// hold fails the test unless the property holds for a body.
func (h *holder) hold(t *testing.T, text string) {
	t.Helper()
	for i := range readers {
		r := &readers[i]
		answer, used := r.read(h.lenient, text)
		if answer == nil {
			continue
		}
		h.accepted++
		if used != 0 {
			h.tolerated++
		}
		again := h.strict
		if used.Has(tol(tolName)) {
			again = h.names
		}
		second, _ := r.read(again, string(answer))
		if string(second) != string(answer) {
			t.Fatalf("%s\nanswered     %s\nposted again %s", text, answer, second)
		}
		if again == h.strict {
			fits(t, h.schema.Resource(r.schema), answer)
		}
		if strings.Contains(allNames(answer), "://") {
			t.Fatalf("a name holds a URI: %s", answer)
		}
	}
}

// cases is how many bodies TestToleranceHolds makes.
var cases = flag.Int("tolerance.cases", 20000, "bodies that TestToleranceHolds makes")

// choices are values of members as peers send them: right, tolerated and wrong.
var choices = map[string][]string{
	"name": {`"pcf.example.com"`, `"pcf"`, `"PCF_1.core"`, `"pcf.example.com."`, `"http://127.0.0.7:29507"`, `"http://[2001:DB8::1]"`, `"https://pcf:8443/x"`,
		`"aaa://pcf.example.com:3868"`, `"10.0.0.1"`, `"::1"`, `"pcf:80"`, `"http://"`, `"."`, `""`, "null", "5", `"a b"`, `"1.2.3.4.5"`, `"x.1"`},
	"points": {`[{"ipv4Address":"192.0.2.1","port":80}]`, `[{"ipv4Address":"127.0.0.7","port":29507}]`, `[]`, "null", `[null]`, `[{}]`, `[{"port":1}]`,
		`[{"ipv4Address":"192.0.2.1","ipv6Address":"2001:DB8::1"}]`, `[{"ipv6Address":"::ffff:1.2.3.4","transport":""},{"ipv4Address":""}]`, `[{"port":65536}]`, `{}`, `[{"port":null,"ipv4Address":"::ffff:7f00:7"}]`},
	"ipv4":   {`"10.45.0.2"`, `"::ffff:10.45.0.2"`, `""`, "null", `"10.45.0.300"`, `"010.1.1.1"`},
	"prefix": {`"2001:db8::/64"`, `"2001:DB8:0::/64"`, `"2001:db8::1"`, `"2001:db8::1/64"`, `"::ffff:1.2.3.4/128"`, `"::/0"`, `"::"`, `""`, "null", `"2001:db8::/129"`, `"1::1::"`},
	"mac":    {`"02-00-5e-10-00-01"`, `"02-00-5E-10-00-01"`, `"02:00:5e:10:00:01"`, `"0200.5e10.0001"`, `"02005E100001"`, `""`, "null", `"02-00"`},
	"dnn":    {`"internet"`, `"Internet.mnc001.mcc001.gprs"`, `""`, "null", `"a b"`},
	"snssai": {`{"sst":1}`, `{"sst":"255","sd":"0000ab"}`, `{"sst":1,"sd":""}`, `{"sst":1,"sd":null}`, `{"sst":null}`, `{"sst":256}`, "null", "[]"},
	"text":   {`"imsi-001010000000001"`, `"x"`, `""`, "null", `"\u0000"`, "[]", `"\ud83d\ude00\""`},
	"feat":   {`"3"`, `"17"`, `"1F"`, `"0x7"`, `"0X"`, `""`, "null", `"xyz"`, "3", `"0"`},
	"uuid":   {`"54804518-4191-46b3-955c-ac631f953ed8"`, `"X"`, `""`, "null"},
	"set":    {`"set1.pcfset.5gc.mnc001.mcc001"`, `"x"`, "null"},
	"para":   {`{"supi":"imsi-1","dnn":"ims","snssai":{"sst":1}}`, `{"supi":null,"dnn":"","snssai":null}`, `{}`, "null", "[]"},
	"time":   {`"2026-01-01T00:00:00Z"`, `""`, "null", `"x"`},
	"routes": {`["10.0.0.0/8","10.0.0.1/8","10.0.0.1"]`, `["x"]`, "[]", "null", `[null,"1.2.3.0/24"]`},
	"mbs": {`{"tmgi":{"mbsServiceId":"0A0B0C","plmnId":{"mcc":"001","mnc":"01"}}}`, `{"tmgi":null,"ssm":{"sourceIpAddr":{"ipv4Addr":"192.0.2.1"},"destIpAddr":{"ipv6Prefix":"FF3E::"}},"nid":""}`,
		`{"ssm":{"sourceIpAddr":{"ipv4Addr":null,"ipv6Addr":"2001:DB8::1"},"destIpAddr":{"ipv6Addr":"::ffff:1.2.3.4"}}}`, `{"tmgi":null}`, "null"},
	"events": {`["PCF_UE_BINDING_REGISTRATION"]`, `["SNSSAI_DNN_BINDING_REGISTRATION",null]`, `[]`, `[""]`, "null"},
	"uri":    {`"http://nf.example.com/x"`, `""`, "null", `"x"`},
	"pair":   {`{"dnn":"ims","snssai":{"sst":1}}`, `{"dnn":null,"snssai":{"sst":1}}`, "null", `{}`},
}

// memberChoices says which choices a member has.
var memberChoices = []struct{ member, kind, list string }{
	{"supi", "text", ""}, {"gpsi", "text", ""}, {"ipv4Addr", "ipv4", ""}, {"ipv6Prefix", "prefix", ""}, {"addIpv6Prefixes", "", "prefix"},
	{"ipDomain", "text", ""}, {"macAddr48", "mac", ""}, {"addMacAddrs", "", "mac"}, {"dnn", "dnn", ""}, {"snssai", "snssai", ""},
	{"pcfFqdn", "name", ""}, {"pcfIpEndPoints", "points", ""}, {"pcfDiamHost", "name", ""}, {"pcfDiamRealm", "name", ""},
	{"pcfSmFqdn", "name", ""}, {"pcfSmIpEndPoints", "points", ""}, {"suppFeat", "feat", ""}, {"pcfId", "uuid", ""}, {"pcfSetId", "set", ""},
	{"recoveryTime", "time", ""}, {"paraCom", "para", ""}, {"bindLevel", "text", ""}, {"ipv4FrameRouteList", "routes", ""}, {"ipv6FrameRouteList", "", "prefix"},
	{"pcfForUeFqdn", "name", ""}, {"pcfForUeIpEndPoints", "points", ""}, {"mbsSessionId", "mbs", ""},
	{"events", "events", ""}, {"notifUri", "uri", ""}, {"notifCorreId", "text", ""}, {"snssaiDnnPairs", "pair", ""}, {"addSnssaiDnnPairs", "", "pair"},
}

// TestToleranceHolds proves the property of FuzzTolerance of bodies that are
// made of what peers send. Right values come more often than others, so that
// most bodies are accepted.
func TestToleranceHolds(t *testing.T) {
	h := newHolder(t)
	rnd := rand.New(rand.NewPCG(3, 4))
	pick := func(kind string) string {
		list := choices[kind]
		return list[rnd.IntN(rnd.IntN(len(list))+1)]
	}
	for range *cases {
		var b strings.Builder
		for _, c := range memberChoices {
			if rnd.IntN(3) == 0 && c.member != "dnn" && c.member != "snssai" {
				continue
			}
			var value string
			if c.list == "" {
				value = pick(c.kind)
			} else {
				value = "[" + pick(c.list) + "," + pick(c.list) + "]"
			}
			if (c.member == "macAddr48" || c.member == "addMacAddrs") && rnd.IntN(8) > 0 {
				continue
			}
			b.WriteString(`,"` + c.member + `":` + value)
		}
		h.hold(t, "{"+strings.TrimPrefix(b.String(), ",")+"}")
	}
	t.Logf("%d resources accepted, %d of them by tolerance", h.accepted, h.tolerated)
	if h.tolerated < *cases/20 {
		t.Errorf("only %d of %d bodies were tolerated", h.tolerated, *cases)
	}
}

func fits(t *testing.T, schema *openapi3.Schema, answer []byte) {
	t.Helper()
	var v any
	if err := json.Unmarshal(answer, &v); err != nil {
		t.Fatalf("%s: %v", answer, err)
	}
	if err := schema.VisitJSON(v); err != nil {
		t.Fatalf("%s does not fit the schema: %v", answer, err)
	}
}

// allNames is the text of all names of an answer.
func allNames(answer []byte) string {
	var m map[string]any
	_ = json.Unmarshal(answer, &m)
	var b strings.Builder
	for _, name := range []string{"pcfFqdn", "pcfSmFqdn", "pcfForUeFqdn", "pcfDiamHost", "pcfDiamRealm"} {
		s, _ := m[name].(string)
		b.WriteString(s + " ")
	}
	return b.String()
}
