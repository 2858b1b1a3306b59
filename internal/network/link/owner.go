package link

import (
	"errors"
	"fmt"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// checkOwner returns why a network namespace is none that the container runtime
// made: it belongs to a user namespace that a process in a pod has made for itself.
// That of a pod belongs to the node's user namespace or, in a pod with one of its
// own, to one that root made in the node's and that the launcher is in. Root of a pod
// without one makes such a namespace too, and is not in it as a launcher.
func checkOwner(ns, launcher *os.File) error {
	users, err := related(ns, unix.NS_GET_USERNS)
	if err != nil {
		return fmt.Errorf("get the user namespace that it belongs to: %w", err)
	}
	defer users.Close()
	own, err := os.Open("/proc/thread-self/ns/user")
	if err != nil {
		return err
	}
	defer own.Close()
	if same, err := sameFile(users, own); same || err != nil {
		return err
	}
	parent, err := related(users, unix.NS_GET_PARENT)
	if err != nil {
		return fmt.Errorf("get the parent of the user namespace that it belongs to: %w", err)
	}
	defer parent.Close()
	same, err := sameFile(parent, own)
	if err != nil {
		return err
	}
	maker, err := unix.IoctlGetUint32(int(users.Fd()), unix.NS_GET_OWNER_UID)
	if err != nil {
		return fmt.Errorf("get the owner of the user namespace that it belongs to: %w", err)
	}
	if !same || maker != 0 {
		return fmt.Errorf("it belongs to a user namespace that user %d made", maker)
	}
	return checkMember(users, launcher)
}

// getUserNamespace opens the user namespace of the process that a descriptor is of
// (PIDFD_GET_USER_NAMESPACE of linux/pidfd.h, since Linux 6.11). Root of the node may do
// that with processes in the user namespaces that root made, without a capability.
const getUserNamespace = 0xff09

// checkMember returns why the launcher is not in a user namespace that is not the caller's.
func checkMember(users, launcher *os.File) error {
	if launcher == nil {
		return errors.New("it belongs to a user namespace, and the kernel does not say in which one the launcher is: pods with user namespaces need Linux 6.11")
	}
	theirs, err := related(launcher, getUserNamespace)
	switch {
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return errors.New("it belongs to a user namespace that the launcher is not in")
	case errors.Is(err, unix.ENOTTY), errors.Is(err, unix.EINVAL):
		return fmt.Errorf("get the user namespace of the launcher: pods with user namespaces need Linux 6.11: %w", err)
	case err != nil:
		return fmt.Errorf("get the user namespace of the launcher: %w", err)
	}
	defer theirs.Close()
	if same, err := sameFile(users, theirs); same || err != nil {
		return err
	}
	return errors.New("it belongs to a user namespace that the launcher is not in")
}

// related opens the namespace that another one has a relation to.
func related(ns *os.File, relation uint) (*os.File, error) {
	fd, err := unix.IoctlRetInt(int(ns.Fd()), relation)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "namespace"), nil
}

func sameFile(a, b *os.File) (bool, error) {
	x, errX := a.Stat()
	y, errY := b.Stat()
	if err := errors.Join(errX, errY); err != nil {
		return false, err
	}
	return os.SameFile(x, y), nil
}

// errNode is the cause of an error about the network namespace of the node.
var errNode = errors.New("the network namespace of the node")

// checkNode returns an error if a network namespace is the kernel's first one, which
// is that of a node, or that at the other end of a link of the caller's own pod,
// which is that of a node too, also where a node is a container.
func checkNode(ns *os.File) error {
	if err := within(ns, func() error {
		if _, ok := sysctl(firstOnly); ok {
			return errNode
		}
		return nil
	}); err != nil {
		return err
	}
	if _, ok := sysctl(firstOnly); ok {
		return nil // the caller is in no pod: its links lead to pods
	}
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer h.Close()
	theirs, err := h.GetNetNsIdByFd(int(ns.Fd()))
	if err != nil {
		return fmt.Errorf("get the number of the namespace: %w", err)
	}
	links, err := h.LinkList()
	if err != nil {
		return fmt.Errorf("list own links: %w", err)
	}
	for _, l := range links {
		if theirs >= 0 && l.Attrs().NetNsID == theirs {
			return errNode
		}
	}
	return nil
}

// firstOnly is a setting that only the kernel's first network namespace has.
const firstOnly = "net/core/netdev_budget"
