package validate

import "slices"

// Features are the optional parts of the API, each behind a feature gate of
// KubeVirt. What is on in a default KubeVirt of this version is on in the zero
// value, and has a field that switches it off. A feature that is on here is not
// yet served: package served says what is.
type Features struct {
	// HostDisk allows volumes in files of the node.
	HostDisk bool
	// HostDevices allows devices of the node beside GPUs.
	HostDevices bool
	// PersistentReservation allows reservations of SCSI devices.
	PersistentReservation bool
	// PortRanges allows to forward ranges of ports.
	PortRanges bool
	// VSOCK allows sockets between a guest and its node.
	VSOCK bool
	// SEV allows guests whose memory is encrypted by SEV, and TDX those of TDX.
	SEV, TDX bool

	// NoEmptyCDRom refuses drives without a volume, into which one is put later.
	NoEmptyCDRom bool
	// NoRebootPolicy refuses to say what a guest's reboot does.
	NoRebootPolicy bool
	// NoPasst refuses the passt binding.
	NoPasst bool
	// NoDecentralizedMigration refuses VMs that wait for one of another cluster.
	NoDecentralizedMigration bool
	// NoGPUsWithDRA refuses GPUs, and NoHostDevicesWithDRA other devices of the
	// node, that dynamic resource allocation gives to the pod.
	NoGPUsWithDRA, NoHostDevicesWithDRA bool
}

// gate is the field of a feature.
type gate struct {
	field *bool
	// on is the value of the field with which the feature is on.
	on bool
}

// gates are the fields by the names of KubeVirt's feature gates.
func (f *Features) gates() map[string]gate {
	return map[string]gate{
		"HostDisk": {&f.HostDisk, true}, "HostDevices": {&f.HostDevices, true}, "PersistentReservation": {&f.PersistentReservation, true},
		"PortRangesSpec": {&f.PortRanges, true}, "VSOCK": {&f.VSOCK, true},
		"WorkloadEncryptionSEV": {&f.SEV, true}, "WorkloadEncryptionTDX": {&f.TDX, true},

		"DeclarativeHotplugVolumes": {&f.NoEmptyCDRom, false}, "RebootPolicy": {&f.NoRebootPolicy, false}, "PasstBinding": {&f.NoPasst, false},
		"DecentralizedLiveMigration": {&f.NoDecentralizedMigration, false},
		"GPUsWithDRA":                {&f.NoGPUsWithDRA, false}, "HostDevicesWithDRA": {&f.NoHostDevicesWithDRA, false},
	}
}

// always are the gates of features that cannot be switched off any more.
var always = []string{"EnableVirtioFsConfigVolumes", "EnableVirtioFsStorageVolumes"}

// FeatureGates are the features of a default KubeVirt with KubeVirt's feature
// gates of these names switched on too, and the names that mean nothing here.
func FeatureGates(names ...string) (Features, []string) {
	var f Features
	unknown := f.set(names, true)
	return f, unknown
}

// Without is f with the feature gates of these names switched off, and the names
// that mean nothing here.
func (f Features) Without(names ...string) (Features, []string) {
	unknown := f.set(names, false)
	return f, unknown
}

func (f *Features) set(names []string, on bool) (unknown []string) {
	all := f.gates()
	for _, n := range names {
		if g, ok := all[n]; ok {
			*g.field = g.on == on
		} else if !on || !slices.Contains(always, n) {
			unknown = append(unknown, n)
		}
	}
	return unknown
}
