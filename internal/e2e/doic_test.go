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
	p, address := launchRx(t, twoRealms)
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
