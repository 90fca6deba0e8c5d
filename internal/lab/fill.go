package lab

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"bsfd/bsf"
	"bsfd/internal/tgpp"
	"bsfd/storage"
	"bsfd/storage/embedded"
)

func address(i int) string {
	return netip.AddrFrom4([4]byte{10 + byte(i>>24), byte(i >> 16), byte(i >> 8), byte(i)}).String()
}

func prefix(i int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, byte(i >> 24), byte(i >> 16), byte(i >> 8), byte(i)}), 64)
}

// record is the binding that body(i) registers.
func record(i int) *bsf.Record {
	features := bsf.SupportedFeatures & 7
	now := time.Now().UTC().Truncate(time.Microsecond)
	pcf := i % 16
	return &bsf.Record{ID: bsf.NewID(), Created: now, Audited: now, Binding: bsf.PcfBinding{
		Supi: tgpp.Supi(fmt.Sprintf("imsi-00101%010d", i)), Gpsi: tgpp.Gpsi(fmt.Sprintf("msisdn-467%08d", i)),
		Ipv4Addr: netip.MustParseAddr(address(i)), Ipv6Prefix: prefix(i),
		Dnn: "internet", Snssai: tgpp.Snssai{Sst: 1, Sd: "0000AB"},
		PcfFqdn:      tgpp.Fqdn(fmt.Sprintf("pcf%d.example.com", pcf)),
		PcfDiamHost:  tgpp.Fqdn(fmt.Sprintf("pcf%d.rx.example.com", pcf)),
		PcfDiamRealm: "example.com",
		PcfId:        tgpp.NfInstanceId(fmt.Sprintf("54804518-4191-46b3-955c-ac631f953e%02d", pcf)),
		PcfSetId:     "set1.pcfset.5gc.mnc001.mcc001", BindLevel: bsf.BindLevelNfSet, SuppFeat: &features,
	}}
}

// fill stores the bindings that bsfd is to start with.
func (b *bench) fill(ctx context.Context, dir string) error {
	if b.o.preload == 0 {
		return nil
	}
	if b.o.engine != string(storage.Embedded) {
		return fmt.Errorf("%w: --preload: needs the embedded engine", ErrUsage)
	}
	s, err := storage.Open(ctx, storage.Config{
		Engine: storage.Embedded, DataDir: dir, Timeout: time.Minute,
		Embedded: embedded.Config{MemTableBytes: 32 << 20, ReserveBytes: 1 << 20},
	}, func(int64, float64) {}, zerolog.Nop(), prometheus.NewRegistry())
	if err != nil {
		return err
	}
	var next atomic.Int64
	var failure atomic.Pointer[error]
	var wg sync.WaitGroup
	for range 256 {
		wg.Go(func() {
			for ctx.Err() == nil && failure.Load() == nil {
				i := int(next.Add(1)) - 1
				if i >= b.o.preload {
					return
				}
				if _, err := s.Create(ctx, record(i), bsf.Rules{SameAddress: bsf.Keep}); err != nil {
					failure.Store(&err)
				}
				if i%100000 == 0 {
					fmt.Fprintf(b.stderr, "\rstored %d of %d bindings", i, b.o.preload)
				}
			}
		})
	}
	wg.Wait()
	fmt.Fprintln(b.stderr)
	if err := s.Close(); err != nil {
		return err
	}
	if p := failure.Load(); p != nil {
		return *p
	}
	return ctx.Err()
}
