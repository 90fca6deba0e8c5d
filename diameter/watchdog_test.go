package diameter

import (
	"testing"
	"time"
)

// TestWatchdog proves RX-064 in virtual time: every transition of the
// algorithm of RFC 3539 §3.4.1.
func TestWatchdog(t *testing.T) {
	const tw = 30 * time.Second
	type step struct {
		do     string // expire, message, dwa
		action watchdogAction
		state  watchdogState
	}
	for name, x := range map[string]struct {
		afterDown bool
		steps     []step
	}{
		"idle and answered": {false, []step{
			{"expire", watchdogSend, watchdogOkay}, {"dwa", watchdogNothing, watchdogOkay},
			{"expire", watchdogSend, watchdogOkay}, {"dwa", watchdogNothing, watchdogOkay},
		}},
		"busy": {false, []step{{"message", watchdogNothing, watchdogOkay}, {"expire", watchdogSend, watchdogOkay}}},
		"dead": {false, []step{
			{"expire", watchdogSend, watchdogOkay}, {"expire", watchdogFailover, watchdogSuspect}, {"expire", watchdogClose, watchdogSuspect},
		}},
		"late answer": {false, []step{
			{"expire", watchdogSend, watchdogOkay}, {"expire", watchdogFailover, watchdogSuspect}, {"dwa", watchdogFailback, watchdogOkay},
			{"expire", watchdogSend, watchdogOkay},
		}},
		"another message instead of the answer": {false, []step{
			{"expire", watchdogSend, watchdogOkay}, {"expire", watchdogFailover, watchdogSuspect}, {"message", watchdogFailback, watchdogOkay},
		}},
		"a message does not answer the DWR": {false, []step{
			{"expire", watchdogSend, watchdogOkay}, {"message", watchdogNothing, watchdogOkay}, {"expire", watchdogFailover, watchdogSuspect},
		}},
		"reopened": {true, []step{
			{"message", watchdogNothing, watchdogReopen}, {"dwa", watchdogNothing, watchdogReopen},
			{"expire", watchdogSend, watchdogReopen}, {"dwa", watchdogNothing, watchdogReopen},
			{"expire", watchdogSend, watchdogReopen}, {"dwa", watchdogFailback, watchdogOkay},
		}},
		"reopened, one answer late": {true, []step{
			{"expire", watchdogNothing, watchdogReopen}, {"dwa", watchdogNothing, watchdogReopen},
			{"expire", watchdogSend, watchdogReopen}, {"dwa", watchdogNothing, watchdogReopen},
		}},
		"reopened and dead": {true, []step{{"expire", watchdogNothing, watchdogReopen}, {"expire", watchdogClose, watchdogReopen}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := watchdog{tw: tw}
			now := time.Unix(1e9, 0)
			if got := w.start(now, x.afterDown); (got == watchdogSend) != x.afterDown {
				t.Fatalf("start: %d", got)
			}
			for i, s := range x.steps {
				if wait := w.due.Sub(now); wait < tw-2*time.Second || wait > tw+2*time.Second {
					t.Fatalf("%d: due in %s", i, wait)
				}
				var got watchdogAction
				switch s.do {
				case "expire":
					now = w.due
					got = w.expired(now)
				default:
					// The timer may stay as it is for what does not reset it.
					got = w.received(now, s.do == "dwa")
				}
				if got != s.action || w.state != s.state {
					t.Fatalf("%d %s: action %d, state %s", i, s.do, got, w.state)
				}
			}
		})
	}
}

// TestEndToEnd proves RX-068: the identifiers of the gateway begin with 12
// bits of the time.
func TestEndToEnd(t *testing.T) {
	g := &Gateway{}
	now := time.Now()
	g.e2e.Store(firstEndToEnd(now))
	if got, want := g.endToEnd()>>20, uint32(now.Unix())&0xfff; got != want && got != want+1 {
		t.Errorf("%x, want %x", got, want)
	}
}

// TestRoutingMode proves the choice of addresses by family.
func TestRoutingMode(t *testing.T) {
	for _, x := range []struct {
		mode RoutingMode
		both string
		v4   string
		v6   string
	}{
		{RoutingIPv4, "[10.0.0.1]", "[10.0.0.1]", "[]"},
		{RoutingIPv6, "[2001:db8::1]", "[]", "[2001:db8::1]"},
		{RoutingIPv4IPv6, "[10.0.0.1]", "[10.0.0.1]", "[2001:db8::1]"},
		{RoutingIPv6IPv4, "[2001:db8::1]", "[10.0.0.1]", "[2001:db8::1]"},
	} {
		v4, v6 := addrs("10.0.0.1"), addrs("2001:db8::1")
		for _, y := range []struct{ got, want string }{
			{text(x.mode.choose(append(v4, v6...))), x.both}, {text(x.mode.choose(v4)), x.v4}, {text(x.mode.choose(v6)), x.v6},
		} {
			if y.got != y.want {
				t.Errorf("%s: %s, want %s", x.mode, y.got, y.want)
			}
		}
	}
}

// TestPatterns proves the patterns of result codes and of hosts.
func TestPatterns(t *testing.T) {
	for _, x := range []struct {
		pattern string
		code    uint32
		want    bool
	}{{"****", 5012, true}, {"3***", 3002, true}, {"3***", 5012, false}, {"**02", 5002, true}, {"5012", 5012, true}, {"5012", 5013, false}, {"****", 12, false}} {
		if matchCode(x.pattern, x.code) != x.want {
			t.Errorf("%s %d: %t", x.pattern, x.code, !x.want)
		}
	}
	for _, x := range []struct {
		pattern, host string
		want          bool
	}{
		{"a.b", "a.b", true}, {"a.b", "a.bc", false}, {"*", "x", true}, {"*.b", "a.b", true}, {"*.b", ".c", false},
		{"pcf*.b", "pcf1.b", true}, {"pcf*.b", "pc.b", false}, {"a*b*c", "axbyc", true}, {"a*b*c", "ac", false}, {"a*a", "a", false},
	} {
		if matchHost(x.pattern, x.host) != x.want {
			t.Errorf("%s %s: %t", x.pattern, x.host, !x.want)
		}
	}
}
