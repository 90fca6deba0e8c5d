package overload

import (
	"math"
	"runtime/metrics"
	"time"
)

// Usage is what the process uses of the machine.
type Usage struct {
	// CPU is the processor time since some point in the past.
	CPU time.Duration
	// Cores is how many processors it may use, more than 0.
	Cores float64
	// Memory is the memory in use in percent of the limit.
	Memory float64
	// Delay is how long goroutines that can run wait for a processor: all but
	// a twentieth of them shorter, over the last tenth of a second or more.
	Delay time.Duration
}

// Source gives the usage of the moment.
type Source interface {
	Usage() Usage
}

// cpuMeter is the processor usage between two samples.
type cpuMeter struct {
	at   time.Time
	used time.Duration
}

// percent is the usage since the last call, in percent of the processors that
// may be used; 0 at the first call.
func (m *cpuMeter) percent(now time.Time, u Usage) float64 {
	took := now.Sub(m.at)
	used := u.CPU - m.used
	first := m.at.IsZero()
	m.at, m.used = now, u.CPU
	if first || took <= 0 {
		return 0
	}
	return min(100, 100*used.Seconds()/(took.Seconds()*u.Cores))
}

// schedLatency is the metric of the runtime for the time between a goroutine
// becoming runnable and running.
const schedLatency = "/sched/latencies:seconds"

// delayMeter reads how long goroutines waited since the last reading.
type delayMeter struct {
	samples []metrics.Sample
	last    []uint64
	at      time.Time
	delay   time.Duration
}

// delayWindow is the least time over which a delay is taken.
const delayWindow = 100 * time.Millisecond

// delayQuantile is the quantile that counts.
const delayQuantile = .95

func (m *delayMeter) read(now time.Time) time.Duration {
	if now.Sub(m.at) < delayWindow {
		return m.delay
	}
	m.at = now
	if m.samples == nil {
		m.samples = []metrics.Sample{{Name: schedLatency}}
	}
	metrics.Read(m.samples)
	if m.samples[0].Value.Kind() != metrics.KindFloat64Histogram {
		return 0
	}
	h := m.samples[0].Value.Float64Histogram()
	m.delay = quantile(h, m.last, delayQuantile)
	m.last = append(m.last[:0], h.Counts...)
	return m.delay
}

// quantile is a quantile of what a histogram counted since its counts were
// last.
func quantile(h *metrics.Float64Histogram, last []uint64, q float64) time.Duration {
	delta := func(i int) uint64 {
		if i < len(last) {
			return h.Counts[i] - last[i]
		}
		return h.Counts[i]
	}
	var total uint64
	for i := range h.Counts {
		total += delta(i)
	}
	if total == 0 {
		return 0
	}
	rank := uint64(q * float64(total))
	for i := range h.Counts {
		n := delta(i)
		if rank < n {
			upper := h.Buckets[i+1]
			if math.IsInf(upper, 1) {
				upper = h.Buckets[i]
			}
			return time.Duration(upper * float64(time.Second))
		}
		rank -= n
	}
	return 0
}
