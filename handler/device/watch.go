package device

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// watched is a folder whose entries are watched.
type watched struct{ f *os.File }

// watch begins to watch a folder: what changes from now on is not missed.
func watch(dir string) (*watched, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	f := os.NewFile(uintptr(fd), "inotify")
	const changes = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_TO | unix.IN_MOVED_FROM
	if _, err := unix.InotifyAddWatch(fd, dir, changes); err != nil {
		return nil, errors.Join(&os.PathError{Op: "watch", Path: dir, Err: err}, f.Close())
	}
	return &watched{f}, nil
}

// Close ends the watch.
func (w *watched) Close() error { return w.f.Close() }

// Wait returns when an entry came or went, or when ctx ends.
func (w *watched) Wait(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = w.f.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	var events [4096]byte // what exactly happened is looked up, not read here
	_, err := w.f.Read(events[:])
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// identity is what tells a socket from another of the same name.
type identity struct {
	inode   uint64
	changed unix.Timespec
}

func identify(path string) (identity, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return identity{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return identity{st.Ino, st.Ctim}, nil
}

// still says that the same socket is at the path.
func (i identity) still(path string) bool {
	now, err := identify(path)
	return err == nil && now == i
}
