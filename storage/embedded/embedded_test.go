package embedded

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"bsfd/bsf"
	"bsfd/internal/tgpp"
)

// faultyFS is a file system whose writes can be made to hang or to fail once.
type faultyFS struct {
	vfs.FS
	hang atomic.Pointer[chan struct{}]
	full atomic.Bool
}

// Create implements vfs.FS.
func (f *faultyFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, category)
	return &faultyFile{file, f}, err
}

// ReuseForWrite implements vfs.FS.
func (f *faultyFS) ReuseForWrite(old, name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.ReuseForWrite(old, name, category)
	return &faultyFile{file, f}, err
}

type faultyFile struct {
	vfs.File
	fs *faultyFS
}

// Write implements vfs.File.
func (f *faultyFile) Write(b []byte) (int, error) {
	if f.fs.full.CompareAndSwap(true, false) {
		return 0, syscall.ENOSPC
	}
	return f.File.Write(b)
}

// SyncData implements vfs.File.
func (f *faultyFile) SyncData() error {
	if c := f.fs.hang.Load(); c != nil {
		<-*c
	}
	return f.File.SyncData()
}

func openStore(t *testing.T, dir string, fs vfs.FS) *Store {
	t.Helper()
	s, err := Open(t.Context(), Config{Dir: dir, MemTableBytes: 1 << 20, ReserveBytes: 1 << 20, Timeout: 200 * time.Millisecond, fs: fs},
		func(int64, float64) {}, zerolog.Nop(), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func testRecord(n byte) *bsf.Record {
	now := time.Now().UTC().Truncate(time.Microsecond)
	return &bsf.Record{ID: bsf.NewID(), Created: now, Audited: now, Binding: bsf.PcfBinding{
		Ipv4Addr: netip.AddrFrom4([4]byte{10, 0, 0, n}), Dnn: "internet", Snssai: tgpp.Snssai{Sst: 1}, PcfFqdn: "pcf1.example.com",
	}}
}

func create(s *Store, n byte) error {
	_, err := s.Create(context.Background(), testRecord(n), bsf.Rules{SameAddress: bsf.Supersede})
	return err
}

// TestHangingDisk proves that callers get an answer while the disk does not
// give one, and that service resumes by itself.
func TestHangingDisk(t *testing.T) {
	fs := &faultyFS{FS: vfs.Default}
	s := openStore(t, t.TempDir(), fs)
	if err := create(s, 1); err != nil {
		t.Fatal(err)
	}
	release := make(chan struct{})
	fs.hang.Store(&release)
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = create(s, byte(10+i)) })
	}
	wg.Wait()
	for _, err := range errs {
		if !errors.Is(err, bsf.ErrTimeout) && !errors.Is(err, bsf.ErrUnavailable) {
			t.Errorf("while the disk hangs: %v", err)
		}
	}
	if err := s.Ready(t.Context()); !errors.Is(err, bsf.ErrUnavailable) {
		t.Errorf("ready: %v", err)
	}
	if err := create(s, 20); !errors.Is(err, bsf.ErrUnavailable) {
		t.Errorf("a new change: %v", err)
	}
	fs.hang.Store(nil)
	close(release)
	for deadline := time.Now().Add(10 * time.Second); create(s, 30) != nil; {
		if time.Now().After(deadline) {
			t.Fatal("service does not resume")
		}
	}
}

// TestBallast proves that a write which meets a full disk succeeds with the
// room of the ballast file, and that new records are refused until there is
// more.
func TestBallast(t *testing.T) {
	fs := &faultyFS{FS: vfs.Default}
	s := openStore(t, t.TempDir(), fs)
	fs.full.Store(true)
	if err := create(s, 1); err != nil {
		t.Errorf("the write that met the full disk: %v", err)
	}
	if fs.full.Load() {
		t.Fatal("nothing was written")
	}
	if err := create(s, 2); !errors.Is(err, bsf.ErrFull) {
		t.Errorf("the next one: %v", err)
	}
	for deadline := time.Now().Add(10 * time.Second); create(s, 3) != nil; {
		if time.Now().After(deadline) {
			t.Fatal("service does not resume")
		}
	}
}

// TestDamagedStore proves that what cannot be read is an error at start, not a
// silent loss.
func TestDamagedStore(t *testing.T) {
	for name, damage := range map[string]func(*pebble.DB) error{
		"a binding that is cut off": func(db *pebble.DB) error {
			return db.Set(bindingKey(nil, bsf.NewID()), []byte("short"), pebble.Sync)
		},
		"a document that is cut off": func(db *pebble.DB) error {
			return db.Set(documentKey(nil, bsf.KindSubscription, bsf.NewID()), []byte{3}, pebble.Sync)
		},
		"an event that is no JSON": func(db *pebble.DB) error {
			return db.Set(eventKey(nil, bsf.NewID()), []byte("{"), pebble.Sync)
		},
		"a later format": func(db *pebble.DB) error { return db.Set(formatKey, []byte("99"), pebble.Sync) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := openStore(t, dir, nil)
			if err := create(s, 1); err != nil {
				t.Fatal(err)
			}
			if err := damage(s.db); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			_, err := Open(t.Context(), s.cfg, func(int64, float64) {}, zerolog.Nop(), prometheus.NewRegistry())
			if err == nil || strings.Contains(err.Error(), "panic") {
				t.Errorf("open: %v", err)
			}
		})
	}
}
