package vmi

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// VirtualMachine is a virtual machine that can be started and stopped: each
// time it runs as a VirtualMachineInstance of the same name.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=vm;vms,categories=all
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.printableStatus`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=='Ready')].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=='Ready')].message`
type VirtualMachine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired VM.
	Spec VirtualMachineSpec `json:"spec"`

	// Status is the observed VM. Only Podvisor writes it.
	// +optional
	// +structType=atomic
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

// VirtualMachineSpec says what a VM is made from and when it runs.
//
// +podvisor:exactlyOne:of=runStrategy;running,message="a VirtualMachine has exactly one of"
type VirtualMachineSpec struct {
	// RunStrategy says when the VM runs: Always restarts it whenever it ends,
	// RerunOnFailure when it fails, Once starts it once, Manual waits for the
	// calls start, stop and restart, Halted keeps it off.
	// +optional
	RunStrategy *RunStrategy `json:"runStrategy,omitempty"`

	// Running is the old form of runStrategy: true is Always, false is Halted.
	// +optional
	Running *bool `json:"running,omitempty"`

	// Template is what the VM is made from. A change takes effect at the next
	// start, unless it is one that a running VM can take.
	Template *VirtualMachineInstanceTemplateSpec `json:"template"`

	// Instancetype names a set of sizes (processors, memory, …) that the template
	// then cannot set itself. The VM keeps it as it was when the VM first used it.
	// +optional
	Instancetype *InstancetypeMatcher `json:"instancetype,omitempty"`

	// Preference names a set of defaults for what the template leaves open. The VM
	// keeps it as it was when the VM first used it.
	// +optional
	Preference *PreferenceMatcher `json:"preference,omitempty"`

	// DataVolumeTemplates are DataVolumes that are made for the VM and deleted
	// with it. Each must be used by a volume of the template. They need the
	// Containerized Data Importer; the VM waits until they are filled.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	DataVolumeTemplates []DataVolumeTemplate `json:"dataVolumeTemplates,omitempty"`

	// UpdateVolumesStrategy says what to do if the running VM's volumes are
	// changed here: Replacement changes them at the next start, Migration copies
	// them while the VM runs. Default: Replacement.
	// +optional
	// +podvisor:unserved=volumes of a running VM do not move to other claims
	UpdateVolumesStrategy *UpdateVolumesStrategy `json:"updateVolumesStrategy,omitempty"`
}

// RunStrategy says when a VM runs.
//
// +podvisor:enum
type RunStrategy string

// The run strategies. The zero value stands for none, which is refused.
const (
	// RunAlways: the VM runs; when its VMI ends, another is started.
	RunAlways RunStrategy = "Always"
	// RunRerunOnFailure: the VM runs until its guest powers off; when it fails, it
	// starts again.
	RunRerunOnFailure RunStrategy = "RerunOnFailure"
	// RunManual: the VM starts and stops by the calls start and stop only.
	RunManual RunStrategy = "Manual"
	// RunHalted: the VM is off.
	RunHalted RunStrategy = "Halted"
	// RunOnce: the VM runs once, whether it succeeds or fails.
	RunOnce RunStrategy = "Once"
	// RunWaitAsReceiver: the VM waits for one that migrates from another cluster.
	// +podvisor:unserved=VMs do not migrate between clusters
	RunWaitAsReceiver RunStrategy = "WaitAsReceiver"
)

// UpdateVolumesStrategy says what to do if a running VM's volumes change.
//
// +podvisor:enum
type UpdateVolumesStrategy string

// The ways to change volumes. The zero value stands for Replacement.
const (
	UpdateVolumesMigration   UpdateVolumesStrategy = "Migration"
	UpdateVolumesReplacement UpdateVolumesStrategy = "Replacement"
)

// Strategy is the desired run strategy, from whichever field is set. It is ""
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
