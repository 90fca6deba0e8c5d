package nbsf

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"bsfd/bsf"
	"bsfd/internal/admission"
	"bsfd/internal/refusal"
	"bsfd/internal/tgpp"
	"bsfd/internal/tolerate"
	"bsfd/storage/memory"
	"bsfd/web/sbi"
)

// everything is the set of all tolerances.
const everything = ^tolerate.Set(0)

// seeds are registrations as PCFs send them, and some that are wrong.
var seeds = []string{
	`{"supi":"imsi-001010000000001","ipv4Addr":"10.45.0.2","ipv6Prefix":"2001:db8:abcd:12::/64","ipDomain":"dom1","dnn":"internet",` +
		`"snssai":{"sst":1,"sd":"0000AB"},"pcfFqdn":"pcf1.example.com","pcfDiamHost":"pcf1.rx.example.com","pcfDiamRealm":"example.com",` +
		`"pcfId":"54804518-4191-46b3-955c-ac631f953ed8","pcfSetId":"set1.pcfset.5gc.mnc001.mcc001","bindLevel":"NF_SET","suppFeat":"7"}`,
	`{"supi":"imsi-001010000000002","macAddr48":"02-00-5e-10-00-01","addMacAddrs":["02-00-5E-10-00-02"],"dnn":"lan","snssai":{"sst":1},` +
		`"pcfIpEndPoints":[{"ipv4Address":"192.0.2.10","port":8080,"transport":"TCP"}],"suppFeat":"1"}`,
	`{"ipv6Prefix":"2001:db8::/56","addIpv6Prefixes":["::1/128"],"ipv4FrameRouteList":["10.0.0.0/8"],"ipv6FrameRouteList":["::/0"],` +
		`"dnn":"a.b.mnc001.mcc001.gprs","snssai":{"sst":255},"pcfSmFqdn":"a.b.ex","pcfSmIpEndPoints":[{"ipv6Address":"2001:db8::1"}],` +
		`"recoveryTime":"2026-01-01T00:00:00.5+02:00","paraCom":{"supi":"nai-user@example.com","dnn":"ims","snssai":{"sst":0}},"gpsi":"extid-a@b"}`,
	`{"vendorSpecific-000111":{"version":1,"notificationUrl":"http://pcf/x","createBindingTime":"x"},"x":[1.5e3,true,false,null,{"a":[]}]}`,
	`{"dnn":"\u0061b\ud83d\ude00","supi":"\"\\\/\b\f\n\r\t"}`, `{"dnn":"\ud800"}`, `{"a":01}`, `[]`, `{"snssai":{"sst":1.0}}`, "\xff", `{"dnn":"` + "\xff" + `"}`,
	`{"mbsSessionId":{"tmgi":{"mbsServiceId":"0A0B0C","plmnId":{"mcc":"001","mnc":"01"}},"nid":"0123456789a"},"pcfFqdn":"pcf4.example.com"}`,
	`{"mbsSessionId":{"ssm":{"sourceIpAddr":{"ipv4Addr":"192.0.2.1"},"destIpAddr":{"ipv6Prefix":"ff3e::/64"}}},"pcfFqdn":"pcf4.example.com"}`,
	`{"events":["PCF_PDU_SESSION_BINDING_REGISTRATION"],"notifUri":"https://nf.example.com/cb","notifCorreId":"c7","supi":"imsi-001010000000001",` +
		`"snssaiDnnPairs":{"snssai":{"sst":1},"dnn":"internet"},"addSnssaiDnnPairs":[{"snssai":{"sst":2},"dnn":"ims"}]}`,
	`{"ipv4Addr":null,"ipDomain":null,"addIpv6Prefixes":["2001:db8:abcd:13::/64"],"pcfFqdn":"pcf2.example.com"}`,
	"{}\x00",
}

func decodeBinding(text string) (bsf.PcfBinding, *sbi.Problem) {
	d := newDecoders(0).get()
	d.in.WriteString(text)
	b := bsf.NewPcfBinding()
	problem := d.decode(d.pcfBinding(&b, new(string)))
	return b, problem
}

// FuzzPcfBinding proves that the decoder reads what encoding/json reads, where
// it accepts at all, and that what it accepts survives a round trip.
func FuzzPcfBinding(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		b, problem := decodeBinding(text)
		if problem != nil {
			return
		}
		if !json.Valid([]byte(text)) || !utf8.ValidString(text) {
			t.Fatalf("accepted although it is no JSON: %q", text)
		}
		var want bsf.PcfBinding
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			// encoding/json matches names whatever their case, so it may stumble
			// over members that are unknown here.
			return
		}
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil || foldedNames(value) {
			return
		}
		if b.Snssai == bsf.NewPcfBinding().Snssai {
			b.Snssai = want.Snssai
		}
		if !reflect.DeepEqual(b, want) {
			t.Fatalf("%s\n got %+v\nwant %+v", text, b, want)
		}
		again, problem := decodeBinding(string(b.AppendJSON(nil)))
		if problem != nil || !reflect.DeepEqual(again, b) {
			t.Fatalf("round trip of %s: %v\n got %+v\nwant %+v", b.AppendJSON(nil), problem, again, b)
		}
	})
}

// names are the names of a PcfBinding and of what it holds.
var names = func() []string {
	list := []string{"sst", "sd"}
	for _, t := range []reflect.Type{reflect.TypeFor[bsf.PcfBinding](), reflect.TypeFor[tgpp.IpEndPoint]()} {
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			list = append(list, name)
		}
	}
	return list
}()

// foldedNames reports whether a name of the value is one of the API in another
// case, which encoding/json takes for it.
func foldedNames(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			folded := func(own string) bool { return own != name && strings.EqualFold(own, name) }
			if slices.ContainsFunc(names, folded) || foldedNames(member) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, foldedNames)
	}
	return false
}

// FuzzOtherResources proves that no text crashes the decoders of the other
// resources and of queries, and that what they accept is JSON.
func FuzzOtherResources(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name, members := range map[string]func(*decoder) func(string){
			"ue":  func(d *decoder) func(string) { return d.pcfForUeBinding(&bsf.PcfForUeBinding{}) },
			"mbs": func(d *decoder) func(string) { return d.pcfMbsBinding(&bsf.PcfMbsBinding{}) },
			"sub": func(d *decoder) func(string) { return d.subscription(&bsf.Subscription{}) },
			"patch": func(d *decoder) func(string) {
				p := &patch[bsf.PcfBinding]{members: bindingMembers}
				return p.merge(d, d.pcfBinding(&p.values, nil))
			},
		} {
			d := newDecoders(everything).get()
			d.in.WriteString(text)
			if d.decode(members(d)) == nil && !json.Valid([]byte(text)) {
				t.Fatalf("%s accepted although it is no JSON: %q", name, text)
			}
		}
		a := &API{decoders: newDecoders(everything)}
		c := &call{allowed: everything, r: &http.Request{URL: &url.URL{RawQuery: text}}}
		var q bsf.Query
		_, _ = a.discoverQuery(c, &q)
		_, _, _, _ = a.ueQuery(c)
		_, _, _ = a.mbsQuery(c)
	})
}

func TestScannerAcceptsWhatIsJSON(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for text, valid := range map[string]bool{
		`{}`: true, ` {"a" : [ 1 , -2.5e+3 , 0.1E-1 ] , "b":"" } `: true, `{"a":"\u00e9\"\\\/\b\f\n\r\t"}`: true, `{"a":"é😀"}`: true,
		`{"a":` + deep(60) + `}`: true, `{"a":` + deep(80) + `}`: false,
		``: false, `{`: false, `{"a"}`: false, `{"a":}`: false, `{"a":1,}`: false, `{,}`: false, `{"a":1 "b":2}`: false, `{'a':1}`: false,
		`{"a":01}`: false, `{"a":1.}`: false, `{"a":.1}`: false, `{"a":1e}`: false, `{"a":+1}`: false, `{"a":-}`: false, `{"a":NaN}`: false,
		`{"a":tru}`: false, `{"a":nul}`: false, `{"a":"` + "\n" + `"}`: false, `{"a":"\x"}`: false, `{"a":"\u12g4"}`: false, `{"a":"\ud800"}`: false,
		`{"a":"\ud800\u0041"}`: false, `{"a":"\udc00"}`: false, `{"a":"` + "\xc3\x28" + `"}`: false, `{"a":1,"a":2}`: false, `{"a":1,"\u0061":2}`: false,
		`{}x`: false, `{"a":[1,]}`: false, `{"a":[}`: false, `{"a":"` + "\x00" + `"}`: false, "\ufeff{}": false,
		"{}\x00": false, "\x00{}": false, "{\x00}": false, "{\"a\":\x00}": false, "{\"a\"\x00:1}": false, "{\"a\":[1\x00]}": false, "{\"a\":1}\x00{}": false,
	} {
		_, problem := decodeBinding(text)
		if accepted := problem == nil; accepted != valid {
			t.Errorf("%q: %v, want %v", text, problem, valid)
		}
	}
	if _, problem := decodeBinding(`{` + strings.TrimSuffix(strings.Repeat(`"a":1,`, 300), ",") + `}`); problem == nil {
		t.Error("an endless object is accepted")
	}
}

func newAPI(t testing.TB, names ...string) *API {
	t.Helper()
	reg := prometheus.NewRegistry()
	s := memory.New()
	r, err := bsf.NewRegistry(bsf.Config{
		SameAddress: bsf.Supersede, MultipleMatches: bsf.MatchError, Features: bsf.SupportedFeatures, Revalidation: true,
	}, s, s, sleeper{}, zerolog.Nop(), reg)
	if err != nil {
		t.Fatal(err)
	}
	errs := sbi.NewErrors(sbi.ErrorConfig{ServerHeader: true, InstanceID: "x"}, nowhere{}, reg)
	a, err := New(Config{MaxBodyBytes: 64 << 10, LateArrival: true, BindingHeader: "off", Tolerate: names, DiamRealm: "epc.example"}, r, everybody{}, errs, zerolog.Nop(), reg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// everybody lets every request in.
type everybody struct{}

func (everybody) Pressed() bool { return false }

func (everybody) AdmitHTTP(*admission.Request, http.Header) *admission.Refusal { return nil }
func (everybody) Failed(int)                                                   {}

// nowhere is a journal that keeps nothing.
type nowhere struct{}

func (nowhere) Count(refusal.Key) bool                      { return false }
func (nowhere) Note(*refusal.Refusal, func(*zerolog.Event)) {}

type sleeper struct{}

func (sleeper) Wake()         {}
func (sleeper) Forget(bsf.ID) {}

// TestRandomBodies proves that no body gives a 5xx: 100,000 of them, made from
// real ones by cutting, repeating and changing bytes.
func TestRandomBodies(t *testing.T) {
	a := newAPI(t, tolerate.All)
	rnd := rand.New(rand.NewPCG(1, 2))
	targets := []struct{ method, path, mediaType string }{
		{"POST", "/pcfBindings", typeJSON}, {"POST", "/pcf-ue-bindings", typeJSON}, {"POST", "/pcf-mbs-bindings", typeJSON},
		{"POST", "/subscriptions", typeJSON}, {"PATCH", "/pcfBindings/0123456789abcdef0123456789abcdef", typeMergePatch},
		{"PUT", "/subscriptions/0123456789abcdef0123456789abcdef", typeJSON},
	}
	for i := range 100000 {
		body := mutate(rnd, seeds[rnd.IntN(len(seeds))])
		target := targets[i%len(targets)]
		r := httptest.NewRequest(target.method, BasePath+target.path, strings.NewReader(body))
		r.Header.Set("Content-Type", target.mediaType)
		w := httptest.NewRecorder()
		a.ServeHTTP(w, r)
		if w.Code >= http.StatusInternalServerError {
			t.Fatalf("%s %s answers %d %s to %q", target.method, target.path, w.Code, w.Body, body)
		}
		if w.Code >= 400 && !json.Valid(w.Body.Bytes()) {
			t.Fatalf("answer %q to %q", w.Body, body)
		}
	}
}

func mutate(rnd *rand.Rand, s string) string {
	b := []byte(s)
	for range rnd.IntN(4) {
		if len(b) < 2 {
			break
		}
		i, j := rnd.IntN(len(b)), rnd.IntN(len(b))
		i, j = min(i, j), max(i, j)
		switch rnd.IntN(5) {
		case 0:
			b = append(b[:i:i], b[j:]...)
		case 1:
			b = append(b[:j:j], b[i:]...)
		case 2:
			b[i] = byte(rnd.IntN(256))
		case 3:
			b[i] = `{}[]",:0-\`[rnd.IntN(10)]
		case 4:
			other := seeds[rnd.IntN(len(seeds))]
			b = append(b[:i:i], other[min(i, len(other)):]...)
		}
	}
	return string(b)
}

func BenchmarkDecodePcfBinding(b *testing.B) {
	text := seeds[0]
	p := newDecoders(everything)
	b.Run("scanner", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			d := p.get()
			d.in.WriteString(text)
			binding := bsf.NewPcfBinding()
			if problem := d.decode(d.pcfBinding(&binding, nil)); problem != nil {
				b.Fatal(problem)
			}
			p.put(d)
		}
	})
	b.Run("encoding/json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var binding bsf.PcfBinding
			if err := json.Unmarshal([]byte(text), &binding); err != nil {
				b.Fatal(err)
			}
		}
	})
}
