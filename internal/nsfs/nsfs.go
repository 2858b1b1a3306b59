// Package nsfs says whether a descriptor that another process has sent is a namespace.
//
// The descriptor is a bare number: to wrap it in an [os.File] gives one that does not block
// to the poller of the runtime, and then its sender wakes the process at will. So only what
// is a namespace is wrapped.
package nsfs

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Network returns why a descriptor is no network namespace, or nil.
//
// The name that the kernel gives the descriptor is read first: to ask a file of a file
// system that a tenant serves could take forever, and a device may know the same request by
// another meaning.
func Network(fd int) error {
	name, err := os.Readlink("/proc/thread-self/fd/" + strconv.Itoa(fd))
	if err != nil {
		return fmt.Errorf("get the name of the descriptor: %w", err)
	}
	if !strings.HasPrefix(name, "net:[") {
		kind, _, ok := strings.Cut(name, ":[")
		if !ok || strings.Contains(kind, "/") {
			kind = "other" // a path, which the sender chooses
		}
		return fmt.Errorf("a file of the kind %s", kind)
	}
	kind, err := unix.IoctlRetInt(fd, unix.NS_GET_NSTYPE)
	if err != nil {
		return fmt.Errorf("get the kind of namespace: %w", err)
	}
	if kind != unix.CLONE_NEWNET {
		return fmt.Errorf("namespace of kind 0x%x", kind)
	}
	return nil
}
