package link

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"

	"github.com/containernetworking/plugins/pkg/ns"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/nsfs"
)

// ErrNamespace is wrapped by the errors of [Check].
var ErrNamespace = errors.New("not the network namespace of a pod")

// Check returns an error that wraps [ErrNamespace] if ns is anything but a network
// namespace that a pod can have: it is not the one that the caller itself is in, nor
// the node's, and it belongs to the caller's user namespace, or to one that root made
// in that and that the launcher is in. A file that another process sent must be checked
// before it is used.
//
// launcher is the process of the launcher, as a descriptor (pidfd_open(2)). Nil: then only
// namespaces of the caller's user namespace are accepted.
func Check(ns, launcher *os.File) error {
	if err := nsfs.Network(int(ns.Fd())); err != nil {
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
	if err := checkOwner(ns, launcher); err != nil {
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

// within calls f on a thread that is in the namespace. The file is opened once more by
// its descriptor: one that another process sent has no path of its own. A panic of f is an
// error with the stack: what f reads a tenant wrote, and no caller could recover from it,
// since f has a goroutine of its own.
func within(file *os.File, f func() error) error {
	defer runtime.KeepAlive(file)
	n, err := ns.GetNS("/proc/thread-self/fd/" + strconv.Itoa(int(file.Fd())))
	if err != nil {
		return fmt.Errorf("open network namespace: %w", err)
	}
	defer n.Close()
	return n.Do(func(ns.NetNS) (err error) {
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
			}
		}()
		return f()
	})
}
