package validate

import "github.com/podvisor/podvisor/vmi/defaults"

// Limits are what a cluster allows. The zero value is KubeVirt's default
// configuration.
type Limits struct {
	// Features are the optional parts of the API. The zero value switches on what
	// a default KubeVirt of this version has on.
	Features Features
	// Architecture of VMIs that name none. Empty: amd64.
	Architecture string
	// MachineTypes are patterns of the machine types that are allowed, by
	// architecture, as in path.Match. One that is missing: q35* and pc-q35*, virt*, or
	// s390-ccw-virtio*.
	MachineTypes map[string][]string
	// NoBridgeOnPodNetwork refuses VMIs that take over their pod's address.
	NoBridgeOnPodNetwork bool
	// Devices are the devices of nodes that VMIs may have, by their resources. Nil: any.
	Devices map[string]bool
	// MaxVCPUs is the largest number of processors of a VMI. 0: 255. Beyond it a
	// guest needs an IOMMU that remaps interrupts, which no domain has.
	MaxVCPUs uint32
	// NoLiveUpdate says that memory is not added to running VMIs, so a guest never
	// needs more than its limit: one that sees more than that is refused.
	NoLiveUpdate bool
	// SchemaFollows says that whoever asks checks the schema of a correct object itself, as
	// the API server does. Then what the schema refuses is named only beside other faults.
	SchemaFollows bool
}

// Existing are the limits of a VMI that exists already. What a cluster allows
// changes, and the VMI stays as it is: it must be possible to label it and to
// remove its finalizer.
func (l Limits) Existing() Limits {
	l.NoBridgeOnPodNetwork, l.Devices = false, nil
	all := []string{"*"}
	l.MachineTypes = map[string][]string{defaults.AMD64: all, defaults.ARM64: all, defaults.S390X: all}
	return l
}

func (l Limits) architecture(s string) string {
	switch {
	case s != "":
		return s
	case l.Architecture != "":
		return l.Architecture
	}
	return defaults.AMD64
}

func (l Limits) machineTypes(arch string) []string {
	if t := l.MachineTypes[arch]; len(t) > 0 {
		return t
	}
	return map[string][]string{
		defaults.AMD64: {"q35*", "pc-q35*"}, defaults.ARM64: {"virt*"}, defaults.S390X: {"s390-ccw-virtio*"},
	}[arch]
}

func (l Limits) maxVCPUs() uint64 {
	if l.MaxVCPUs == 0 {
		return 255
	}
	return uint64(l.MaxVCPUs)
}
