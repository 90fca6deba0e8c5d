package e2e

import (
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestLab proves that the lab plays its calls, with what goes wrong on demand,
// and ends when told to.
func TestLab(t *testing.T) {
	t.Parallel()
	addresses := []string{"--sbi.listen", "127.0.0.1:0", "--oam.listen", "127.0.0.1:0", "--diameter.listen", "127.0.0.1:0"}
	run := func(args ...string) (string, error) {
		cmd := exec.Command(program, append(append([]string{"lab"}, addresses...), args...)...)
		cmd.WaitDelay = time.Minute
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := run("--flows", "4", "--pause", "1ms")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for what, n := range map[string]int{" POST ─": 4, " AAR ─": 8, " AAA ─": 8, " RAR ─": 8, " RAA ─": 8, " STR ─": 8, " STA ─": 8, " DELETE ─": 4, "2001 DIAMETER_SUCCESS": 12} {
		if got := strings.Count(out, what); got != n {
			t.Errorf("%d times %q, want %d:\n%s", got, what, n, out)
		}
	}
	for fail, shown := range map[string]string{
		"pcf1": "T bit: sent again", "pcf2": "T bit: sent again", "binding": "5065 IP-CAN_SESSION_NOT_AVAILABLE of bsf.epc.example", "af1": "3002 DIAMETER_UNABLE_TO_DELIVER",
	} {
		if out, err := run("--flows", "4", "--pause", "1ms", "--fail", fail); err != nil || !strings.Contains(out, shown) {
			t.Errorf("--fail %s: %v\n%s", fail, err, out)
		}
	}
	if out, err := run("--fail", "moon"); err == nil || !strings.Contains(out, `--fail: "moon" is not`) {
		t.Errorf("%v\n%s", err, out)
	}
}
