package overload

import "time"

// Usage is what the process uses of the machine.
type Usage struct {
	// CPU is the processor time since some point in the past.
	CPU time.Duration
	// Cores is how many processors it may use, more than 0.
	Cores float64
	// Memory is the memory in use in percent of the limit.
	Memory float64
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
