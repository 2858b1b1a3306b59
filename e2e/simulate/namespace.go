package simulate

import (
	"errors"
	"os"
	"runtime"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// newNamespace makes a network namespace as a network plugin leaves it: with one end of a pair
// of links, which has the address. The other end is in it too.
func newNamespace(address string) (*os.File, error) {
	type result struct {
		f   *os.File
		err error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // the thread ends with this function
		f, err := makeNamespace(address)
		done <- result{f, err}
	}()
	r := <-done
	return r.f, r.err
}

func makeNamespace(address string) (*os.File, error) {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return nil, os.NewSyscallError("unshare", err)
	}
	if err := plug(address); err != nil {
		return nil, err
	}
	return os.Open("/proc/thread-self/ns/net")
}

// plug makes the links of the namespace that the thread is in.
func plug(address string) error {
	a, err := netlink.ParseAddr(address + "/24")
	if err != nil {
		return err
	}
	pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "eth0"}, PeerName: "peer0"}
	if err := netlink.LinkAdd(pair); err != nil {
		return err
	}
	err = netlink.AddrAdd(pair, a)
	for _, name := range []string{"lo", "peer0", "eth0"} {
		l, failed := netlink.LinkByName(name)
		if failed == nil {
			failed = netlink.LinkSetUp(l)
		}
		err = errors.Join(err, failed)
	}
	if err != nil {
		return err
	}
	gateway := a.IP.Mask(a.Mask)
	gateway[len(gateway)-1] = 254
	return netlink.RouteAdd(&netlink.Route{LinkIndex: pair.Attrs().Index, Gw: gateway})
}
