package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"bsfd/diameter"
	"bsfd/diameter/rx"
	"bsfd/internal/rxnode"
)

// The identities of the lab.
const (
	labRealm    = "epc.example"
	labAFRealm  = "ims.example"
	labBSF      = "bsf." + labRealm
	labPcfSet   = "set1.pcfset.5gc.mnc001.mcc001"
	labPatience = 10 * time.Second
)

// Options are the settings of a lab beside those of bsfd.
type Options struct {
	// Fail names what is to go wrong: pcf1, pcf2, af1, af2 or binding.
	Fail []string
	// Pause is the time between two calls.
	Pause time.Duration
	// Flows ends the lab after so many calls; 0 goes on.
	Flows int
}

// Flags adds the flags of the options.
func (o *Options) Flags(f *pflag.FlagSet) {
	f.StringSliceVar(&o.Fail, "fail", nil, "what goes wrong: pcf1, pcf2, af1, af2 or binding")
	f.DurationVar(&o.Pause, "pause", 2*time.Second, "time between two calls")
	f.IntVar(&o.Flows, "flows", 0, "end after so many calls")
}

// Check reports the first wrong option.
func (o Options) Check() error {
	for _, f := range o.Fail {
		if !slices.Contains([]string{"pcf1", "pcf2", "af1", "af2", "binding"}, f) {
			return fmt.Errorf("--fail: %q is not pcf1, pcf2, af1, af2 or binding", f)
		}
	}
	if o.Pause < 0 || o.Flows < 0 {
		return errors.New("--pause and --flows must not be negative")
	}
	return nil
}

// Gateway changes the configuration of the gateway to that of the lab: it
// knows the two PCFs, which are of one set, and lets everybody else in.
func Gateway(c *diameter.Config) {
	c.OriginHost, c.OriginRealm = labBSF, labRealm
	c.AllowedRealms, c.ServedRealms = []string{"*"}, []string{"*"}
	for _, name := range []string{"pcf1", "pcf2"} {
		c.Peers = append(c.Peers, diameter.Peer{Host: name + "." + labRealm, Realm: labRealm, PcfSetID: labPcfSet})
	}
}

// Addresses are where bsfd is reached.
type Addresses struct {
	SBI string // URL
	Rx  string // tcp://host:port
	OAM string // URL
}

// Run plays calls between two AFs and two PCFs through the bsfd at the
// addresses until ctx ends, and draws them to w.
func Run(ctx context.Context, o Options, at Addresses, w io.Writer) error {
	l := &lab{
		o: o, at: at, ladder: &ladder{w: w, nodes: []string{"af1", "af2", "bsf", "pcf1", "pcf2"}},
		http: newClient(load{conns: 1}, 0).conns[0], nodes: make(map[string]*rxnode.Node),
	}
	defer l.close()
	l.introduce(w)
	for _, name := range []string{"pcf1", "pcf2", "af1", "af2"} {
		if err := l.connect(ctx, name); err != nil {
			return err
		}
	}
	for n := 1; ctx.Err() == nil && l.ladder.failure() == nil && (o.Flows == 0 || n <= o.Flows); n++ {
		l.call(ctx, n)
		sleep(ctx, o.Pause)
	}
	return l.ladder.failure()
}

// lab is a running network.
type lab struct {
	o      Options
	at     Addresses
	ladder *ladder
	http   *http.Client

	mu    sync.Mutex
	nodes map[string]*rxnode.Node
	// dying is the node that is to die with the next request in hand.
	dying string
}

func (l *lab) introduce(w io.Writer) {
	fmt.Fprintf(w, `A small network in one process. Every call is drawn as it happens.

  bsfd     %s (%s), realm %s
  SBI      %s/nbsf-management/v1
  Rx       %s, every host may connect; Destination-Realm %s
  operator %s/diameter/peers, /metrics

  A binding of your own, and an AAR for it from your AF:
    curl --http2-prior-knowledge %s/nbsf-management/v1/pcfBindings -H 'content-type: application/json' -d \
      '{"ipv4Addr":"10.9.9.9","dnn":"ims","snssai":{"sst":1},"pcfFqdn":"pcf1.%s","pcfDiamHost":"pcf1.%s","pcfDiamRealm":"%s"}'

`, labBSF, "Nbsf_Management and Rx", labRealm, l.at.SBI, l.at.Rx, labRealm, l.at.OAM, l.at.SBI, labRealm, labRealm, labRealm)
}

// connect brings a node up.
func (l *lab) connect(ctx context.Context, name string) error {
	realm, handle := labAFRealm, l.afHandle
	if strings.HasPrefix(name, "pcf") {
		realm, handle = labRealm, l.pcfHandle
	}
	id := rxnode.Identity{Host: name + "." + realm, Realm: realm, StateID: uint32(time.Now().Unix())}
	for ctx.Err() == nil {
		node, err := rxnode.Dial(ctx, strings.TrimPrefix(l.at.Rx, "tcp://"), id, handle)
		var refused *rxnode.Refused
		switch {
		case err == nil:
			l.mu.Lock()
			l.nodes[name] = node
			l.mu.Unlock()
			return nil
		case !errors.As(err, &refused):
			return err
		}
		// Its old connection is not quite gone.
		sleep(ctx, 50*time.Millisecond)
	}
	return ctx.Err()
}

func (l *lab) node(name string) *rxnode.Node {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.nodes[name]
}

func (l *lab) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.nodes {
		n.Close()
	}
}

func nodeName(host string) string {
	name, _, _ := strings.Cut(host, ".")
	return name
}

// call plays one call: registration, authorization, a notification to the AF,
// termination, deregistration; or one of them goes wrong.
func (l *lab) call(ctx context.Context, n int) {
	defer l.ladder.gap()
	pcf, af := fmt.Sprintf("pcf%d", 1+n%2), fmt.Sprintf("af%d", 1+n/2%2)
	address := netip.AddrFrom4([4]byte{10, 45, byte(n >> 8), byte(n)})
	s := &rxnode.Session{
		ID: fmt.Sprintf("%s.%s;%d;%d", af, labAFRealm, time.Now().Unix(), n), Host: af + "." + labAFRealm, Realm: labAFRealm, DestRealm: labRealm,
	}
	fails := func(what string) bool { return slices.Contains(l.o.Fail, what) }
	if fails("binding") && n%2 == 0 {
		l.ladder.note("pcf1", "no PCF registers "+address.String())
		l.ask(ctx, af, s.AAR(address), address.String())
		return
	}
	id := l.register(ctx, pcf, address)
	if id == "" {
		return
	}
	defer l.deregister(ctx, pcf, id)
	if fails(pcf) {
		l.mu.Lock()
		l.dying = pcf
		l.mu.Unlock()
		defer l.revive(ctx, pcf)
	}
	answer := l.ask(ctx, af, s.AAR(address), address.String())
	if answer == nil {
		return
	}
	s.DestHost = string(answer.OriginHost.Data)
	holder := nodeName(s.DestHost)
	if fails(af) {
		l.ladder.note(af, af+" loses its connection without a word")
		l.node(af).Close()
		defer l.revive(ctx, af)
	}
	back := &rxnode.Session{ID: s.ID, Host: s.DestHost, Realm: labRealm, DestRealm: labAFRealm, DestHost: s.Host}
	l.ask(ctx, holder, back.Other(rx.ReAuth), "for "+af)
	if !fails(af) {
		l.ask(ctx, af, s.Other(rx.SessionTermination), "for "+holder)
	}
}

// revive brings a node back that has died.
func (l *lab) revive(ctx context.Context, name string) {
	if err := l.connect(ctx, name); err == nil {
		l.ladder.arrow(name, "bsf", "CER", name+" is back")
		l.ladder.arrow("bsf", name, "CEA", "2001")
	}
}

// ask sends a request of a node and returns the answer when it is a success.
func (l *lab) ask(ctx context.Context, name string, m []byte, detail string) *rx.View {
	command := rx.ParseHeader(m).Command
	l.ladder.arrow(name, "bsf", command.Request(), detail)
	began := time.Now()
	wait, cancel := context.WithTimeout(ctx, labPatience)
	defer cancel()
	a, err := l.node(name).Request(wait, m)
	if err != nil {
		l.ladder.note(name, "no answer: "+err.Error())
		return nil
	}
	v := new(rx.View)
	if err := v.Scan(a); err != nil {
		l.ladder.note(name, err.Error())
		return nil
	}
	r, _ := v.Result()
	l.ladder.arrow("bsf", name, command.Answer(), fmt.Sprintf("%s of %s, after %s", describe(r), v.OriginHost.Data, time.Since(began).Round(10*time.Microsecond)))
	if !r.Success() {
		return nil
	}
	return v
}

// describe names the results that the lab shows.
func describe(r rx.Result) string {
	names := map[string]string{
		"2001": "DIAMETER_SUCCESS", "3002": "DIAMETER_UNABLE_TO_DELIVER", "3003": "DIAMETER_REALM_NOT_SERVED",
		"5002": "DIAMETER_UNKNOWN_SESSION_ID", "5012": "DIAMETER_UNABLE_TO_COMPLY", "10415:5065": "IP-CAN_SESSION_NOT_AVAILABLE",
	}
	if name, ok := names[r.String()]; ok {
		return fmt.Sprintf("%d %s", r.Code, name)
	}
	return r.String()
}

// pcfHandle answers what comes to a PCF.
func (l *lab) pcfHandle(n *rxnode.Node, v *rx.View) []byte {
	name := nodeName(n.Host)
	detail := "for " + string(v.DestinationHost.Data)
	if v.Flags&rx.FlagRetransmit != 0 {
		detail += ", T bit: sent again"
	}
	l.ladder.arrow("bsf", name, v.Command.Request(), detail)
	l.mu.Lock()
	dies := l.dying == name
	if dies {
		l.dying = ""
	}
	l.mu.Unlock()
	if dies {
		l.ladder.note(name, name+" loses its connection with the request in hand")
		go n.Close()
		return nil
	}
	l.ladder.arrow(name, "bsf", v.Command.Answer(), "2001")
	return n.Answer(v, rx.Base(rx.Success))
}

// afHandle answers what comes to an AF.
func (l *lab) afHandle(n *rxnode.Node, v *rx.View) []byte {
	name := nodeName(n.Host)
	l.ladder.arrow("bsf", name, v.Command.Request(), "of "+string(v.OriginHost.Data))
	l.ladder.arrow(name, "bsf", v.Command.Answer(), "2001")
	return n.Answer(v, rx.Base(rx.Success))
}

// register registers the binding of a UE address and returns its id.
func (l *lab) register(ctx context.Context, pcf string, address netip.Addr) string {
	body := fmt.Sprintf(`{"ipv4Addr":"%s","dnn":"ims","snssai":{"sst":1},"pcfFqdn":"%[2]s.%[3]s","pcfDiamHost":"%[2]s.%[3]s",`+
		`"pcfDiamRealm":"%[3]s","pcfSetId":"%[4]s","bindLevel":"NF_SET"}`, address, pcf, labRealm, labPcfSet)
	status, location := l.send(ctx, http.MethodPost, l.at.SBI+apiPath+"/pcfBindings", body)
	l.ladder.arrow(pcf, "bsf", "POST", fmt.Sprintf("pcfBindings: %s is at %s", address, pcf))
	id := location[strings.LastIndexByte(location, '/')+1:]
	note := "binding " + id
	if id == "" {
		note = "not registered"
	}
	l.ladder.arrow("bsf", pcf, status, note)
	return id
}

func (l *lab) deregister(ctx context.Context, pcf, id string) {
	status, _ := l.send(ctx, http.MethodDelete, l.at.SBI+apiPath+"/pcfBindings/"+id, "")
	l.ladder.arrow(pcf, "bsf", "DELETE", "binding "+id)
	l.ladder.arrow("bsf", pcf, status, "")
}

func (l *lab) send(ctx context.Context, method, url, body string) (status, location string) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader([]byte(body)))
	if err != nil {
		return err.Error(), ""
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := l.http.Do(req)
	if err != nil {
		return "failed", ""
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return fmt.Sprint(resp.StatusCode), resp.Header.Get("Location")
}
