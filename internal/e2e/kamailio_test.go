package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"bsfd/diameter/rx"
	"bsfd/internal/rxnode"
)

// pcscf is a real P-CSCF: Kamailio with SIPp as its UE and called side.
type pcscf struct {
	t      *testing.T
	script string
	folder string
	rx     string // address of bsfd
}

func newPCSCF(t *testing.T, rx string) *pcscf {
	t.Helper()
	script := filepath.Join(shared(t, "peers", "kamailio"), "run.sh")
	for _, name := range []string{"kamailio", "sipp"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip("no Kamailio here (apt-get install kamailio kamailio-ims-modules sip-tester): skipping")
		}
	}
	return &pcscf{t, script, t.TempDir(), rx}
}

// calls registers the UE and makes calls; the error says which got no answer.
// The peer's name is that of bsfd, and it resolves.
func (k *pcscf) calls(n int, ue string) error {
	k.t.Helper()
	_, port, err := net.SplitHostPort(k.rx)
	if err != nil {
		k.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(k.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", k.script, k.folder, "localhost", port, "epc.example", fmt.Sprint(n), ue)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	// A child that stays behind must not keep the test.
	cmd.WaitDelay = 10 * time.Second
	err = cmd.Run()
	k.t.Logf("%s", strings.TrimSpace(out.String()))

	return err
}

// imsPCF is a PCF that counts what it gets and does something on an AAR.
type imsPCF struct {
	mu    sync.Mutex
	count map[rx.Command]int
	ended map[string]bool // sessions with an STR
	calls int
	onAAR func(n *rxnode.Node, session string)
}

func (p *imsPCF) handle(n *rxnode.Node, v *rx.View) []byte {
	session := string(v.SessionID.Data)
	p.mu.Lock()
	if p.count == nil {
		p.count, p.ended = make(map[rx.Command]int), make(map[string]bool)
	}
	p.count[v.Command]++
	if v.Command == rx.SessionTermination {
		p.ended[session] = true
	}
	then := p.onAAR
	p.mu.Unlock()
	if then != nil && v.Command == rx.AA {
		then(n, session)
	}
	return n.Answer(v, rx.Base(rx.Success))
}

func (p *imsPCF) got(c rx.Command) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count[c]
}

func (p *imsPCF) hasEnded(session string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended[session]
}

// imsCore is bsfd with one set of two PCFs. Its name is one that the P-CSCF can
// resolve.
func imsCore(t *testing.T) (p *process, address string) {
	t.Helper()
	p, address = launchRx(t, `  allowedRealms: [ims.example, epc.example]
  ownOriginRealms: [ims.example]
  peers:
    - {host: pcf1.epc.example, realm: epc.example, pcfSetId: set1.pcfset.5gc.mnc001.mcc001}
    - {host: pcf2.epc.example, realm: epc.example, pcfSetId: set1.pcfset.5gc.mnc001.mcc001}
`, "--diameter.originHost", "localhost")
	for _, ue := range []string{`"ipv4Addr":"127.0.0.11"`, `"ipv6Prefix":"::1/128"`} {
		a := do(t, newClient(nil), "POST", p.sbi+base+"/pcfBindings", `{`+ue+`,"dnn":"ims","snssai":{"sst":1},"pcfDiamHost":"pcf1.epc.example",`+
			`"pcfDiamRealm":"epc.example","pcfSetId":"set1.pcfset.5gc.mnc001.mcc001","bindLevel":"NF_SET"}`)
		if a.status != 201 {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	return p, address
}

// TestKamailio proves that a real P-CSCF gets an answer to each AAR and STR of
// 200 calls, over IPv4 and IPv6, also when the PCF dies meanwhile; and that a
// PCF can abort its sessions.
func TestKamailio(t *testing.T) {
	t.Parallel()
	const calls = 200
	p, address := imsCore(t)
	var first, second imsPCF
	pcf1 := node(t, address, "pcf1.epc.example", "epc.example", first.handle)
	node(t, address, "pcf2.epc.example", "epc.example", second.handle)
	for _, ue := range []string{"127.0.0.11", "::1"} {
		before := [2]int{first.got(rx.AA), first.got(rx.SessionTermination)}
		if err := newPCSCF(t, address).calls(calls, ue); err != nil {
			t.Fatalf("%s: %v", ue, err)
		}
		if aar, str := first.got(rx.AA)-before[0], first.got(rx.SessionTermination)-before[1]; aar < calls || str < calls {
			t.Errorf("%s: %d AAR and %d STR reached the PCF", ue, aar, str)
		}
	}

	t.Run("the PCF dies", func(t *testing.T) {
		var once sync.Once
		seen := first.got(rx.AA)
		first.mu.Lock()
		first.onAAR = func(*rxnode.Node, string) {
			if first.got(rx.AA) > seen+calls/2 {
				once.Do(func() { go pcf1.Close() })
			}
		}
		first.mu.Unlock()
		if err := newPCSCF(t, address).calls(calls, "127.0.0.11"); err != nil {
			t.Fatal(err)
		}
		if second.got(rx.AA) == 0 {
			t.Error("nothing went to the other PCF of the set")
		}
	})

	t.Run("the PCF aborts", func(t *testing.T) {
		aborted := make(chan string, 1)
		answers := make(chan rx.Result, 1)
		var previous string
		var once sync.Once
		var group sync.WaitGroup
		second.mu.Lock()
		second.onAAR = func(n *rxnode.Node, session string) {
			// The AAR of the registration has another identity; of the calls, the
			// one before this has its AAA.
			if before := previous; before != "" {
				once.Do(func() {
					aborted <- before
					group.Go(func() { answers <- abort(t, n, before) })
				})
			}
			if second.calls > 0 {
				previous = session
			}
			second.calls++
		}
		second.mu.Unlock()
		// The call that is aborted ends otherwise than its UE expects.
		_ = newPCSCF(t, address).calls(5, "127.0.0.11")
		group.Wait()
		select {
		case session := <-aborted:
			if result := <-answers; result != rx.Base(rx.Success) {
				t.Errorf("ASA with %s", result)
			}
			if !eventually(10*time.Second, func() bool { return second.hasEnded(session) }) {
				t.Error("no STR after the abort")
			}
		default:
			t.Error("no call came")
		}
	})
	if n := p.count(`ocbsf_diam_tolerated_total{what="answerApplication"}`); n == 0 {
		t.Error("the ASA had the Application-Id of Rx: has Kamailio learnt it?")
	}
}

// abort asks the P-CSCF to end a session and returns the result of the ASA.
func abort(t *testing.T, n *rxnode.Node, session string) rx.Result {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	s := &rxnode.Session{ID: session, Host: n.Host, Realm: n.Realm, DestRealm: "ims.example", DestHost: "pcscf.ims.example"}
	asa, err := n.Request(ctx, s.Other(rx.AbortSession, rxnode.Number(rx.Code(500), 0)))
	if err != nil {
		t.Error(err)
		return rx.Result{}
	}
	return rxnode.ResultOf(asa)
}
