package e2e

import (
	"encoding/hex"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"bsfd/diameter/rx"
)

// TestOverloadReportsParseInOTP proves that answers with overload reports of
// this node, its own and those of PCFs, are right for the diameter application
// of Erlang/OTP with its dictionary of RFC 7683.
func TestOverloadReportsParseInOTP(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("escript"); err != nil {
		t.Skip("no Erlang here (apt-get install erlang-diameter erlang-dev): skipping")
	}
	p, address := launchRx(t, twoRealms+holding)
	p.atPCF("pcf1.epc.example", 1, 2)
	node(t, address, "pcf1.epc.example", "epc.example", succeed)
	af := node(t, address, "af.ims.example", "ims.example", nil)
	// One request that waits makes the node overloaded.
	p.atPCF("pcf2.epc.example", 2, 3)
	silent := node(t, address, "pcf2.epc.example", "epc.example", nil)
	silent.Mute(true)
	for range 2 {
		if _, err := af.Begin(rxSession("s;0").AAR(ueAddr(2))); err != nil {
			t.Fatal(err)
		}
	}
	p.set("PATCH", ocRoot+"congestionControl/thresholds/default_diameter", `{"states":[{"state":"CONGESTED","queue":1}]}`)
	p.set("PATCH", ocRoot+"loadProfiles/default", `{"diameterAction":"advertise","advertiseInterval":0}`)
	p.set("PATCH", ocRoot+"overloadExcludeProfiles/default", `{"messagePriorityUpto":13}`)
	p.set("PATCH", ocRoot+"overloadProfiles/default", `{"diameterOverloadedAction":"advertise","advertiseInterval":0,"advertiseValidityPeriod":75}`)
	p.set("PUT", ocRoot+"bsfProfile", `{"loadProfile":"default","overloadProfile":"default"}`)
	supported := rx.AppendSupported(nil)
	answer := func(ue int) string {
		m, err := af.Request(t.Context(), rxSession(fmt.Sprint("s;", ue)).AAR(ueAddr(ue), supported))
		if err != nil {
			t.Fatal(err)
		}
		return hex.EncodeToString(m)
	}
	olr := hex.EncodeToString([]byte{0, 0, 2, 0x6f}) // the code of OC-OLR
	if !eventually(20*time.Second, func() bool { return strings.Contains(answer(1), olr) }) {
		t.Fatal("no report")
	}
	cmd := exec.Command("escript", filepath.Join("testdata", "doic.escript"))
	cmd.Stdin = strings.NewReader(answer(1) + "\n" + answer(9) + "\n")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text := regexp.MustCompile(`\s+`).ReplaceAllString(string(out), "")
	for _, want := range []string{`'OC-Report-Type'=>1`, `'OC-Report-Type'=>0`, `'OC-Reduction-Percentage'=>\[100\]`, `'OC-Validity-Duration'=>\[75\]`} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
	if strings.Count(text, "[][#{") != 2 {
		t.Errorf("errors, or no report:\n%s", out)
	}
}

// TestOTPUnderCongestion proves that a third-party AF whose requests have a
// low priority gets 3004 while the node is congested, and that another one at
// the same time, whose requests matter more, is served as ever.
func TestOTPUnderCongestion(t *testing.T) {
	t.Parallel()
	_, pcf := otpPCF(t, "pcf.epc.example")
	p, address := launchRx(t, "  allowedRealms: [ims.example, epc.example]\n"+holding+"  peers:\n"+peerLine("pcf.epc.example", pcf, ""))
	p.atPCF("pcf.epc.example", 1, 301)
	p.atPCF("pcf2.epc.example", 400, 401)
	p.peerIs("pcf.epc.example", "Open")
	node(t, address, "pcf2.epc.example", "epc.example", nil).Mute(true)
	held := node(t, address, "af0.ims.example", "ims.example", nil)
	for i := range 3 {
		if _, err := held.Begin(rxSession(fmt.Sprint("held;", i)).AAR(ueAddr(400))); err != nil {
			t.Fatal(err)
		}
	}
	p.set("PATCH", ocRoot+"congestionControl/thresholds/default_diameter", `{"states":[{"state":"CONGESTED","queue":1}]}`)
	p.set("PATCH", ocRoot+"congestionControl/settings", `{"diameter":{"enabled":true,`+fast+`}}`)
	if !eventually(10*time.Second, func() bool { return p.metric(`pod_congestion_state{service="diam-gateway"}`) == "4" }) {
		t.Fatal("not congested")
	}
	af := func(host string, more ...string) *otp {
		return startOTP(t, "af", host, "ims.example", append([]string{"--connect", address, "--dest-realm", "epc.example", "--ip", "10.0.0.1"}, more...)...)
	}
	refused := af("af1.ims.example", "--drmp", "12", "--count", "100", "--expect", "3004")
	served := af("af2.ims.example", "--drmp", "2", "--count", "300", "--window", "8")
	refused.want(0, "aar 3004: 100")
	served.want(0, "aar 2001: 300", "str 2001: 300")
}
