package overload

import (
	"io/fs"
	"math"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Machine reads the usage from the system: from the control group of the
// process where that has a limit (version 2, or 1), else of the process alone.
type Machine struct {
	root fs.FS // of the file system

	cores      float64
	cpuFile    string // of the control group, empty when that has no limit
	cpuKey     string // the line in it, empty for the only number
	cpuUnit    time.Duration
	memory     int64  // limit in bytes
	memoryFile string // of the control group, empty when that has no limit
	reclaim    string // the line of its statistics that can be given back
}

// NewMachine finds out what the process may use.
func NewMachine() *Machine { return newMachine(os.DirFS("/"), runtime.NumCPU()) }

func newMachine(root fs.FS, processors int) *Machine {
	m := &Machine{root: root, cores: float64(processors)}
	v2, v1 := m.groups()
	m.findCPU(v2, v1)
	m.findMemory(v2, v1)
	return m
}

// groups are the paths of the control groups of the process: that of version
// 2, and those of version 1 by controller.
func (m *Machine) groups() (v2 string, v1 map[string]string) {
	v1 = make(map[string]string)
	for line := range strings.SplitSeq(m.text("proc/self/cgroup"), "\n") {
		f := strings.SplitN(line, ":", 3)
		if len(f) != 3 {
			continue
		}
		if f[1] == "" {
			v2 = f[2]
		}
		for c := range strings.SplitSeq(f[1], ",") {
			v1[c] = f[2]
		}
	}
	return v2, v1
}

// places are where the files of a group may be: under its path, or, in a
// container that sees only itself, at the root.
func places(mount, group string) []string {
	return []string{path.Join("sys/fs/cgroup", mount, group), path.Join("sys/fs/cgroup", mount)}
}

func (m *Machine) findCPU(v2 string, v1 map[string]string) {
	for _, dir := range places("", v2) {
		f := strings.Fields(m.text(path.Join(dir, "cpu.max")))
		if len(f) == 2 && m.limit(f[0], f[1]) {
			m.cpuFile, m.cpuKey, m.cpuUnit = path.Join(dir, "cpu.stat"), "usage_usec", time.Microsecond
			return
		}
	}
	for _, mount := range []string{"cpu", "cpu,cpuacct"} {
		for i, dir := range places(mount, v1["cpu"]) {
			if !m.limit(m.text(path.Join(dir, "cpu.cfs_quota_us")), m.text(path.Join(dir, "cpu.cfs_period_us"))) {
				continue
			}
			if v1["cpuacct"] != v1["cpu"] {
				// The limit is of a group whose usage nobody counts.
				return
			}
			for _, usage := range []string{"cpuacct", "cpu,cpuacct"} {
				file := path.Join(places(usage, v1["cpuacct"])[i], "cpuacct.usage")
				if m.text(file) != "" {
					m.cpuFile, m.cpuUnit = file, time.Nanosecond
					return
				}
			}
		}
	}
}

// limit takes a quota of processor time in a period; false when there is none.
func (m *Machine) limit(quota, period string) bool {
	q, err := strconv.ParseFloat(strings.TrimSpace(quota), 64)
	p, err2 := strconv.ParseFloat(strings.TrimSpace(period), 64)
	if err != nil || err2 != nil || q <= 0 || p <= 0 {
		return false
	}
	m.cores = min(m.cores, q/p)
	return true
}

func (m *Machine) findMemory(v2 string, v1 map[string]string) {
	m.memory = m.keyed("proc/meminfo", "MemTotal:") << 10
	for _, dir := range places("", v2) {
		if n := m.number(path.Join(dir, "memory.max")); n > 0 && (m.memory == 0 || n < m.memory) {
			m.memory, m.memoryFile, m.reclaim = n, path.Join(dir, "memory.current"), "inactive_file"
			return
		}
	}
	for _, dir := range places("memory", v1["memory"]) {
		if n := m.number(path.Join(dir, "memory.limit_in_bytes")); n > 0 && (m.memory == 0 || n < m.memory) {
			m.memory, m.memoryFile, m.reclaim = n, path.Join(dir, "memory.usage_in_bytes"), "total_inactive_file"
			return
		}
	}
}

// text is the content of a file, empty when it cannot be read.
func (m *Machine) text(name string) string {
	b, err := fs.ReadFile(m.root, name)
	if err != nil {
		return ""
	}
	return string(b)
}

// number is the number that a file holds, 0 for none.
func (m *Machine) number(name string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(m.text(name)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// keyed is the number behind a word at the begin of a line.
func (m *Machine) keyed(name, key string) int64 {
	for line := range strings.SplitSeq(m.text(name), "\n") {
		f := strings.Fields(line)
		if len(f) >= 2 && f[0] == key {
			n, err := strconv.ParseInt(f[1], 10, 64)
			if err == nil {
				return n
			}
		}
	}
	return 0
}

// Usage implements Source.
func (m *Machine) Usage() Usage {
	return Usage{CPU: m.cpu(), Cores: m.cores, Memory: m.memoryPercent()}
}

func (m *Machine) cpu() time.Duration {
	switch {
	case m.cpuFile == "":
		return ownCPU()
	case m.cpuKey == "":
		return time.Duration(m.number(m.cpuFile)) * m.cpuUnit
	}
	return time.Duration(m.keyed(m.cpuFile, m.cpuKey)) * m.cpuUnit
}

// ownCPU is the processor time of the process.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func (m *Machine) memoryPercent() float64 {
	if m.memory == 0 {
		return 0
	}
	if m.memoryFile == "" {
		f := strings.Fields(m.text("proc/self/statm"))
		if len(f) < 2 {
			return 0
		}
		pages, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil {
			return 0
		}
		return 100 * float64(pages*int64(os.Getpagesize())) / float64(m.memory)
	}
	// What the kernel only keeps for reading again is no need of the process.
	used := m.number(m.memoryFile) - m.keyed(path.Join(path.Dir(m.memoryFile), "memory.stat"), m.reclaim)
	return math.Max(0, 100*float64(used)/float64(m.memory))
}
