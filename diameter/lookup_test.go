package diameter_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bsfd/bsf"
	"bsfd/diameter"
	"bsfd/diameter/rx"
	"bsfd/internal/rxnode"
	"bsfd/overload"
)

// queued is a database that notes in which order it is asked, and answers
// nothing before it may.
type queued struct {
	may chan struct{}
	mu  sync.Mutex
	got []string
}

// Discover implements diameter.Bindings.
func (q *queued) Discover(ctx context.Context, query *bsf.Query) (*bsf.Record, error) {
	q.mu.Lock()
	q.got = append(q.got, query.Ipv4Addr.String())
	q.mu.Unlock()
	select {
	case <-q.may:
	case <-ctx.Done():
	}
	return nil, bsf.ErrNotFound
}

// Remove implements diameter.Bindings.
func (*queued) Remove(context.Context, bsf.ID, bsf.Reason) error { return nil }

func (q *queued) asked() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.got)
}

// TestLookupsWaitByPriority proves that lookups which wait for a database are
// made by priority, that a lane which is full refuses its own requests only,
// and that emergency calls go first even when nothing looks at priorities.
func TestLookupsWaitByPriority(t *testing.T) {
	drmp := func(n byte) []byte { return rx.Encode(rx.DRMP, 0, 0, []byte{0, 0, 0, n}) }
	sos := rx.Encode(rx.ServiceURN, rx.AVPMandatory, rx.Vendor3GPP, []byte("sos.fire"))
	type call struct {
		address string
		avp     []byte
		result  string
	}
	first := call{"10.0.0.1", drmp(15), "10415:5065"}
	for name, x := range map[string]struct {
		control bool
		calls   []call
		order   string
	}{
		"by priority": {true, []call{
			{"10.0.0.2", drmp(15), "10415:5065"}, {"10.0.0.3", drmp(15), "10415:5065"}, {"10.0.0.4", drmp(15), "10415:5065"}, {"10.0.0.5", drmp(15), "10415:5065"},
			{"10.0.0.6", drmp(15), "3004"}, {"10.0.0.7", drmp(9), "10415:5065"}, {"10.0.0.8", drmp(5), "10415:5065"}, {"10.0.0.9", drmp(1), "10415:5065"}, {"10.0.0.10", drmp(0), "10415:5065"},
		}, "1 9 10 8 7 2 3 4 5"},
		"without control": {false, []call{
			{"10.0.0.2", drmp(0), "10415:5065"}, {"10.0.0.3", drmp(15), "10415:5065"}, {"10.0.0.4", sos, "10415:5065"},
		}, "1 4 2 3"},
	} {
		t.Run(name, func(t *testing.T) {
			db := &queued{may: make(chan struct{})}
			n := startWith(t, db, func(c *diameter.Config) { c.Limits.Lookups, c.DiscoveryTimeout = 1, time.Minute })
			n.change(func(s *overload.Settings) {
				s.Diameter.MessagePriorityProfile = ""
				s.Adaptive.Diameter.Enabled = x.control
			})
			af := n.af()
			begin := func(c call) <-chan []byte {
				ch, err := af.Begin(session("s;"+c.address).AAR(mustAddr(c.address), c.avp))
				if err != nil {
					t.Fatal(err)
				}
				return ch
			}
			answers := []<-chan []byte{begin(first)}
			until(t, "the first lookup is under way", func() bool { return len(db.asked()) == 1 })
			want, waiting := []string{first.result}, 1
			for _, c := range x.calls {
				answers, want = append(answers, begin(c)), append(want, c.result)
				if c.result != "3004" {
					waiting++
				}
			}
			until(t, "the others wait", func() bool { return n.gateway.Pending() == waiting })
			close(db.may)
			for i, ch := range answers {
				if got := rxnode.ResultOf(<-ch).String(); got != want[i] {
					t.Errorf("call %d: %s, not %s", i+1, got, want[i])
				}
			}
			if got := strings.ReplaceAll(strings.Join(db.asked(), " "), "10.0.0.", ""); got != x.order {
				t.Errorf("order %s, not %s", got, x.order)
			}
		})
	}
}
