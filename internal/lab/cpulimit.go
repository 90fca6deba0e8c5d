package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
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
// spawned runs in it, and the process beside it with its children. release
// takes that back.
func (b *bench) limitCPU() (release func(), err error) {
	if b.o.cores == 0 {
		return func() {}, nil
	}
	quota := int(b.o.cores * quotaPeriod)
	root, files := groupV1, map[string]string{"cpu.cfs_period_us": strconv.Itoa(quotaPeriod), "cpu.cfs_quota_us": strconv.Itoa(quota)}
	if _, err := os.Stat(groupV1); err != nil {
		root, files = groupV2, map[string]string{"cpu.max": fmt.Sprintf("%d %d", quota, quotaPeriod)}
	}
	dir := filepath.Join(root, group)
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) { //nolint:gosec // a control group
		return nil, fmt.Errorf("--cores needs a control group: %w", err)
	}
	for name, value := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(value), 0o600); err != nil {
			return nil, errors.Join(fmt.Errorf("--cores needs a control group: %w", err), os.Remove(dir))
		}
	}
	home := filepath.Join(root, groupOf(b.o.beside))
	if err := moveFamily(b.o.beside, dir); err != nil {
		return nil, errors.Join(fmt.Errorf("--beside: %w", err), moveFamily(b.o.beside, home))
	}
	b.group = dir
	return func() {
		b.group = ""
		// A group that still has a process stays, which does no harm.
		_ = moveFamily(b.o.beside, home)
		_ = os.Remove(dir)
	}, nil
}

// groupOf is the control group of a process, in the hierarchy of the processor.
func groupOf(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return ""
	}
	unified := ""
	for line := range strings.SplitSeq(string(text), "\n") {
		f := strings.SplitN(line, ":", 3)
		switch {
		case len(f) != 3:
		case slices.Contains(strings.Split(f[1], ","), "cpu"):
			return f[2]
		case f[1] == "":
			unified = f[2]
		}
	}
	return unified
}

// moveFamily moves a process and its children into a control group; 0 is no
// process. Children that end meanwhile are none.
func moveFamily(pid int, dir string) error {
	if pid == 0 {
		return nil
	}
	join := func(pid int) error {
		return os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o600)
	}
	if err := join(pid); err != nil {
		return err
	}
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return err
	}
	for _, name := range lists {
		list, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for child := range strings.FieldsSeq(string(list)) {
			n, err := strconv.Atoi(child)
			if err != nil {
				return err
			}
			if err := join(n); err != nil && !errors.Is(err, syscall.ESRCH) {
				return err
			}
		}
	}
	return nil
}
