package postgres

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"bsfd/bsf"
	"bsfd/internal/pgtest"
	"bsfd/internal/tgpp"
)

const (
	benchCallers = 256
	// benchBatch is a batch as the engine makes them at that many callers.
	benchBatch = 128
)

func benchRecord(i int) *bsf.Record {
	features := bsf.SupportedFeatures
	now := time.Now().UTC().Truncate(time.Microsecond)
	return &bsf.Record{ID: bsf.NewID(), Created: now, Audited: now, Binding: bsf.PcfBinding{
		Supi: tgpp.Supi(fmt.Sprintf("imsi-00101%010d", i)), Gpsi: tgpp.Gpsi(fmt.Sprintf("msisdn-467%08d", i)),
		Ipv4Addr:   netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}),
		Ipv6Prefix: netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 0, byte(i >> 16), byte(i >> 8), byte(i)}), 64),
		Dnn:        "internet", Snssai: tgpp.Snssai{Sst: 1, Sd: "0000AB"}, PcfFqdn: "pcf1.example.com",
		PcfDiamHost: "pcf1.rx.example.com", PcfDiamRealm: "example.com", PcfId: "54804518-4191-46b3-955c-ac631f953ed8",
		PcfSetId: "set1.pcfset.5gc.mnc001.mcc001", BindLevel: bsf.BindLevelNfSet, SuppFeat: &features,
	}}
}

func benchStore(b *testing.B) *Store {
	b.Helper()
	s, err := Open(b.Context(), Config{DSN: pgtest.Start(b).Database("bench"), MaxConns: 8, Migrate: true, Timeout: time.Minute}, zerolog.Nop(), prometheus.NewRegistry())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	return s
}

// spread runs do for 0..n-1 on some goroutines and returns the rate a second.
func spread(b *testing.B, workers, n int, do func(i int) error) float64 {
	b.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	start := time.Now()
	for range workers {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := do(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return float64(n) / time.Since(start).Seconds()
}

// BenchmarkAgainstPgx compares the engine with pgx alone in one run: the same
// statements gathered by the caller, and one INSERT a request.
func BenchmarkAgainstPgx(b *testing.B) {
	const n = 64 * 1024
	for b.Loop() {
		s := benchStore(b)
		ctx := context.Background()
		engine := spread(b, benchCallers, n, func(i int) error {
			_, err := s.Create(ctx, benchRecord(i), bsf.Rules{SameAddress: bsf.Supersede})
			return err
		})
		gathered := spread(b, writers, n/benchBatch, func(i int) error {
			return sendCreates(ctx, s, n+i*benchBatch)
		}) * benchBatch
		single := spread(b, benchCallers, n/8, func(i int) error {
			x, err := rowOf(benchRecord(2*n+i), bsf.Supersede)
			if err != nil {
				return err
			}
			return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return s.insertOne(ctx, tx, x) })
		})
		find := spread(b, benchCallers, n, func(i int) error {
			found, err := s.Find(ctx, benchRecord(i).Keys(nil)[0])
			if err == nil && len(found) != 1 {
				err = fmt.Errorf("%d records", len(found))
			}
			return err
		})
		pipelined := spread(b, readers, n/benchBatch, func(i int) error { return sendFinds(ctx, s, i*benchBatch) }) * benchBatch
		b.ReportMetric(engine, "register/s")
		b.ReportMetric(engine/gathered, "register-vs-gathered")
		b.ReportMetric(engine/single, "register-vs-single")
		b.ReportMetric(find, "find/s")
		b.ReportMetric(find/pipelined, "find-vs-pipelined")
	}
}

// sendCreates registers a batch with the statements of the engine.
func sendCreates(ctx context.Context, s *Store, from int) error {
	var creates []*write
	byID := make(map[bsf.ID]*write)
	for i := range benchBatch {
		r := benchRecord(from + i)
		x, err := rowOf(r, bsf.Supersede)
		if err != nil {
			return err
		}
		w := &write{record: r, row: x, id: r.ID, rules: bsf.Rules{SameAddress: bsf.Supersede}}
		creates, byID[r.ID] = append(creates, w), w
	}
	var batch pgx.Batch
	queueSupersede(&batch, creates, byID)
	batch.Queue(insertAll, insertArgs(creates)...)
	return s.pool.SendBatch(ctx, &batch).Close()
}

// sendFinds looks a batch up with the statements of the engine.
func sendFinds(ctx context.Context, s *Store, from int) error {
	var batch pgx.Batch
	for i := range benchBatch {
		sql, args := queryOf(benchRecord(from + i).Keys(nil)[0])
		batch.Queue(sql, args...).Query(func(rows pgx.Rows) error {
			_, err := collectRecords(rows)
			return err
		})
	}
	return s.pool.SendBatch(ctx, &batch).Close()
}
