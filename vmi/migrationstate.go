package vmi

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// MigrationState is what the nodes report about a migration.
type MigrationState struct {
	// StartTimestamp is when the copy began.
	// +optional
	// +nullable
	StartTimestamp *metav1.Time `json:"startTimestamp,omitempty"`
	// EndTimestamp is when the migration ended.
	// +optional
	// +nullable
	EndTimestamp *metav1.Time `json:"endTimestamp,omitempty"`
	// Completed says that the migration has ended, with success or without.
	// +optional
	Completed bool `json:"completed,omitempty"`
	// Failed says that it ended without success.
	// +optional
	Failed bool `json:"failed,omitempty"`
	// FailureReason is a sentence with the cause.
	// +optional
	FailureReason string `json:"failureReason,omitempty"`
	// AbortRequested says that the migration is to stop.
	// +optional
	AbortRequested bool `json:"abortRequested,omitempty"`
	// AbortStatus is the progress of the abort.
	// +optional
	AbortStatus MigrationAbortStatus `json:"abortStatus,omitempty"`
	// MigrationUID is the UID of the VirtualMachineInstanceMigration.
	// +optional
	MigrationUID types.UID `json:"migrationUid,omitempty"`
	// Mode says how memory is copied: while the guest runs on the first node, on
	// the second, or not at all.
	// +optional
	Mode MigrationMode `json:"mode,omitempty"`
	// MigrationPolicyName is the MigrationPolicy that applied.
	// +optional
	MigrationPolicyName *string `json:"migrationPolicyName,omitempty"`
	// MigrationConfiguration are the settings that applied.
	// +optional
	MigrationConfiguration *MigrationConfiguration `json:"migrationConfiguration,omitempty"`
	// MigrationNetworkType is pod, or migration if there is a network for it.
	// +optional
	// +podvisor:unserved=migrationConfiguration.network says it
	MigrationNetworkType MigrationNetworkType `json:"migrationNetworkType,omitempty"`

	// SourceNode is the node that the VMI leaves.
	// +optional
	SourceNode string `json:"sourceNode,omitempty"`
	// SourcePod is the pod that the VMI leaves.
	// +optional
	SourcePod string `json:"sourcePod,omitempty"`
	// SourcePersistentStatePVCName is the claim with the VMI's own state that it
	// leaves.
	// +optional
	SourcePersistentStatePVCName string `json:"sourcePersistentStatePVCName,omitempty"`

	// TargetNode is the node that the VMI goes to.
	// +optional
	TargetNode string `json:"targetNode,omitempty"`
	// TargetPod is the pod that the VMI goes to.
	// +optional
	TargetPod string `json:"targetPod,omitempty"`
	// TargetNodeAddress is where the second node listens for the VMI.
	// +optional
	TargetNodeAddress string `json:"targetNodeAddress,omitempty"`
	// TargetDirectMigrationNodePorts maps the ports that the second node listens
	// on to their purpose.
	// +optional
	TargetDirectMigrationNodePorts map[string]int `json:"targetDirectMigrationNodePorts,omitempty"`
	// TargetNodeDomainDetected says that the domain was found on the second node.
	// +optional
	TargetNodeDomainDetected bool `json:"targetNodeDomainDetected,omitempty"`
	// TargetNodeDomainReadyTimestamp is when the domain ran there.
	// +optional
	// +nullable
	TargetNodeDomainReadyTimestamp *metav1.Time `json:"targetNodeDomainReadyTimestamp,omitempty"`
	// TargetAttachmentPodUID is the pod that holds hotplugged volumes there.
	// +optional
	// +podvisor:unserved=nothing can be added to a running VMI yet
	TargetAttachmentPodUID types.UID `json:"targetAttachmentPodUID,omitempty"`
	// TargetCPUSet are the CPUs that a VMI with dedicated ones has there.
	// +optional
	// +listType=atomic
	TargetCPUSet []int `json:"targetCPUSet,omitempty"`
	// TargetNodeTopology is the second node's topology, as JSON.
	// +optional
	TargetNodeTopology string `json:"targetNodeTopology,omitempty"`
	// TargetPersistentStatePVCName is the claim with the VMI's own state that it
	// goes to.
	// +optional
	TargetPersistentStatePVCName string `json:"targetPersistentStatePVCName,omitempty"`
	// TargetMemoryOverhead is what the second pod is given beside the guest's
	// memory.
	// +optional
	// +podvisor:unserved=the memory of a running VMI does not change, and both pods are given the same
	TargetMemoryOverhead *resource.Quantity `json:"targetMemoryOverhead,omitempty"`
}

// MigrationAbortStatus is the progress of the abort of a migration.
type MigrationAbortStatus string

// The states of an abort.
const (
	MigrationAbortInProgress MigrationAbortStatus = "Aborting"
	MigrationAbortSucceeded  MigrationAbortStatus = "Succeeded"
	MigrationAbortFailed     MigrationAbortStatus = "Failed"
)

// MigrationMode says how memory is copied.
type MigrationMode string

// The modes of a migration.
const (
	// MigrationPreCopy: the guest runs on the first node until nearly all memory
	// is copied.
	MigrationPreCopy MigrationMode = "PreCopy"
	// MigrationPostCopy: the guest runs on the second node and fetches memory as
	// it needs it. A failure now ends the VMI.
	MigrationPostCopy MigrationMode = "PostCopy"
	// MigrationPaused: the guest is paused until all memory is copied.
	MigrationPaused MigrationMode = "Paused"
)

// MigrationMethod says how a VMI migrates.
type MigrationMethod string

// The methods of a migration.
const (
	// BlockMigration copies memory and volumes.
	BlockMigration MigrationMethod = "BlockMigration"
	// LiveMigration copies memory only; both nodes reach the volumes.
	LiveMigration MigrationMethod = "LiveMigration"
)

// MigrationTransport says how the data of a migration leave the pod.
type MigrationTransport string

// MigrationTransportUnix: through sockets in the pod.
const MigrationTransportUnix MigrationTransport = "Unix"

// MigrationNetworkType says which network a migration uses.
type MigrationNetworkType string

// The networks of a migration.
const (
	MigrationNetworkPod       MigrationNetworkType = "pod"
	MigrationNetworkMigration MigrationNetworkType = "migration"
)

// MigrationConfiguration are the settings of migrations.
type MigrationConfiguration struct {
	// NodeDrainTaintKey is the taint that makes VMIs leave a node. Default:
	// kubevirt.io/drain.
	// +optional
	NodeDrainTaintKey *string `json:"nodeDrainTaintKey,omitempty"`
	// ParallelOutboundMigrationsPerNode is how many VMIs may leave a node at once.
	// Default: 2.
	// +optional
	ParallelOutboundMigrationsPerNode *uint32 `json:"parallelOutboundMigrationsPerNode,omitempty"`
	// ParallelMigrationsPerCluster is how many VMIs may move at once. Default: 5.
	// +optional
	ParallelMigrationsPerCluster *uint32 `json:"parallelMigrationsPerCluster,omitempty"`
	// AllowAutoConverge slows a guest down whose memory changes faster than it
	// can be copied. Default: false.
	// +optional
	AllowAutoConverge *bool `json:"allowAutoConverge,omitempty"`
	// AllowPostCopy lets a guest run on the second node before all memory is
	// there. It needs userfaultfd there without privileges: where that is not to be had,
	// the migration fails. Default: false.
	// +optional
	AllowPostCopy *bool `json:"allowPostCopy,omitempty"`
	// AllowWorkloadDisruption lets a migration that takes too long pause the
	// guest, or go to post-copy if that is allowed. Default: as allowPostCopy.
	// +optional
	AllowWorkloadDisruption *bool `json:"allowWorkloadDisruption,omitempty"`
	// BandwidthPerMigration limits the bytes per second of a migration. Default:
	// 0, no limit.
	// +optional
	BandwidthPerMigration *resource.Quantity `json:"bandwidthPerMigration,omitempty"`
	// CompletionTimeoutPerGiB is how many seconds a migration may take for each
	// GiB of memory and copied disks. Default: 150.
	// +optional
	CompletionTimeoutPerGiB *int64 `json:"completionTimeoutPerGiB,omitempty"`
	// ProgressTimeout is after how many seconds without progress a migration is
	// stopped. Default: 150.
	// +optional
	ProgressTimeout *int64 `json:"progressTimeout,omitempty"`
	// MaxDowntimeMs is how long the guest may be paused at the end, in
	// milliseconds. A migration tries with less first. Default: 900.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2000000
	MaxDowntimeMs *uint64 `json:"maxDowntimeMs,omitempty"`
	// UnsafeMigrationOverride migrates even where libvirt reports that data could
	// be lost. Default: false.
	// +optional
	// +podvisor:unserved=a VMI whose data could be lost does not migrate
	UnsafeMigrationOverride *bool `json:"unsafeMigrationOverride,omitempty"`
	// DisableTLS sends the guest's memory over the network without encryption.
	// Default: false.
	// +optional
	// +podvisor:unserved=the memory of a guest goes between nodes only by TLS
	DisableTLS *bool `json:"disableTLS,omitempty"`
	// Network is the NetworkAttachmentDefinition that migrations use, as NAME or
	// NAMESPACE/NAME. Handlers have it as interface migration0. Default: the pod network.
	// +optional
	Network *string `json:"network,omitempty"`
	// MatchSELinuxLevelOnMigration gives the second pod the SELinux level of the
	// first, which shared volumes need. Default: true.
	// +optional
	// +podvisor:unserved=launcher pods have the level that the container runtime gives them
	MatchSELinuxLevelOnMigration *bool `json:"matchSELinuxLevelOnMigration,omitempty"`
}
