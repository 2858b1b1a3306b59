package instance

import "github.com/podvisor/podvisor/vmi"

// Reasons why a VMI failed, has no pod, waits, or has a condition, as far as the cluster
// side finds out.
const (
	// PodGone: the pod was removed.
	PodGone = "PodGone"
	// PodFailed: the pod ended, and no container says why.
	PodFailed = "PodFailed"
	// NodeUnresponsive: the node does not respond, and the pod is certainly gone.
	NodeUnresponsive = vmi.ReasonNodeUnresponsive
	// NodeRestarted: the node, or what runs its containers, was restarted.
	NodeRestarted = "NodeRestarted"
	// OOMKilled: the kernel killed the pod's processes for lack of memory.
	OOMKilled = "OOMKilled"
	// Evicted: the pod was evicted from its node.
	Evicted = vmi.ReasonEvicted
	// Preempted: the pod had to make room for one of a higher priority.
	Preempted = vmi.ReasonPreempted
	// PodDeleted: the pod was deleted, and its VMI was not.
	PodDeleted = vmi.ReasonPodDeleted
	// LivenessProbeFailed: the kubelet ended the pod, whose liveness probe failed.
	LivenessProbeFailed = vmi.ReasonLivenessProbeFailed

	// InvalidSpec: no pod can be rendered from the spec.
	InvalidSpec = "InvalidSpec"
	// FailedCreate: the API server does not accept the pod, or the claim for what
	// outlasts the VMI besides its disks.
	FailedCreate = "FailedCreate"
	// PodNameTaken: a pod that is not the VMI's has its name.
	PodNameTaken = "PodNameTaken"

	// FailedPvcNotFound: a claim that a volume of the VMI names does not exist.
	FailedPvcNotFound = "FailedPvcNotFound"
	// StateClaimUnusable: a claim has the name of the one for what outlasts the VMI besides
	// its disks, and cannot hold it.
	StateClaimUnusable = "StateClaimUnusable"
	// ClaimInUse: another VMI has the same claim, a disk of one of the two is in it, and one
	// of the two writes.
	ClaimInUse = "ClaimInUse"
	// NetworkResourceInvalid: the NetworkAttachmentDefinition of a network names a resource
	// that can be none of a network.
	NetworkResourceInvalid = "NetworkResourceInvalid"
	// PreviousPodExists: the pod of an earlier VMI of the same name may still run.
	PreviousPodExists = "PreviousPodExists"
	// ClaimNotProvisioned: a scheduler has given the pod its node, and a claim has no volume
	// there yet.
	ClaimNotProvisioned = "ClaimNotProvisioned"
	// SchedulerUnresponsive: the scheduler of the pod does nothing with it.
	SchedulerUnresponsive = "SchedulerUnresponsive"

	// DuplicateMACAddress is the reason of the condition of this name: another VMI has the
	// same MAC address on the same secondary network. Both guests run, and lose what the
	// network delivers to the other one.
	DuplicateMACAddress = "DuplicateMACAddress"
)
