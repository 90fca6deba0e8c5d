package storagetest

import (
	"errors"
	"reflect"
	"testing"

	"bsfd/bsf"
	"bsfd/storage"
)

func document(kind bsf.Kind, body string, keys ...string) *bsf.Document {
	return &bsf.Document{Kind: kind, ID: bsf.NewID(), Keys: keys, Body: []byte(body)}
}

func createDocument(t *testing.T, s storage.Store, d *bsf.Document, ev *bsf.Event) bool {
	t.Helper()
	holder, queued, err := s.CreateDocument(testContext(t), d, nil, ev)
	if err != nil || holder != nil {
		t.Fatalf("create: %v, holder %+v", err, holder)
	}
	return queued
}

func findDocuments(t *testing.T, s storage.Store, kind bsf.Kind, key string) []bsf.Document {
	t.Helper()
	list, err := s.FindDocuments(testContext(t), kind, key)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func testDocuments(t *testing.T, e Engine) {
	t.Run("found by each key, oldest first, within their kind", func(t *testing.T) {
		s := open(t, e)
		a := document(bsf.KindUeBinding, `{"n":1}`, "supi:1", "gpsi:1")
		b := document(bsf.KindUeBinding, `{"n":2}`, "supi:1")
		c := document(bsf.KindSubscription, `{"n":3}`, "supi:1")
		for _, d := range []*bsf.Document{a, b, c} {
			createDocument(t, s, d, nil)
		}
		if got := findDocuments(t, s, bsf.KindUeBinding, "supi:1"); !reflect.DeepEqual(got, []bsf.Document{*a, *b}) {
			t.Errorf("got %+v", got)
		}
		if got := findDocuments(t, s, bsf.KindUeBinding, "gpsi:1"); !reflect.DeepEqual(got, []bsf.Document{*a}) {
			t.Errorf("got %+v", got)
		}
		if got := findDocuments(t, s, bsf.KindMbsBinding, "supi:1"); len(got) != 0 {
			t.Errorf("got %+v", got)
		}
	})

	t.Run("update and delete", func(t *testing.T) {
		s := open(t, e)
		d := document(bsf.KindSubscription, `{"n":1}`, "supi:1")
		createDocument(t, s, d, nil)
		err := s.UpdateDocument(testContext(t), d.Kind, d.ID, func(old bsf.Document) (*bsf.Document, error) {
			return &bsf.Document{Kind: old.Kind, ID: old.ID, Keys: []string{"supi:2"}, Body: []byte(`{"n":2}`)}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := findDocuments(t, s, d.Kind, "supi:1"); len(got) != 0 {
			t.Errorf("the old key answers")
		}
		if got := findDocuments(t, s, d.Kind, "supi:2"); len(got) != 1 || string(got[0].Body) != `{"n":2}` {
			t.Errorf("got %+v", got)
		}
		refusal := errors.New("no")
		err = s.UpdateDocument(testContext(t), d.Kind, d.ID, func(bsf.Document) (*bsf.Document, error) { return nil, refusal })
		if !errors.Is(err, refusal) {
			t.Errorf("refused update: %v", err)
		}
		noEvent := func(bsf.Document) *bsf.Event { return nil }
		if _, err := s.DeleteDocument(testContext(t), d.Kind, d.ID, noEvent); err != nil {
			t.Fatal(err)
		}
		if _, err := s.DeleteDocument(testContext(t), d.Kind, d.ID, noEvent); !errors.Is(err, bsf.ErrNotFound) {
			t.Errorf("second delete: %v", err)
		}
		err = s.UpdateDocument(testContext(t), d.Kind, d.ID, func(old bsf.Document) (*bsf.Document, error) { return &old, nil })
		if !errors.Is(err, bsf.ErrNotFound) {
			t.Errorf("update of a deleted document: %v", err)
		}
	})

	t.Run("unique text and replacement", func(t *testing.T) {
		s := open(t, e)
		a := document(bsf.KindMbsBinding, `{"n":1}`, "k")
		a.Unique = "k"
		createDocument(t, s, a, nil)
		b := document(bsf.KindMbsBinding, `{"n":2}`, "k")
		b.Unique = "k"
		holder, _, err := s.CreateDocument(testContext(t), b, nil, nil)
		if err != nil || holder == nil || holder.ID != a.ID || string(holder.Body) != `{"n":1}` {
			t.Fatalf("%v, holder %+v", err, holder)
		}
		c := document(bsf.KindMbsBinding, `{"n":3}`, "k")
		if _, _, err := s.CreateDocument(testContext(t), c, []bsf.ID{a.ID}, nil); err != nil {
			t.Fatal(err)
		}
		if got := findDocuments(t, s, bsf.KindMbsBinding, "k"); len(got) != 1 || got[0].ID != c.ID {
			t.Errorf("got %+v", got)
		}
	})
}

func testEvents(t *testing.T, e Engine) {
	subscribe := func(t *testing.T, s storage.Store, r *bsf.Record) {
		createDocument(t, s, document(bsf.KindSubscription, `{}`, bsf.SubscriptionKey(r.Binding.Supi)), nil)
	}

	t.Run("none without a subscriber", func(t *testing.T) {
		s := open(t, e)
		subscribe(t, s, record(2))
		if out := create(t, s, record(1), supersede); out.Queued {
			t.Error("an event is queued")
		}
		if got := claim(t, s); len(got) != 0 {
			t.Errorf("got %+v", got)
		}
	})

	t.Run("first, further and last of a slice", func(t *testing.T) {
		s := open(t, e)
		a, b := record(1), record(2)
		b.Binding.Supi = a.Binding.Supi
		subscribe(t, s, a)
		if out := create(t, s, a, supersede); !out.Queued {
			t.Error("nothing queued")
		}
		create(t, s, b, supersede)
		for _, r := range []*bsf.Record{a, b} {
			if out, err := s.Delete(testContext(t), r.ID); err != nil || !out.Queued {
				t.Errorf("delete: %v, queued %v", err, out.Queued)
			}
		}
		assertEvents(t, claim(t, s), []step{{false, 1}, {false, 2}, {true, 1}, {true, 0}})
	})

	t.Run("a superseded binding goes before its successor comes", func(t *testing.T) {
		s := open(t, e)
		subscribe(t, s, record(1))
		create(t, s, record(1), supersede)
		create(t, s, record(1), supersede)
		got := claim(t, s)
		assertEvents(t, got, []step{{false, 1}, {true, 1}, {false, 2}})
		if got[0].Binding.PcfFqdn != "pcf1.example.com" || got[0].Supi != record(1).Binding.Supi {
			t.Errorf("contents: %+v", got[0])
		}
	})

	t.Run("claimed once, in the queue until finished", func(t *testing.T) {
		s := open(t, e)
		subscribe(t, s, record(1))
		create(t, s, record(1), supersede)
		got := claim(t, s)
		if len(got) != 1 || len(claim(t, s)) != 0 {
			t.Fatalf("claims: %+v", got)
		}
		if err := s.Finish(testContext(t), got[0].ID); err != nil {
			t.Fatal(err)
		}
	})

	if e.Join != nil {
		t.Run("those of a subscriber with one process", func(t *testing.T) { testClaims(t, e, subscribe) })
	}

	t.Run("with a document", func(t *testing.T) {
		s := open(t, e)
		subscribe(t, s, record(1))
		ue := document(bsf.KindUeBinding, `{}`, "supi:x")
		ev := func() *bsf.Event {
			return &bsf.Event{ID: bsf.NewID(), Supi: record(1).Binding.Supi, UeBinding: &bsf.PcfForUeBinding{Supi: record(1).Binding.Supi}}
		}
		if !createDocument(t, s, ue, ev()) {
			t.Error("nothing queued at creation")
		}
		queued, err := s.DeleteDocument(testContext(t), ue.Kind, ue.ID, func(bsf.Document) *bsf.Event { return ev() })
		if err != nil || !queued {
			t.Errorf("deletion: %v, queued %v", err, queued)
		}
		if got := claim(t, s); len(got) != 2 || got[0].UeBinding == nil {
			t.Errorf("got %+v", got)
		}
	})
}

// testClaims proves that events of a subscriber are worked on by one process at
// a time, and that a process that ends hands over what it has not finished.
func testClaims(t *testing.T, e Engine, subscribe func(*testing.T, storage.Store, *bsf.Record)) {
	first, second := e.Open(t), e.Join(t)
	defer second.Close()
	for i := range 2 {
		subscribe(t, first, record(i+1))
	}
	create(t, first, record(1), supersede)
	if got := claim(t, first); len(got) != 1 {
		t.Fatalf("got %+v", got)
	}
	create(t, second, record(1), supersede) // goes and comes again
	create(t, second, record(2), supersede)
	if got := claim(t, second); len(got) != 1 || got[0].Supi != record(2).Binding.Supi {
		t.Fatalf("the other process got %+v", got)
	}
	got := claim(t, first)
	assertEvents(t, got, []step{{true, 1}, {false, 2}})
	if err := first.Finish(testContext(t), got[0].ID); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	assertEvents(t, claim(t, second), []step{{false, 1}, {false, 2}})
}

func claim(t *testing.T, s storage.Store) []*bsf.Event {
	t.Helper()
	got, err := s.Claim(testContext(t), 100)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// step is what an event says about a slice.
type step struct {
	gone      bool
	remaining int
}

func assertEvents(t *testing.T, got []*bsf.Event, want []step) {
	t.Helper()
	var steps []step
	for _, e := range got {
		steps = append(steps, step{e.Gone, e.Remaining})
	}
	if !reflect.DeepEqual(steps, want) {
		t.Errorf("got %v, want %v", steps, want)
	}
}

// testReopen proves NBSF-101 and NBSF-103: what is stored stays until it is
// deleted, across restarts.
func testReopen(t *testing.T, e Engine) {
	if e.Reopen == nil {
		t.Skip("this engine keeps nothing")
	}
	s := e.Open(t)
	records := []*bsf.Record{record(1), fullRecord(2), macRecord(3), record(4)}
	for _, r := range records {
		create(t, s, r, supersede)
	}
	if _, err := s.Delete(testContext(t), records[3].ID); err != nil {
		t.Fatal(err)
	}
	sub := document(bsf.KindSubscription, `{"n":1}`, bsf.SubscriptionKey(record(5).Binding.Supi))
	createDocument(t, s, sub, nil)
	create(t, s, record(5), supersede)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = e.Reopen(t)
	defer s.Close()
	for _, r := range records[:3] {
		for _, k := range r.Keys(nil) {
			if list := find(t, s, k); len(list) != 1 || !reflect.DeepEqual(list[0], r) {
				t.Errorf("key %+v:\n got %+v\nwant %+v", k, list, r)
			}
		}
	}
	if ids := found(t, s, records[3].Keys(nil)[0]); len(ids) != 0 {
		t.Error("a deleted record is back")
	}
	if got := findDocuments(t, s, sub.Kind, sub.Keys[0]); len(got) != 1 || !reflect.DeepEqual(got[0], *sub) {
		t.Errorf("documents: %+v", got)
	}
	assertEvents(t, claim(t, s), []step{{false, 1}})
	if n, err := s.Count(testContext(t)); err != nil || n != 4 {
		t.Errorf("%d records, %v", n, err)
	}
}
