package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/e2e/cluster/machine"
	"github.com/podvisor/podvisor/e2e/cluster/plan"
)

// remove kills the cluster, if it lives, and takes away what the kernel does
// not: control groups and files.
func (c Config) remove(ctx context.Context) error {
	if err := kill(ctx, c.lockFile()); err != nil {
		return err
	}
	if err := machine.RemoveCgroups(plan.Cgroup(c.Name)); err != nil {
		return err
	}
	return os.RemoveAll(c.state())
}

// kill kills process 1 of the cluster whose lock file is given, and with it
// everything in its process namespace, and waits until all of it is gone.
func kill(ctx context.Context, lock string) error {
	pid, err := machine.Holder(lock)
	if err != nil || pid == 0 {
		return err
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err == unix.ESRCH {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open process %d: %w", pid, err)
	}
	defer unix.Close(fd)
	// If the lock is still held by that number, the descriptor is the holder.
	if again, err := machine.Holder(lock); err != nil || again != pid {
		return err
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && err != unix.ESRCH {
		return fmt.Errorf("kill process %d: %w", pid, err)
	}
	for ctx.Err() == nil {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 100)
		if n > 0 {
			return nil
		}
		if err != nil && err != unix.EINTR {
			return fmt.Errorf("wait for process %d: %w", pid, err)
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
	for told := false; ; {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return nil, err
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil && current(f, path) {
			return func() { c.unlock(f, path) }, nil
		}
		f.Close()
		if err != nil && err != unix.EWOULDBLOCK && err != unix.EINTR {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if err != nil && !told {
			fmt.Fprintf(c.Out, "another program is starting or removing cluster %s: waiting for it\n", c.Name)
			told = true
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

// current says whether the open file is still the one at path: the last holder
// may have removed it.
func current(f *os.File, path string) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(open, there)
}
