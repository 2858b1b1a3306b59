package host

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// hierarchy is one mounted tree of control groups: with version 1 there are
// many, with version 2 there is one.
type hierarchy struct {
	dir     string
	unified bool
}

// hierarchies returns what is mounted below /sys/fs/cgroup.
func hierarchies() ([]hierarchy, error) {
	f, err := os.Open("/proc/self/mounts")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var found []hierarchy
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 3 || !strings.HasPrefix(fields[1]+"/", "/sys/fs/cgroup/") {
			continue
		}
		if fields[2] == "cgroup" || fields[2] == "cgroup2" {
			found = append(found, hierarchy{dir: fields[1], unified: fields[2] == "cgroup2"})
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, errors.New("no control groups are mounted below /sys/fs/cgroup")
	}
	return found, nil
}

// makeCgroups makes the group in every hierarchy.
func makeCgroups(group string) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	for _, h := range all {
		dir := h.dir
		for n, name := range strings.Split(group, "/") {
			parent := dir
			dir = filepath.Join(dir, name)
			if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("make control group: %w", err)
			}
			if err := h.adopt(parent, dir); err != nil {
				return fmt.Errorf("set up control group %s: %w", dir, err)
			}
			if n > 0 {
				continue
			}
			if err := h.weigh(dir); err != nil {
				return fmt.Errorf("set the weight of control group %s: %w", dir, err)
			}
		}
	}
	return nil
}

// podWeight is how many threads outside of it the group of all pods of a cluster counts as when
// they wait for a processor. By default it is one: on a busy host the many threads of the
// control plane leave pods next to nothing, and guests boot for minutes.
const podWeight = 8

// favored is the nice value of a session that is favored: it counts as about ten others.
const favored = -10

// favor has the scheduler count the session of a process as favored, where the kernel groups
// processes by session (sched_autogroup). The nice value of the process would count in its
// session alone. In a cluster of many hosts the API server shares its processors with no
// guest; here it would answer late, and what late answers cause is not what a test looks for.
func favor(pid int) error {
	err := os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", pid), []byte(strconv.Itoa(favored)), 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the kernel does not group them
	}
	return err
}

// weigh has the scheduler count the group dir, which stands beside all other processes, as
// podWeight.
func (h hierarchy) weigh(dir string) error {
	for name, one := range map[string]int{"cpu.shares": 1024, "cpu.weight": 100} {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the other version, or another controller
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprint(f, podWeight*one)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// adopt gives the group dir what version 1 and 2 do not give it by themselves.
func (h hierarchy) adopt(parent, dir string) error {
	if h.unified {
		// Beside version 1 (hybrid) this hierarchy controls nothing.
		if h.dir != "/sys/fs/cgroup" {
			return nil
		}
		for _, controller := range []string{"cpu", "cpuset", "io", "memory", "pids"} {
			if err := os.WriteFile(filepath.Join(parent, "cgroup.subtree_control"), []byte("+"+controller), 0o644); err != nil {
				return fmt.Errorf("enable controller %s: %w", controller, err)
			}
		}
		return nil
	}
	for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(parent, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), value, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// removeTimeout limits how long the kernel reports a group as busy after its
// last process was killed.
const removeTimeout = 10 * time.Second

// RemoveCgroups removes the group and everything in it from every hierarchy.
// The processes in it must have been killed.
func RemoveCgroups(group string) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	deadline := time.Now().Add(removeTimeout)
	for _, h := range all {
		dir := filepath.Join(h.dir, group)
		for {
			err := removeTree(dir)
			if err == nil {
				break
			}
			if !errors.Is(err, unix.EBUSY) || time.Now().After(deadline) {
				return fmt.Errorf("remove control group: %w", err)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	return nil
}

// removeTree removes the folders from the deepest up. The files in them are not
// files and go with them.
func removeTree(dir string) error {
	var dirs []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, d := range slices.Backward(dirs) {
		if err := unix.Rmdir(d); err != nil && err != unix.ENOENT {
			return &fs.PathError{Op: "rmdir", Path: d, Err: err}
		}
	}
	return nil
}
