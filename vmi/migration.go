package vmi

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// VirtualMachineInstanceMigration moves a running VMI to another node. It runs
// once; deleting it before it has ended aborts it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=vmim;vmims,categories=all
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="VMI",type=string,JSONPath=`.spec.vmiName`
type VirtualMachineInstanceMigration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired migration. It cannot be changed after creation.
	Spec VirtualMachineInstanceMigrationSpec `json:"spec"`

	// Status is the observed migration. Only Podvisor writes it.
	// +optional
	// +structType=atomic
	Status VirtualMachineInstanceMigrationStatus `json:"status,omitempty"`
}

// VirtualMachineInstanceMigrationList is a list of
// VirtualMachineInstanceMigrations.
//
// +kubebuilder:object:root=true
type VirtualMachineInstanceMigrationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []VirtualMachineInstanceMigration `json:"items"`
}

// VirtualMachineInstanceMigrationSpec says which VMI migrates, and where to.
type VirtualMachineInstanceMigrationSpec struct {
	// VMIName is the VMI, in the same namespace. It must run and be
	// LiveMigratable, and no other migration of it may be active.
	// +optional
	VMIName string `json:"vmiName,omitempty"`

	// AddedNodeSelector limits the nodes that the VMI may move to, beside what its
	// own spec says.
	// +optional
	AddedNodeSelector map[string]string `json:"addedNodeSelector,omitempty"`

	// Priority is the migration's place in the queue, if more are pending than may
	// run at once: system-critical, user-triggered or system-maintenance. Only
	// Podvisor itself sets it. Default: user-triggered.
	// +optional
	Priority *MigrationPriority `json:"priority,omitempty"`
}

// MigrationPriority is a migration's place in the queue.
//
// +podvisor:enum
type MigrationPriority string

// The priorities of a migration, highest first.
const (
	MigrationSystemCritical    MigrationPriority = "system-critical"
	MigrationUserTriggered     MigrationPriority = "user-triggered"
	MigrationSystemMaintenance MigrationPriority = "system-maintenance"
)

// VirtualMachineInstanceMigrationStatus is an observed migration.
type VirtualMachineInstanceMigrationStatus struct {
	// Phase is how far the migration is.
	// +optional
	Phase MigrationPhase `json:"phase,omitempty"`

	// PhaseTransitionTimestamps say when each phase began.
	// +optional
	// +listType=atomic
	PhaseTransitionTimestamps []MigrationPhaseTimestamp `json:"phaseTransitionTimestamps,omitempty"`

	// Conditions are facts about the migration.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`

	// MigrationState is what the nodes report about it: a copy of the VMI's.
	// +optional
	MigrationState *MigrationState `json:"migrationState,omitempty"`
}

// MigrationPhase is how far a migration is.
type MigrationPhase string

// The phases of a migration, in order. The last two are final.
const (
	MigrationPhaseUnset MigrationPhase = ""
	// MigrationPhasePending: the migration waits in the queue.
	MigrationPhasePending MigrationPhase = "Pending"
	// MigrationPhaseScheduling: the second pod exists and waits for a node.
	MigrationPhaseScheduling MigrationPhase = "Scheduling"
	// MigrationPhaseScheduled: the second pod runs.
	MigrationPhaseScheduled MigrationPhase = "Scheduled"
	// MigrationPhasePreparingTarget: the second node prepares network and disks.
	MigrationPhasePreparingTarget MigrationPhase = "PreparingTarget"
	// MigrationPhaseTargetReady: the second node waits for the VMI.
	MigrationPhaseTargetReady MigrationPhase = "TargetReady"
	// MigrationPhaseRunning: the guest's memory is being copied.
	MigrationPhaseRunning MigrationPhase = "Running"
	// MigrationPhaseSucceeded: the VMI runs on the second node.
	MigrationPhaseSucceeded MigrationPhase = "Succeeded"
	// MigrationPhaseFailed: the VMI still runs on the first node.
	MigrationPhaseFailed MigrationPhase = "Failed"
)

// Final says that the phase is the migration's last.
func (p MigrationPhase) Final() bool {
	return p == MigrationPhaseSucceeded || p == MigrationPhaseFailed
}

// MigrationPhaseTimestamp says when a phase of a migration began.
type MigrationPhaseTimestamp struct {
	// Phase is the phase.
	// +optional
	Phase MigrationPhase `json:"phase,omitempty"`
	// PhaseTransitionTimestamp is when it began.
	// +optional
	PhaseTransitionTimestamp metav1.Time `json:"phaseTransitionTimestamp,omitempty"`
}

// SetPhase makes p the phase and records when it began. It does nothing if p is
// the phase already.
func (s *VirtualMachineInstanceMigrationStatus) SetPhase(p MigrationPhase, now metav1.Time) {
	if s.Phase == p {
		return
	}
	s.Phase = p
	s.PhaseTransitionTimestamps = append(s.PhaseTransitionTimestamps, MigrationPhaseTimestamp{Phase: p, PhaseTransitionTimestamp: now})
}

// Condition returns the condition of type t, or nil if the migration has none.
func (s *VirtualMachineInstanceMigrationStatus) Condition(t ConditionType) *Condition {
	return FindCondition(s.Conditions, t)
}

// SetCondition sets the condition of c's type to c. The transition time is
// kept if the status does not change and is now otherwise.
func (s *VirtualMachineInstanceMigrationStatus) SetCondition(c Condition, now metav1.Time) {
	s.Conditions = SetCondition(s.Conditions, c, now)
}
