package link

import (
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/network"
)

// tapFlags are the flags that QEMU opens a tap device with. For several queues it adds
// IFF_MULTI_QUEUE.
const tapFlags = unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR

// createTap makes a tap device in the namespace that the thread is in. It stays
// when this process ends. It exists only if it is complete: a call that fails
// before the last one leaves nothing.
func createTap(name string, owner network.Owner, multiQueue bool) error {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open /dev/net/tun: %w", err)
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	flags := uint16(tapFlags)
	if multiQueue {
		flags |= unix.IFF_MULTI_QUEUE
	}
	req.SetUint16(flags)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, req); err != nil {
		return fmt.Errorf("make tap device: %w", err)
	}
	for _, set := range []struct {
		request uint
		value   int
	}{
		{unix.TUNSETOWNER, int(owner.UID)},
		{unix.TUNSETGROUP, int(owner.GID)},
		{unix.TUNSETPERSIST, 1},
	} {
		if err := unix.IoctlSetInt(fd, set.request, set.value); err != nil {
			return fmt.Errorf("give tap device its owner: %w", err)
		}
	}
	return nil
}

// tapOwner is the owner of a tap device, or nil if QEMU cannot open it. The device's
// other flags are set anew by each process that opens it, so they are not compared.
func tapOwner(t *netlink.Tuntap) *network.Owner {
	if t.Mode != netlink.TUNTAP_MODE_TAP {
		return nil
	}
	return &network.Owner{UID: t.Owner, GID: t.Group}
}
