package diameter_test

import (
	"testing"
	"time"

	"bsfd/diameter"
	"bsfd/diameter/rx"
	"bsfd/internal/rxnode"
)

// redirecting is a PCF that redirects to a URI.
func redirecting(uri string, usage, seconds uint32) (h rxnode.Handler, asked *recorder) {
	asked = answering(rx.Success)
	return func(n *rxnode.Node, v *rx.View) []byte {
		asked.handle(n, v)
		return rx.AppendAnswer(nil, v, rx.Origin{Host: n.Host, Realm: n.Realm}, &rx.Answer{
			Result: rx.Base(rx.RedirectIndication), Redirect: []string{uri}, Usage: usage, CacheTime: seconds,
		})
	}, asked
}

// TestRedirectsAreFollowed proves that a redirect of a PCF leads to the host that
// it names, that it is kept as long as its usage says, and that one which leads
// nowhere comes to the AF (RFC 6733 §6.1.8, §6.13).
func TestRedirectsAreFollowed(t *testing.T) {
	to2 := "aaa://pcf2.epc.example:3868;transport=tcp"
	for _, x := range []struct {
		name   string
		uri    string
		usage  uint32
		off    bool
		want   string
		first  int // requests to pcf1 after two sessions of two requests each
		second int
	}{
		// The second request of a session goes to the PCF that served the first.
		{"not kept", to2, 0, false, "2001", 2, 4},
		{"for the session", to2, 1, false, "2001", 2, 4},
		{"for the realm", to2, 2, false, "2001", 1, 4},
		{"for the realm and application", to2, 3, false, "2001", 1, 4},
		{"for the application", to2, 4, false, "2001", 1, 4},
		{"for the host", to2, 5, false, "2001", 1, 4},
		{"switched off", to2, 0, true, "3006", 4, 0},
		{"to a host that is not there", "aaa://pcf9.epc.example", 0, false, "3006", 4, 0},
		{"to itself", "aaa://pcf1.epc.example", 0, false, "3006", 4, 0},
		{"to no URI", "pcf2.epc.example", 0, false, "3006", 4, 0},
	} {
		t.Run(x.name, func(t *testing.T) {
			n := start(t, func(c *diameter.Config) { c.FollowRedirects = !x.off })
			handle, first := redirecting(x.uri, x.usage, 3600)
			n.join("pcf1.epc.example", "epc.example", handle)
			second := answering(rx.Success)
			n.join("pcf2.epc.example", "epc.example", second.handle)
			n.bind("pcf1.epc.example", "10.0.0.1")
			af := n.af()
			for _, id := range []string{"s;1", "s;2"} {
				for range 2 {
					wantResult(t, ask(t, af, session(id).AAR(ue)), x.want)
				}
			}
			if first.count() != x.first || second.count() != x.second {
				t.Errorf("%d requests to the first PCF, %d to the other", first.count(), second.count())
			}
			if x.want == "2001" && string(second.last(t).DestinationHost.Data) != "pcf2.epc.example" {
				t.Errorf("to %s", second.last(t).DestinationHost.Data)
			}
		})
	}
}

// TestRedirectsInALoop proves that a request does not go round.
func TestRedirectsInALoop(t *testing.T) {
	n := start(t)
	there, first := redirecting("aaa://pcf2.epc.example", 5, 1)
	back, second := redirecting("aaa://pcf1.epc.example", 5, 1)
	n.join("pcf1.epc.example", "epc.example", there)
	n.join("pcf2.epc.example", "epc.example", back)
	n.bind("pcf1.epc.example", "10.0.0.1")
	since := time.Now()
	wantResult(t, ask(t, n.af(), session("s;1").AAR(ue)), "3006")
	if first.count() != 1 || second.count() != 1 || time.Since(since) > 10*time.Second {
		t.Errorf("%d and %d requests", first.count(), second.count())
	}
}
