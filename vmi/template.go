package vmi

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// VirtualMachineInstanceTemplateSpec is what the VMIs of a VirtualMachine or of a
// VirtualMachineInstanceReplicaSet are made from.
type VirtualMachineInstanceTemplateSpec struct {
	// ObjectMeta holds the labels and annotations of the VMIs. Anything else in it
	// has no effect.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	ObjectMeta metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the VMIs' spec.
	// +optional
	Spec VirtualMachineInstanceSpec `json:"spec,omitempty"`
}
