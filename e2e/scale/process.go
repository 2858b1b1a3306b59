package scale

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of times in /proc/PID/stat.
const tick = 10 * time.Millisecond

// processorTime is the processor time that a process took so far.
func processorTime(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	fields := strings.Fields(string(rest))
	if len(fields) < 13 {
		return 0, fmt.Errorf("process %d: not the fields of a process: %q", pid, stat)
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * tick, errors.Join(err, err2)
}

// resident is the memory of a process, in bytes.
func resident(pid int) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if size, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(size), " kB"), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("process %d has no memory: it has ended", pid)
}

// childNamed is the process of the name below another one.
func childNamed(parent int, name string) (int, error) {
	all, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		return 0, err
	}
	for _, path := range all {
		status, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// The kernel keeps 15 bytes of a name.
		if strings.HasPrefix(string(status), "Name:\t"+name[:min(len(name), 15)]+"\n") && strings.Contains(string(status), fmt.Sprintf("\nPPid:\t%d\n", parent)) {
			return strconv.Atoi(filepath.Base(filepath.Dir(path)))
		}
	}
	return 0, fmt.Errorf("no process below %d is %s", parent, name)
}
