package link

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// ErrNamespace is wrapped by the errors of [Check].
var ErrNamespace = errors.New("not the network namespace of a pod")

// Check returns an error that wraps [ErrNamespace] if ns is anything but a network
// namespace that a pod can have: it is not the one that the caller itself is in, nor
// the node's, and it belongs to the caller's user namespace or to one that root made
// in that. A file that another process sent must be checked before it is used.
func Check(ns *os.File) error {
	if err := checkKind(ns); err != nil {
		return fmt.Errorf("%w: %w", ErrNamespace, err)
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
		return fmt.Errorf("%w: own namespace", ErrNamespace)
	}
	if err := checkOwner(ns); err != nil {
		return fmt.Errorf("%w: %w", ErrNamespace, err)
	}
	if err := checkNode(ns); err != nil {
		return fmt.Errorf("%w: %w", ErrNamespace, err)
	}
	return nil
}

// Cookie returns the number of a network namespace that [Check] accepted, which no
// other has or will have while the node runs.
func Cookie(ns *os.File) (cookie uint64, err error) {
	err = within(ns, func() error {
		s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open a socket: %w", err)
		}
		defer unix.Close(s)
		cookie, err = unix.GetsockoptUint64(s, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
		return err
	})
	return cookie, err
}

// ownNamespace is the network namespace of the process. It is read of the thread,
// since the first thread of a process, which /proc/self shows, may be in another
// namespace for now.
const ownNamespace = "/proc/thread-self/ns/net"

// within calls f on a thread that is in the namespace.
func within(ns *os.File, f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		own, err := os.Open(ownNamespace)
		if err != nil {
			done <- fmt.Errorf("open own network namespace: %w", err)
			return
		}
		defer own.Close()
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("enter network namespace: %w", err)
			return
		}
		err = f()
		// A thread that cannot return stays locked, so that no other goroutine runs
		// on it. Most threads end then; but the first one of the process never
		// does, and would keep the namespace.
		if unix.Setns(int(own.Fd()), unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
		done <- err
	}()
	return <-done
}
