package vmi

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// VirtualMachineInstanceReplicaSet keeps a number of equal VMIs running. It
// replaces those that end; they keep no state.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=vmirs;vmirss,categories=all
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.labelSelector
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="Current",type=integer,JSONPath=`.status.replicas`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type VirtualMachineInstanceReplicaSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired set.
	Spec VirtualMachineInstanceReplicaSetSpec `json:"spec"`

	// Status is the observed set. Only Podvisor writes it.
	// +optional
	// +structType=atomic
	Status VirtualMachineInstanceReplicaSetStatus `json:"status,omitempty"`
}

// VirtualMachineInstanceReplicaSetList is a list of
// VirtualMachineInstanceReplicaSets.
//
// +kubebuilder:object:root=true
type VirtualMachineInstanceReplicaSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []VirtualMachineInstanceReplicaSet `json:"items"`
}

// VirtualMachineInstanceReplicaSetSpec says how many VMIs there are, and what
// they are made from.
type VirtualMachineInstanceReplicaSetSpec struct {
	// Replicas is the number of VMIs. Default: 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// Selector chooses the VMIs that belong to the set. It must match the labels
	// of the template; VMIs that match and have no controller are adopted.
	Selector *metav1.LabelSelector `json:"selector"`

	// Template is what the VMIs are made from. A change affects VMIs made later;
	// those that run are not changed.
	Template *VirtualMachineInstanceTemplateSpec `json:"template"`

	// Paused stops the set from making and deleting VMIs. Default: false.
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// VirtualMachineInstanceReplicaSetStatus is an observed set.
type VirtualMachineInstanceReplicaSetStatus struct {
	// Replicas is the number of VMIs that have not ended.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// ReadyReplicas is the number of VMIs that are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// LabelSelector is the selector as text, for the scale subresource.
	// +optional
	LabelSelector string `json:"labelSelector,omitempty"`

	// Conditions are facts about the set.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`
}

// Wanted is the desired number of VMIs.
func (s *VirtualMachineInstanceReplicaSetSpec) Wanted() int32 {
	if s.Replicas == nil {
		return 1
	}
	return *s.Replicas
}

// Condition returns the condition of type t, or nil if the set has none.
func (s *VirtualMachineInstanceReplicaSetStatus) Condition(t ConditionType) *Condition {
	return FindCondition(s.Conditions, t)
}

// SetCondition sets the condition of c's type to c. The transition time is
// kept if the status does not change and is now otherwise.
func (s *VirtualMachineInstanceReplicaSetStatus) SetCondition(c Condition, now metav1.Time) {
	s.Conditions = SetCondition(s.Conditions, c, now)
}

// RemoveCondition removes the condition of type t, if there is one.
func (s *VirtualMachineInstanceReplicaSetStatus) RemoveCondition(t ConditionType) {
	s.Conditions = RemoveCondition(s.Conditions, t)
}
