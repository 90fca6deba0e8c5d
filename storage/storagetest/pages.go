package storagetest

import (
	"errors"
	"testing"
	"time"

	"bsfd/bsf"
	"bsfd/storage"
)

// aged stores n records, each a second younger than the one before.
func aged(t *testing.T, s storage.Store, n int) (list []*bsf.Record, start time.Time) {
	start = time.Now().UTC().Add(-time.Hour).Truncate(time.Microsecond)
	for i := range n {
		r := record(i)
		r.Created = start.Add(time.Duration(i) * time.Second)
		r.Audited = r.Created
		create(t, s, r, supersede)
		list = append(list, r)
	}
	return list, start
}

// walk pages through everything before a time and returns the ids in order.
func walk(t *testing.T, s storage.Store, before time.Time, limit int, between func(page int)) (ids []bsf.ID) {
	var at bsf.Cursor
	for page := 0; ; page++ {
		list, err := s.Stale(testContext(t), before, at, limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list {
			ids = append(ids, r.ID)
			at = bsf.At(r)
		}
		if len(list) < limit {
			return ids
		}
		between(page)
	}
}

func testPages(t *testing.T, e Engine) {
	none := func(int) {}

	t.Run("oldest first, up to the time", func(t *testing.T) {
		s := open(t, e)
		list, start := aged(t, s, 25)
		ids := walk(t, s, start.Add(20*time.Second), 7, none)
		if len(ids) != 20 {
			t.Fatalf("%d records", len(ids))
		}
		for i, id := range ids {
			if id != list[i].ID {
				t.Fatalf("record %d is out of order", i)
			}
		}
	})

	t.Run("stable while records come, go and are touched", func(t *testing.T) {
		s := open(t, e)
		list, _ := aged(t, s, 30)
		ids := walk(t, s, time.Now().Add(-time.Minute), 10, func(page int) {
			if page != 0 {
				return
			}
			if _, err := s.Delete(testContext(t), list[9].ID); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Delete(testContext(t), list[15].ID); err != nil {
				t.Fatal(err)
			}
			if err := s.Touch(testContext(t), list[20].ID, time.Now(), 0); err != nil {
				t.Fatal(err)
			}
			create(t, s, record(1000), supersede)
		})
		seen := make(map[bsf.ID]int)
		for _, id := range ids {
			seen[id]++
		}
		for i, r := range list {
			want := 1
			if i == 15 || i == 20 {
				want = 0
			}
			if seen[r.ID] != want {
				t.Errorf("record %d seen %d times", i, seen[r.ID])
			}
		}
	})

	t.Run("touch", func(t *testing.T) {
		s := open(t, e)
		list, _ := aged(t, s, 3)
		now := time.Now().UTC().Truncate(time.Microsecond)
		if err := s.Touch(testContext(t), list[0].ID, now, 7); err != nil {
			t.Fatal(err)
		}
		ids := walk(t, s, now.Add(time.Second), 10, none)
		if len(ids) != 3 || ids[2] != list[0].ID {
			t.Errorf("order: %v", ids)
		}
		r := find(t, s, list[0].Keys(nil)[0])[0]
		if !r.Audited.Equal(now) || r.Attempts != 7 || !r.Created.Equal(list[0].Created) {
			t.Errorf("touched record: %+v", r)
		}
		if err := s.Touch(testContext(t), bsf.NewID(), now, 0); !errors.Is(err, bsf.ErrNotFound) {
			t.Errorf("unknown id: %v", err)
		}
	})

	t.Run("by PCF and by set", func(t *testing.T) {
		s := open(t, e)
		for i := range 20 {
			r := record(i)
			if i%2 == 0 {
				r.Binding.PcfId, r.Binding.PcfSetId = "00000000-0000-4000-8000-000000000002", "set2.pcfset.5gc.mnc001.mcc001"
			}
			create(t, s, r, supersede)
		}
		for _, h := range []bsf.Holder{
			{PcfId: "00000000-0000-4000-8000-000000000002"}, {PcfSetId: "set2.pcfset.5gc.mnc001.mcc001"},
		} {
			var at bsf.Cursor
			n := 0
			for {
				list, err := s.HeldBy(testContext(t), h, at, 3)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range list {
					if h.PcfId != "" && string(r.Binding.PcfId) != h.PcfId {
						t.Errorf("record of %s", r.Binding.PcfId)
					}
					n, at = n+1, bsf.At(r)
				}
				if len(list) < 3 {
					break
				}
			}
			if n != 10 {
				t.Errorf("%+v: %d records", h, n)
			}
		}
		if list, err := s.HeldBy(testContext(t), bsf.Holder{PcfId: "unknown"}, bsf.Cursor{}, 10); err != nil || len(list) != 0 {
			t.Errorf("unknown PCF: %v, %v", list, err)
		}
	})
}
