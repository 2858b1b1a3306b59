package main

// refusal is a field of KubeVirt's that has no type here, with all fields below
// it.
type refusal struct{ path, reason string }

const (
	niche       = "few VMs need it; it enters when it is built"
	claims      = "devices by dynamic resource allocation enter when they are built"
	incremental = "incremental backups enter when they are built"
	memoryDump  = "memory dumps enter when they are built"
	metrics     = "metrics of the node for the guest enter when they are built"
	clusters    = "migration between clusters enters when it is built"
	experiments = "an experiment of KubeVirt's"
	installer   = "Podvisor is installed from manifests, not by an operator"
	gates       = "what is served cannot be switched off: leave out the fields of it"
	component   = "Podvisor has no such component"
	deprecated  = "KubeVirt has deprecated it"
	nodeDevices = "devices of the node enter when they are passed through"
	realtime    = "a launcher pod may neither lock memory nor schedule in real time, which need capabilities"
	nodesOfVMs  = "VMs are selected by their own labels: to empty a node, drain it"
	noEffect    = "it has no effect in KubeVirt either: write virtualGPUOptions of the GPU"
)

// refused are the fields without a type, by kind.
var refused = map[string][]refusal{
	"VirtualMachineInstance": {
		{"spec.domain.cpu.realtime", realtime},
		{"spec.domain.devices.clientPassthrough", niche},
		{"spec.domain.devices.disks[].changedBlockTracking", incremental},
		{"spec.domain.devices.downwardMetrics", metrics},
		{"spec.domain.firmware.acpi", niche},
		{"spec.domain.memory.reservedOverhead", niche},
		{"spec.networks[].resourceClaim", claims},
		{"spec.utilityVolumes[]", niche},
		{"spec.volumes[].containerPath", niche},
		{"spec.volumes[].downwardMetrics", metrics},
		{"spec.volumes[].memoryDump", memoryDump},
		{"status.changedBlockTracking", incremental},
		{"status.migrationState.migrationConfiguration.experimental", experiments},
		{"status.migrationState.migrationConfiguration.utilityVolumesTimeout", niche},
		{"status.migrationState.sourceState", clusters},
		{"status.migrationState.targetState", clusters},
		{"status.volumeStatus[].memoryDumpVolume", memoryDump},
	},
	"VirtualMachine": {
		{"spec.dataVolumeTemplates[].status", "a template has no status"},
		{"status.changedBlockTracking", incremental},
		{"status.memoryDumpRequest", memoryDump},
		{"status.volumeRequests[].addVolumeOptions.disk.changedBlockTracking", incremental},
	},
	"VirtualMachineInstanceMigration": {
		{"spec.receive", clusters},
		{"spec.sendTo", clusters},
		{"status.migrationState.migrationConfiguration.experimental", experiments},
		{"status.migrationState.migrationConfiguration.utilityVolumesTimeout", niche},
		{"status.migrationState.sourceState", clusters},
		{"status.migrationState.targetState", clusters},
		{"status.synchronizationAddresses[]", clusters},
	},
	"MigrationPolicy": {
		{"spec.experimental", experiments},
	},
	"VirtualMachinePool": {
		{"spec.scaleInStrategy.proactive.selectionPolicy.selectors.nodeSelectorRequirementMatcher[]", nodesOfVMs},
		{"spec.updateStrategy.proactive.selectionPolicy.selectors.nodeSelectorRequirementMatcher[]", nodesOfVMs},
	},
	"VirtualMachineInstancetype":        {{"spec.cpu.realtime", realtime}},
	"VirtualMachineClusterInstancetype": {{"spec.cpu.realtime", realtime}},
	"VirtualMachinePreference":          {{"spec.devices.preferredVirtualGPUOptions", noEffect}},
	"VirtualMachineClusterPreference":   {{"spec.devices.preferredVirtualGPUOptions", noEffect}},
	"KubeVirt": {
		{"spec.certificateRotateStrategy", "certificates renew themselves"},
		{"spec.configuration.apiConfiguration", component},
		{"spec.configuration.architectureConfiguration.amd64.ovmfPath", "the firmware is in the launcher's image"},
		{"spec.configuration.architectureConfiguration.arm64.ovmfPath", "the firmware is in the launcher's image"},
		{"spec.configuration.architectureConfiguration.ppc64le", "Podvisor does not run on ppc64le"},
		{"spec.configuration.architectureConfiguration.s390x.ovmfPath", "the firmware is in the launcher's image"},
		{"spec.configuration.autoCPULimitNamespaceLabelSelector", "limits of a namespace are a LimitRange's"},
		{"spec.configuration.changedBlockTrackingLabelSelectors", incremental},
		{"spec.configuration.commonInstancetypesDeployment", installer},
		{"spec.configuration.confidentialCompute", "confidential guests enter when they are built"},
		{"spec.configuration.defaultRuntimeClass", niche},
		{"spec.configuration.developerConfiguration.clusterProfiler", component},
		{"spec.configuration.developerConfiguration.disabledFeatureGates[]", gates},
		{"spec.configuration.developerConfiguration.logVerbosity.virtAPI", component},
		{"spec.configuration.developerConfiguration.logVerbosity.virtOperator", component},
		{"spec.configuration.developerConfiguration.logVerbosity.virtSynchronizationController", component},
		{"spec.configuration.developerConfiguration.minimumClusterTSCFrequency", niche},
		{"spec.configuration.hypervisors[]", "the hypervisor is KVM, or QEMU alone where emulation is allowed"},
		{"spec.configuration.ksmConfiguration", "to merge equal memory of the node is up to the node"},
		{"spec.configuration.mediatedDevicesConfiguration", nodeDevices},
		{"spec.configuration.migrations.utilityVolumesTimeout", niche},
		{"spec.configuration.minCPUModel", "a node has a label for each feature, whatever the oldest model has"},
		{"spec.configuration.network.binding", "enters with the binding plugins"},
		{"spec.configuration.network.permitSlirpInterface", deprecated},
		{"spec.configuration.ovmfPath", deprecated},
		{"spec.configuration.permittedHostDevices.usb[]", "the launcher passes PCI devices and mediated ones"},
		{"spec.configuration.persistentReservationConfiguration", niche},
		{"spec.configuration.roleAggregationStrategy", installer},
		{"spec.configuration.seccompConfiguration", "the profile of launcher pods is RuntimeDefault"},
		{"spec.configuration.selinuxLauncherType", "the type is the container runtime's"},
		{"spec.configuration.supportContainerResources[]", "the launcher pod has no containers beside compute"},
		{"spec.configuration.tlsConfiguration", "connections use TLS 1.3"},
		{"spec.configuration.virtTemplateDeployment", installer},
		{"spec.configuration.virtualMachineInstancesPerNode", "how many pods a node runs is the kubelet's"},
		{"spec.configuration.virtualMachineOptions", niche},
		{"spec.configuration.webhookConfiguration", component},
		{"spec.customizeComponents", installer},
		{"spec.imagePullPolicy", installer},
		{"spec.imagePullSecrets[]", installer},
		{"spec.imageRegistry", installer},
		{"spec.imageTag", installer},
		{"spec.infra", installer},
		{"spec.monitorAccount", installer},
		{"spec.monitorNamespace", installer},
		{"spec.productComponent", installer},
		{"spec.productName", installer},
		{"spec.productVersion", installer},
		{"spec.serviceMonitorNamespace", installer},
		{"spec.synchronizationPort", clusters},
		{"spec.uninstallStrategy", installer},
		{"spec.workloads", installer},
		{"status.generations[]", installer},
		{"status.observedDeploymentID", installer},
		{"status.observedKubeVirtRegistry", installer},
		{"status.synchronizationAddresses[]", clusters},
		{"status.targetDeploymentConfig", installer},
		{"status.targetDeploymentID", installer},
		{"status.targetKubeVirtRegistry", installer},
	},
}

// refusedKinds are the kinds without a type, with what to use instead.
var refusedKinds = []refusal{
	{"VirtualMachineInstancePreset", deprecated + ": write its fields into the VMIs"},
	{"VirtualMachineSnapshot, VirtualMachineSnapshotContent, VirtualMachineRestore", "no snapshots of VMs are taken yet: take a VolumeSnapshot of each claim, as docs/claims.md says"},
	{"VirtualMachineClone", "VMs are not cloned yet: make claims from those of the VM, as docs/claims.md says, and a VM"},
	{"VirtualMachineExport", "disks are not exported yet: a pod that mounts the claim of a VM that is off can read its disk.img"},
	{"VirtualMachineBackup, VirtualMachineBackupTracker", incremental},
}
