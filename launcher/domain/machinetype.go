package domain

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/served"
	"github.com/podvisor/podvisor/vmi/validate"
)

// The aliases of the newest versions of the machine types that the other devices are
// made for, of x86 and of ARM.
const (
	q35  = "q35"
	virt = "virt"
)

// unserved are what the spec asks for and this build cannot do, but for the architecture:
// which guests run is a matter of the host.
func unserved(v *vmi.VirtualMachineInstance) error {
	return validate.Error(slices.DeleteFunc(served.Faults(v, defaults.Profile{}), func(e *field.Error) bool { return e.Field == "spec.architecture" }))
}

// native returns why a host cannot run guests of the architecture of a spec.
func native(arch, host string) error {
	if arch == "" || archOf(arch) == host {
		return nil
	}
	return fmt.Errorf("spec.architecture: the guest is for %s, and the guests of this host are for %s: %w", arch, host, vmi.ErrInvalid)
}

// machineType is the machine type that the spec names, or that of the architecture.
func (b *Draft) machineType() string {
	switch m := b.Spec.Machine; {
	case m != nil && m.Type != "":
		return m.Type
	case b.Host.Arch == archARM:
		return virt
	}
	return q35
}

// hasPorts says that the machine type has PCI Express ports: q35 and virt have, in all
// their versions.
func hasPorts(machineType string) bool {
	return strings.Contains(machineType, q35) || machineType == virt || strings.HasPrefix(machineType, virt+"-")
}

// MachineTypeFault says why a QEMU with the machine types of have does not offer the
// one that is wanted, or is nil if it does. It wraps [vmi.ErrInvalid].
func MachineTypeFault(wanted string, have []string) error {
	if slices.Contains(have, wanted) {
		return nil
	}
	return fmt.Errorf("QEMU has no machine type %s: set machine.type to one of %s: %w", wanted, strings.Join(versions(have), ", "), vmi.ErrInvalid)
}

// versions are the versions of q35 or virt among the machine types, the newest first.
func versions(have []string) []string {
	all := slices.DeleteFunc(slices.Clone(have), func(t string) bool { return !hasPorts(t) })
	slices.SortFunc(all, func(a, b string) int {
		x, y := release(a), release(b)
		switch {
		case x == nil && y == nil:
			return strings.Compare(b, a)
		case x == nil: // the alias, which has none, comes first
			return -1
		case y == nil:
			return 1
		case x.LessThan(y):
			return 1
		case y.LessThan(x):
			return -1
		}
		return 0
	})
	return all
}

// release is the version at the end of a machine type, or nil.
func release(machineType string) *version.Version {
	v, err := version.ParseGeneric(machineType[strings.LastIndexByte(machineType, '-')+1:])
	if err != nil {
		return nil
	}
	return v
}
