package validate

import "github.com/podvisor/podvisor/vmi/defaults"

// Limits are what a cluster allows. The zero value is KubeVirt's default
// configuration.
type Limits struct {
	// Features are what is off unless somebody wants it.
	Features Features
	// Architecture of machines that name none. Empty: amd64.
	Architecture string
	// MachineTypes are patterns of the boards that are allowed, by architecture,
	// as in path.Match. One that is missing: q35* and pc-q35*, virt*, or
	// s390-ccw-virtio*.
	MachineTypes map[string][]string
	// NoBridgeOnPodNetwork refuses machines that take over their pod's address.
	NoBridgeOnPodNetwork bool
	// MaxVCPUs is the largest number of processors of a machine. 0: 255. Beyond
	// it a guest needs interrupts that are remapped, which no machine has.
	MaxVCPUs uint32
	// NoLiveUpdate says that memory is not added to running machines, so a guest
	// never needs more than its limit: one that sees more than that is refused.
	NoLiveUpdate bool
}

// Features are what is off unless somebody wants it.
type Features struct {
	// HostDisk allows volumes in files of the node.
	HostDisk bool
	// HostDevices allows devices of the node beside GPUs.
	HostDevices bool
	// PersistentReservation allows reservations of SCSI devices.
	PersistentReservation bool
	// EmptyCDRom allows drives without a volume, into which one is put later.
	EmptyCDRom bool
	// RebootPolicy allows to say what a guest's reboot does.
	RebootPolicy bool
	// Passt allows the passt binding.
	Passt bool
	// VirtiofsStorage allows file systems in claims, and VirtiofsConfig those of
	// ConfigMaps, Secrets and the like.
	VirtiofsStorage, VirtiofsConfig bool
	// DecentralizedMigration allows machines that wait for one of another cluster.
	DecentralizedMigration bool
	// HookSidecars allows containers that change a machine's domain.
	HookSidecars bool
	// Ignition allows Ignition's configuration in an annotation.
	Ignition bool
}

// Existing are the limits of a machine that is there already. What a cluster
// allows changes, and the machine stays as it is: it must be possible to label it
// and to remove its finalizer.
func (l Limits) Existing() Limits {
	l.NoBridgeOnPodNetwork = false
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
