package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"bsfd/diameter"
	"bsfd/diameter/rx"
	"bsfd/internal/pgtest"
	"bsfd/internal/settings"
	"bsfd/overload"
	"bsfd/web/oam"
)

// Roots of the configuration API.
const (
	ocRoot  = "/oc-bsf-configuration/v1/"
	igwRoot = "/BSF/nf-common-component/v1/igw/"
)

// set changes a setting and fails the test when that does not succeed.
func (p *process) set(method, path, body string) answer {
	p.t.Helper()
	a := do(p.t, http.DefaultClient, method, p.oam+path, body)
	if a.status/100 != 2 {
		p.t.Fatalf("%s %s: %d %s", method, path, a.status, a.body)
	}
	return a
}

// hold keeps requests on the service-based interface under way, until release
// is called: their bodies do not end.
func (p *process) hold(n int) (release func()) {
	p.t.Helper()
	c := newClient(nil)
	var pipes []*io.PipeWriter
	for range n {
		r, w := io.Pipe()
		pipes = append(pipes, w)
		req, err := http.NewRequest("POST", p.sbi+base+"/pcfBindings", r)
		if err != nil {
			p.t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("3gpp-Sbi-Message-Priority", "0")
		go func() {
			if resp, err := c.Do(req); err == nil {
				_ = resp.Body.Close()
			}
		}()
	}
	if !eventually(10*time.Second, func() bool { return p.count("ocbsf_ingress_pending") >= n }) {
		p.t.Fatal("the requests are not under way")
	}
	return func() {
		for _, w := range pipes {
			_ = w.CloseWithError(io.ErrUnexpectedEOF)
		}
		if !eventually(10*time.Second, func() bool { return p.count("ocbsf_ingress_pending") == 0 }) {
			p.t.Error("the requests do not end")
		}
	}
}

// register sends a registration of UE n with a priority, none when negative.
func (p *process) register(c *http.Client, n, priority int) answer {
	p.t.Helper()
	value := ""
	if priority >= 0 {
		value = strconv.Itoa(priority)
	}
	return do(p.t, c, "POST", p.sbi+base+"/pcfBindings", binding(n), "3gpp-Sbi-Message-Priority", value)
}

// becomes waits until a registration with a priority gets a status.
func (p *process) becomes(c *http.Client, priority, status int) answer {
	p.t.Helper()
	var a answer
	if !eventually(10*time.Second, func() bool { a = p.register(c, 1, priority); return a.status == status }) {
		p.t.Fatalf("priority %d: %d %s, not %d", priority, a.status, a.body, status)
	}
	return a
}

// holding lets requests that nobody answers be under way for the whole test.
const holding = "  timers: {response: 10m}\n"

const fast = `"stateCalculationInterval":50,"stateChangeSampleCount":1`

// TestSettingsOfTheServiceBasedInterface proves over the wire what the settings
// of each resource do.
func TestSettingsOfTheServiceBasedInterface(t *testing.T) {
	t.Parallel()
	c := newClient(nil)
	for name, test := range map[string]func(*testing.T, *process){
		"congestion control": func(t *testing.T, p *process) {
			p.set("POST", ocRoot+"congestionControl/thresholds", `{"name":"t","states":[{"state":"CONGESTED","queue":1}]}`)
			p.set("POST", ocRoot+"congestionControl/loadSheddingRules", `{"name":"s","rules":[{"state":"CONGESTED","discardPriority":10}]}`)
			p.set("PATCH", ocRoot+"congestionControl/settings", `{"management":{"enabled":true,`+fast+`,"thresholdProfile":"t","loadSheddingProfile":"s"}}`)
			release := p.hold(3)
			a := p.becomes(c, 10, 503)
			if m := a.json(t); m["cause"] != "NF_CONGESTION" || !strings.Contains(fmt.Sprint(m["detail"]), "is in CONGESTED") || a.header.Get("Retry-After") != "1" {
				t.Errorf("%s, Retry-After %s", a.body, a.header.Get("Retry-After"))
			}
			if a := p.register(c, 1, 9); a.status != 201 {
				t.Errorf("priority 9: %d", a.status)
			}
			if a := p.register(c, 1, -1); a.status != 503 {
				t.Errorf("no priority, so 20: %d", a.status)
			}
			p.set("PATCH", ocRoot+"services/managementservice", `{"advancedSettings":{"BSF_MGMT_POST_PCF_BINDING_REQUEST_PRIORITY":5}}`)
			if a := p.register(c, 1, -1); a.status != 201 {
				t.Errorf("no priority, so 5: %d", a.status)
			}
			for _, x := range []struct {
				member, method, path string
			}{{"GET_PCF_BINDING", "GET", "/pcfBindings?ipv4Addr=10.9.9.9"}, {"DELETE_PCF_BINDING", "DELETE", "/pcfBindings/0"},
				{"PATCH_PCF_BINDING", "PATCH", "/pcfBindings/0"}, {"SUBSCRIPTION", "DELETE", "/subscriptions/0"}} {
				for priority, refused := range map[int]bool{9: false, 11: true} {
					p.set("PATCH", ocRoot+"services/managementservice", fmt.Sprintf(`{"advancedSettings":{"BSF_MGMT_%s_REQUEST_PRIORITY":%d}}`, x.member, priority))
					body := ""
					if x.method == "PATCH" {
						body = "{}"
					}
					if a := do(t, c, x.method, p.sbi+base+x.path, body); a.status == 503 != refused {
						t.Errorf("%s with priority %d: %d", x.member, priority, a.status)
					}
				}
			}
			p.set("PATCH", ocRoot+"services/managementservice", `{"advancedSettings":{"CONGESTION_RESPONSE_CODE":429,"CONGESTION_RESPONSE_CAUSE":"X","CONGESTION_RETRY_AFTER":7}}`)
			if a := p.register(c, 1, 31); a.status != 429 || a.json(t)["cause"] != "X" || a.header.Get("Retry-After") != "7" {
				t.Errorf("%d %s", a.status, a.body)
			}
			p.set("PATCH", ocRoot+"services/managementservice", `{"advancedSettings":{"CONGESTION_RESPONSE_CODE":512}}`)
			if a := p.register(c, 1, 31); a.status != 503 {
				t.Errorf("an unsupported status: %d", a.status)
			}
			if !strings.Contains(p.logs(), "No matching constant for '512'") {
				t.Error("nothing in the log about the unsupported status")
			}
			p.set("POST", igwRoot+"errorcodeprofiles", `{"name":"e","errorCode":504,"errorCause":"Y","errorTitle":"Z","errorDescription":"W"}`)
			p.set("PATCH", ocRoot+"congestionControl/loadSheddingRules/s", `{"errorCodeProfile":"e"}`)
			if a := p.register(c, 1, 31); a.status != 504 || a.json(t)["cause"] != "Y" || a.json(t)["title"] != "Z" || a.json(t)["detail"] != "W" || a.header.Get("Retry-After") != "" {
				t.Errorf("%d %s", a.status, a.body)
			}
			if p.metric(`pod_congestion_state{service="bsf-management"}`) != "4" || p.count(`ocbsf_http_congestion_message_reject_total{messageType="register",priority="31",reason="congestion"}`) < 3 {
				t.Error("the metrics do not tell")
			}
			release()
			p.becomes(c, 31, 201)
		},
		"overload levels": func(t *testing.T, p *process) {
			p.set("POST", ocRoot+"overloadLevelThresholdProfiles", `{"name":"o","levels":[{"level":"L1","onset":{"pendingMessageCount":2},"abatement":{"pendingMessageCount":2}}]}`)
			p.set("PATCH", ocRoot+"overloadLevelThreshold", `{"enabled":true,"managementProfile":"o","samplingPeriod":50}`)
			p.set("POST", igwRoot+"ocdiscardpolicies", `{"name":"d","scheme":"PriorityBased","policies":[{"level":"L1","value":12}]}`)
			p.set("PUT", igwRoot+"ocpolicymapping", `{"enabled":true,"policyName":"d"}`)
			release := p.hold(3)
			p.becomes(c, 12, 503)
			if a := p.register(c, 1, 11); a.status != 201 {
				t.Errorf("%d", a.status)
			}
			if p.metric(`load_level{service="bsf-management"}`) != "1" {
				t.Error("the metric does not tell")
			}
			release()
			p.becomes(c, 31, 201)
		},
		"pod protection": func(t *testing.T, p *process) {
			p.set("PUT", igwRoot+"podprotection", `{"enabled":true,"monitoringInterval":50,"stateChangeSampleCount":1,"states":[{"name":"DoC","pendingMessage":2,"discardPriority":15}]}`)
			release := p.hold(3)
			p.becomes(c, 15, 503)
			if a := p.register(c, 1, 14); a.status != 201 {
				t.Errorf("%d", a.status)
			}
			release()
			p.becomes(c, 31, 201)
		},
		"rate limits": func(t *testing.T, p *process) {
			p.set("PUT", igwRoot+"routelevelratelimiting", `{"enabled":true,"samplingPeriod":100}`)
			p.set("PATCH", igwRoot+"routesconfiguration/bsf_management_register", `{"rate":1,"sbiPriority":20}`)
			if a := p.becomes(c, 21, 429); a.json(t)["cause"] != "NF_CONGESTION_RISK" {
				t.Errorf("%s", a.body)
			}
			for range 50 {
				if a := p.register(c, 1, 20); a.status != 201 {
					t.Fatalf("a protected priority: %d", a.status)
				}
			}
			p.set("DELETE", igwRoot+"routesconfiguration/bsf_management_register", "")
			for range 50 {
				if a := p.register(c, 1, 31); a.status != 201 {
					t.Fatalf("without the route: %d", a.status)
				}
			}
		},
		"message profiles": func(t *testing.T, p *process) {
			p.set("POST", ocRoot+"services/common/messageProfiles", `{"messageProfileName":"m","serviceType":"BSF_Management","messageProfileAttributes":[`+
				`{"messageID":"r","rulePriority":1,"interfaceType":"Nbsf_Management","messageType":"Register","messageProfileFilterConditions":[],`+
				`"requestPriorityOverride":"Always","requestPriorityValue":3,"responsePriorityAssign":"Always","responsePriorityValue":6}]}`)
			if a := p.register(c, 1, 8); a.header.Get("3gpp-Sbi-Message-Priority") != "" {
				t.Error("a priority in the answer before the profile is active")
			}
			p.set("PATCH", ocRoot+"services/managementservice", `{"messagePriority":{"messagePriorityProfile":"m"}}`)
			if a := p.register(c, 1, 8); a.status != 201 || a.header.Get("3gpp-Sbi-Message-Priority") != "6" {
				t.Errorf("%d %v", a.status, a.header)
			}
			if p.count(`ocbsf_http_message_priority_request_count_total{direction="in",eval_priority="3",interfaceType="Nbsf_Management",msgType="Register",rcvd_priority="8"}`) != 1 {
				t.Error("the metric does not tell")
			}
			if a := do(t, http.DefaultClient, "DELETE", p.oam+ocRoot+"services/common/messageProfiles/m", ""); a.status != 400 || !strings.Contains(string(a.body), "messagePriorityProfile") {
				t.Errorf("an active profile can be deleted: %d %s", a.status, a.body)
			}
		},
		"load and overload profile": func(t *testing.T, p *process) {
			p.set("PATCH", ocRoot+"loadProfiles/default", `{"sbiAction":"advertise","loadCalcFrequency":5}`)
			p.set("PUT", ocRoot+"bsfProfile", `{"loadProfile":"default"}`)
			if !eventually(10*time.Second, func() bool {
				return strings.Contains(p.register(newClient(nil), 1, -1).header.Get("3gpp-Sbi-Lci"), "Load-Metric: ")
			}) {
				t.Fatal("no 3gpp-Sbi-Lci")
			}
			p.set("PATCH", ocRoot+"congestionControl/thresholds/default_management", `{"states":[{"state":"CONGESTED","queue":1}]}`)
			p.set("POST", ocRoot+"overloadExcludeProfiles", `{"name":"x","messagePriorityUpto":4,"procedureList":["session-delete"],"dnnList":["ims"]}`)
			p.set("PATCH", ocRoot+"overloadProfiles/default", `{"sbiOverloadedAction":"advertise","overloadExcludeProfile":"x"}`)
			p.set("PUT", ocRoot+"bsfProfile", `{"loadProfile":"default","overloadProfile":"default"}`)
			release := p.hold(3)
			defer release()
			a := p.becomes(newClient(nil), 5, 503)
			if !strings.Contains(a.header.Get("3gpp-Sbi-Oci"), "Overload-Reduction-Metric: 100%; NF-Instance: ") {
				t.Errorf("%v", a.header)
			}
			for want, url := range map[int]string{204: "/pcfBindings?ipv4Addr=10.9.9.9&dnn=ims", 503: "/pcfBindings?ipv4Addr=10.9.9.9&dnn=internet"} {
				if a := do(t, c, "GET", p.sbi+base+url, ""); a.status != want {
					t.Errorf("%s: %d", url, a.status)
				}
			}
			if a := p.register(c, 1, 4); a.status != 201 {
				t.Errorf("an excluded priority: %d", a.status)
			}
			if a := do(t, c, "DELETE", p.sbi+base+"/pcfBindings/0", ""); a.status != 404 {
				t.Errorf("an excluded procedure: %d", a.status)
			}
		},
		"adaptive shedding": func(t *testing.T, p *process) {
			p.set("PATCH", ocRoot+"adaptiveShedding", `{"management":{"enabled":true,"pending":1,"cpu":0,"backlog":0,"interval":50}}`)
			release := p.hold(5)
			p.becomes(c, 31, 503)
			release()
			p.becomes(c, 31, 201)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, launch(t, "--storage.engine", "memory"))
		})
	}
}

// TestSettingsOfDiameter proves over the wire what the settings of the Rx
// gateway do.
func TestSettingsOfDiameter(t *testing.T) {
	t.Parallel()
	p, address := launchRx(t, twoRealms+holding)
	p.atPCF("pcf1.epc.example", 1, 3)
	pcf := node(t, address, "pcf1.epc.example", "epc.example", nil)
	pcf.Mute(true)
	af := node(t, address, "af.ims.example", "ims.example", nil)
	for i := range 3 {
		if _, err := af.Begin(rxSession(fmt.Sprint("held;", i)).AAR(ueAddr(1))); err != nil {
			t.Fatal(err)
		}
	}
	if !eventually(10*time.Second, func() bool { return p.count("ocbsf_diam_pending_requests") == 3 }) {
		t.Fatal("no requests are under way")
	}
	drmp := func(n byte) []byte { return rx.Encode(rx.DRMP, 0, 0, []byte{0, 0, 0, n}) }
	becomes := func(what, want string, m func() []byte) {
		t.Helper()
		got := ""
		if !eventually(10*time.Second, func() bool { got = resultOf(t, af, m()); return got == want }) {
			t.Errorf("%s: %s, not %s", what, got, want)
		}
	}
	n := 0
	initial := func(more ...[]byte) func() []byte {
		return func() []byte { n++; return rxSession(fmt.Sprint("s;", n)).AAR(ueAddr(9), more...) }
	}
	const served = "10415:5065" // nobody has the address
	p.set("PUT", ocRoot+"congestionControl/thresholds/default_diameter", `{"name":"default_diameter","states":[{"state":"CONGESTED","queue":1}]}`)
	p.set("PATCH", ocRoot+"congestionControl/settings", `{"diameter":{"enabled":true,`+fast+`}}`)
	becomes("DRMP 8, so 16", "3004", initial(drmp(8)))
	becomes("DRMP 7, so 14", served, initial(drmp(7)))
	becomes("no DRMP, so 13 by the rule", served, initial())
	p.set("PATCH", ocRoot+"diameter/messagepriorityprofiles/default", `{"priorityRules":[{"ruleName":"r","messagePriority":15,"rulePriority":1,"enableDRMPPriority":false,"conditions":{"application":"Rx","message":"AAR"}}]}`)
	becomes("15 by another rule", "3004", initial(drmp(1)))
	becomes("an emergency call", served, initial(drmp(15), rx.Encode(rx.ServiceURN, 0, rx.Vendor3GPP, []byte("sos"))))
	becomes("a priority service", served, initial(rx.Encode(rx.MPSIdentifier, 0, rx.Vendor3GPP, []byte("NGN GETS"))))
	becomes("a reservation priority", served, initial(rx.Encode(rx.ReservationPriority, 0, rx.VendorETSI, []byte{0, 0, 0, 3})))
	p.set("PATCH", ocRoot+"diameter/settings", `{"CONGESTION_DIAMETER_RESPONSE_CODE":5997,"CONGESTION_DIAMETER_VENDOR_ID":21274}`)
	becomes("another answer", "21274:5997", initial())
	p.set("PATCH", ocRoot+"diameter/settings", `{"CONGESTION_DIAMETER_RESPONSE_CODE":1234}`)
	becomes("an unsupported answer", "3004", initial())
	if !strings.Contains(p.logs(), "Configured 1234") {
		t.Error("nothing in the log about the unsupported answer")
	}
	p.set("PATCH", ocRoot+"congestionControl/settings", `{"diameter":{"loadSheddingProfile":"default_diameter_percentage"}}`)
	becomes("the profile with percentages", "3004", initial())
	p.set("PATCH", ocRoot+"congestionControl/settings", `{"diameter":{"enabled":false}}`)
	becomes("switched off", served, initial())

	p.set("POST", ocRoot+"overloadLevelThresholdProfiles", `{"name":"o","levels":[{"level":"L1","onset":{"pendingMessageCount":2},"abatement":{"pendingMessageCount":2}}]}`)
	p.set("PATCH", ocRoot+"overloadLevelThreshold", `{"enabled":true,"diameterProfile":"o","samplingPeriod":50}`)
	becomes("overload level L1 refuses from 13 on", "3004", initial())
	p.set("POST", ocRoot+"diameter/loadsheddingprofiles", `{"name":"l","type":"Overload Control","overloadLoadSheddingRules":[{"level":"L1","discardPriority":14,"ansWithResultCode":"DIAMETER_UNABLE_TO_COMPLY"}]}`)
	p.set("PATCH", ocRoot+"diameter/settings", `{"loadSheddingProfile":"l"}`)
	becomes("another result", "5012", initial())
	p.set("PATCH", ocRoot+"diameter/loadsheddingprofiles/l", `{"overloadLoadSheddingRules":[{"level":"L1","discardPriority":16}]}`)
	becomes("another priority", served, initial())
	p.set("PATCH", ocRoot+"diameter/settings", `{"messagePriorityProfile":"","defaultPriority":16,"CONGESTION_DIAMETER_RESPONSE_CODE":3004,"CONGESTION_DIAMETER_VENDOR_ID":0}`)
	becomes("another default priority", "3004", initial())
	if p.count(`diam_overload_message_reject_total{messageType="AAR",priority="16",reason="overload"}`) == 0 {
		t.Error("the metric does not tell")
	}
	p.set("PATCH", ocRoot+"overloadLevelThreshold", `{"enabled":false}`)
	p.set("PATCH", ocRoot+"adaptiveShedding", `{"diameter":{"enabled":true,"pending":1,"cpu":0,"backlog":0,"interval":50}}`)
	becomes("adaptive shedding", "3004", initial())
	p.set("PATCH", ocRoot+"adaptiveShedding", `{"diameter":{"enabled":false}}`)
	becomes("and without", served, initial())
}

// TestControlledShutdown proves the operational states on both interfaces, in
// the metric and the log, and that they outlive a crash.
func TestControlledShutdown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	args := []string{"--storage.engine", "embedded", "--storage.dataDir", dir}
	p, address := launchRx(t, twoRealms, args...)
	c := newClient(nil)
	id := p.register(c, 5, -1).header.Get("Location")
	p.atPCF("pcf1.epc.example", 1, 3)
	for i, x := range []struct {
		state             string
		register, other   int
		initial, sessions string
	}{
		{"PARTIAL_SHUTDOWN", 503, 200, "3004", "2001"},
		{"COMPLETE_SHUTDOWN", 503, 503, "3004", "3004"},
		{"NORMAL", 201, 200, "2001", "2001"},
		{"COMPLETE_SHUTDOWN", 503, 503, "3004", "3004"},
	} {
		p.set("PATCH", ocRoot+"controlledShutdown", `{"operationalState":"`+x.state+`"}`)
		if i == 3 {
			p.kill()
			p, address = launchRx(t, twoRealms, args...)
		}
		if a := p.register(c, 6, 0); a.status != x.register {
			t.Errorf("%s: registration %d", x.state, a.status)
		}
		if a := do(t, c, "GET", p.sbi+base+"/pcfBindings?ipv4Addr="+ipv4(5), ""); a.status != x.other {
			t.Errorf("%s: discovery %d", x.state, a.status)
		}
		pcf := node(t, address, "pcf1.epc.example", "epc.example", succeed)
		af := node(t, address, "af.ims.example", "ims.example", nil)
		s := rxSession(fmt.Sprint("s;", i))
		if got := resultOf(t, af, s.AAR(ueAddr(1))); got != x.initial {
			t.Errorf("%s: initial AAR %s", x.state, got)
		}
		s.DestHost = "pcf1.epc.example"
		if got := resultOf(t, af, s.Other(rx.SessionTermination)); got != x.sessions {
			t.Errorf("%s: STR %s", x.state, got)
		}
		want := map[string]string{"NORMAL": "1", "PARTIAL_SHUTDOWN": "2", "COMPLETE_SHUTDOWN": "3"}[x.state]
		if got := p.metric("system_operational_state"); got != want {
			t.Errorf("%s: metric %s", x.state, got)
		}
		af.Close()
		pcf.Close()
	}
	if p.count(`diam_controlled_shutdown_message_reject_total{messageType="STR"}`) != 1 {
		t.Error("the metric of refused messages does not tell")
	}
	p.set("POST", igwRoot+"errorcodeprofiles", `{"name":"e","errorCode":429}`)
	p.set("PATCH", ocRoot+"controlledShutdown", `{"errorCodeProfile":"e","diameterResponseCode":5012}`)
	if a := p.register(c, 6, 0); a.status != 429 {
		t.Errorf("%d", a.status)
	}
	af := node(t, address, "af.ims.example", "ims.example", nil)
	if got := resultOf(t, af, rxSession("s;9").AAR(ueAddr(1))); got != "5012" {
		t.Error(got)
	}
	p.set("PATCH", ocRoot+"controlledShutdown", `{"enableControlledShutdown":false}`)
	if a := do(t, c, "DELETE", strings.Replace(id, "http://"+strings.Split(id, "/")[2], p.sbi, 1), ""); a.status != 204 {
		t.Errorf("not enabled: %d", a.status)
	}
	if !strings.Contains(p.logs(), `"from":"COMPLETE_SHUTDOWN","to":"NORMAL"`) {
		t.Error("nothing in the log")
	}
}

// TestInstancesShareSettings proves that a change at one instance counts at all
// that share the database, and that the audit trail is one.
func TestInstancesShareSettings(t *testing.T) {
	t.Parallel()
	flags := []string{"--storage.engine", "postgres", "--storage.postgres.dsn", pgtest.Start(t).Database("bsfd")}
	first, second := launch(t, flags...), launch(t, flags...)
	c := newClient(nil)
	first.set("PATCH", ocRoot+"controlledShutdown", `{"operationalState":"PARTIAL_SHUTDOWN"}`)
	if a := first.register(c, 1, -1); a.status != 503 {
		t.Errorf("the instance itself: %d", a.status)
	}
	second.becomes(c, -1, 503)
	second.set("PATCH", ocRoot+"controlledShutdown", `{"operationalState":"NORMAL"}`)
	first.becomes(c, -1, 201)
	var trail []settings.Entry
	if err := json.Unmarshal(first.set("GET", ocRoot+"auditTrail", "").body, &trail); err != nil || len(trail) != 2 {
		t.Fatalf("%v %v", trail, err)
	}
	for i, e := range trail {
		if e.Who.Name != "local" || !strings.HasPrefix(e.Who.Remote, "127.0.0.1:") || e.Resource != "oc:controlledShutdown" ||
			strings.Contains(string(e.After), "PARTIAL") != (i == 0) || strings.Contains(string(e.Before), "PARTIAL") != (i == 1) {
			t.Errorf("%+v", e)
		}
	}
}

// TestEverySettingCanBeChanged proves for every setting of every resource that
// it can be changed through the configuration API, reads as it was set, is
// refused outside its range with the name of the setting, and can be exported
// and imported.
func TestEverySettingCanBeChanged(t *testing.T) {
	t.Parallel()
	p := launch(t, "--storage.engine", "memory")
	exported := map[string]answer{}
	gateway := diameter.DefaultConfig()
	for _, row := range slices.Concat(settings.Describe(overload.Default()), settings.Describe(gateway.Settings())) {
		path := oam.ResourcePath(row.Path)
		if _, ok := exported[path]; !ok {
			exported[path] = p.set("GET", path+"/export", "")
		}
		if strings.Contains(row.Member, "[]") || row.Range == "" {
			// Elements and references are changed by the tests of their effect.
			continue
		}
		good, bad := values(row)
		before := p.set("GET", path, "").body
		for _, v := range good {
			a := do(t, http.DefaultClient, "PATCH", p.oam+path, nested(row.Member, v))
			if a.status == 400 && strings.Contains(string(a.body), "must be above") {
				continue
			}
			if a.status != 200 || !strings.Contains(strings.ReplaceAll(string(p.set("GET", path, "").body), " ", ""), lastMember(row.Member, v)) {
				t.Errorf("%s %s = %s: %d %s", path, row.Member, v, a.status, a.body)
			}
		}
		p.set("PUT", path, string(before))
		for _, v := range bad {
			a := do(t, http.DefaultClient, "PATCH", p.oam+path, nested(row.Member, v))
			last := row.Member[strings.LastIndex(row.Member, ".")+1:]
			if a.status != 400 || !strings.Contains(string(a.body), last) && !strings.Contains(string(a.body), "invalidParams") {
				t.Errorf("%s %s = %s: %d %s", path, row.Member, v, a.status, a.body)
			}
		}
		if got := p.set("GET", path, "").body; string(got) != string(before) {
			t.Errorf("%s: a wrong value has changed something", path)
		}
	}
	for path, e := range exported {
		if a := p.set("POST", path+"/import", string(e.body)); string(a.body) != string(e.body) {
			t.Errorf("%s: import gives %s", path, a.body)
		}
		for _, wrong := range []string{"", "{", `{"x":1}`, `[{"x":1}]`, `"x"`, "[[]]"} {
			if a := do(t, http.DefaultClient, "POST", p.oam+path+"/import", wrong); a.status != 400 {
				t.Errorf("%s: import of %q: %d %s", path, wrong, a.status, a.body)
			}
		}
	}
	for method, path := range map[string]string{"GET": ocRoot + "nothing", "DELETE": ocRoot + "loadProfiles/nothing", "PUT": ocRoot + "loadProfiles/a/b"} {
		if a := do(t, http.DefaultClient, method, p.oam+path, ""); a.status != 404 {
			t.Errorf("%s %s: %d", method, path, a.status)
		}
	}
	if a := do(t, http.DefaultClient, "POST", p.oam+ocRoot+"loadProfiles", `{"name":"default"}`); a.status != 409 {
		t.Errorf("a name that is there: %d", a.status)
	}
	if a := do(t, http.DefaultClient, "DELETE", p.oam+ocRoot+"bsfProfile", ""); a.status != 405 || a.header.Get("Allow") == "" {
		t.Errorf("a method that is not there: %d", a.status)
	}
	// What is not given has the default of the guide.
	if a := p.set("POST", ocRoot+"overloadProfiles", `{"name":"n"}`); a.status != 201 {
		t.Error(a.status)
	}
	m := p.set("GET", ocRoot+"overloadProfiles/n", "").json(t)
	for k, v := range map[string]float64{"toleranceMinimum": 80, "toleranceMaximum": 95, "reductionMetricMinimum": 10, "reductionMetricMaximum": 100,
		"advertiseInterval": 300, "advertiseChangeFactor": 5, "advertiseValidityPeriod": 600, "messagePrioritizationGroup1": 50, "messagePrioritizationGroup2": 50} {
		if m[k] != v {
			t.Errorf("%s is %v", k, m[k])
		}
	}
}

// values are allowed and forbidden values of a setting, as JSON.
func values(row settings.Row) (good, bad []string) {
	if row.List {
		row.List = false
		good, bad = values(row)
		for _, list := range [][]string{good, bad} {
			for i := range list {
				list[i] = "[" + list[i] + "]"
			}
		}
		return good, append(bad, "1")
	}
	if low, high, ok := strings.Cut(row.Range, ".."); ok {
		l, _ := strconv.ParseInt(low, 10, 64)
		h, _ := strconv.ParseInt(high, 10, 64)
		return []string{low, high}, []string{fmt.Sprint(l - 1), fmt.Sprint(h + 1), `"x"`}
	}
	list := strings.Split(row.Range, "|")
	if slices.Contains(list, "true") {
		return list, []string{`"yes"`, "1"}
	}
	for _, s := range list {
		good = append(good, strconv.Quote(s))
	}
	return good, []string{`"nonsense"`, "{}"}
}

// nested is an object with one member at a path.
func nested(member, value string) string {
	parts := strings.Split(member, ".")
	for i := len(parts) - 1; i >= 0; i-- {
		value = `{"` + parts[i] + `":` + value + `}`
	}
	return value
}

func lastMember(member, value string) string {
	return `"` + member[strings.LastIndex(member, ".")+1:] + `":` + value
}
