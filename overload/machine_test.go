package overload

import (
	"testing"
	"testing/fstest"
	"time"
)

// TestMachineReadsControlGroups proves where usage and limits come from:
// version 2, version 1, and without limits the process alone.
func TestMachineReadsControlGroups(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	proc := func(cgroup string, more map[string]string) fstest.MapFS {
		fs := fstest.MapFS{"proc/self/cgroup": file(cgroup), "proc/meminfo": file("MemTotal:  1000 kB\nMemFree: 1 kB\n"), "proc/self/statm": file("100 50 1 1 0 1 0\n")}
		for k, v := range more {
			fs[k] = file(v)
		}
		return fs
	}
	for name, x := range map[string]struct {
		fs     fstest.MapFS
		cores  float64
		cpu    time.Duration // 0 for that of this process
		memory float64
	}{
		"version 2": {proc("0::/pod\n", map[string]string{
			"sys/fs/cgroup/pod/cpu.max": "150000 100000\n", "sys/fs/cgroup/pod/cpu.stat": "usage_usec 2500000\nuser_usec 1\n",
			"sys/fs/cgroup/pod/memory.max": "512000\n", "sys/fs/cgroup/pod/memory.current": "300000\n", "sys/fs/cgroup/pod/memory.stat": "anon 1\ninactive_file 44000\n",
		}), 1.5, 2500 * time.Millisecond, 50},
		"version 2 in a container": {proc("0::/../elsewhere\n", map[string]string{
			"sys/fs/cgroup/cpu.max": "800000 100000\n", "sys/fs/cgroup/cpu.stat": "usage_usec 7\n",
		}), 4, 7 * time.Microsecond, 50 * 4096 * 100 / 1024000.},
		"version 2 without limits": {proc("0::/\n", map[string]string{"sys/fs/cgroup/cpu.max": "max 100000\n", "sys/fs/cgroup/memory.max": "max\n"}), 4, 0, 20},
		"version 1": {proc("4:memory:/m\n2:cpuacct:/c\n1:cpu:/c\n", map[string]string{
			"sys/fs/cgroup/cpu/c/cpu.cfs_quota_us": "50000\n", "sys/fs/cgroup/cpu/c/cpu.cfs_period_us": "100000\n", "sys/fs/cgroup/cpuacct/c/cpuacct.usage": "123456789\n",
			"sys/fs/cgroup/memory/m/memory.limit_in_bytes": "100000\n", "sys/fs/cgroup/memory/m/memory.usage_in_bytes": "60000\n", "sys/fs/cgroup/memory/m/memory.stat": "total_inactive_file 10000\n",
		}), .5, 123456789, 50},
		"version 1, joint": {proc("2:cpu,cpuacct:/c\n", map[string]string{
			"sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_quota_us": "200000\n", "sys/fs/cgroup/cpu,cpuacct/c/cpu.cfs_period_us": "100000\n", "sys/fs/cgroup/cpu,cpuacct/c/cpuacct.usage": "5\n",
		}), 2, 5, 20},
		"version 1, limit without account": {proc("2:cpuacct:/\n1:cpu:/c\n", map[string]string{
			"sys/fs/cgroup/cpu/c/cpu.cfs_quota_us": "50000\n", "sys/fs/cgroup/cpu/c/cpu.cfs_period_us": "100000\n", "sys/fs/cgroup/cpuacct/cpuacct.usage": "5\n",
		}), .5, 0, 20},
		"version 1 without limits": {proc("2:cpuacct:/\n1:cpu:/\n", map[string]string{
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n", "sys/fs/cgroup/cpuacct/cpuacct.usage": "5\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}), 4, 0, 20},
		"nothing at all": {fstest.MapFS{}, 4, 0, 0},
	} {
		u := newMachine(x.fs, 4).Usage()
		if u.Cores != x.cores || x.cpu != 0 && u.CPU != x.cpu || x.cpu == 0 && u.CPU < time.Millisecond {
			t.Errorf("%s: %+v", name, u)
		}
		if d := u.Memory - x.memory; d < -.01 || d > .01 {
			t.Errorf("%s: memory %v %%, not %v %%", name, u.Memory, x.memory)
		}
	}
}

// TestMachineOfThisProcess proves that the real sources give sensible values.
func TestMachineOfThisProcess(t *testing.T) {
	m := NewMachine()
	before := m.Usage()
	x := uint64(1)
	for range 200_000_000 {
		x = scramble(x)
	}
	after := m.Usage()
	if x == 0 || after.CPU <= before.CPU || after.Memory <= 0 || after.Memory > 100 || after.Cores <= 0 {
		t.Errorf("%+v then %+v", before, after)
	}
}
