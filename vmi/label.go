package vmi

import "maps"

// Labels, annotations, finalizers and resource names that clients rely on.
const (
	// AppLabel names the component that an object belongs to, for example
	// [LauncherApp].
	AppLabel = "kubevirt.io"
	// LauncherApp is the AppLabel of every launcher pod.
	LauncherApp = "virt-launcher"
	// CreatedByLabel is the UID of the VirtualMachineInstance that a launcher
	// pod belongs to.
	CreatedByLabel = "kubevirt.io/created-by"
	// VMNameLabel is the host name of a launcher pod's guest.
	VMNameLabel = "vm.kubevirt.io/name"
	// VMIIDLabel is the name of a launcher pod's VMI, or a hash of it if the name
	// is too long for a label.
	VMIIDLabel = "vmi.kubevirt.io/id"
	// NetworkResourceVariable begins the names of the launcher's environment variables
	// that say of which resource of nodes the device of a network is. The network's name
	// follows.
	NetworkResourceVariable = "KUBEVIRT_RESOURCE_NAME_"
	// DomainAnnotation is the name of a launcher pod's VMI.
	DomainAnnotation = "kubevirt.io/domain"
	// SchedulableLabel is "true" on nodes whose handler runs.
	SchedulableLabel = "kubevirt.io/schedulable"
	// HeartbeatAnnotation is the time of the last heartbeat of a node's handler,
	// in RFC 3339.
	HeartbeatAnnotation = "kubevirt.io/heartbeat"
	// Labels of nodes about the processors of guests. Each prefix is followed by a
	// model, a feature or a vendor, as libvirt names it, and the value is true.
	//
	// CPUModelLabelPrefix begins the labels for the models that guests can have.
	CPUModelLabelPrefix = "cpu-model.node.kubevirt.io/"
	// CPUFeatureLabelPrefix begins those for the features that guests can have.
	CPUFeatureLabelPrefix = "cpu-feature.node.kubevirt.io/"
	// CPUMigrationLabelPrefix begins those for the models that guests can keep when
	// they move to the node: the models that guests can have, and that of host-model.
	CPUMigrationLabelPrefix = "cpu-model-migration.node.kubevirt.io/"
	// HostModelLabelPrefix begins that for the model of guests with host-model.
	HostModelLabelPrefix = "host-model-cpu.node.kubevirt.io/"
	// HostModelFeatureLabelPrefix begins those for the features that host-model adds
	// to its model.
	HostModelFeatureLabelPrefix = "host-model-required-features.node.kubevirt.io/"
	// CPUVendorLabelPrefix begins that for the vendor.
	CPUVendorLabelPrefix = "cpu-vendor.node.kubevirt.io/"
	// ObsoleteHostModelLabel is "true" on nodes whose host-model is a model that the
	// configuration calls obsolete.
	ObsoleteHostModelLabel = "node-labeller.kubevirt.io/obsolete-host-model"
	// SkipNodeAnnotation keeps the labels of a node about processors as they are, if
	// it is "true".
	SkipNodeAnnotation = "node-labeller.kubevirt.io/skip-node"
	// CPUManagerLabel is "true" on nodes that give pods whole CPUs.
	CPUManagerLabel = "kubevirt.io/cpumanager"
	// SEVLabel is "true" on nodes that can encrypt the memory of guests, and SEVESLabel
	// on those that can encrypt the registers of their processors too. Who administers
	// the nodes sets both.
	SEVLabel   = "kubevirt.io/sev"
	SEVESLabel = "kubevirt.io/sev-es"
	// AttachmentApp is the AppLabel of pods that attach volumes to a launcher pod, and
	// OwnerNameAnnotation and OwnerUIDAnnotation name the VMI that they do it for.
	AttachmentApp       = "hotplug-disk"
	OwnerNameAnnotation = "kubevirt.io/owner-vmi-name"
	OwnerUIDAnnotation  = "kubevirt.io/owner-vmi-uid"
	// Finalizer keeps a deleted VirtualMachineInstance until its guest is off.
	Finalizer = "kubevirt.io/foregroundDeleteVirtualMachine"

	// PodConditionUnpaused is the readiness gate of launcher pods: a pod is ready only
	// while its guest is not paused.
	PodConditionUnpaused = "kubevirt.io/virtual-machine-unpaused"
	// VMFinalizer keeps a deleted VirtualMachine until its VMI is gone.
	VMFinalizer = "kubevirt.io/virtualMachineControllerFinalize"
	// VMGenerationAnnotation is the generation of the VirtualMachine whose template a
	// VMI has.
	VMGenerationAnnotation = "kubevirt.io/vm-generation"
	// StartRevisionAnnotation is the generation of the start revision of a VMI, if it was
	// started from that of an earlier generation of its VirtualMachine with the same spec.
	StartRevisionAnnotation = "podvisor.io/start-revision"

	// PoolRevisionLabel is the name of the ControllerRevision with the template of a
	// VirtualMachinePool that a VM was made from, and its VMI was started from.
	PoolRevisionLabel = "kubevirt.io/vm-pool-revision-name"

	// FailFastAnnotation of a VMI, with any value, makes its launcher fail at once. Clients
	// test with it how they handle starts that fail.
	FailFastAnnotation = "kubevirt.io/func-test-virt-launcher-fail-fast"

	// NodeNameLabel is the node that a VMI runs on.
	NodeNameLabel = "kubevirt.io/nodeName"
	// OutdatedLauncherLabel is on a VMI whose launcher has another image than the one that
	// a start would have now, as after an upgrade. Its value is empty.
	OutdatedLauncherLabel = "kubevirt.io/outdatedLauncherImage"
	// MigrationJobLabel is the UID of the migration that a launcher pod was made
	// for.
	MigrationJobLabel = "kubevirt.io/migrationJobUID"
	// MigrationJobAnnotation is the name of that migration.
	MigrationJobAnnotation = "kubevirt.io/migrationJobName"
	// MigrationTargetNodeLabel is the node that a VMI moves to.
	MigrationTargetNodeLabel = "kubevirt.io/migrationTargetNodeName"
	// InstallStrategyLabel marks objects that belong to an installer.
	InstallStrategyLabel = "kubevirt.io/install-strategy"
	// MigrationSelectorLabel is the name of the VMI that a migration moves.
	MigrationSelectorLabel = "kubevirt.io/vmi-name"
	// MigrationFinalizer keeps a deleted migration until it has ended.
	MigrationFinalizer = "kubevirt.io/migrationJobFinalize"
	// EvacuationMigrationAnnotation is on a migration that was made because its VMI has to
	// leave a node, which it names.
	EvacuationMigrationAnnotation = "kubevirt.io/evacuationMigration"
	// UpdateMigrationAnnotation is on a migration that was made because its VMI has an
	// outdated launcher. Its value is empty.
	UpdateMigrationAnnotation = "kubevirt.io/workloadUpdateMigration"
	// EvacuationNamePrefix, UpdateNamePrefix and VerbMigrationNamePrefix begin the names of
	// migrations that were made because a VMI has to leave its node, because it has an
	// outdated launcher, and by the verb migrate.
	EvacuationNamePrefix    = "kubevirt-evacuation-"
	UpdateNamePrefix        = "kubevirt-workload-update-"
	VerbMigrationNamePrefix = "kubevirt-migrate-vm-"
	// EvictionSourceAnnotation is on a VMI that has to leave its node for the descheduler, and
	// has the value EvictionByDescheduler: its migration comes after those of a drain.
	EvictionSourceAnnotation = "kubevirt.io/eviction-source"
	EvictionByDescheduler    = "descheduler"
	// EvictionInProgressAnnotation is "true" on the pod that a VMI has to leave: so the
	// descheduler knows that the pod will go.
	EvictionInProgressAnnotation = "descheduler.alpha.kubernetes.io/eviction-in-progress"
	// DrainTaintKey is the key of the taint that makes VMIs leave a node, where the cluster
	// names no other.
	DrainTaintKey = "kubevirt.io/drain"

	// StateLabel is the name of the VMI whose firmware's variables and TPM a claim
	// holds.
	StateLabel = "persistent-state-for"
	// MigrationNameLabel is the name of the migration that such a claim was made for, as long
	// as it is not known that the VMI has moved to it: then it has StateLabel instead.
	MigrationNameLabel = "kubevirt.io/migrationName"
	// StateMigrationAnnotation is the UID of the migration that such a claim was made for. Only
	// the launcher that the VMI moved to has made its content.
	StateMigrationAnnotation = "podvisor.io/migration"

	// PCITopologyAnnotation is the layout of a guest's PCI bus, which stays the
	// same as long as the VM exists.
	PCITopologyAnnotation = "kubevirt.io/pci-topology-version"
	// PCITopology is the layout of VMIs that are created now.
	PCITopology = "v3"
	// RootComplexAnnotation is "true" on a VMI whose PCI devices are all on the root
	// complex, behind no port. Nothing on the PCI bus can be attached to its guest
	// while it runs.
	RootComplexAnnotation = "kubevirt.io/placePCIDevicesOnRootComplex"
	// NoPCIHole64Annotation is "true" on a VMI whose guest has no PCI memory above 4 GiB.
	NoPCIHole64Annotation = "kubevirt.io/disablePCIHole64"
	// NoPageReportingAnnotation is "true" on a VMI whose guest does not report memory that
	// it has free.
	NoPageReportingAnnotation = "kubevirt.io/free-page-reporting-disabled"
	// HookSidecarsAnnotation lists containers that change a VMI's domain.
	HookSidecarsAnnotation = "hooks.kubevirt.io/hookSidecars"
	// IgnitionAnnotation is the configuration of a guest that reads Ignition.
	IgnitionAnnotation = "kubevirt.io/ignitiondata"

	// KVMResource, TunResource, VhostNetResource and VhostVSOCKResource are the
	// node's devices as resources of a pod.
	KVMResource        = "devices.kubevirt.io/kvm"
	TunResource        = "devices.kubevirt.io/tun"
	VhostNetResource   = "devices.kubevirt.io/vhost-net"
	VhostVSOCKResource = "devices.kubevirt.io/vhost-vsock"
	// SEVResource is the device by which the memory of guests is encrypted. No handler
	// offers it.
	SEVResource = "devices.kubevirt.io/sev"
)

// ReservedLabels returns the labels of VMIs that only Podvisor writes.
func ReservedLabels() []string {
	return []string{CreatedByLabel, MigrationJobLabel, NodeNameLabel, MigrationTargetNodeLabel, SchedulableLabel, InstallStrategyLabel}
}

// UserLabels returns a copy of the labels without those that only Podvisor writes.
func UserLabels(labels map[string]string) map[string]string {
	out := maps.Clone(labels)
	for _, k := range ReservedLabels() {
		delete(out, k)
	}
	return out
}

// RuntimeUID is the user and group ID that every launcher runs as.
const RuntimeUID = 107
