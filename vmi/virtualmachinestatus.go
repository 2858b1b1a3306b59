package vmi

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// VirtualMachineStatus is an observed VirtualMachine.
type VirtualMachineStatus struct {
	// Created says that the VM's VirtualMachineInstance exists.
	// +optional
	Created bool `json:"created,omitempty"`

	// Ready says that the VM runs and its guest is ready.
	// +optional
	Ready bool `json:"ready,omitempty"`

	// PrintableStatus is the VM's state in one word, for people.
	// +optional
	// +kubebuilder:default=Stopped
	PrintableStatus PrintableStatus `json:"printableStatus,omitempty"`

	// Reason is why the VM does not run although it is to, or is not ready: the reason of
	// its VirtualMachineInstance, or of the condition Failure. KubeVirt does not have it.
	// +optional
	Reason string `json:"reason,omitempty"`

	// RunStrategy is the run strategy that was last acted upon.
	// +optional
	RunStrategy RunStrategy `json:"runStrategy,omitempty"`

	// Conditions are facts about the VM, among them all of its
	// VirtualMachineInstance.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`

	// StateChangeRequests are the calls start, stop and restart that are still
	// pending, in order.
	// +optional
	// +listType=atomic
	StateChangeRequests []StateChangeRequest `json:"stateChangeRequests,omitempty"`

	// StartFailure counts failed starts in a row.
	// +optional
	// +nullable
	StartFailure *StartFailure `json:"startFailure,omitempty"`

	// ObservedGeneration is the generation of the spec that the running VMI was
	// started from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// DesiredGeneration is the generation of the spec that was last acted upon.
	// +optional
	DesiredGeneration int64 `json:"desiredGeneration,omitempty"`

	// InstancetypeRef is the instance type in use.
	// +optional
	InstancetypeRef *InstancetypeStatusRef `json:"instancetypeRef,omitempty"`

	// PreferenceRef is the preference in use.
	// +optional
	PreferenceRef *InstancetypeStatusRef `json:"preferenceRef,omitempty"`

	// VolumeRequests are volumes that are still to be added or removed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +podvisor:unserved=nothing can be added to a running VM yet
	VolumeRequests []VolumeRequest `json:"volumeRequests,omitempty"`

	// VolumeUpdateState is the progress of a change of volumes.
	// +optional
	// +podvisor:unserved=volumes of a running VM do not move to other claims
	VolumeUpdateState *VolumeUpdateState `json:"volumeUpdateState,omitempty"`

	// SnapshotInProgress is the VirtualMachineSnapshot that is being taken. The
	// spec's volumes cannot be changed meanwhile.
	// +optional
	// +podvisor:unserved=there are no snapshots
	SnapshotInProgress *string `json:"snapshotInProgress,omitempty"`

	// RestoreInProgress is the VirtualMachineRestore that is active. The VM cannot
	// start meanwhile.
	// +optional
	// +podvisor:unserved=there are no snapshots
	RestoreInProgress *string `json:"restoreInProgress,omitempty"`

	// VolumeSnapshotStatuses say which volumes a snapshot would include.
	// +optional
	// +listType=atomic
	// +podvisor:unserved=there are no snapshots
	VolumeSnapshotStatuses []VolumeSnapshotStatus `json:"volumeSnapshotStatuses,omitempty"`
}

// PrintableStatus is a VM's state in one word.
type PrintableStatus string

// The states of a VirtualMachine. Where several fit, the first in this list is
// shown.
const (
	StatusTerminating             PrintableStatus = "Terminating"
	StatusStopping                PrintableStatus = "Stopping"
	StatusMigrating               PrintableStatus = "Migrating"
	StatusPaused                  PrintableStatus = "Paused"
	StatusRunning                 PrintableStatus = "Running"
	StatusPVCNotFound             PrintableStatus = "ErrorPvcNotFound"
	StatusDataVolumeError         PrintableStatus = "DataVolumeError"
	StatusUnschedulable           PrintableStatus = "ErrorUnschedulable"
	StatusProvisioning            PrintableStatus = "Provisioning"
	StatusWaitingForVolumeBinding PrintableStatus = "WaitingForVolumeBinding"
	StatusErrImagePull            PrintableStatus = "ErrImagePull"
	StatusImagePullBackOff        PrintableStatus = "ImagePullBackOff"
	StatusStarting                PrintableStatus = "Starting"
	StatusCrashLoopBackOff        PrintableStatus = "CrashLoopBackOff"
	StatusStopped                 PrintableStatus = "Stopped"
	StatusUnknown                 PrintableStatus = "Unknown"
)

// StateChangeRequest asks for a start or a stop.
type StateChangeRequest struct {
	// Action is Start or Stop.
	Action StateChange `json:"action"`

	// Data are details of the request.
	// +optional
	Data map[string]string `json:"data,omitempty"`

	// UID is the VirtualMachineInstance that is to stop.
	// +optional
	UID *types.UID `json:"uid,omitempty"`
}

// StateChange is a start or a stop.
//
// +podvisor:enum
type StateChange string

// The changes that can be asked for.
const (
	StartRequest StateChange = "Start"
	StopRequest  StateChange = "Stop"
)

// StartFailure counts failed starts in a row.
type StartFailure struct {
	// ConsecutiveFailCount is the number of failed starts since the last good
	// one.
	// +optional
	ConsecutiveFailCount int `json:"consecutiveFailCount,omitempty"`

	// LastFailedVMIUID is the VirtualMachineInstance that failed last.
	// +optional
	LastFailedVMIUID types.UID `json:"lastFailedVMIUID,omitempty"`

	// RetryAfterTimestamp is when the next start will be tried.
	// +optional
	// +nullable
	RetryAfterTimestamp *metav1.Time `json:"retryAfterTimestamp,omitempty"`
}

// VolumeSnapshotStatus says whether a snapshot would include a volume.
type VolumeSnapshotStatus struct {
	// Name is the volume's name in the template.
	Name string `json:"name"`
	// Enabled says that a snapshot would include it.
	Enabled bool `json:"enabled"`
	// Reason says why not.
	// +optional
	Reason string `json:"reason,omitempty"`
}

// VolumeUpdateState is the progress of a change of volumes.
type VolumeUpdateState struct {
	// VolumeMigrationState is set while volumes move to other claims.
	// +optional
	VolumeMigrationState *VolumeMigrationState `json:"volumeMigrationState,omitempty"`
}

// VolumeMigrationState lists the volumes that move.
type VolumeMigrationState struct {
	// MigratedVolumes are the volumes that move.
	// +optional
	// +listType=atomic
	MigratedVolumes []MigratedVolume `json:"migratedVolumes,omitempty"`
}

// Condition returns the condition of type t, or nil if the VM has none.
func (s *VirtualMachineStatus) Condition(t ConditionType) *Condition {
	return FindCondition(s.Conditions, t)
}

// SetCondition sets the condition of c's type to c. The transition time is
// kept if the status does not change and is now otherwise.
func (s *VirtualMachineStatus) SetCondition(c Condition, now metav1.Time) {
	s.Conditions = SetCondition(s.Conditions, c, now)
}

// RemoveCondition removes the condition of type t, if there is one.
func (s *VirtualMachineStatus) RemoveCondition(t ConditionType) {
	s.Conditions = RemoveCondition(s.Conditions, t)
}
