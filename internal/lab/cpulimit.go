package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// The control group that bounds the target, under the controller's mount of
// version 1 or the root of version 2.
const (
	groupV1 = "/sys/fs/cgroup/cpu"
	groupV2 = "/sys/fs/cgroup"
	group   = "bsfd-bench"
	// quotaPeriod is the period of the bound in microseconds: short, so that a
	// pause is, too.
	quotaPeriod = 5000
)

// limitCPU makes a control group that gives the target a part of the machine,
// so that the rest can offer more than it can serve. The next child that is
// spawned runs in it. release removes it.
func (b *bench) limitCPU() (release func(), err error) {
	if b.o.cores == 0 {
		return func() {}, nil
	}
	quota := int(b.o.cores * quotaPeriod)
	dir := filepath.Join(groupV1, group)
	files := map[string]string{"cpu.cfs_period_us": strconv.Itoa(quotaPeriod), "cpu.cfs_quota_us": strconv.Itoa(quota)}
	if _, err := os.Stat(groupV1); err != nil {
		dir = filepath.Join(groupV2, group)
		files = map[string]string{"cpu.max": fmt.Sprintf("%d %d", quota, quotaPeriod)}
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) { //nolint:gosec // a control group
		return nil, fmt.Errorf("--cores needs a control group: %w", err)
	}
	for name, value := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(value), 0o600); err != nil {
			return nil, errors.Join(fmt.Errorf("--cores needs a control group: %w", err), os.Remove(dir))
		}
	}
	b.group = dir
	return func() {
		b.group = ""
		// A group that still has a process stays, which does no harm.
		_ = os.Remove(dir)
	}, nil
}
