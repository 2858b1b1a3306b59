package vmpool

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/podvisor/podvisor/vmi"
)

// VirtualMachinePool keeps a number of VirtualMachines that are made from one template.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=vmpool;vmpools,categories=all
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.labelSelector
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="Current",type=integer,JSONPath=`.status.replicas`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type VirtualMachinePool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired pool.
	Spec VirtualMachinePoolSpec `json:"spec"`

	// Status is the observed pool. Only Podvisor writes it.
	// +optional
	// +structType=atomic
	Status VirtualMachinePoolStatus `json:"status,omitempty"`
}

// VirtualMachinePoolList is a list of VirtualMachinePools.
//
// +kubebuilder:object:root=true
type VirtualMachinePoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []VirtualMachinePool `json:"items"`
}

// VirtualMachinePoolSpec says how many VMs there are, what they are made from, and how a
// pool changes and removes them.
type VirtualMachinePoolSpec struct {
	// Replicas is the number of VMs. Default: 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// Selector must match the labels of the template's metadata, and cannot change.
	// Autoscalers find the pods by it. VMs belong to a pool by their owner, not by it.
	Selector *metav1.LabelSelector `json:"selector"`

	// VirtualMachineTemplate is what the VMs are made from.
	VirtualMachineTemplate *VirtualMachineTemplateSpec `json:"virtualMachineTemplate"`

	// Paused stops the pool from making, changing and deleting VMs. Default: false.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// NameGeneration says what gets the ordinal of a VM besides its name.
	// +optional
	NameGeneration *NameGeneration `json:"nameGeneration,omitempty"`

	// MaxUnavailable is how many VMs, or how many percent of them rounded up, the pool
	// may have restarted or replaced at the same time. At least one. Default: 100%.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// UpdateStrategy says when VMs get a template that has changed. Default: proactive.
	// +optional
	UpdateStrategy *PoolUpdateStrategy `json:"updateStrategy,omitempty"`

	// ScaleInStrategy says which VMs are deleted if there are too many. Default:
	// proactive.
	// +optional
	ScaleInStrategy *PoolScaleInStrategy `json:"scaleInStrategy,omitempty"`

	// Autohealing replaces VMs that fail to start. Default: they stay, and are tried
	// again.
	// +optional
	Autohealing *PoolAutohealing `json:"autohealing,omitempty"`
}

// VirtualMachineTemplateSpec is what the VMs of a pool are made from.
type VirtualMachineTemplateSpec struct {
	// ObjectMeta holds the labels and annotations of the VMs. Anything else in it has no
	// effect.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	ObjectMeta metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the VMs' spec. The name of each DataVolume ends with the ordinal of its VM, also
	// where a volume names it.
	// +optional
	// +podvisor:unserved:instancetype.inferFromVolume=no name is taken from a volume of a pool's VMs: name the object
	// +podvisor:unserved:instancetype.inferFromVolumeFailurePolicy=no name is taken from a volume of a pool's VMs: name the object
	// +podvisor:unserved:preference.inferFromVolume=no name is taken from a volume of a pool's VMs: name the object
	// +podvisor:unserved:preference.inferFromVolumeFailurePolicy=no name is taken from a volume of a pool's VMs: name the object
	Spec vmi.VirtualMachineSpec `json:"spec,omitempty"`
}

// NameGeneration says which names of other objects end with the ordinal of a VM.
type NameGeneration struct {
	// AppendIndexToConfigMapRefs makes a volume of the configMap c that of c-N in the
	// VM with the ordinal N. Default: false.
	// +optional
	AppendIndexToConfigMapRefs *bool `json:"appendIndexToConfigMapRefs,omitempty"`

	// AppendIndexToSecretRefs makes a volume of the secret s, or the cloud-init data in it,
	// that of s-N in the VM with the ordinal N. Default: false.
	// +optional
	AppendIndexToSecretRefs *bool `json:"appendIndexToSecretRefs,omitempty"`
}

// PoolAutohealing says when a VM is replaced that fails to start.
type PoolAutohealing struct {
	// StartUpFailureThreshold is how many starts in a row must have failed. Default: 3.
	// +optional
	// +kubebuilder:validation:Minimum=1
	StartUpFailureThreshold *int32 `json:"startUpFailureThreshold,omitempty"`

	// MinFailingToStartDuration is how long the VM must not have been ready. It doubles
	// with each replacement in a row, up to an hour. Default: 5m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]{1,6}(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:MaxLength=16
	MinFailingToStartDuration *metav1.Duration `json:"minFailingToStartDuration,omitempty"`
}

// VirtualMachinePoolStatus is an observed pool.
type VirtualMachinePoolStatus struct {
	// Replicas is the number of VMs that are not being deleted.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// ReadyReplicas is the number of VMs that are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// LabelSelector is the selector as text, for the scale subresource.
	// +optional
	LabelSelector string `json:"labelSelector,omitempty"`

	// Conditions are facts about the pool.
	// +optional
	// +listType=atomic
	Conditions []vmi.Condition `json:"conditions,omitempty"`

	// Replaced are the VMs that were deleted because they failed to start, until one of
	// the same name is ready. KubeVirt does not have it.
	// +optional
	// +listType=map
	// +listMapKey=name
	Replaced []ReplacedVM `json:"replaced,omitempty"`
}

// ReplacedVM is a VM that was deleted because it failed to start.
type ReplacedVM struct {
	// Name is the name of the VM.
	Name string `json:"name"`

	// UID is the last VM of the name that was deleted for that reason.
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// Count is how many VMs of the name were, in a row.
	// +optional
	Count int32 `json:"count,omitempty"`
}

// Wanted is the desired number of VMs.
func (s *VirtualMachinePoolSpec) Wanted() int {
	if s.Replicas == nil {
		return 1
	}
	return int(*s.Replicas)
}

// MostUnavailable is how many VMs may be restarted or replaced at the same time: at least
// one.
func (s *VirtualMachinePoolSpec) MostUnavailable() int {
	if s.MaxUnavailable == nil {
		return max(1, s.Wanted())
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(s.MaxUnavailable, s.Wanted(), true)
	if err != nil {
		return 1
	}
	return max(1, n)
}

// Condition returns the condition of type t, or nil if the pool has none.
func (s *VirtualMachinePoolStatus) Condition(t vmi.ConditionType) *vmi.Condition {
	return vmi.FindCondition(s.Conditions, t)
}

// SetCondition sets the condition of c's type to c. The transition time is
// kept if the status does not change and is now otherwise.
func (s *VirtualMachinePoolStatus) SetCondition(c vmi.Condition, now metav1.Time) {
	s.Conditions = vmi.SetCondition(s.Conditions, c, now)
}

// RemoveCondition removes the condition of type t, if there is one.
func (s *VirtualMachinePoolStatus) RemoveCondition(t vmi.ConditionType) {
	s.Conditions = vmi.RemoveCondition(s.Conditions, t)
}
