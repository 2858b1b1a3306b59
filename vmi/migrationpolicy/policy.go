package migrationpolicy

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MigrationPolicy are settings for the migrations of the VMIs that it selects, which
// replace those of the cluster one by one.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
type MigrationPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the policy.
	Spec MigrationPolicySpec `json:"spec"`

	// Status is empty.
	// +optional
	// +podvisor:unserved=a policy has no state
	Status MigrationPolicyStatus `json:"status,omitempty"`
}

// MigrationPolicyList is a list of MigrationPolicies.
//
// +kubebuilder:object:root=true
type MigrationPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MigrationPolicy `json:"items"`
}

// MigrationPolicySpec says which VMIs a policy is for, and how they migrate. A field
// that is not set leaves the setting of the cluster in force.
type MigrationPolicySpec struct {
	// Selectors say which VMIs the policy is for.
	Selectors *Selectors `json:"selectors"`

	// AllowAutoConverge slows a guest down whose memory changes faster than it
	// can be copied.
	// +optional
	AllowAutoConverge *bool `json:"allowAutoConverge,omitempty"`

	// AllowPostCopy lets a guest run on the second node before all memory is there.
	// +optional
	AllowPostCopy *bool `json:"allowPostCopy,omitempty"`

	// AllowWorkloadDisruption lets a migration that takes too long pause the guest,
	// or go to post-copy if that is allowed. Default: as allowPostCopy, if the policy
	// sets that.
	// +optional
	AllowWorkloadDisruption *bool `json:"allowWorkloadDisruption,omitempty"`

	// BandwidthPerMigration limits the bytes per second of a migration. 0: no limit.
	// +optional
	BandwidthPerMigration *resource.Quantity `json:"bandwidthPerMigration,omitempty"`

	// CompletionTimeoutPerGiB is how many seconds a migration may take for each GiB
	// of memory and copied disks.
	// +optional
	CompletionTimeoutPerGiB *int64 `json:"completionTimeoutPerGiB,omitempty"`

	// MaxDowntimeMs is how long the guest may be paused at the end, in milliseconds.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2000000
	MaxDowntimeMs *uint64 `json:"maxDowntimeMs,omitempty"`
}

// Selectors select VMIs by labels: all of both maps must be there. Selectors without
// any label select all VMIs.
type Selectors struct {
	// NamespaceSelector are labels of the VMI's namespace.
	// +optional
	NamespaceSelector map[string]string `json:"namespaceSelector,omitempty"`

	// VirtualMachineInstanceSelector are labels of the VMI.
	// +optional
	VirtualMachineInstanceSelector map[string]string `json:"virtualMachineInstanceSelector,omitempty"`
}

// MigrationPolicyStatus is empty: a policy has no state.
type MigrationPolicyStatus struct{}
