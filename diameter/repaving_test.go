package diameter_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"bsfd/diameter"
	"bsfd/internal/settings"
)

// repaving changes the settings of repaving.
func (n *network) repaving(change string) error {
	_, err := n.gateway.Settings().Change(n.t.Context(), settings.Who{}, "oc:diameterRepaving/config", settings.Merge(json.RawMessage(change)))
	return err
}

// TestRepaving proves the controlled disconnection: peers that connected
// before the trigger get a DPR with the cause, one after the other; triggers
// are kept, and do nothing while the feature is off.
func TestRepaving(t *testing.T) {
	n := start(t, func(c *diameter.Config) {
		c.Repaving.MaxStaggerJitter, c.Repaving.DisconnectInterval, c.Repaving.ReinvocationDelay = time.Millisecond, time.Millisecond, 0
	})
	a, b := n.join("a.ims.example", "ims.example", nil), n.join("b.ims.example", "ims.example", nil)
	first, err := n.gateway.TriggerRepaving(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n.repaving(`{"enabled":true,"dprDisconnectCause":7}`) == nil {
		t.Error("a cause that does not exist was taken")
	}
	until(t, "the first trigger is seen", func() bool {
		list, err := n.gateway.RepavingHistory(t.Context())
		return err == nil && len(list) == 1 && list[0].InvocationID == first.InvocationID
	})
	select {
	case <-a.Done():
		t.Fatal("disconnected while repaving is off")
	case <-time.After(1200 * time.Millisecond):
	}
	if err := n.repaving(`{"enabled":true,"dprDisconnectCause":1}`); err != nil {
		t.Fatal(err)
	}
	if _, err := n.gateway.TriggerRepaving(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := n.join("c.ims.example", "ims.example", nil)
	<-a.Done()
	<-b.Done()
	until(t, "both are counted", func() bool { return n.metric("diam_repaving_disconnections_total") == 2 })
	if got := n.state("c.ims.example").State; got != diameter.StateOpen {
		t.Errorf("a connection after the trigger is %s", got)
	}
	_ = c
	until(t, "the state tells why", func() bool { return n.state("a.ims.example").State == diameter.StateClosed })
	if list, err := n.gateway.RepavingHistory(t.Context()); err != nil || len(list) != 2 {
		t.Errorf("%v %v", list, err)
	}
}

// TestRepavingFollowsItsSettings proves what each of them does, by comparison
// with a run that waits for nothing.
func TestRepavingFollowsItsSettings(t *testing.T) {
	t.Parallel()
	// The AF may have its turn before the PCF, or after.
	const either = -1
	for change, want := range map[string]struct {
		triggers, disconnected int
		busy                   bool
		state                  diameter.State // of a PCF that owes an answer
		reason                 string
	}{
		`{}`:                           {1, 2, false, diameter.StateClosing, "repaving, DPR sent: REBOOTING"},
		`{"dprDisconnectCause":1}`:     {1, 2, false, diameter.StateClosing, "repaving, DPR sent: BUSY"},
		`{"enabled":false}`:            {1, 0, false, diameter.StateOpen, ""},
		`{"maxStaggerJitter":3600000}`: {1, 0, true, diameter.StateOpen, ""},
		`{"connectionDisconnectInterval":3600000}`: {1, 1, true, "", ""},
		`{"dprDelay":3600000}`:                     {1, either, true, diameter.StateOpen, ""},
		`{"reinvocationDelayMin":3600000}`:         {2, 2, true, diameter.StateClosing, "repaving, DPR sent: REBOOTING"},
	} {
		t.Run(change, func(t *testing.T) {
			t.Parallel()
			n := start(t)
			for _, s := range []string{`{"enabled":true,"maxStaggerJitter":0,"connectionDisconnectInterval":0,"reinvocationDelayMin":0,"dprDelay":1}`, change} {
				if err := n.repaving(s); err != nil {
					t.Fatal(err)
				}
			}
			pcf := answering(0)
			pcf.silent = true
			owing := n.join("pcf1.epc.example", "epc.example", pcf.handle)
			n.bind("pcf1.epc.example", "10.0.0.1")
			if _, err := n.af().Begin(session("s;1").AAR(ue)); err != nil {
				t.Fatal(err)
			}
			until(t, "the PCF has the request", func() bool { return pcf.count() == 1 })
			owing.Mute(true)
			gone := func() bool {
				return want.disconnected == either || int(n.metric("diam_repaving_disconnections_total")) == want.disconnected
			}
			for range want.triggers {
				if _, err := n.gateway.TriggerRepaving(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			until(t, "it is as far as it gets", func() bool {
				return gone() && n.gateway.RepavingBusy() == want.busy
			})
			<-time.After(1200 * time.Millisecond)
			if !gone() || n.gateway.RepavingBusy() != want.busy {
				t.Errorf("%v disconnected, busy %t", n.metric("diam_repaving_disconnections_total"), n.gateway.RepavingBusy())
			}
			if s := n.state("pcf1.epc.example"); want.state != "" && (s.State != want.state || !strings.HasPrefix(s.Reason, want.reason)) {
				t.Errorf("%s: %s", s.State, s.Reason)
			}
		})
	}
}
