package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bsfd/bsf/nbsf"
)

// TestWhoIsRefusedSeesWhy proves that one bad request leaves its reason in the
// log and on the page of refusals, without identifiers of the UE.
func TestWhoIsRefusedSeesWhy(t *testing.T) {
	p, address := launchRx(t, "  allowedRealms: [ims.example]\n")
	c := newClient(nil)
	do(t, c, "POST", p.sbi+base+"/pcfBindings", with(e1, "ipv4Addr", `"10.45.0.300"`), "User-Agent", "PCF-1")
	do(t, c, "GET", p.sbi+base+"/pcfBindings?ipv4Addr=x&supi=imsi-001010000000001", "")
	do(t, c, "GET", p.sbi+"/subscribers/imsi-001010000000001", "")
	af := node(t, address, "af.ims.example", "ims.example", nil)
	if got := resultOf(t, af, rxSession("s;1").AAR(netip.MustParseAddr("10.9.9.9"))); got != "10415:5065" {
		t.Fatal(got)
	}
	for _, want := range []string{
		`"what":"POST /nbsf-management/v1/pcfBindings","result":"400","cause":"MANDATORY_IE_INCORRECT","invalidParams":["/ipv4Addr: must be an IPv4 address`,
		`"userAgent":"PCF-1"`, `"what":"AAR","result":"10415:5065"`, `"peer":"af.ims.example","hint":"no PCF has registered`,
	} {
		if !p.waitFor(want, 10*time.Second) {
			t.Errorf("the log lacks %s", want)
		}
	}
	page := do(t, http.DefaultClient, "GET", p.oam+"/oc-bsf-configuration/v1/refusals", "")
	var list struct {
		Refusals []struct {
			Interface, What, Result, Cause, Example string
			Count                                   int
		}
	}
	if err := json.Unmarshal(page.body, &list); err != nil || len(list.Refusals) != 4 || list.Refusals[0].Interface != "diameter" {
		t.Errorf("%v\n%s", err, page.body)
	}
	for _, text := range []string{p.logs(), string(page.body)} {
		if strings.Contains(text, "001010000000001") || strings.Contains(text, "10.45.0.300") {
			t.Errorf("an identifier of the UE is shown:\n%s", text)
		}
	}
}

// TestTenThousandRefusals proves that the log stays bounded and says what it
// leaves out.
func TestTenThousandRefusals(t *testing.T) {
	p := launch(t, "--storage.engine", "memory")
	c := newClient(nil)
	for range 10000 {
		if _, err := request(c, "POST", p.sbi+base+"/pcfBindings", `{"dnn":"internet"}`); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.Count(p.logs(), `"message":"error response"`)
	if lines < 100 || lines > 1000 {
		t.Errorf("%d lines", lines)
	}
	page := do(t, http.DefaultClient, "GET", p.oam+"/oc-bsf-configuration/v1/refusals", "")
	if !strings.Contains(string(page.body), `"count":10000`) {
		t.Errorf("%s", page.body)
	}
	if got := p.count("ocbsf_error_log_dropped_total"); got != 10000-lines {
		t.Errorf("%d lines are counted as left out, %d were written", got, lines)
	}
}

// TestEveryCauseIsExplained holds docs/errors.md against the conditions that
// the API answers.
func TestEveryCauseIsExplained(t *testing.T) {
	text := readDocument(t, "errors.md")
	for _, c := range nbsf.Conditions() {
		if c.Cause != "" && !strings.Contains(text, c.Cause) || !strings.Contains(text, fmt.Sprint(c.Status)) {
			t.Errorf("%d %s is not explained", c.Status, c.Cause)
		}
	}
}

func readDocument(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
