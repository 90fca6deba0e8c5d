package overload

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"bsfd/internal/admission"
	"bsfd/internal/refusal"
	"bsfd/internal/settings"
	"bsfd/storage/memory"
	"bsfd/web/oam"
)

// rig is a controller in virtual time: each step is one tick, with the load
// that the test sets. Settings reach it through the configuration API.
type rig struct {
	*Controller
	now      time.Time
	load     float64 // CPU in percent of the two cores
	memory   float64
	pendings [services]int
	backlog  time.Duration
	used     time.Duration
	url      string // of the configuration API
}

// input is what comes in for one service.
type input struct {
	r *rig
	s Service
}

func (i input) Pending() int           { return i.r.pendings[i.s] }
func (i input) Backlog() time.Duration { return i.r.backlog }

// Usage implements Source.
func (r *rig) Usage() Usage {
	return Usage{CPU: r.used, Cores: 2, Memory: r.memory}
}

func newRig(t testing.TB, change func(*Settings)) *rig {
	t.Helper()
	r := &rig{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	var err error
	if r.Controller, err = New(Default(), Identity{"54804518-4191-46b3-955c-ac631f953ed8", "bsf1"}, r, zerolog.Nop(), prometheus.NewRegistry()); err != nil {
		t.Fatal(err)
	}
	for i := range Service(services) {
		r.Watch(i, input{r, i})
	}
	r.operate(t)
	r.change(t, change)
	r.tick(1)
	return r
}

// operate opens the configuration API of the controller.
func (r *rig) operate(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	store, err := settings.Open(ctx, "overload", memory.New(), Default(), r.Reconfigure, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	server := oam.New(oam.Config{Listen: "127.0.0.1:0"}, oam.Version{}, oam.NewReadiness(), refusal.NewJournal(refusal.Config{}, zerolog.Nop(), prometheus.NewRegistry()), zerolog.Nop(), prometheus.NewRegistry())
	if err := server.Listen(ctx); err != nil {
		t.Fatal(err)
	}
	server.ShowSettings(store)
	r.url = server.URL()
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
}

// tick lets time pass.
func (r *rig) tick(n int) {
	for range n {
		r.now = r.now.Add(tickInterval)
		r.used += time.Duration(float64(tickInterval) * 2 * r.load / 100)
		r.step(r.now)
	}
}

// pass lets a duration pass.
func (r *rig) pass(d time.Duration) { r.tick(int(d / tickInterval)) }

// change changes the settings, through the configuration API: every resource
// that differs is put there. One that refers to another may have to wait for
// it.
func (r *rig) change(t testing.TB, change func(*Settings)) {
	t.Helper()
	r.mu.Lock()
	old, err := json.Marshal(r.settings)
	r.mu.Unlock()
	var s Settings
	if err = errors.Join(err, json.Unmarshal(old, &s)); err != nil {
		t.Fatal(err)
	}
	before := reflect.ValueOf(s)
	var next Settings
	if err := json.Unmarshal(old, &next); err != nil {
		t.Fatal(err)
	}
	change(&next)
	after := reflect.ValueOf(next)
	var last string
	for range 3 {
		last = ""
		for i := range after.NumField() {
			body, err := json.Marshal(after.Field(i).Interface())
			if err != nil {
				t.Fatal(err)
			}
			if reflect.DeepEqual(before.Field(i).Interface(), after.Field(i).Interface()) {
				continue
			}
			if problem := r.put(t, oam.ResourcePath(after.Type().Field(i).Tag.Get("path")), body); problem != "" {
				last = problem
			}
		}
		if last == "" {
			return
		}
	}
	t.Fatal(last)
}

// put puts a resource and returns what is wrong with it.
func (r *rig) put(t testing.TB, path string, body []byte) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, r.url+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		return string(text)
	}
	return ""
}

// http is a request on the service-based interface.
func httpRequest(message, method string, priority int) *admission.Request {
	return &admission.Request{
		Message: message, Method: method, SBIPriority: priority, OCPriority: admission.Absent, DRMP: admission.Absent,
		RequestType: admission.Absent, Begins: message == "register", Ends: method == http.MethodDelete,
	}
}

// rxRequest is a request on Diameter.
func rxRequest(message string, drmp int) *admission.Request {
	return &admission.Request{
		Message: message, Application: rxApplication, SBIPriority: admission.Absent, OCPriority: admission.Absent, DRMP: drmp,
		RequestType: admission.Absent, Begins: message == "AAR", Ends: message == "STR",
	}
}

// lowest is the highest priority (smallest number) that is refused, 32 for none.
func (r *rig) lowest(s Service) int {
	for p := range priorities {
		q := httpRequest("register", "POST", p)
		if s == DiameterService {
			q = rxRequest("AAR", admission.Absent)
			q.OCPriority = p
		}
		if r.Gate(s).Admit(q) != nil {
			return p
		}
	}
	return priorities
}
