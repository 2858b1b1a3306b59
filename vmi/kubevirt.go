package vmi

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// KubeVirt is the configuration of Podvisor in a cluster. There is at most one,
// in any namespace, usually the one that Podvisor is installed in; of several
// the oldest is used. Changes take effect at once; without the object, the
// defaults apply.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=kubevirts,shortName=kv;kvs,categories=all
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
type KubeVirt struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired configuration.
	Spec KubeVirtSpec `json:"spec"`

	// Status says which configuration is in force. Only Podvisor writes it.
	// +optional
	// +structType=atomic
	Status KubeVirtStatus `json:"status,omitempty"`
}

// KubeVirtList is a list of KubeVirts.
//
// +kubebuilder:object:root=true
type KubeVirtList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []KubeVirt `json:"items"`
}

// KubeVirtSpec is the desired configuration.
type KubeVirtSpec struct {
	// Configuration holds the settings. Each that is left out has its default.
	// +optional
	Configuration KubeVirtConfiguration `json:"configuration,omitzero"`

	// WorkloadUpdateStrategy says how VMIs that run get the launcher of this version
	// after an upgrade. Default: they keep theirs until they are started again.
	// +optional
	WorkloadUpdateStrategy *WorkloadUpdateStrategy `json:"workloadUpdateStrategy,omitempty"`
}

// WorkloadUpdateStrategy says how VMIs that run get the launcher of this version.
type WorkloadUpdateStrategy struct {
	// WorkloadUpdateMethods are what may be done. LiveMigrate: VMIs that can move
	// are migrated. Evict: the pods of those that cannot, or of all without
	// LiveMigrate, are evicted, which ends a VMI as its evictionStrategy says. Default:
	// none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	WorkloadUpdateMethods []WorkloadUpdateMethod `json:"workloadUpdateMethods,omitempty"`

	// BatchEvictionSize is how many pods are evicted in one interval. Default: 10.
	// +optional
	// +kubebuilder:validation:Minimum=1
	BatchEvictionSize *int `json:"batchEvictionSize,omitempty"`

	// BatchEvictionInterval is the time between two batches of evictions, such as 1m30s.
	// Default: 1m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]{1,6}(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:MaxLength=16
	BatchEvictionInterval *metav1.Duration `json:"batchEvictionInterval,omitempty"`
}

// WorkloadUpdateMethod is what may be done to give a VMI that runs the launcher of this
// version.
//
// +podvisor:enum
type WorkloadUpdateMethod string

// The methods.
const (
	// WorkloadUpdateLiveMigrate: a VMI that can move is migrated.
	WorkloadUpdateLiveMigrate WorkloadUpdateMethod = "LiveMigrate"
	// WorkloadUpdateEvict: the pod of another one is evicted.
	WorkloadUpdateEvict WorkloadUpdateMethod = "Evict"
)

// KubeVirtStatus says which configuration is in force.
type KubeVirtStatus struct {
	// Phase is Deployed while the components work, Deploying before. It is empty
	// if another KubeVirt is in use.
	// +optional
	Phase KubeVirtPhase `json:"phase,omitempty"`

	// Conditions are facts about the components: Available, Progressing, Degraded
	// and Created, all of them always present.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`

	// ObservedGeneration is the generation of the spec that is in force, or that
	// was found unusable.
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`

	// DefaultArchitecture is the architecture of VMIs that name none.
	// +optional
	DefaultArchitecture string `json:"defaultArchitecture,omitempty"`

	// ObservedDeploymentConfig is the configuration that is in force, as JSON. It
	// stays so if a later one cannot be used.
	// +optional
	ObservedDeploymentConfig string `json:"observedDeploymentConfig,omitempty"`

	// OperatorVersion is the version of virt-controller, which reports it.
	// +optional
	OperatorVersion string `json:"operatorVersion,omitempty"`

	// ObservedKubeVirtVersion is the version of virt-controller when it last saw that all
	// components were replaced and ready.
	// +optional
	ObservedKubeVirtVersion string `json:"observedKubeVirtVersion,omitempty"`

	// TargetKubeVirtVersion is the version that is being installed. It is the observed
	// one when that is over.
	// +optional
	TargetKubeVirtVersion string `json:"targetKubeVirtVersion,omitempty"`

	// OutdatedVirtualMachineInstanceWorkloads is how many VMIs run with another launcher
	// than a start would give them.
	// +optional
	OutdatedVirtualMachineInstanceWorkloads *int `json:"outdatedVirtualMachineInstanceWorkloads,omitempty"`
}

// KubeVirtPhase says whether the components work.
type KubeVirtPhase string

// The phases of a KubeVirt.
const (
	KubeVirtPhaseDeploying KubeVirtPhase = "Deploying"
	KubeVirtPhaseDeployed  KubeVirtPhase = "Deployed"
)

// Condition returns the condition of type t, or nil if there is none.
func (s *KubeVirtStatus) Condition(t ConditionType) *Condition {
	return FindCondition(s.Conditions, t)
}

// SetCondition sets the condition of c's type to c. The transition time is
// kept if the status does not change and is now otherwise.
func (s *KubeVirtStatus) SetCondition(c Condition, now metav1.Time) {
	s.Conditions = SetCondition(s.Conditions, c, now)
}

// RemoveCondition removes the condition of type t, if there is one.
func (s *KubeVirtStatus) RemoveCondition(t ConditionType) {
	s.Conditions = RemoveCondition(s.Conditions, t)
}
