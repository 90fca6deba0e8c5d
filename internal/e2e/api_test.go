package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"bsfd/internal/pgtest"
	"bsfd/internal/spectest"
)

// walker sends requests to one bsfd and, where the OpenAPI file is present,
// validates every answer.
type walker struct {
	t      *testing.T
	p      *process
	c      *http.Client
	schema *spectest.Schema
}

func (w *walker) do(method, path, body string, headers ...string) answer {
	w.t.Helper()
	target := path
	if strings.HasPrefix(path, "/") {
		target = w.p.sbi + base + path
	}
	a := do(w.t, w.c, method, target, body, headers...)
	if w.schema != nil {
		w.schema.Check(w.t, method, base, target, spectest.Answer{Status: a.status, Header: a.header, Body: a.body})
	}
	return a
}

// run runs a subtest with the walker.
func (w *walker) run(name string, test func(w *walker)) {
	w.t.Run(name, func(t *testing.T) {
		sub := *w
		sub.t = t
		test(&sub)
	})
}

// expect fails unless the status and, for an error, the cause and the first
// invalid parameter are as wanted.
func (w *walker) expect(a answer, status int, wanted ...string) {
	w.t.Helper()
	if a.status != status {
		w.t.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	if status < 400 {
		return
	}
	if got := a.header.Get("Content-Type"); got != "application/problem+json" {
		w.t.Errorf("Content-Type %q", got)
	}
	m := a.json(w.t)
	if m["status"] != float64(status) {
		w.t.Errorf("status in the body: %v", m["status"])
	}
	if len(wanted) > 0 && m["cause"] != wanted[0] && !(wanted[0] == "" && m["cause"] == nil) {
		w.t.Errorf("cause %v, want %s", m["cause"], wanted[0])
	}
	if len(wanted) > 1 {
		if !strings.Contains(string(a.body), fmt.Sprintf(`"param":%q`, wanted[1])) {
			w.t.Errorf("no invalid parameter %s: %s", wanted[1], a.body)
		}
	}
}

// create registers and returns the Location.
func (w *walker) create(collection, body string) string {
	w.t.Helper()
	a := w.do("POST", collection, body)
	w.expect(a, http.StatusCreated)
	location := a.header.Get("Location")
	if !strings.HasPrefix(location, w.p.sbi+base+collection+"/") {
		w.t.Errorf("Location %q", location)
	}
	w.t.Cleanup(func() { _, _ = request(w.c, "DELETE", location, "") })
	return location
}

// sameJSON fails unless two JSON texts mean the same.
func (w *walker) sameJSON(got, want string) {
	w.t.Helper()
	var a, b any
	if err := json.Unmarshal([]byte(got), &a); err != nil {
		w.t.Fatalf("%q: %v", got, err)
	}
	if err := json.Unmarshal([]byte(want), &b); err != nil {
		w.t.Fatalf("%q: %v", want, err)
	}
	if !reflect.DeepEqual(a, b) {
		w.t.Errorf("got  %s\nwant %s", got, want)
	}
}

const (
	e1 = `{"supi":"imsi-001010000000001","ipv4Addr":"10.45.0.2","ipv6Prefix":"2001:db8:abcd:12::/64","ipDomain":"dom1","dnn":"internet",` +
		`"snssai":{"sst":1,"sd":"0000AB"},"pcfFqdn":"pcf1.example.com","pcfDiamHost":"pcf1.rx.example.com","pcfDiamRealm":"example.com",` +
		`"pcfId":"54804518-4191-46b3-955c-ac631f953ed8","pcfSetId":"set1.pcfset.5gc.mnc001.mcc001","bindLevel":"NF_SET","suppFeat":"7"}`
	ethernet = `{"supi":"imsi-001010000000002","macAddr48":"02-00-5e-10-00-01","addMacAddrs":["02-00-5E-10-00-02"],"dnn":"lan",` +
		`"snssai":{"sst":1},"pcfIpEndPoints":[{"ipv4Address":"192.0.2.10","port":8080}],"suppFeat":"1"}`
)

// with replaces or, with an empty value, removes top-level members of a JSON
// object.
func with(object string, pairs ...string) string {
	m := make(map[string]json.RawMessage)
	if err := json.Unmarshal([]byte(object), &m); err != nil {
		panic(err)
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			delete(m, pairs[i])
		} else {
			m[pairs[i]] = json.RawMessage(pairs[i+1])
		}
	}
	b, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// engines lists the storage engines with the flags that choose them.
func engines(t *testing.T) map[string]func(*testing.T) []string {
	return map[string]func(*testing.T) []string{
		"embedded": func(t *testing.T) []string { return []string{"--storage.dataDir", t.TempDir()} },
		"memory":   func(*testing.T) []string { return []string{"--storage.engine", "memory"} },
		"postgres": func(t *testing.T) []string {
			return []string{"--storage.engine", "postgres", "--storage.postgres.dsn", pgtest.Start(t).Database("bsfd")}
		},
	}
}

// TestAPI walks through Nbsf_Management on every engine, in strict mode: what is
// refused there is what TS 29.521 and TS 29.571 exclude. The walker checks
// SBI-001 and SBI-011 with every answer.
func TestAPI(t *testing.T) {
	for name, flags := range engines(t) {
		t.Run(name, func(t *testing.T) {
			p := launch(t, append(flags(t), "--sbi.strict")...)
			walk(&walker{t: t, p: p, c: newClient(nil)})
		})
	}
}

// TestSchema walks through Nbsf_Management and validates every answer against
// the OpenAPI file of 3GPP.
func TestSchema(t *testing.T) {
	s := spectest.Load(t, "../..")
	p := launch(t, "--storage.engine", "memory", "--sbi.strict")
	walk(&walker{t: t, p: p, c: newClient(nil), schema: s})
}

func walk(w *walker) {
	w.run("PCF bindings", walkRegistration)
	w.run("errors of registration", walkRegistrationErrors)
	w.run("discovery", walkDiscovery)
	w.run("discovery errors", walkDiscoveryErrors)
	w.run("update", walkUpdate)
	w.run("SamePcf", walkSamePcf)
	w.run("UE bindings", walkUe)
	w.run("MBS bindings", walkMbs)
	w.run("subscriptions", walkSubscriptions)
	w.run("resources and methods", walkMethods)
}

func walkRegistration(w *walker) {
	w.run("NBSF-002 NBSF-005 NBSF-090 201 with Location, the stored representation and the common features", func(w *walker) {
		a := w.do("POST", "/pcfBindings", with(e1, "suppFeat", `"ffffff7"`))
		w.expect(a, 201)
		w.sameJSON(string(a.body), with(e1, "suppFeat", `"17"`))
		if got := a.header.Get("3gpp-Sbi-Binding"); !strings.HasPrefix(got, "bl=nf-instance; nfinst=") {
			w.t.Errorf("SBI-034 3gpp-Sbi-Binding %q", got)
		}
		a = w.do("DELETE", a.header.Get("Location"), "")
		w.expect(a, 204)
		if len(a.body) != 0 {
			w.t.Errorf("body %q", a.body)
		}
	})
	w.run("NBSF-090 without suppFeat none is answered, shorter texts mean leading zeros", func(w *walker) {
		a := w.do("POST", "/pcfBindings", with(e1, "suppFeat", ""))
		w.expect(a, 201)
		w.sameJSON(string(a.body), with(e1, "suppFeat", ""))
		a = w.do("POST", "/pcfBindings", with(e1, "suppFeat", `"0003"`))
		w.sameJSON(string(a.body), with(e1, "suppFeat", `"3"`))
		w.do("DELETE", a.header.Get("Location"), "")
	})
	w.run("NBSF-006 unknown members are ignored", func(w *walker) {
		a := w.do("POST", "/pcfBindings", with(e1, "future", `{"a":[1,{"b":null}]}`, "vendorSpecific-000111", `{"version":1,"notificationUrl":"http://pcf/x"}`))
		w.expect(a, 201)
		w.sameJSON(string(a.body), e1)
		w.do("DELETE", a.header.Get("Location"), "")
	})
	w.run("NBSF-008 deregistering twice is 404", func(w *walker) {
		location := w.create("/pcfBindings", e1)
		w.expect(w.do("DELETE", location, ""), 204)
		w.expect(w.do("DELETE", location, ""), 404, "")
	})
	w.run("NBSF-016 NBSF-091 additional addresses without MultiUeAddr are ignored", func(w *walker) {
		a := w.do("POST", "/pcfBindings", with(e1, "suppFeat", `"2"`, "addIpv6Prefixes", `["2001:db8:1::/64"]`))
		w.expect(a, 201)
		w.sameJSON(string(a.body), with(e1, "suppFeat", `"2"`))
		w.expect(w.do("GET", "/pcfBindings?ipv6Prefix=2001:db8:1::/64", ""), 204)
		w.do("DELETE", a.header.Get("Location"), "")
	})
	w.run("NBSF-012 dual stack is legal; Ethernet sessions keep the spelling of their addresses", func(w *walker) {
		a := w.do("POST", "/pcfBindings", ethernet)
		w.expect(a, 201)
		w.sameJSON(string(a.body), ethernet)
		w.do("DELETE", a.header.Get("Location"), "")
	})
	w.run("NBSF-019 NBSF-020 any binding level is kept", func(w *walker) {
		for _, level := range []string{`"NF_INSTANCE"`, `"NF_FUTURE"`} {
			a := w.do("POST", "/pcfBindings", with(e1, "bindLevel", level, "pcfId", "", "pcfSetId", ""))
			w.expect(a, 201)
			w.do("DELETE", a.header.Get("Location"), "")
		}
	})
	w.run("NBSF-063 NBSF-044 a second registration of an address takes the place of the first", func(w *walker) {
		first := w.create("/pcfBindings", with(e1, "suppFeat", `"0"`))
		second := w.create("/pcfBindings", with(e1, "suppFeat", `"0"`, "supi", `"imsi-001010000000077"`))
		a := w.do("GET", "/pcfBindings?ipv4Addr=10.45.0.2", "")
		w.expect(a, 200)
		if !strings.Contains(string(a.body), "000000077") {
			w.t.Errorf("the older binding answers: %s", a.body)
		}
		w.expect(w.do("DELETE", first, ""), 404)
		other := w.create("/pcfBindings", with(e1, "ipv4Addr", `"10.45.0.77"`, "ipv6Prefix", "", "dnn", `"ims"`, "supi", `"imsi-001010000000077"`))
		w.expect(w.do("DELETE", other, ""), 204)
		w.expect(w.do("DELETE", second, ""), 204)
	})
}

func walkRegistrationErrors(w *walker) {
	for _, c := range []struct{ name, body, cause, param string }{
		{"NBSF-010 no dnn", with(e1, "dnn", ""), "MANDATORY_IE_MISSING", "/dnn"},
		{"NBSF-010 no snssai", with(e1, "snssai", ""), "MANDATORY_IE_MISSING", "/snssai"},
		{"NBSF-011 no UE address", with(e1, "ipv4Addr", "", "ipv6Prefix", "", "ipDomain", ""), "MANDATORY_IE_MISSING", "/ipv4Addr"},
		{"NBSF-012 IP and MAC addresses", with(e1, "macAddr48", `"02-00-5e-10-00-01"`), "MANDATORY_IE_INCORRECT", "/macAddr48"},
		{"NBSF-013 no PCF address", with(e1, "pcfFqdn", "", "pcfDiamHost", "", "pcfDiamRealm", ""), "MANDATORY_IE_MISSING", "/pcfFqdn"},
		{"NBSF-014 Diameter host alone", with(e1, "pcfDiamRealm", ""), "MANDATORY_IE_MISSING", "/pcfDiamRealm"},
		{"NBSF-014 Diameter realm alone", with(e1, "pcfDiamHost", ""), "MANDATORY_IE_MISSING", "/pcfDiamHost"},
		{"NBSF-015 paraCom without the address of Npcf_SMPolicyControl", with(e1, "paraCom", `{"supi":"imsi-001010000000001"}`), "MANDATORY_IE_MISSING", "/pcfSmFqdn"},
		{"NBSF-017 additional prefixes alone", with(e1, "ipv6Prefix", "", "addIpv6Prefixes", `["2001:db8::/64"]`), "OPTIONAL_IE_INCORRECT", "/addIpv6Prefixes"},
		{"NBSF-017 additional MAC addresses alone", with(e1, "addMacAddrs", `["02-00-5e-10-00-01"]`), "OPTIONAL_IE_INCORRECT", "/addMacAddrs"},
		{"NBSF-017 ipDomain alone", with(e1, "ipv4Addr", ""), "OPTIONAL_IE_INCORRECT", "/ipDomain"},
		{"NBSF-018 empty array", with(e1, "ipv4FrameRouteList", `[]`), "OPTIONAL_IE_INCORRECT", "/ipv4FrameRouteList"},
		{"NBSF-018 IPv4 with a leading zero", with(e1, "ipv4Addr", `"10.45.0.02"`), "MANDATORY_IE_INCORRECT", "/ipv4Addr"},
		{"NBSF-018 IPv6 without a length", with(e1, "ipv6Prefix", `"2001:db8::"`), "MANDATORY_IE_INCORRECT", "/ipv6Prefix"},
		{"NBSF-018 IPv6 in upper case", with(e1, "ipv6Prefix", `"2001:DB8::/64"`), "MANDATORY_IE_INCORRECT", "/ipv6Prefix"},
		{"NBSF-018 MAC with colons", with(ethernet, "macAddr48", `"02:00:5e:10:00:01"`), "MANDATORY_IE_INCORRECT", "/macAddr48"},
		{"NBSF-018 sst too large", with(e1, "snssai", `{"sst":256}`), "MANDATORY_IE_INCORRECT", "/snssai/sst"},
		{"NBSF-018 snssai without sst", with(e1, "snssai", `{"sd":"0000AB"}`), "MANDATORY_IE_INCORRECT", "/snssai/sst"},
		{"NBSF-018 sd too short", with(e1, "snssai", `{"sst":1,"sd":"AB"}`), "MANDATORY_IE_INCORRECT", "/snssai/sd"},
		{"NBSF-018 pcfId is no UUID", with(e1, "pcfId", `"pcf1"`), "OPTIONAL_IE_INCORRECT", "/pcfId"},
		{"NBSF-018 features are no digits", with(e1, "suppFeat", `"xyz"`), "MANDATORY_IE_INCORRECT", "/suppFeat"},
		{"NBSF-018 FQDN", with(e1, "pcfFqdn", `"pcf_1"`), "MANDATORY_IE_INCORRECT", "/pcfFqdn"},
		{"NBSF-018 number for a string", with(e1, "supi", `1`), "OPTIONAL_IE_INCORRECT", "/supi"},
		{"NBSF-018 null", with(e1, "dnn", `null`), "MANDATORY_IE_INCORRECT", "/dnn"},
		{"NBSF-018 end point with both addresses", with(e1, "pcfIpEndPoints", `[{"ipv4Address":"192.0.2.1","ipv6Address":"2001:db8::1"}]`), "MANDATORY_IE_INCORRECT", "/pcfIpEndPoints/0/ipv6Address"},
		{"NBSF-018 port too large", with(e1, "pcfIpEndPoints", `[{"ipv4Address":"192.0.2.1"},{"port":65536}]`), "MANDATORY_IE_INCORRECT", "/pcfIpEndPoints/1/port"},
		{"NBSF-018 framed route", with(e1, "ipv6FrameRouteList", `["2001:db8::/64","2001:db8::/129"]`), "OPTIONAL_IE_INCORRECT", "/ipv6FrameRouteList/1"},
		{"NBSF-018 recovery time", with(e1, "recoveryTime", `"yesterday"`), "OPTIONAL_IE_INCORRECT", "/recoveryTime"},
		{"SBI-003 no JSON", `{"dnn":`, "INVALID_MSG_FORMAT", ""},
		{"SBI-003 no object", `[1]`, "INVALID_MSG_FORMAT", ""},
		{"SBI-003 data after the object", `{} {}`, "INVALID_MSG_FORMAT", ""},
		{"SBI-003 a name twice", `{"dnn":"a","dnn":"b"}`, "INVALID_MSG_FORMAT", ""},
	} {
		w.run(c.name, func(w *walker) {
			a := w.do("POST", "/pcfBindings", c.body)
			if c.param == "" {
				w.expect(a, 400, c.cause)
			} else {
				w.expect(a, 400, c.cause, c.param)
			}
			if !strings.HasPrefix(a.header.Get("Server"), "BSF-") {
				w.t.Errorf("SBI-021 Server %q", a.header.Get("Server"))
			}
		})
	}
	w.run("NBSF-003 SBI-023 other media types are 415", func(w *walker) {
		w.expect(w.do("POST", "/pcfBindings", e1, "Content-Type", "text/plain"), 415)
		w.expect(w.do("POST", "/pcfBindings", e1, "Content-Type", ""), 415)
		w.expect(w.do("PATCH", "/pcfBindings/x", `{}`, "Content-Type", "application/json"), 415)
		w.expect(w.do("GET", "/pcfBindings?ipv4Addr=10.45.0.2", "", "Accept", "text/html"), 406)
	})
	w.run("SBI-024 unknown content coding is 415 with what is understood", func(w *walker) {
		a := w.do("POST", "/pcfBindings", e1, "Content-Encoding", "br")
		w.expect(a, 415)
		if a.header.Get("Accept-Encoding") != "gzip" {
			w.t.Errorf("Accept-Encoding %q", a.header.Get("Accept-Encoding"))
		}
		w.expect(w.do("POST", "/pcfBindings", e1, "Content-Encoding", "gzip"), 400, "INVALID_MSG_FORMAT")
	})
}

func walkDiscovery(w *walker) {
	w.create("/pcfBindings", with(e1, "addIpv6Prefixes", `["2001:db8:5::/64"]`, "ipv4FrameRouteList", `["172.16.0.0/12"]`,
		"ipv6FrameRouteList", `["2001:db8:f000::/36"]`, "gpsi", `"msisdn-4670000001"`, "suppFeat", `"3"`))
	w.create("/pcfBindings", ethernet)
	for _, c := range []struct {
		name, query string
		status      int
	}{
		{"NBSF-034 by IPv4 address", "ipv4Addr=10.45.0.2", 200},
		{"NBSF-034 by framed IPv4 route", "ipv4Addr=172.31.0.1", 200},
		{"NBSF-039 unknown address", "ipv4Addr=10.45.0.9", 204},
		{"NBSF-032 NBSF-033 by an address of the prefix", "ipv6Prefix=2001%3Adb8%3Aabcd%3A12%3A%3A99%2F128&dnn=internet", 200},
		{"NBSF-033 by the prefix", "ipv6Prefix=2001:db8:abcd:12::/64", 200},
		{"NBSF-033 host bits do not count", "ipv6Prefix=2001:db8:abcd:12::1/64", 200},
		{"NBSF-033 by an additional prefix", "ipv6Prefix=2001:db8:5::7/128", 200},
		{"NBSF-033 by framed IPv6 route", "ipv6Prefix=2001:db8:fabc::7/128", 200},
		{"NBSF-033 a wider prefix does not match", "ipv6Prefix=2001:db8::/32", 204},
		{"NBSF-035 by MAC in either case", "macAddr48=02-00-5E-10-00-01", 200},
		{"NBSF-035 by additional MAC", "macAddr48=02-00-5e-10-00-02", 200},
		{"NBSF-036 ipDomain", "ipv4Addr=10.45.0.2&ipDomain=dom1", 200},
		{"NBSF-036 other ipDomain", "ipv4Addr=10.45.0.2&ipDomain=DOM1", 204},
		{"NBSF-036 ipDomain of a binding without one", "macAddr48=02-00-5e-10-00-01&ipDomain=dom1", 204},
		{"NBSF-037 dnn in another case", "ipv4Addr=10.45.0.2&dnn=INTERNET", 200},
		{"NBSF-037 dnn with operator identifier", "ipv4Addr=10.45.0.2&dnn=internet.mnc001.mcc001.gprs", 200},
		{"NBSF-037 other dnn", "ipv4Addr=10.45.0.2&dnn=ims", 204},
		{"NBSF-037 snssai in another case", "ipv4Addr=10.45.0.2&snssai=" + url.QueryEscape(`{"sst":1,"sd":"0000ab"}`), 200},
		{"NBSF-037 snssai without sd", "ipv4Addr=10.45.0.2&snssai=" + url.QueryEscape(`{"sst":1}`), 204},
		{"NBSF-037 supi and gpsi", "ipv4Addr=10.45.0.2&supi=imsi-001010000000001&gpsi=msisdn-4670000001", 200},
		{"NBSF-037 attribute that the binding lacks", "macAddr48=02-00-5e-10-00-01&gpsi=msisdn-4670000001", 204},
		{"NBSF-031 both addresses of one session", "ipv4Addr=10.45.0.2&ipv6Prefix=2001:db8:abcd:12::/64", 200},
		{"NBSF-031 NBSF-038 addresses of different sessions", "ipv4Addr=10.45.0.2&ipv6Prefix=2001:db8:9::/64", 204},
	} {
		w.run(c.name, func(w *walker) {
			a := w.do("GET", "/pcfBindings?"+c.query, "")
			w.expect(a, c.status)
			if c.status == 204 && len(a.body) != 0 {
				w.t.Errorf("body %q", a.body)
			}
		})
	}
	w.run("NBSF-041 attributes of features that the consumer lacks are left out", func(w *walker) {
		a := w.do("GET", "/pcfBindings?ipv4Addr=10.45.0.2&supp-feat=2", "")
		w.expect(a, 200)
		m := a.json(w.t)
		if m["addIpv6Prefixes"] != nil || m["suppFeat"] != "2" {
			w.t.Errorf("%s", a.body)
		}
		if m = w.do("GET", "/pcfBindings?ipv4Addr=10.45.0.2&supp-feat=1", "").json(w.t); m["addIpv6Prefixes"] == nil || m["suppFeat"] != "1" {
			w.t.Errorf("%v", m)
		}
	})
	w.run("NBSF-040 NBSF-036 the same address in two domains", func(w *walker) {
		w.create("/pcfBindings", with(e1, "ipDomain", `"dom2"`, "ipv6Prefix", "", "supi", `"imsi-001010000000003"`))
		w.expect(w.do("GET", "/pcfBindings?ipv4Addr=10.45.0.2", ""), 400, "MULTIPLE_BINDING_INFO_FOUND")
		a := w.do("GET", "/pcfBindings?ipv4Addr=10.45.0.2&ipDomain=dom2", "")
		w.expect(a, 200)
		if a.json(w.t)["supi"] != "imsi-001010000000003" {
			w.t.Errorf("%s", a.body)
		}
	})
}

func walkDiscoveryErrors(w *walker) {
	for _, c := range []struct{ name, query, cause, param string }{
		{"NBSF-030 no address", "", "MANDATORY_QUERY_PARAM_MISSING", "query ipv4Addr"},
		{"NBSF-030 only a subscriber", "supi=imsi-001010000000001", "MANDATORY_QUERY_PARAM_MISSING", "query macAddr48"},
		{"NBSF-031 IP and MAC", "ipv4Addr=10.0.0.1&macAddr48=02-00-5e-10-00-01", "MANDATORY_QUERY_PARAM_INCORRECT", "query macAddr48"},
		{"NBSF-042 malformed IPv4", "ipv4Addr=10.0.0", "MANDATORY_QUERY_PARAM_INCORRECT", "query ipv4Addr"},
		{"NBSF-042 malformed IPv6", "ipv6Prefix=2001:db8::1", "MANDATORY_QUERY_PARAM_INCORRECT", "query ipv6Prefix"},
		{"NBSF-042 malformed snssai", "ipv4Addr=10.0.0.1&snssai=1", "OPTIONAL_QUERY_PARAM_INCORRECT", "query snssai"},
		{"NBSF-042 smuggled member", "ipv4Addr=10.0.0.1&snssai=" + url.QueryEscape(`{"sst":1},"x":2`), "OPTIONAL_QUERY_PARAM_INCORRECT", "query snssai"},
		{"NBSF-042 malformed supp-feat", "ipv4Addr=10.0.0.1&supp-feat=x", "OPTIONAL_QUERY_PARAM_INCORRECT", "query supp-feat"},
		{"NBSF-042 empty dnn", "ipv4Addr=10.0.0.1&dnn=", "OPTIONAL_QUERY_PARAM_INCORRECT", "query dnn"},
		{"NBSF-043 repeated parameter", "ipv4Addr=10.0.0.1&ipv4Addr=10.0.0.2", "INVALID_QUERY_PARAM", "query ipv4Addr"},
		{"NBSF-043 unknown parameter", "ipv4Addr=10.0.0.1&foo=1", "INVALID_QUERY_PARAM", "query foo"},
		{"SBI-002 broken escape", "ipv4Addr=%zz", "INVALID_QUERY_PARAM", "query ipv4Addr"},
	} {
		w.run(c.name, func(w *walker) { w.expect(w.do("GET", "/pcfBindings?"+c.query, ""), 400, c.cause, c.param) })
	}
}

func walkUpdate(w *walker) {
	w.run("NBSF-054 NBSF-051 addresses move at once, arrays are replaced whole", func(w *walker) {
		location := w.create("/pcfBindings", e1)
		a := w.do("PATCH", location, `{"ipv4Addr":null,"ipDomain":null,"addIpv6Prefixes":["2001:db8:abcd:13::/64"]}`)
		w.expect(a, 200)
		w.sameJSON(string(a.body), with(e1, "ipv4Addr", "", "ipDomain", "", "addIpv6Prefixes", `["2001:db8:abcd:13::/64"]`))
		w.expect(w.do("GET", "/pcfBindings?ipv4Addr=10.45.0.2", ""), 204)
		w.expect(w.do("GET", "/pcfBindings?ipv6Prefix=2001:db8:abcd:13::1/128", ""), 200)
		w.expect(w.do("PATCH", location, `{"addIpv6Prefixes":["2001:db8:abcd:14::/64"]}`), 200)
		w.expect(w.do("GET", "/pcfBindings?ipv6Prefix=2001:db8:abcd:13::1/128", ""), 204)
		w.expect(w.do("PATCH", location, `{"ipv4Addr":"10.45.0.3"}`), 200)
		w.expect(w.do("GET", "/pcfBindings?ipv4Addr=10.45.0.3", ""), 200)
	})
	w.run("NBSF-055 another PCF keeps the binding id", func(w *walker) {
		location := w.create("/pcfBindings", e1)
		a := w.do("PATCH", location, `{"pcfId":"00000000-0000-4000-8000-000000000001","pcfFqdn":"pcf9.example.com","snssai":{"sst":2},`+
			`"pcfIpEndPoints":[{"ipv4Address":"192.0.2.9"}],"pcfDiamHost":"pcf9.rx.example.com","pcfDiamRealm":"example.org"}`)
		w.expect(a, 200)
		if m := a.json(w.t); m["pcfFqdn"] != "pcf9.example.com" || m["pcfDiamRealm"] != "example.org" {
			w.t.Errorf("%s", a.body)
		}
		w.expect(w.do("DELETE", location, ""), 204)
	})
	w.run("NBSF-053 members that are no part of the patch are ignored", func(w *walker) {
		location := w.create("/pcfBindings", e1)
		a := w.do("PATCH", location, `{"dnn":"ims","supi":null,"suppFeat":"0"}`)
		w.expect(a, 200)
		w.sameJSON(string(a.body), e1)
	})
	w.run("NBSF-052 what may not be deleted, and results that break a rule", func(w *walker) {
		location := w.create("/pcfBindings", e1)
		w.expect(w.do("PATCH", location, `{"pcfFqdn":null}`), 400, "MANDATORY_IE_INCORRECT", "/pcfFqdn")
		w.expect(w.do("PATCH", location, `{"ipv4Addr":null,"ipv6Prefix":null,"ipDomain":null}`), 400, "MANDATORY_IE_MISSING", "/ipv4Addr")
		w.expect(w.do("PATCH", location, `{"macAddr48":"02-00-5e-10-00-01"}`), 400, "MANDATORY_IE_INCORRECT", "/macAddr48")
		w.expect(w.do("PATCH", location, `{"ipv4Addr":"10.45.0"}`), 400, "MANDATORY_IE_INCORRECT", "/ipv4Addr")
		a := w.do("GET", "/pcfBindings?ipv4Addr=10.45.0.2", "")
		w.expect(a, 200)
		w.sameJSON(string(a.body), e1)
	})
	w.run("NBSF-050 BindingUpdate must have been negotiated", func(w *walker) {
		location := w.create("/pcfBindings", with(e1, "suppFeat", `"5"`))
		w.expect(w.do("PATCH", location, `{"ipv4Addr":"10.45.0.3"}`), 403, "MODIFICATION_NOT_ALLOWED")
	})
	w.run("NBSF-007 unknown binding", func(w *walker) {
		w.expect(w.do("PATCH", "/pcfBindings/unknown", `{}`), 404)
		w.expect(w.do("DELETE", "/pcfBindings/0123456789abcdef0123456789abcdef", ""), 404)
	})
}

func walkSamePcf(w *walker) {
	const para = `{"supi":"imsi-001010000000001","dnn":"internet","snssai":{"sst":1,"sd":"0000AB"}}`
	w.run("NBSF-060 NBSF-061 another PCF is told who holds the binding", func(w *walker) {
		w.create("/pcfBindings", with(e1, "pcfSmFqdn", `"pcf1sm.example.com"`, "paraCom", para, "pcfSmIpEndPoints", `[{"ipv4Address":"192.0.2.1","port":80}]`))
		a := w.do("POST", "/pcfBindings", `{"supi":"imsi-001010000000001","ipv4Addr":"10.45.0.3","dnn":"internet","snssai":{"sst":1,"sd":"0000AB"},`+
			`"pcfFqdn":"pcf2.example.com","pcfSmFqdn":"pcf2sm.example.com","paraCom":`+para+`,"suppFeat":"4"}`)
		w.expect(a, 403, "EXISTING_BINDING_INFO_FOUND")
		if m := a.json(w.t); m["pcfSmFqdn"] != "pcf1sm.example.com" || m["pcfSmIpEndPoints"] == nil {
			w.t.Errorf("%s", a.body)
		}
		w.expect(w.do("GET", "/pcfBindings?ipv4Addr=10.45.0.3", ""), 204)
	})
	w.run("NBSF-062 the same PCF registers another binding", func(w *walker) {
		w.create("/pcfBindings", with(e1, "pcfSmFqdn", `"pcf1sm.example.com"`, "paraCom", para))
		w.create("/pcfBindings", with(e1, "pcfSmFqdn", `"pcf1sm.example.com"`, "paraCom", para, "ipv4Addr", `"10.45.0.3"`, "ipv6Prefix", ""))
		w.expect(w.do("GET", "/pcfBindings?ipv4Addr=10.45.0.2", ""), 200)
		w.expect(w.do("GET", "/pcfBindings?ipv4Addr=10.45.0.3", ""), 200)
	})
	w.run("NBSF-065 only the given members are compared", func(w *walker) {
		w.create("/pcfBindings", with(e1, "pcfSmFqdn", `"pcf1sm.example.com"`))
		a := w.do("POST", "/pcfBindings", with(e1, "pcfId", `"00000000-0000-4000-8000-000000000002"`, "dnn", `"ims"`, "ipv4Addr", `"10.45.0.4"`, "ipv6Prefix", "",
			"pcfSmFqdn", `"pcf2sm.example.com"`, "paraCom", `{"supi":"imsi-001010000000001"}`))
		w.expect(a, 403, "EXISTING_BINDING_INFO_FOUND")
	})
	w.run("NBSF-011 NBSF-060 ExtendedSamePcf needs no UE address", func(w *walker) {
		body := with(e1, "ipv4Addr", "", "ipDomain", "", "ipv6Prefix", "", "pcfSmFqdn", `"pcf1sm.example.com"`, "paraCom", para, "suppFeat", `"10"`)
		w.create("/pcfBindings", body)
		w.expect(w.do("POST", "/pcfBindings", with(body, "pcfId", `"00000000-0000-4000-8000-000000000002"`)), 403, "EXISTING_BINDING_INFO_FOUND")
		w.expect(w.do("POST", "/pcfBindings", with(body, "suppFeat", `"4"`)), 400, "MANDATORY_IE_MISSING", "/ipv4Addr")
	})
}

func walkUe(w *walker) {
	const ue = `{"supi":"imsi-001010000000001","gpsi":"msisdn-4670000001","pcfForUeFqdn":"pcf3.example.com","suppFeat":"0"}`
	w.run("NBSF-070 NBSF-071 NBSF-056 register, discover, update, deregister", func(w *walker) {
		a := w.do("POST", "/pcf-ue-bindings", ue)
		w.expect(a, 201)
		w.sameJSON(string(a.body), ue)
		location := a.header.Get("Location")
		for _, q := range []string{"supi=imsi-001010000000001", "gpsi=msisdn-4670000001", "supi=imsi-001010000000001&gpsi=msisdn-4670000001&supp-feat=1"} {
			a = w.do("GET", "/pcf-ue-bindings?"+q, "")
			w.expect(a, 200)
			w.sameJSON(string(a.body), "["+ue+"]")
		}
		a = w.do("GET", "/pcf-ue-bindings?supi=imsi-001010000000009", "")
		w.expect(a, 200)
		w.sameJSON(string(a.body), "[]")
		a = w.do("PATCH", location, `{"pcfForUeIpEndPoints":[{"ipv6Address":"2001:db8::1"}],"pcfId":"00000000-0000-4000-8000-000000000001"}`)
		w.expect(a, 200)
		w.sameJSON(string(a.body), with(ue, "pcfForUeIpEndPoints", `[{"ipv6Address":"2001:db8::1"}]`, "pcfId", `"00000000-0000-4000-8000-000000000001"`))
		w.expect(w.do("DELETE", location, ""), 204)
		w.expect(w.do("DELETE", location, ""), 404)
		w.expect(w.do("PATCH", location, `{}`), 404)
	})
	w.run("a PCF that registers again takes the place of its binding", func(w *walker) {
		w.create("/pcf-ue-bindings", ue)
		w.create("/pcf-ue-bindings", with(ue, "gpsi", ""))
		a := w.do("GET", "/pcf-ue-bindings?supi=imsi-001010000000001", "")
		w.sameJSON(string(a.body), "["+with(ue, "gpsi", "")+"]")
		w.create("/pcf-ue-bindings", with(ue, "pcfForUeFqdn", `"pcf4.example.com"`))
		if a = w.do("GET", "/pcf-ue-bindings?supi=imsi-001010000000001", ""); strings.Count(string(a.body), "supi") != 2 {
			w.t.Errorf("%s", a.body)
		}
	})
	w.run("errors", func(w *walker) {
		w.expect(w.do("POST", "/pcf-ue-bindings", with(ue, "supi", "")), 400, "MANDATORY_IE_MISSING", "/supi")
		w.expect(w.do("POST", "/pcf-ue-bindings", with(ue, "pcfForUeFqdn", "")), 400, "MANDATORY_IE_MISSING", "/pcfForUeFqdn")
		w.expect(w.do("GET", "/pcf-ue-bindings", ""), 400, "MANDATORY_QUERY_PARAM_MISSING", "query supi")
		w.expect(w.do("GET", "/pcf-ue-bindings?supi=", ""), 400, "MANDATORY_QUERY_PARAM_INCORRECT", "query supi")
		w.expect(w.do("GET", "/pcf-ue-bindings?ipv4Addr=10.0.0.1", ""), 400, "INVALID_QUERY_PARAM", "query ipv4Addr")
	})
}

func walkMbs(w *walker) {
	const session = `{"tmgi":{"mbsServiceId":"0A0B0C","plmnId":{"mcc":"001","mnc":"01"}}}`
	const mbs = `{"mbsSessionId":` + session + `,"pcfFqdn":"pcf4.example.com","pcfIpEndPoints":[{"ipv4Address":"192.0.2.4"}]}`
	w.run("NBSF-072 NBSF-073 NBSF-056 SBI-015 register, discover, update, deregister", func(w *walker) {
		a := w.do("POST", "/pcf-mbs-bindings", mbs)
		w.expect(a, 201)
		w.sameJSON(string(a.body), mbs)
		location := a.header.Get("Location")
		a = w.do("GET", "/pcf-mbs-bindings?mbs-session-id="+url.QueryEscape(strings.ToLower(session[:8])+session[8:])+"&supp-feat=%221%22", "")
		w.expect(a, 200)
		w.sameJSON(string(a.body), "["+mbs+"]")
		a = w.do("PATCH", location, `{"pcfFqdn":"pcf5.example.com"}`)
		w.expect(a, 200)
		w.sameJSON(string(a.body), with(mbs, "pcfFqdn", `"pcf5.example.com"`))
		w.expect(w.do("DELETE", location, ""), 204)
		a = w.do("GET", "/pcf-mbs-bindings?mbs-session-id="+url.QueryEscape(session)+"&supp-feat=1", "")
		w.expect(a, 200)
		w.sameJSON(string(a.body), "[]")
	})
	w.run("NBSF-074 a session that is bound", func(w *walker) {
		w.create("/pcf-mbs-bindings", mbs)
		a := w.do("POST", "/pcf-mbs-bindings", with(mbs, "pcfFqdn", `"pcf9.example.com"`, "mbsSessionId", strings.Replace(session, "0A0B0C", "0a0b0c", 1)))
		w.expect(a, 403, "EXISTING_BINDING_INFO_FOUND")
		if m := a.json(w.t); m["pcfFqdn"] != "pcf4.example.com" || m["pcfIpEndPoints"] == nil {
			w.t.Errorf("%s", a.body)
		}
	})
	w.run("source specific multicast", func(w *walker) {
		const ssm = `{"ssm":{"sourceIpAddr":{"ipv4Addr":"192.0.2.1"},"destIpAddr":{"ipv6Addr":"ff3e::1"}}}`
		w.create("/pcf-mbs-bindings", with(mbs, "mbsSessionId", ssm))
		if a := w.do("GET", "/pcf-mbs-bindings?mbs-session-id="+url.QueryEscape(ssm), ""); !strings.Contains(string(a.body), "ff3e::1") {
			w.t.Errorf("%s", a.body)
		}
	})
	w.run("errors", func(w *walker) {
		w.expect(w.do("POST", "/pcf-mbs-bindings", with(mbs, "mbsSessionId", "")), 400, "MANDATORY_IE_MISSING", "/mbsSessionId")
		w.expect(w.do("POST", "/pcf-mbs-bindings", with(mbs, "mbsSessionId", `{}`)), 400, "MANDATORY_IE_INCORRECT", "/mbsSessionId")
		w.expect(w.do("POST", "/pcf-mbs-bindings", with(mbs, "mbsSessionId", `{"tmgi":{"mbsServiceId":"0A0B0C"}}`)), 400, "MANDATORY_IE_INCORRECT", "/mbsSessionId/tmgi/plmnId")
		w.expect(w.do("POST", "/pcf-mbs-bindings", with(mbs, "pcfFqdn", "", "pcfIpEndPoints", "")), 400, "MANDATORY_IE_MISSING", "/pcfFqdn")
		w.expect(w.do("GET", "/pcf-mbs-bindings", ""), 400, "MANDATORY_QUERY_PARAM_MISSING", "query mbs-session-id")
		w.expect(w.do("GET", "/pcf-mbs-bindings?mbs-session-id=x", ""), 400, "MANDATORY_QUERY_PARAM_INCORRECT", "query mbs-session-id")
	})
}

func walkSubscriptions(w *walker) {
	const sub = `{"events":["PCF_PDU_SESSION_BINDING_REGISTRATION"],"notifUri":"http://127.0.0.1:9/cb","notifCorreId":"c7","supi":"imsi-001010000000501",` +
		`"snssaiDnnPairs":{"dnn":"internet","snssai":{"sst":1,"sd":"0000AB"}}}`
	w.run("NBSF-084 create, replace, end", func(w *walker) {
		a := w.do("POST", "/subscriptions", sub)
		w.expect(a, 201)
		w.sameJSON(string(a.body), sub)
		location := a.header.Get("Location")
		a = w.do("PUT", location, with(sub, "notifUri", `"http://127.0.0.1:9/other"`, "events", `["PCF_UE_BINDING_REGISTRATION","FUTURE_EVENT"]`))
		w.expect(a, 200)
		w.expect(w.do("DELETE", location, ""), 204)
		w.expect(w.do("DELETE", location, ""), 404, "SUBSCRIPTION_NOT_FOUND")
		w.expect(w.do("PUT", location, sub), 404, "SUBSCRIPTION_NOT_FOUND")
	})
	w.run("NBSF-083 NBSF-082 what already holds is in the answer", func(w *walker) {
		w.create("/pcfBindings", with(e1, "supi", `"imsi-001010000000501"`))
		w.create("/pcf-ue-bindings", `{"supi":"imsi-001010000000501","pcfForUeFqdn":"pcf3.example.com"}`)
		a := w.do("POST", "/subscriptions", with(sub, "events",
			`["PCF_PDU_SESSION_BINDING_REGISTRATION","SNSSAI_DNN_BINDING_REGISTRATION","PCF_UE_BINDING_REGISTRATION"]`))
		w.expect(a, 201)
		events, err := json.Marshal(a.json(w.t)["eventNotifs"])
		if err != nil {
			w.t.Fatal(err)
		}
		w.sameJSON(string(events), `[{"event":"PCF_PDU_SESSION_BINDING_REGISTRATION","pcfForPduSessInfos":[{"dnn":"internet","snssai":{"sst":1,"sd":"0000AB"},`+
			`"pcfFqdn":"pcf1.example.com","ipv4Addr":"10.45.0.2","ipDomain":"dom1","ipv6Prefixes":["2001:db8:abcd:12::/64"],`+
			`"pcfId":"54804518-4191-46b3-955c-ac631f953ed8","pcfSetId":"set1.pcfset.5gc.mnc001.mcc001","bindLevel":"NF_SET"}]},`+
			`{"event":"SNSSAI_DNN_BINDING_REGISTRATION","matchSnssaiDnns":[{"dnn":"internet","snssai":{"sst":1,"sd":"0000AB"}}]},`+
			`{"event":"PCF_UE_BINDING_REGISTRATION","pcfForUeInfo":{"pcfFqdn":"pcf3.example.com"}}]`)
		w.expect(w.do("DELETE", a.header.Get("Location"), ""), 204)
	})
	w.run("errors", func(w *walker) {
		for _, name := range []string{"events", "notifUri", "notifCorreId", "supi"} {
			w.expect(w.do("POST", "/subscriptions", with(sub, name, "")), 400, "MANDATORY_IE_MISSING", "/"+name)
		}
		w.expect(w.do("POST", "/subscriptions", with(sub, "events", `["SNSSAI_DNN_BINDING_REGISTRATION"]`, "snssaiDnnPairs", "")), 400,
			"MANDATORY_IE_MISSING", "/snssaiDnnPairs") // NBSF-080
		w.expect(w.do("POST", "/subscriptions", with(sub, "notifUri", `"ftp://x/"`)), 400, "MANDATORY_IE_INCORRECT", "/notifUri")
		w.expect(w.do("POST", "/subscriptions", with(sub, "snssaiDnnPairs", `{"dnn":"internet"}`)), 400, "MANDATORY_IE_INCORRECT", "/snssaiDnnPairs")
		w.expect(w.do("POST", "/subscriptions", with(sub, "events", `[]`)), 400, "MANDATORY_IE_INCORRECT", "/events")
	})
}

func walkMethods(w *walker) {
	w.run("NBSF-001 NBSF-004 other methods are 405 with Allow", func(w *walker) {
		for _, c := range []struct{ method, path, allow string }{
			{"GET", "/pcfBindings/x", "PATCH, DELETE"}, {"PUT", "/pcfBindings/x", "PATCH, DELETE"},
			{"DELETE", "/pcfBindings", "POST, GET"}, {"PATCH", "/subscriptions/x", "PUT, DELETE"}, {"GET", "/subscriptions", "POST"},
			{"GET", "/pcf-ue-bindings/x", "PATCH, DELETE"}, {"PUT", "/pcf-mbs-bindings/x", "PATCH, DELETE"},
		} {
			a := w.do(c.method, c.path, "")
			w.expect(a, 405)
			if a.header.Get("Allow") != c.allow {
				w.t.Errorf("%s %s: Allow %q", c.method, c.path, a.header.Get("Allow"))
			}
		}
		w.expect(w.do("BREW", "/pcfBindings", ""), 501)
	})
	w.run("NBSF-007 SBI-004 unknown paths, APIs and versions", func(w *walker) {
		w.expect(w.do("GET", "/pcfbindings", ""), 404, "RESOURCE_URI_STRUCTURE_NOT_FOUND")
		w.expect(w.do("GET", "/pcfBindings/x/y", ""), 404, "RESOURCE_URI_STRUCTURE_NOT_FOUND")
		a := do(w.t, w.c, "GET", w.p.sbi+"/nbsf-management/v2/pcfBindings", "")
		w.expect(a, 400, "INVALID_API")
		if !strings.Contains(string(a.body), `"supportedApiVersions":["v1"]`) {
			w.t.Errorf("%s", a.body)
		}
		w.expect(do(w.t, w.c, "GET", w.p.sbi+"/nnrf-nfm/v1/nf-instances", ""), 400, "INVALID_API")
	})
	w.run("SBI-005 what is checked first", func(w *walker) {
		late := []string{"3gpp-Sbi-Max-Rsp-Time", "1", "3gpp-Sbi-Sender-Timestamp", "Sun, 04 Aug 2019 08:49:37.845 GMT"}
		wrongType := append([]string{"Content-Type", "text/plain"}, late...)
		w.expect(do(w.t, w.c, "PUT", w.p.sbi+"/nbsf-management/v2/pcfBindings", "{", wrongType...), 400, "INVALID_API")
		w.expect(w.do("PUT", "/pcfBindings", "{", wrongType...), 405)
		w.expect(w.do("POST", "/pcfBindings", "{", wrongType...), 415)
		w.expect(w.do("POST", "/pcfBindings", "{", late...), 504, "TIMED_OUT_REQUEST")
		w.expect(w.do("POST", "/pcfBindings", "{"), 400, "INVALID_MSG_FORMAT")
		w.expect(w.do("PATCH", "/pcfBindings/unknown", `{"ipv4Addr":1}`), 400, "MANDATORY_IE_INCORRECT")
	})
	w.run("SBI-032 SBI-033 SBI-035 routing headers for an SCP are ignored", func(w *walker) {
		w.expect(w.do("GET", "/pcfBindings?ipv4Addr=10.99.0.1", "", "3gpp-Sbi-Target-apiRoot", "http://other.example.com",
			"3gpp-Sbi-Discovery-target-nf-type", "BSF", "3gpp-Sbi-Routing-Binding", "bl=nf-set; nfset=set1.bsfset.5gc.mnc001.mcc001"), 204)
	})
	w.run("SBI-014 malformed optional headers are ignored", func(w *walker) {
		w.expect(w.do("GET", "/pcfBindings?ipv4Addr=10.99.0.1", "", "3gpp-Sbi-Max-Rsp-Time", "-5", "3gpp-Sbi-Sender-Timestamp", "x", "X-Foo", "1"), 204)
	})
}
