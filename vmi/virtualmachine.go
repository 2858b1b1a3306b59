package vmi

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// VirtualMachine is a virtual machine that lasts: it can be started and stopped,
// and each time it runs as a VirtualMachineInstance of the same name.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=vm;vms,categories=all
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.printableStatus`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +podvisor:unserved=no controller starts and stops machines yet
type VirtualMachine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the machine that is wanted.
	Spec VirtualMachineSpec `json:"spec"`

	// Status is the machine as it is. Only Podvisor writes it.
	// +optional
	Status VirtualMachineStatus `json:"status,omitempty"`
}

// VirtualMachineList is a list of VirtualMachines.
//
// +kubebuilder:object:root=true
type VirtualMachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []VirtualMachine `json:"items"`
}

// VirtualMachineSpec says what a machine is made from and when it runs.
//
// +podvisor:exactlyOne:of=runStrategy;running,message="a VirtualMachine has exactly one of"
type VirtualMachineSpec struct {
	// RunStrategy says when the machine runs: Always restarts it whenever it
	// ends, RerunOnFailure when it fails, Once starts it once, Manual waits for
	// the calls start, stop and restart, Halted keeps it off.
	// +optional
	RunStrategy *RunStrategy `json:"runStrategy,omitempty"`

	// Running is the old form of runStrategy: true is Always, false is Halted.
	// +optional
	Running *bool `json:"running,omitempty"`

	// Template is what the machine is made from. A change takes effect at the
	// next start, unless it is one that a running machine can take.
	Template *VirtualMachineInstanceTemplate `json:"template"`

	// Instancetype names a set of sizes (processors, memory, …) that the template
	// then cannot set itself.
	// +optional
	// +podvisor:unserved=there are no instance types
	Instancetype *InstancetypeMatcher `json:"instancetype,omitempty"`

	// Preference names a set of defaults for what the template leaves open.
	// +optional
	// +podvisor:unserved=there are no preferences
	Preference *PreferenceMatcher `json:"preference,omitempty"`

	// DataVolumeTemplates are DataVolumes that are made for the machine and
	// deleted with it. Each must be used by a volume of the template.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +podvisor:unserved=nobody makes DataVolumes
	DataVolumeTemplates []DataVolumeTemplate `json:"dataVolumeTemplates,omitempty"`

	// UpdateVolumesStrategy says what to do if the running machine's volumes are
	// changed here: Replacement changes them at the next start, Migration copies
	// them while the machine runs. Default: Replacement.
	// +optional
	// +podvisor:unserved=machines do not migrate
	UpdateVolumesStrategy *UpdateVolumesStrategy `json:"updateVolumesStrategy,omitempty"`
}

// RunStrategy says when a machine runs.
//
// +podvisor:enum
type RunStrategy string

// The run strategies. The zero value stands for none, which is refused.
const (
	// RunAlways: the machine runs; when it ends, it starts again.
	RunAlways RunStrategy = "Always"
	// RunRerunOnFailure: the machine runs until its guest powers off; when it
	// fails, it starts again.
	RunRerunOnFailure RunStrategy = "RerunOnFailure"
	// RunManual: the machine starts and stops by the calls start and stop only.
	RunManual RunStrategy = "Manual"
	// RunHalted: the machine is off.
	RunHalted RunStrategy = "Halted"
	// RunOnce: the machine runs once, to whichever end.
	RunOnce RunStrategy = "Once"
	// RunWaitAsReceiver: the machine waits for one that migrates from another
	// cluster.
	// +podvisor:unserved=machines do not migrate between clusters
	RunWaitAsReceiver RunStrategy = "WaitAsReceiver"
)

// UpdateVolumesStrategy says what to do if a running machine's volumes change.
//
// +podvisor:enum
type UpdateVolumesStrategy string

// The ways to change volumes. The zero value stands for Replacement.
const (
	UpdateVolumesMigration   UpdateVolumesStrategy = "Migration"
	UpdateVolumesReplacement UpdateVolumesStrategy = "Replacement"
)

// Strategy is the run strategy that is asked for, by whichever field. It is ""
// if neither is set.
func (s *VirtualMachineSpec) Strategy() RunStrategy {
	switch {
	case s.RunStrategy != nil:
		return *s.RunStrategy
	case s.Running != nil && *s.Running:
		return RunAlways
	case s.Running != nil:
		return RunHalted
	}
	return ""
}

// VirtualMachineStatus is a VirtualMachine as it is.
type VirtualMachineStatus struct {
	// Created says that the machine's VirtualMachineInstance exists.
	// +optional
	Created bool `json:"created,omitempty"`

	// Ready says that the machine runs and its guest is ready.
	// +optional
	Ready bool `json:"ready,omitempty"`

	// PrintableStatus is the machine's state in one word, for people.
	// +optional
	// +kubebuilder:default=Stopped
	PrintableStatus PrintableStatus `json:"printableStatus,omitempty"`

	// RunStrategy is the run strategy that was last acted upon.
	// +optional
	RunStrategy RunStrategy `json:"runStrategy,omitempty"`

	// Conditions are facts about the machine, among them all of its
	// VirtualMachineInstance.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`

	// StateChangeRequests are the calls start, stop and restart that have not
	// been fulfilled yet, in order.
	// +optional
	// +listType=atomic
	StateChangeRequests []StateChangeRequest `json:"stateChangeRequests,omitempty"`

	// StartFailure counts failed starts in a row.
	// +optional
	// +nullable
	StartFailure *StartFailure `json:"startFailure,omitempty"`

	// ObservedGeneration is the generation of the spec that the running machine
	// was started from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// DesiredGeneration is the generation of the spec that was last acted upon.
	// +optional
	DesiredGeneration int64 `json:"desiredGeneration,omitempty"`

	// InstancetypeRef is the instance type in use.
	// +optional
	// +podvisor:unserved=there are no instance types
	InstancetypeRef *InstancetypeStatusRef `json:"instancetypeRef,omitempty"`

	// PreferenceRef is the preference in use.
	// +optional
	// +podvisor:unserved=there are no preferences
	PreferenceRef *InstancetypeStatusRef `json:"preferenceRef,omitempty"`

	// VolumeRequests are volumes to add or remove that have not been yet.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +podvisor:unserved=nothing can be added to a running machine yet
	VolumeRequests []VolumeRequest `json:"volumeRequests,omitempty"`

	// VolumeUpdateState is how far a change of volumes is.
	// +optional
	// +podvisor:unserved=machines do not migrate
	VolumeUpdateState *VolumeUpdateState `json:"volumeUpdateState,omitempty"`

	// SnapshotInProgress is the VirtualMachineSnapshot that is being taken. The
	// spec's volumes cannot be changed meanwhile.
	// +optional
	// +podvisor:unserved=there are no snapshots
	SnapshotInProgress *string `json:"snapshotInProgress,omitempty"`

	// RestoreInProgress is the VirtualMachineRestore that is under way. The
	// machine cannot start meanwhile.
	// +optional
	// +podvisor:unserved=there are no snapshots
	RestoreInProgress *string `json:"restoreInProgress,omitempty"`

	// VolumeSnapshotStatuses say which volumes a snapshot would include.
	// +optional
	// +listType=atomic
	// +podvisor:unserved=there are no snapshots
	VolumeSnapshotStatuses []VolumeSnapshotStatus `json:"volumeSnapshotStatuses,omitempty"`
}

// PrintableStatus is a machine's state in one word.
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

// VolumeUpdateState is how far a change of volumes is.
type VolumeUpdateState struct {
	// VolumeMigrationState is set while volumes move to other claims.
	// +optional
	VolumeMigrationState *VolumeMigrationState `json:"volumeMigrationState,omitempty"`
}

// VolumeMigrationState tells which volumes move.
type VolumeMigrationState struct {
	// MigratedVolumes are the volumes that move.
	// +optional
	// +listType=atomic
	MigratedVolumes []MigratedVolume `json:"migratedVolumes,omitempty"`
}

// VolumeRequest asks for a volume to be added or removed.
type VolumeRequest struct {
	// AddVolumeOptions adds a volume.
	// +optional
	AddVolumeOptions *AddVolumeOptions `json:"addVolumeOptions,omitempty"`
	// RemoveVolumeOptions removes a volume.
	// +optional
	RemoveVolumeOptions *RemoveVolumeOptions `json:"removeVolumeOptions,omitempty"`
}

// AddVolumeOptions is a volume to be added to a running machine.
type AddVolumeOptions struct {
	// Name is the name of the disk and of the volume.
	Name string `json:"name"`
	// Disk is the disk that shows the volume. Its bus must be scsi or virtio.
	Disk *Disk `json:"disk"`
	// VolumeSource is the volume.
	VolumeSource *HotplugVolumeSource `json:"volumeSource"`
	// DryRun holds All if the request is only to be checked.
	// +optional
	// +listType=atomic
	DryRun []string `json:"dryRun,omitempty"`
}

// RemoveVolumeOptions is a volume to be removed from a running machine.
type RemoveVolumeOptions struct {
	// Name is the name of the volume.
	Name string `json:"name"`
	// DryRun holds All if the request is only to be checked.
	// +optional
	// +listType=atomic
	DryRun []string `json:"dryRun,omitempty"`
}

// HotplugVolumeSource is a volume that can be added to a running machine:
// exactly one field is set.
type HotplugVolumeSource struct {
	// PersistentVolumeClaim is a claim of the machine's namespace.
	// +optional
	PersistentVolumeClaim *PersistentVolumeClaimVolume `json:"persistentVolumeClaim,omitempty"`
	// DataVolume is the claim of a DataVolume.
	// +optional
	DataVolume *DataVolumeVolume `json:"dataVolume,omitempty"`
}

// Condition returns the condition of type t, or nil if the machine has none.
func (s *VirtualMachineStatus) Condition(t ConditionType) *Condition {
	return findCondition(s.Conditions, t)
}

// SetCondition sets the condition of c's type to c. The transition time is
// kept if the status does not change and is now otherwise.
func (s *VirtualMachineStatus) SetCondition(c Condition, now metav1.Time) {
	s.Conditions = setCondition(s.Conditions, c, now)
}

// RemoveCondition removes the condition of type t, if there is one.
func (s *VirtualMachineStatus) RemoveCondition(t ConditionType) {
	s.Conditions = removeCondition(s.Conditions, t)
}
