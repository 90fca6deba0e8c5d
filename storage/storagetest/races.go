package storagetest

import (
	"context"
	"net/netip"
	"sync"
	"testing"

	"bsfd/bsf"
	"bsfd/internal/tgpp"
	"bsfd/storage"
)

// racers returns the stores among which racing requests are spread: one, or
// two on the same storage.
func racers(t *testing.T, e Engine) []storage.Store {
	stores := []storage.Store{open(t, e)}
	if e.Join != nil {
		s := e.Join(t)
		t.Cleanup(func() { _ = s.Close() })
		stores = append(stores, s)
	}
	return stores
}

// race runs n functions at once.
func race(n int, do func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			do(i)
		})
	}
	close(start)
	wg.Wait()
}

func testRaces(t *testing.T, e Engine) {
	const n, rounds = 8, 10

	t.Run("of PCFs with the same paraCom exactly one registers", func(t *testing.T) {
		stores := racers(t, e)
		for round := range rounds {
			stored, refused := make([]bool, n), make([]bool, n)
			race(n, func(i int) {
				r := withParaCom(round*n+i, tgpp.NfInstanceId([]byte("00000000-0000-4000-8000-00000000000"+string(rune('0'+i)))))
				r.Binding.Supi = record(round).Binding.Supi
				r.Binding.ParaCom.Supi = r.Binding.Supi
				out, err := stores[i%len(stores)].Create(testContext(t), r, supersede)
				if err != nil {
					t.Error(err)
					return
				}
				stored[i], refused[i] = out.Conflict == nil, out.Conflict != nil
			})
			if a, b := count(stored), count(refused); a != 1 || b != n-1 {
				t.Fatalf("%d stored, %d refused", a, b)
			}
		}
	})

	t.Run("of registrations for one address exactly one is left", func(t *testing.T) {
		stores := racers(t, e)
		for round := range rounds {
			removed := make([]int, n)
			race(n, func(i int) {
				out, err := stores[i%len(stores)].Create(testContext(t), record(round), supersede)
				if err != nil {
					t.Error(err)
				}
				removed[i] = len(out.Remove)
			})
			total := 0
			for _, x := range removed {
				total += x
			}
			if left := find(t, stores[0], record(round).Keys(nil)[0]); len(left) != 1 || total != n-1 {
				t.Fatalf("%d left, %d removed", len(left), total)
			}
		}
	})

	t.Run("of deletions exactly one succeeds", func(t *testing.T) {
		stores := racers(t, e)
		for round := range rounds {
			r := record(round)
			create(t, stores[0], r, supersede)
			deleted := make([]bool, n)
			race(n, func(i int) {
				_, err := stores[i%len(stores)].Delete(testContext(t), r.ID)
				deleted[i] = err == nil
			})
			if count(deleted) != 1 {
				t.Fatalf("%d deletions", count(deleted))
			}
		}
	})

	t.Run("of documents with one unique text exactly one is stored", func(t *testing.T) {
		stores := racers(t, e)
		for range rounds {
			unique := bsf.NewID().String()
			won := make([]bool, n)
			race(n, func(i int) {
				d := &bsf.Document{Kind: bsf.KindMbsBinding, ID: bsf.NewID(), Keys: []string{unique}, Unique: unique, Body: []byte("{}")}
				holder, _, err := stores[i%len(stores)].CreateDocument(testContext(t), d, nil, nil)
				if err != nil {
					t.Error(err)
				}
				won[i] = err == nil && holder == nil
			})
			if count(won) != 1 {
				t.Fatalf("%d stored", count(won))
			}
		}
	})

	t.Run("an update is seen whole", func(t *testing.T) {
		stores := racers(t, e)
		s := stores[0]
		r := record(1)
		create(t, s, r, supersede)
		a, b := r.Binding.Ipv4Addr, netip.MustParseAddr("10.200.0.1")
		ctx, stop := context.WithCancel(testContext(t))
		var readers sync.WaitGroup
		for _, reader := range stores {
			readers.Go(func() {
				for ctx.Err() == nil {
					// Whoever has seen the new address must not find the old one.
					if len(find(t, reader, bsf.PrefixKey(netip.PrefixFrom(b, 32)))) == 1 &&
						len(find(t, reader, bsf.PrefixKey(netip.PrefixFrom(a, 32)))) == 1 &&
						len(find(t, reader, bsf.PrefixKey(netip.PrefixFrom(b, 32)))) == 1 {
						t.Error("old and new address answer together")
						return
					}
				}
			})
		}
		if _, err := s.Update(testContext(t), r.ID, supersede, func(old bsf.Record) (*bsf.Record, error) {
			n := old.Clone()
			n.Binding.Ipv4Addr = b
			return n, nil
		}); err != nil {
			t.Error(err)
		}
		stop()
		readers.Wait()
	})

	t.Run("mixed load leaves index and records in step", func(t *testing.T) {
		stores := racers(t, e)
		const perRacer = 60
		kept := make([]map[int]bsf.ID, n)
		race(n, func(i int) {
			kept[i] = make(map[int]bsf.ID)
			for k := range perRacer {
				r := record(i*perRacer + k)
				out, err := stores[i%len(stores)].Create(testContext(t), r, supersede)
				if err != nil || len(out.Remove) != 0 {
					t.Errorf("create: %v, %+v", err, out.Remove)
					return
				}
				kept[i][i*perRacer+k] = r.ID
				if k%3 == 0 {
					if _, err := stores[i%len(stores)].Delete(testContext(t), r.ID); err != nil {
						t.Errorf("delete: %v", err)
					}
					delete(kept[i], i*perRacer+k)
				}
			}
		})
		total := 0
		for _, m := range kept {
			total += len(m)
			for k, id := range m {
				for _, key := range record(k).Keys(nil) {
					if ids := found(t, stores[0], key); len(ids) != 1 || !ids[id] {
						t.Fatalf("record %d under %+v: %v", k, key, ids)
					}
				}
			}
		}
		if got, err := stores[0].Count(testContext(t)); err != nil || got != int64(total) {
			t.Errorf("%d records (%v), want %d", got, err, total)
		}
	})
}

func count(list []bool) (n int) {
	for _, b := range list {
		if b {
			n++
		}
	}
	return n
}
