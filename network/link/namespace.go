package link

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// ErrNamespace is wrapped by the errors of [Check].
var ErrNamespace = errors.New("not the network namespace of another")

// Check returns an error that wraps [ErrNamespace] if ns is anything but a
// network namespace, or the one that the caller itself is in. A file that
// another process sent must be checked before it is used.
func Check(ns *os.File) error {
	kind, err := unix.IoctlRetInt(int(ns.Fd()), unix.NS_GET_NSTYPE)
	if err != nil {
		return fmt.Errorf("%w: ask for the kind of namespace: %w", ErrNamespace, err)
	}
	if kind != unix.CLONE_NEWNET {
		return fmt.Errorf("%w: it is a namespace of the kind 0x%x", ErrNamespace, kind)
	}
	theirs, err := ns.Stat()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNamespace, err)
	}
	ours, err := os.Stat(ownNamespace)
	if err != nil {
		return err
	}
	if os.SameFile(theirs, ours) {
		return fmt.Errorf("%w: it is our own", ErrNamespace)
	}
	return nil
}

// ownNamespace is the network namespace of the process. That of the thread is
// asked for, since the first thread of a process, which /proc/self shows, may be
// at work in another one.
const ownNamespace = "/proc/thread-self/ns/net"

// within calls f on a thread that is in the namespace.
func within(ns *os.File, f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		own, err := os.Open(ownNamespace)
		if err != nil {
			done <- fmt.Errorf("find the way back: %w", err)
			return
		}
		defer own.Close()
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("enter network namespace: %w", err)
			return
		}
		err = f()
		// A thread that cannot go back stays locked, so that nothing else ever
		// runs on it. Most threads end then; but the first one of the process
		// never does, and would keep the namespace.
		if unix.Setns(int(own.Fd()), unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
		done <- err
	}()
	return <-done
}
