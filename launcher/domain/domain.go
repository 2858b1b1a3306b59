package domain

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"libvirt.org/go/libvirtxml"

	"github.com/podvisor/podvisor/vmi"
)

// nonTransitional is the model of every virtio device: one without the legacy
// interface, which no guest of the last ten years needs.
const nonTransitional = "virtio-non-transitional"

// frame is what every domain is built of besides its devices, in this order: each adds
// its part, or returns why it cannot.
var frame = []func(*Draft) error{
	memory,
	hugepages,
	cpu,
	numa,
	clock,
	features,
	firmware,
	launchSecurity,
	kernel,
	chassis,
}

// finish is what needs all devices.
var finish = []func(*Draft) error{transitional, shareBuffers, addresses}

// Draft is a domain that is being built.
type Draft struct {
	// VMI is the instance, with defaults applied, and Spec its domain. Neither may be
	// changed.
	VMI  *vmi.VirtualMachineInstance
	Spec *vmi.DomainSpec
	// Host is what the pod offers, completed by its defaults.
	Host Host
	// Domain is what the parts before have built. Its Devices are not nil.
	Domain *libvirtxml.Domain
}

// maxName is the longest name of a domain: libvirt and QEMU make files with it,
// whose names have at most 255 bytes.
const maxName = 200

// Name is the name of v's domain: the namespace, an underscore and v's name. One
// that is too long ends with a hash instead.
func Name(v *vmi.VirtualMachineInstance) string {
	name := v.Namespace + "_" + v.Name
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:maxName-9] + "-" + hex.EncodeToString(sum[:4])
}

// Build returns the domain of v on host h. Its error joins all faults; those of
// the spec, which may ask for what this build does not serve, wrap
// [vmi.ErrInvalid].
//
// The domain is in the types of libvirt's own module, and in no other form: a [Part] of
// an embedder adds any device that libvirt knows, and libvirt reads what the method
// Marshal of the domain writes.
func Build(v *vmi.VirtualMachineInstance, h Host) (*libvirtxml.Domain, error) {
	if h.Arch == "" {
		h.Arch = cmp.Or(archOf(v.Spec.Architecture), archX86)
	}
	if h.PrivateDir == "" {
		h.PrivateDir = PrivateDir(v)
	}
	if h.Parts == nil {
		h.Parts = Parts()
	}
	spec := &v.Spec.Domain
	id := uuid(v)
	b := &Draft{VMI: v, Spec: spec, Host: h, Domain: &libvirtxml.Domain{
		Type:       accelerator(h),
		Name:       Name(v),
		UUID:       id,
		SysInfo:    sysinfo(id, spec.Firmware, h.Settings.SMBIOS),
		OnPoweroff: "destroy",
		OnReboot:   reboot(spec.RebootPolicy),
		OnCrash:    "destroy",
		Devices:    &libvirtxml.DomainDeviceList{},
	}}
	faults := []error{native(v.Spec.Architecture, h.Arch), accelerable(h), unserved(v)}
	for _, add := range frame {
		faults = append(faults, add(b))
	}
	for _, p := range h.Parts {
		faults = append(faults, p.Build(b))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	for _, add := range finish {
		if err := add(b); err != nil {
			return nil, err
		}
	}
	return b.Domain, nil
}

// reboot is what libvirt does when the guest reboots.
func reboot(p vmi.RebootPolicy) string {
	if p == vmi.RebootPolicyTerminate {
		return "destroy"
	}
	return "restart"
}

// isOn is what a switch says, or what it says if it is not set.
func isOn(s *bool, unset bool) bool {
	if s == nil {
		return unset
	}
	return *s
}

// accelerable says why the host cannot run any guest.
func accelerable(h Host) error {
	switch {
	case h.Arch != archX86 && h.Arch != archARM && h.Arch != archS390X:
		return fmt.Errorf("architecture %s of the host is not supported: %w", h.Arch, vmi.ErrInvalid)
	case !h.KVM && !h.AllowEmulation:
		return fmt.Errorf("the pod has no working /dev/kvm: run it on a node with hardware virtualization, "+
			"or allow emulation in the configuration (useEmulation), which is much slower: %w", vmi.ErrInvalid)
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
