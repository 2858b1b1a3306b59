package domain

import (
	"errors"
	"fmt"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/served"
	"github.com/podvisor/podvisor/vmi/validate"
)

// nonTransitional is the model of every virtio device: one without the legacy
// interface, which no guest of the last ten years needs.
const nonTransitional = "virtio-non-transitional"

// Name is the name of v's domain.
func Name(v *vmi.VirtualMachineInstance) string { return v.Namespace + "_" + v.Name }

// Build returns the domain of v on host h. Its error joins all faults; those of
// the spec, which may ask for what this build does not serve, wrap
// [vmi.ErrInvalid].
func Build(v *vmi.VirtualMachineInstance, h Host) (*libvirtxml.Domain, error) {
	if h.Arch == "" {
		h.Arch = "x86_64"
	}
	if h.PrivateDir == "" {
		h.PrivateDir = PrivateDir(v)
	}
	spec := &v.Spec.Domain
	id := uuid(v)
	faults := []error{native(v.Spec.Architecture), accelerable(h), fits(spec), modelled(spec.CPU), validate.Error(served.Faults(v, h.Defaults))}
	disks, err := disks(spec.Devices.Disks, h)
	faults = append(faults, err)
	ifaces, err := ifaces(spec.Devices.Interfaces, h)
	faults = append(faults, err)
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return &libvirtxml.Domain{
		Type:       accelerator(h),
		Name:       Name(v),
		UUID:       id,
		Memory:     memory(spec),
		VCPU:       vcpu(spec.CPU),
		CPU:        cpu(spec.CPU, h),
		OS:         firmware(spec, h),
		SysInfo:    sysinfo(id, spec.Firmware, h.Settings.SMBIOS),
		Features:   features(h),
		OnPoweroff: "destroy",
		OnReboot:   "restart",
		OnCrash:    "destroy",
		Devices: &libvirtxml.DomainDeviceList{
			Disks:       disks,
			Controllers: controllers(),
			Interfaces:  ifaces,
			Serials:     serials(h),
			Consoles:    consoles(),
			Channels:    channels(h),
			Graphics:    graphics(h),
			Videos:      videos(),
			MemBalloon:  memballoon(h.Settings.StatsPeriod),
			RNGs:        rngs(spec.Devices.Rng),
		},
	}, nil
}

// accelerable says why the host cannot run any guest.
func accelerable(h Host) error {
	switch {
	case h.Arch != "x86_64":
		return fmt.Errorf("machines of architecture %s are not supported: %w", h.Arch, vmi.ErrInvalid)
	case !h.KVM && !h.AllowEmulation:
		return fmt.Errorf("the pod has no /dev/kvm that works: run the machine on a node with hardware virtualization, or allow emulation in the configuration (useEmulation), which is much slower: %w", vmi.ErrInvalid)
	default:
		return nil
	}
}

func accelerator(h Host) string {
	if h.KVM {
		return "kvm"
	}
	return "qemu"
}
