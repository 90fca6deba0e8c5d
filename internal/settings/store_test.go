package settings

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"bsfd/bsf"
	"bsfd/storage/memory"
)

// sample are settings of a test.
type sample struct {
	Limit limit  `json:"limit" path:"x:limit"`
	Rules []rule `json:"rules" path:"x:rules" key:"name"`
}

type limit struct {
	Rate int    `json:"rate" range:"1..100" usage:"a rate"`
	Mode string `json:"mode" range:"|on|off" usage:"a mode"`
	Tags []tag  `json:"tags" usage:"tags"`
}

type tag struct {
	Text string `json:"text" usage:"a text"`
	N    int    `json:"n" usage:"a number"`
}

type rule struct {
	Name  string `json:"name" range:"name" usage:"a name"`
	Value int    `json:"value" range:"0..31" default:"7" usage:"a value"`
}

// module takes settings over, but no rate of 13.
type module struct {
	mu  sync.Mutex
	now sample
}

func (m *module) apply(s sample) error {
	if err := Check(&s); err != nil {
		return err
	}
	if s.Limit.Rate == 13 {
		return Fail("limit.rate", "13 is not liked")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = s
	return nil
}

func open(t *testing.T, docs Documents) (*Store[sample], *module) {
	t.Helper()
	m := new(module)
	s, err := Open(t.Context(), "test", docs, sample{limit{10, "", nil}, []rule{{"a", 1}}}, m.apply, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	return s, m
}

var operator = Who{"somebody", "127.0.0.1:1"}

// TestChanges proves every way to change a resource, and that what is wrong is
// refused with the member and changes nothing.
func TestChanges(t *testing.T) {
	s, m := open(t, memory.New())
	for _, x := range []struct {
		path   string
		change Change
		want   string // the new value, or the error
	}{
		{"x:limit", Replace(json.RawMessage(`{"rate":20}`)), `{"rate":20,"mode":"","tags":null}`},
		{"x:limit", Merge(json.RawMessage(`{"mode":"on"}`)), `{"rate":20,"mode":"on","tags":null}`},
		{"x:limit", Replace(json.RawMessage(`{"mode":"off"}`)), `{"rate":10,"mode":"off","tags":null}`},
		{"x:limit", Merge(json.RawMessage(`{"rate":null}`)), `{"rate":10,"mode":"off","tags":null}`},
		{"x:limit", Replace(json.RawMessage(`{"rate":101}`)), "limit.rate: must be 1 to 100"},
		{"x:limit", Replace(json.RawMessage(`{"mode":"maybe"}`)), "limit.mode: must be empty, on or off"},
		{"x:limit", Replace(json.RawMessage(`{"rate":13}`)), "limit.rate: 13 is not liked"},
		{"x:limit", Replace(json.RawMessage(`{"rate":"x"}`)), "rate: must be a number"},
		{"x:limit", Replace(json.RawMessage(`{"speed":1}`)), "speed: there is no such setting"},
		{"x:limit", Replace(json.RawMessage(`{"rat":1}`)), "rat: there is no such setting (did you mean rate?)"},
		{"x:limit", Replace(json.RawMessage(`[]`)), "body"},
		{"x:limit", Merge(json.RawMessage(`[]`)), "body: must be an object"},
		{"x:rules", Add("name", json.RawMessage(`{"name":"b"}`)), `[{"name":"a","value":1},{"name":"b","value":7}]`},
		{"x:rules", Add("name", json.RawMessage(`{"name":"b"}`)), "already"},
		{"x:rules", Add("name", json.RawMessage(`{"value":2}`)), "rules[2].name: must be"},
		{"x:rules", Put("name", "b", Replace(json.RawMessage(`{"name":"b","value":0}`))), `[{"name":"a","value":1},{"name":"b","value":0}]`},
		{"x:rules", Put("name", "b", Merge(json.RawMessage(`{"value":9}`))), `[{"name":"a","value":1},{"name":"b","value":9}]`},
		{"x:rules", Put("name", "b", Replace(json.RawMessage(`{"name":"c"}`))), "name: must be"},
		{"x:rules", Put("name", "c", Replace(json.RawMessage(`{"name":"c"}`))), "no such"},
		{"x:rules", Put("name", "b", Replace(json.RawMessage(`{"name":"b","value":99}`))), "rules[1].value: must be 0 to 31"},
		{"x:rules", Remove("name", "a"), `[{"name":"b","value":9}]`},
		{"x:rules", Remove("name", "a"), "no such"},
		{"x:rules", Replace(json.RawMessage(`[{"name":"z"},{"name":"z"}]`)), `"z" is there twice`},
		{"x:rules", Replace(json.RawMessage(`{}`)), "body"},
		{"x:rules", Replace(json.RawMessage(`[]`)), `[]`},
		{"x:none", Replace(json.RawMessage(`[]`)), "no such"},
	} {
		before, _ := s.Get(x.path)
		got, err := s.Change(t.Context(), operator, x.path, x.change)
		after, _ := s.Get(x.path)
		switch {
		case err != nil && (!strings.Contains(err.Error(), x.want) || string(before) != string(after)):
			t.Errorf("%s: %v, want %s; %s then %s", x.path, err, x.want, before, after)
		case err == nil && (string(got) != x.want || string(after) != x.want):
			t.Errorf("%s: %s, want %s", x.path, got, x.want)
		}
	}
	if !reflect.DeepEqual(m.now.Limit, limit{10, "off", nil}) || len(m.now.Rules) != 0 {
		t.Errorf("the module has %+v", m.now)
	}
}

// TestChangesReachOtherInstances proves that instances on one storage share
// settings and audit trail, also when both change them at once, and that a new
// start has them.
func TestChangesReachOtherInstances(t *testing.T) {
	docs := memory.New()
	a, _ := open(t, docs)
	b, inB := open(t, docs)
	if _, err := a.Change(t.Context(), operator, "x:limit", Replace(json.RawMessage(`{"rate":50}`))); err != nil {
		t.Fatal(err)
	}
	if err := b.refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if inB.now.Limit.Rate != 50 {
		t.Errorf("the other instance has %+v", inB.now)
	}
	var wg sync.WaitGroup
	for i, s := range []*Store[sample]{a, b} {
		for k := range 20 {
			name := string(rune('A'+i)) + string(rune('a'+k))
			wg.Go(func() {
				for {
					_, err := s.Change(context.Background(), operator, "x:rules", Add("name", json.RawMessage(`{"name":"`+name+`"}`)))
					if !errors.Is(err, ErrConflict) {
						if err != nil {
							t.Error(err)
						}
						return
					}
				}
			})
		}
	}
	wg.Wait()
	c, inC := open(t, docs)
	if len(inC.now.Rules) != 41 || inC.now.Limit.Rate != 50 {
		t.Errorf("%d rules, %+v", len(inC.now.Rules), inC.now.Limit)
	}
	trail, err := c.Trail(t.Context())
	if err != nil || len(trail) != 41 {
		t.Fatalf("%d entries, %v", len(trail), err)
	}
	if e := trail[0]; e.Who != operator || e.Resource != "x:limit" || string(e.Before) != `{"rate":10,"mode":"","tags":null}` || string(e.After) != `{"rate":50,"mode":"","tags":null}` || e.Time.IsZero() {
		t.Errorf("%+v", e)
	}
}

// TestStoredSettingsOfAnotherVersion proves that members that this version
// does not know, and values that it does not take, do not stop it.
func TestStoredSettingsOfAnotherVersion(t *testing.T) {
	for body, want := range map[string]int{
		`{"x:limit":{"rate":60,"newer":true},"x:unknown":1}`: 60,
		`{"x:limit":{"rate":1000}}`:                          10,
		`nonsense`:                                           10,
	} {
		docs := memory.New()
		d := &bsf.Document{Kind: bsf.KindSetting, ID: bsf.NewID(), Keys: []string{"settings:test"}, Unique: "settings:test", Body: []byte(body)}
		if _, _, err := docs.CreateDocument(t.Context(), d, nil, nil); err != nil {
			t.Fatal(err)
		}
		if _, m := open(t, docs); m.now.Limit.Rate != want {
			t.Errorf("%s: %+v", body, m.now)
		}
	}
}

// failing is a store that cannot be written.
type failing struct{ Documents }

func (failing) UpdateDocument(context.Context, bsf.Kind, bsf.ID, func(bsf.Document) (*bsf.Document, error)) error {
	return bsf.ErrUnavailable
}

// TestNothingChangesWithoutStorage proves that a change which cannot be stored
// has no effect and leaves no entry.
func TestNothingChangesWithoutStorage(t *testing.T) {
	docs := memory.New()
	s, _ := open(t, docs)
	if _, err := s.Change(t.Context(), operator, "x:limit", Replace(json.RawMessage(`{"rate":50}`))); err != nil {
		t.Fatal(err)
	}
	s, m := open(t, failing{docs})
	if _, err := s.Change(t.Context(), operator, "x:limit", Replace(json.RawMessage(`{"rate":60}`))); !errors.Is(err, bsf.ErrUnavailable) {
		t.Error(err)
	}
	if trail, _ := s.Trail(t.Context()); m.now.Limit.Rate != 50 || len(trail) != 1 {
		t.Errorf("%+v, %d entries", m.now, len(trail))
	}
}

// TestValuesInUseAreNotTouched proves that a change shares no memory with what
// the module uses, nor with the defaults, and that a list inside an object is
// replaced whole.
func TestValuesInUseAreNotTouched(t *testing.T) {
	m := new(module)
	defaults := sample{limit{10, "", []tag{{"a", 1}, {"b", 2}}}, nil}
	s, err := Open(t.Context(), "test", memory.New(), defaults, m.apply, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	used := m.now.Limit.Tags
	for _, c := range []Change{Replace(json.RawMessage(`{"tags":[{"text":"c"}]}`)), Merge(json.RawMessage(`{"tags":[{"n":9}]}`))} {
		if _, err := s.Change(t.Context(), operator, "x:limit", c); err != nil {
			t.Fatal(err)
		}
		if want := []tag{{"a", 1}, {"b", 2}}; !reflect.DeepEqual(used, want) || !reflect.DeepEqual(defaults.Limit.Tags, want) {
			t.Fatalf("in use %v, defaults %v", used, defaults.Limit.Tags)
		}
	}
	if want := []tag{{"", 9}}; !reflect.DeepEqual(m.now.Limit.Tags, want) {
		t.Errorf("%v, not %v", m.now.Limit.Tags, want)
	}
}

// TestRefreshDoesNotUndoChanges proves that looking for the changes of others
// never takes back one of this instance.
func TestRefreshDoesNotUndoChanges(t *testing.T) {
	s, _ := open(t, memory.New())
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			if err := s.refresh(context.WithoutCancel(ctx)); err != nil {
				t.Error(err)
			}
		}
	})
	for i := range 500 {
		want := fmt.Sprintf(`{"rate":%d,"mode":"","tags":null}`, 20+i%50)
		if _, err := s.Change(t.Context(), operator, "x:limit", Replace(json.RawMessage(want))); err != nil {
			t.Fatal(err)
		}
		runtime.Gosched()
		if got, _ := s.Get("x:limit"); string(got) != want {
			t.Fatalf("%s, not %s", got, want)
		}
	}
	cancel()
	wg.Wait()
}
