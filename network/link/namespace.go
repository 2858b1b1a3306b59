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
	// Threads may be in the namespaces of pods, the process is in its own.
	ours, err := os.Stat("/proc/self/ns/net")
	if err != nil {
		return err
	}
	if os.SameFile(theirs, ours) {
		return fmt.Errorf("%w: it is our own", ErrNamespace)
	}
	return nil
}

// within calls f on a thread that is in the namespace. The thread ends with the
// call, so that nothing else can ever run there.
func within(ns *os.File, f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("enter network namespace: %w", err)
			return
		}
		done <- f()
	}()
	return <-done
}
