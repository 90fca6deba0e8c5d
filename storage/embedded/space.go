package embedded

import (
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"
)

// space watches the free space of the file system, so that a full disk stops
// new records before it stops the log. A ballast file is given up when a write
// meets a full disk all the same: the write is tried again and succeeds.
type space struct {
	dir     string
	reserve int64
	log     zerolog.Logger
	prometheus.GaugeFunc

	mu      sync.Mutex
	checked time.Time
	low     bool
	ballast bool
}

// spaceInterval is how old the last look at the file system may be.
const spaceInterval = 100 * time.Millisecond

func newSpace(dir string, reserve int64, log zerolog.Logger) *space {
	s := &space{dir: dir, reserve: reserve, log: log}
	s.GaugeFunc = prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "ocbsf_storage_free_bytes", Help: "Free bytes of the file system of storage.dataDir.",
	}, func() float64 { return float64(freeBytes(dir)) })
	s.isLow(time.Now())
	return s
}

func (s *space) ballastFile() string { return filepath.Join(s.dir, "ballast") }

// isLow reports whether new records must be refused.
func (s *space) isLow(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.checked) < spaceInterval {
		return s.low
	}
	s.checked = now
	free := freeBytes(s.dir)
	if !s.ballast && free > 2*s.reserve {
		s.ballast = s.allocate()
		free = freeBytes(s.dir)
	}
	if low := free < s.reserve; low != s.low {
		s.low = low
		if low {
			s.log.Error().Int64("freeBytes", free).Msg("disk is nearly full, new records are refused")
		} else {
			s.log.Info().Int64("freeBytes", free).Msg("disk has room again")
		}
	}
	return s.low
}

// allocate makes the ballast file.
func (s *space) allocate() bool {
	f, err := os.OpenFile(s.ballastFile(), os.O_CREATE|os.O_RDWR, 0o640)
	if err != nil {
		return false
	}
	err = unix.Fallocate(int(f.Fd()), 0, 0, s.reserve)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		s.log.Debug().Err(err).Msg("no ballast file")
		_ = os.Remove(s.ballastFile())
	}
	return err == nil
}

// release gives the ballast up. Pebble calls it when a write meets a full
// disk, before it tries again.
func (s *space) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log.Error().Msg("disk is full, ballast given up")
	_ = os.Remove(s.ballastFile())
	s.ballast = false
	s.low = true
	s.checked = time.Now()
}

// freeBytes is what an unprivileged process may still write.
func freeBytes(dir string) int64 {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0
	}
	return int64(st.Bavail) * int64(st.Bsize)
}

// FreeBytes reports the free space of the file system that holds dir, or would
// hold it.
func FreeBytes(dir string) int64 {
	for {
		if _, err := os.Stat(dir); err == nil || filepath.Dir(dir) == dir {
			return freeBytes(dir)
		}
		dir = filepath.Dir(dir)
	}
}
