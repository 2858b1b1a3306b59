package domain

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/vmi"
)

// hostDeviceAlias is the alias of the device of the node of this name in its domain.
// The name of a disk has no underscore.
func hostDeviceAlias(name string) string { return aliasPrefix + "host_" + name }

// Prefixes of the environment variables in which device plugins say which devices the
// pod has: PCI addresses, and UUIDs of mediated devices.
const (
	PCIVariable  = "PCI_RESOURCE_"
	MDEVVariable = "MDEV_PCI_RESOURCE_"
	// NetworkVariable begins the names of the environment variables in which the device
	// plugin of SR-IOV says which virtual functions the pod has: PCI addresses.
	NetworkVariable = "PCIDEVICE_"
)

// hostPart are the devices of the node.
//
// +podvisor:entry
var hostPart = Part{
	Name: "hostDevices", Build: hostDevices,
	Devices: func(l *libvirtxml.DomainDeviceList) []Device {
		var all []Device
		for i := range l.Hostdevs {
			if h := &l.Hostdevs[i]; h.SubsysPCI != nil || h.SubsysMDev != nil {
				all = append(all, Device{Name: fmt.Sprintf("host device %d", len(all)), Address: &h.Address, At: port(hostPorts, len(all))})
			}
		}
		return all
	},
}

// hostDevices adds the devices of the node that the pod was given. Each takes the
// next one of its resource.
func hostDevices(b *Draft) error {
	g := given{left: map[string][]string{}, of: b.Host.HostDevices}
	var faults []error
	screen := false // of a mediated device that does not say
	for i, gpu := range b.Spec.Devices.GPUs {
		d, err := g.next(gpu.Name, gpu.DeviceName, b.Host.Places)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", devicesPath.Child("gpus").Index(i), err))
			continue
		}
		if m := d.SubsysMDev; m != nil {
			m.Display, m.RamFB = onScreen(gpu.VirtualGPUOptions, &screen)
		}
		b.Domain.Devices.Hostdevs = append(b.Domain.Devices.Hostdevs, d)
	}
	for i, h := range b.Spec.Devices.HostDevices {
		d, err := g.next(h.Name, h.DeviceName, b.Host.Places)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", devicesPath.Child("hostDevices").Index(i), err))
			continue
		}
		b.Domain.Devices.Hostdevs = append(b.Domain.Devices.Hostdevs, d)
	}
	return errors.Join(faults...)
}

// onScreen says whether what a mediated GPU draws is on the screen, and whether the
// guest has a simple screen before its driver is there, which one GPU can have.
func onScreen(o *vmi.VGPUOptions, screen *bool) (display, ramFB string) {
	if o == nil || o.Display == nil {
		if *screen {
			return "", ""
		}
		*screen = true
		return "on", "on"
	}
	if o.Display.Enabled != nil && !*o.Display.Enabled {
		return "off", "off"
	}
	if f := o.Display.RamFB; f != nil && f.Enabled != nil && !*f.Enabled {
		return "on", "off"
	}
	*screen = true
	return "on", "on"
}

// given are the devices that the pod was given, by the variables that name them, and
// those that are left of them.
type given struct {
	of   map[string]string
	left map[string][]string
}

var noName = strings.NewReplacer("/", "_", ".", "_")

// next is the next device of the resource.
func (g given) next(name, resource string, places map[string]Place) (libvirtxml.DomainHostdev, error) {
	suffix := strings.ToUpper(noName.Replace(resource))
	for _, prefix := range []string{PCIVariable, MDEVVariable} {
		variable := prefix + suffix
		all, ok := g.of[variable]
		if !ok {
			continue
		}
		if _, begun := g.left[variable]; !begun {
			g.left[variable] = strings.FieldsFunc(all, func(r rune) bool { return r == ',' || r == ' ' })
		}
		if len(g.left[variable]) == 0 {
			return libvirtxml.DomainHostdev{}, fmt.Errorf("device %s: the device plugin gave the pod fewer devices of %s than the VMI has: %s is %q", name, resource, variable, all)
		}
		at := g.left[variable][0]
		g.left[variable] = g.left[variable][1:]
		return hostDevice(name, at, prefix, places[hostDeviceAlias(name)])
	}
	return libvirtxml.DomainHostdev{}, fmt.Errorf("device %s: neither %s%s nor %s%[3]s is in the environment of the pod: the device plugin of %[5]s offers no devices for guests",
		name, PCIVariable, suffix, MDEVVariable, resource)
}

// hostDevice is one device of the node, which the node has made ready already.
func hostDevice(name, at, prefix string, place Place) (libvirtxml.DomainHostdev, error) {
	d := libvirtxml.DomainHostdev{Managed: "no", Alias: &libvirtxml.DomainAlias{Name: hostDeviceAlias(name)}, Address: pciAddress(place.PCI)}
	if prefix == MDEVVariable {
		if !uuids.MatchString(at) {
			return d, fmt.Errorf("device %s: %q is no UUID of a mediated device", name, at)
		}
		d.Managed = ""
		d.SubsysMDev = &libvirtxml.DomainHostdevSubsysMDev{Model: "vfio-pci", Source: &libvirtxml.DomainHostdevSubsysMDevSource{Address: &libvirtxml.DomainAddressMDev{UUID: at}}}
		return d, nil
	}
	m := pciAddresses.FindStringSubmatch(at)
	if m == nil {
		return d, fmt.Errorf("device %s: %q is no PCI address", name, at)
	}
	var n [4]uint
	for i := range n {
		v, err := strconv.ParseUint(m[i+1], 16, 16)
		if err != nil {
			return d, fmt.Errorf("device %s: %q is no PCI address: %w", name, at, err)
		}
		n[i] = uint(v)
	}
	d.SubsysPCI = &libvirtxml.DomainHostdevSubsysPCI{Source: &libvirtxml.DomainHostdevSubsysPCISource{
		Address: &libvirtxml.DomainAddressPCI{Domain: &n[0], Bus: &n[1], Slot: &n[2], Function: &n[3]},
	}}
	return d, nil
}

var (
	uuids        = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
	pciAddresses = regexp.MustCompile(`^([0-9a-fA-F]{4}):([0-9a-fA-F]{2}):([0-9a-fA-F]{2})\.([0-7])$`)
)
