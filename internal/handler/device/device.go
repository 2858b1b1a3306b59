package device

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/podvisor/podvisor/vmi"
)

// Device is a device of the node that pods may share.
type Device struct {
	// Name is the device's name within this package's sockets and CDI devices.
	Name string
	// Resource is what a pod asks for.
	Resource string
	// Path is where the device is, on the node and in a pod.
	Path string
	// Major and Minor are the device's number.
	Major, Minor uint32
}

// KVM, Tun, VhostNet and VhostVSOCK are the names of the devices.
const (
	KVM        = "kvm"
	Tun        = "tun"
	VhostNet   = "vhost-net"
	VhostVSOCK = "vhost-vsock"
)

var known = []Device{
	{Name: KVM, Resource: vmi.KVMResource, Path: "/dev/kvm"},
	{Name: Tun, Resource: vmi.TunResource, Path: "/dev/net/tun"},
	{Name: VhostNet, Resource: vmi.VhostNetResource, Path: "/dev/vhost-net"},
	{Name: VhostVSOCK, Resource: vmi.VhostVSOCKResource, Path: "/dev/vhost-vsock"},
}

// Find returns the devices that the kernel offers, by what it says in sysfs
// (usually /sys): that can be read in any container, where the devices
// themselves cannot be seen.
func Find(sysfs string) ([]Device, error) {
	var found []Device
	for _, d := range known {
		b, err := os.ReadFile(filepath.Join(sysfs, "class/misc", d.Name, "dev"))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			_, err = fmt.Sscanf(string(b), "%d:%d", &d.Major, &d.Minor)
		}
		if err != nil {
			return nil, fmt.Errorf("read the number of device %s: %w", d.Name, err)
		}
		found = append(found, d)
	}
	return found, nil
}
