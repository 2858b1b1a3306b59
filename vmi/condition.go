package vmi

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionType is the name of a condition.
type ConditionType string

// The conditions of a VMI.
const (
	// ConditionReady is True while the pod is ready and the guest runs. False
	// has one of the [NotReadyReasons], or another reason of the pod's own condition.
	ConditionReady ConditionType = "Ready"
	// ConditionSynchronized is False if the VMI cannot be made as its spec says;
	// reason and message hold the cause.
	ConditionSynchronized ConditionType = "Synchronized"
	// ConditionPodScheduled is False while no node fits the VMI's pod.
	ConditionPodScheduled ConditionType = "PodScheduled"
	// ConditionSoftwareEmulation is True if the guest runs without hardware
	// virtualization, which is much slower.
	ConditionSoftwareEmulation ConditionType = "SoftwareEmulation"
	// ConditionPaused is True while the guest is paused. The reason is
	// PausedByUser, PausedIOError or PausedByMigrationMonitor, or Paused if it is
	// not known.
	ConditionPaused ConditionType = "Paused"
	// ConditionGuestNotBooted is True while the guest seems not to have booted. It is
	// a hint and fails nothing. The reason is NothingReadFromDisks or
	// NoBootableDevice. It is Unknown with the reason NothingWrittenToConsole while a
	// guest has never written to its serial console.
	ConditionGuestNotBooted ConditionType = "GuestNotBooted"
	// ConditionGuestRebootLoop is True while the guest reboots again and again. KubeVirt
	// does not have it.
	ConditionGuestRebootLoop ConditionType = "GuestRebootLoop"
	// ConditionDuplicateMACAddress is True while another VMI has the same MAC address on
	// the same secondary network. It is a hint and fails nothing. KubeVirt does not have
	// it.
	ConditionDuplicateMACAddress ConditionType = "DuplicateMACAddress"
	// ConditionProvisioning is True while claims that the VMI needs are not there
	// or not bound.
	ConditionProvisioning ConditionType = "Provisioning"
	// ConditionDataVolumesReady is True when all DataVolumes of the VMI are
	// filled.
	ConditionDataVolumesReady ConditionType = "DataVolumesReady"
	// ConditionAgentConnected is True while QEMU's agent is connected in the
	// guest, and missing otherwise.
	ConditionAgentConnected ConditionType = "AgentConnected"
	// ConditionAgentVersionNotSupported is True while the version of the guest's
	// agent is none that the cluster's configuration supports, and missing
	// otherwise.
	ConditionAgentVersionNotSupported ConditionType = "AgentVersionNotSupported"
	// ConditionAccessCredentialsSynchronized says whether the guest has the keys and
	// passwords that its agent writes. It is missing until the agent was there.
	ConditionAccessCredentialsSynchronized ConditionType = "AccessCredentialsSynchronized"
	// ConditionLiveMigratable is True if the VMI can move to another node while it
	// runs. False has a reason that ends in NotLiveMigratable.
	ConditionLiveMigratable ConditionType = "LiveMigratable"
	// ConditionStorageLiveMigratable is True if the VMI's volumes can move to
	// other claims while it runs.
	ConditionStorageLiveMigratable ConditionType = "StorageLiveMigratable"
	// ConditionMigrationRequired is True if the VMI must migrate for a change to
	// take effect.
	ConditionMigrationRequired ConditionType = "MigrationRequired"
	// ConditionEvictionRequested is True while the VMI has to leave its node, since the
	// eviction of its pod was asked for.
	ConditionEvictionRequested ConditionType = "EvictionRequested"
	// ConditionHotVCPUChange is True while processors are being added.
	ConditionHotVCPUChange ConditionType = "HotVCPUChange"
	// ConditionHotMemoryChange is True while memory is being added.
	ConditionHotMemoryChange ConditionType = "HotMemoryChange"
	// ConditionVolumesChange is True while volumes are being replaced.
	ConditionVolumesChange ConditionType = "VolumesChange"
)

// The conditions of a VirtualMachine beside those of its VMI, which it copies.
const (
	// ConditionFailure is True if the VMI could not be made or deleted, or if the last one
	// failed or was ended with its pod, until a guest runs.
	ConditionFailure ConditionType = "Failure"
	// ConditionRestartRequired is True if the template has changed in a way that
	// takes effect only at the next start.
	ConditionRestartRequired ConditionType = "RestartRequired"
	// ConditionManualRecoveryRequired is True if a failed change of volumes must
	// be put right by hand.
	ConditionManualRecoveryRequired ConditionType = "ManualRecoveryRequired"
)

// The conditions of a VirtualMachineInstanceReplicaSet and of a VirtualMachinePool.
const (
	// ConditionReplicaFailure is True if a VMI or VM could not be made, or does not start.
	ConditionReplicaFailure ConditionType = "ReplicaFailure"
	// ConditionReplicaPaused is True while the set does nothing because
	// spec.paused is true.
	ConditionReplicaPaused ConditionType = "ReplicaPaused"
	// ConditionReplicaOutdated is True while VMIs of the set are of an earlier template.
	// KubeVirt does not have it.
	ConditionReplicaOutdated ConditionType = "ReplicaOutdated"
	// ConditionRolloutStopped is True while a pool restarts no VM with a new template, since
	// one does not start with it. KubeVirt does not have it.
	ConditionRolloutStopped ConditionType = "RolloutStopped"
)

// The conditions of a VirtualMachineInstanceMigration.
const (
	// ConditionAbortRequested is True if the migration was deleted before it
	// ended.
	ConditionAbortRequested ConditionType = "migrationAbortRequested"
	// ConditionRejectedByResourceQuota is True if a quota of the namespace leaves
	// no room for the second pod.
	ConditionRejectedByResourceQuota ConditionType = "migrationRejectedByResourceQuota"
)

// The conditions of a KubeVirt.
const (
	// ConditionAvailable is True while the components work.
	ConditionAvailable ConditionType = "Available"
	// ConditionProgressing is True while the components take over a change of
	// the configuration.
	ConditionProgressing ConditionType = "Progressing"
	// ConditionDegraded is True if the configuration could not be used; the last
	// good one stays in force and the message says what is wrong.
	ConditionDegraded ConditionType = "Degraded"
	// ConditionGatesWithoutEffect is True if feature gates of the configuration in force
	// have no effect, as misspelt ones. KubeVirt does not have it.
	ConditionGatesWithoutEffect ConditionType = "FeatureGatesWithoutEffect"
	// ConditionCreated is True when everything that the components need is there.
	ConditionCreated ConditionType = "Created"
)

// Reasons of [ConditionAccessCredentialsSynchronized], and of the events about it.
const (
	// ReasonCredentialsSynchronized: the guest has them.
	ReasonCredentialsSynchronized = "AccessCredentialsSyncSuccess"
	// ReasonCredentialsFailed: the guest does not have all of them.
	ReasonCredentialsFailed = "AccessCredentialsSyncFailed"
)

// Reasons of [ConditionPaused].
const (
	// ReasonPaused: why is not known.
	ReasonPaused = "Paused"
	// ReasonPausedByUser: a user paused the guest, or the VMI starts paused.
	ReasonPausedByUser = "PausedByUser"
	// ReasonPausedIOError: a volume failed or is full.
	ReasonPausedIOError = "PausedIOError"
	// ReasonPausedWatchdog: the guest's watchdog fired.
	ReasonPausedWatchdog = "PausedWatchdog"
	// ReasonPausedPanic: the guest's kernel crashed.
	ReasonPausedPanic = "PausedPanic"
	// ReasonPausedSignal: a signal has stopped QEMU. KubeVirt does not have it.
	ReasonPausedSignal = "PausedSignal"
	// ReasonPausedByMigrationMonitor: a migration does not converge otherwise.
	ReasonPausedByMigrationMonitor = "PausedByMigrationMonitor"
)

// Reasons of [ConditionLiveMigratable], when False: what prevents the
// migration.
const (
	ReasonDisksNotLiveMigratable                 = "DisksNotLiveMigratable"
	ReasonInterfaceNotLiveMigratable             = "InterfaceNotLiveMigratable"
	ReasonHotplugNotLiveMigratable               = "HotplugNotLiveMigratable"
	ReasonCPUModeNotLiveMigratable               = "CPUModeLiveMigratable"
	ReasonVirtIOFSNotLiveMigratable              = "VirtIOFSNotLiveMigratable"
	ReasonHostDeviceNotLiveMigratable            = "HostDeviceNotLiveMigratable"
	ReasonSEVNotLiveMigratable                   = "SEVNotLiveMigratable"
	ReasonHypervPassthroughNotLiveMigratable     = "HypervPassthroughNotLiveMigratable"
	ReasonNoTSCFrequencyNotLiveMigratable        = "NoTSCFrequencyNotLiveMigratable"
	ReasonPersistentReservationNotLiveMigratable = "PersistentReservationNotLiveMigratable"
	// ReasonLauncherTooOld: the launcher is of a release that does not migrate. virt-handler
	// alone writes it. KubeVirt does not have it.
	ReasonLauncherTooOld = "LauncherTooOld"
)

// Condition is a fact about an object.
type Condition struct {
	// Type is the name of the fact.
	Type ConditionType `json:"type"`
	// Status is True, False or Unknown.
	Status corev1.ConditionStatus `json:"status"`
	// LastProbeTime is always null: to record each check would be a write.
	// +optional
	// +nullable
	LastProbeTime metav1.Time `json:"lastProbeTime,omitempty"`
	// LastTransitionTime is when status changed last.
	// +optional
	// +nullable
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
	// Reason is one word, for programs.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message is a sentence, for people.
	// +optional
	Message string `json:"message,omitempty"`
}

// FindCondition returns the condition of type t in the list, or nil if it has none.
func FindCondition(list []Condition, t ConditionType) *Condition {
	for i := range list {
		if list[i].Type == t {
			return &list[i]
		}
	}
	return nil
}

// SetCondition returns the list with c in place of the condition of its type. The transition
// time is kept if the status does not change and is now otherwise. The list is changed.
func SetCondition(list []Condition, c Condition, now metav1.Time) []Condition {
	old := FindCondition(list, c.Type)
	if old == nil {
		c.LastTransitionTime = now
		return append(list, c)
	}
	c.LastProbeTime, c.LastTransitionTime = old.LastProbeTime, old.LastTransitionTime
	if old.Status != c.Status {
		c.LastTransitionTime = now
	}
	*old = c
	return list
}

// RemoveCondition returns the list without the condition of type t. The list is changed.
func RemoveCondition(list []Condition, t ConditionType) []Condition {
	for i := range list {
		if list[i].Type == t {
			return append(list[:i], list[i+1:]...)
		}
	}
	return list
}
