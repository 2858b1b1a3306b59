package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/e2e/cluster/host"
	"github.com/podvisor/podvisor/e2e/cluster/plan"
	"github.com/podvisor/podvisor/e2e/cluster/volume"
)

// remove kills the cluster, if it runs, and removes what the kernel does
// not: control groups, loop devices and files.
func (c Config) remove(ctx context.Context) error {
	if err := c.kill(ctx); err != nil {
		return err
	}
	if err := host.RemoveCgroups(plan.Cgroup(c.Name)); err != nil {
		return err
	}
	if err := volume.Detach(c.state()); err != nil {
		return err
	}
	return os.RemoveAll(c.state())
}

// kill kills process 1 of the cluster, and with it everything in its process
// namespace, and waits until all of it is gone.
func (c Config) kill(ctx context.Context) error {
	all, err := c.processes()
	if err != nil {
		return err
	}
	for _, pid := range all {
		if err := c.killOne(ctx, pid); err != nil {
			return fmt.Errorf("kill process %d: %w", pid, err)
		}
	}
	return nil
}

// processes are the processes that are process 1 of the cluster by their
// arguments. There is more than one if a starter was killed before its process 1
// had taken the lock, or if the lock's file was removed.
func (c Config) processes() ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var all []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && c.isProcess(pid) {
			all = append(all, pid)
		}
	}
	return all, nil
}

func (c Config) isProcess(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	args := strings.Split(string(data), "\x00")
	return err == nil && len(args) > 2 && args[1] == "init" && args[2] == c.state()
}

func (c Config) killOne(ctx context.Context, pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err == unix.ESRCH {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	// The descriptor stays with one process; look whether it is still the right one.
	if !c.isProcess(pid) {
		return nil
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && err != unix.ESRCH {
		return err
	}
	for ctx.Err() == nil {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 100)
		if n > 0 {
			return nil
		}
		if err != nil && err != unix.EINTR {
			return err
		}
	}
	return ctx.Err()
}

// lock keeps two programs from starting or removing the same cluster at once.
func (c Config) lock(ctx context.Context) (func(), error) {
	dir := filepath.Join(c.Dir, "clusters")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, c.Name+".lock")
	for printed := false; ; {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return nil, err
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil && current(f, path) {
			return func() { c.unlock(f, path) }, nil
		}
		f.Close()
		if err != nil && !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if err != nil && !printed {
			fmt.Fprintf(c.Out, "another program is starting or removing cluster %s: waiting for it\n", c.Name)
			printed = true
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// unlock gives the lock back, and takes its file away with the cluster's folder.
func (c Config) unlock(f *os.File, path string) {
	if _, err := os.Stat(c.state()); errors.Is(err, fs.ErrNotExist) {
		_ = os.Remove(path)
	}
	f.Close()
}

// current reports whether the open file is still the one at path: the last holder
// may have removed it.
func current(f *os.File, path string) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(open, there)
}
