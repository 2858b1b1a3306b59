package vmi

// Reasons of [ConditionReady], when False or Unknown.
const (
	ReasonPodNotExists        = "PodNotExists"
	ReasonPodTerminating      = "PodTerminating"
	ReasonGuestNotRunning     = "GuestNotRunning"
	ReasonPodConditionMissing = "PodConditionMissing"
	// ReasonContainersNotReady is the kubelet's: a container of the pod is not ready.
	ReasonContainersNotReady = "ContainersNotReady"
	// ReasonPodNotReady: the pod is not ready, and has no reason.
	ReasonPodNotReady = "PodNotReady"
	// ReasonNodeNotReady: the node does not respond, or says that it cannot run pods.
	ReasonNodeNotReady = "NodeNotReady"
	// ReasonHandlerNotReady: virt-handler does not work on the node.
	ReasonHandlerNotReady = "HandlerNotReady"
	// ReasonLauncherUnresponsive: the launcher does not answer its node's handler,
	// so it is not known whether the guest runs.
	ReasonLauncherUnresponsive = "LauncherUnresponsive"
	// ReasonLauncherUnsafe: what is in the place of the launcher's socket is not
	// one, so it is not known whether the guest runs.
	ReasonLauncherUnsafe = "LauncherUnsafe"
	// ReasonPodRemoved: the pod was removed, as by force, and its guest may still run.
	// Ready is Unknown then.
	ReasonPodRemoved = "PodRemoved"
)

// Owner is the process that decides when a reason is over.
type Owner string

// The owners of reasons.
const (
	ControllerOwns Owner = "virt-controller"
	HandlerOwns    Owner = "virt-handler"
)

// NotReadyReason is a reason of a [ConditionReady] that is False or Unknown.
//
// +kubebuilder:object:generate=false
type NotReadyReason struct {
	Reason string
	// Owner takes the reason back. The other process keeps it, but for a reason of its
	// own that counts for more.
	Owner Owner
	// Meaning says to people what the reason means.
	Meaning string
}

// NotReadyReasons are the reasons why a VMI that was handed over to its node is not ready,
// and those from before. The caller may change the slice.
func NotReadyReasons() []NotReadyReason {
	return []NotReadyReason{
		{ReasonGuestNotRunning, HandlerOwns, "the guest has not started, is paused, or has ended"},
		{ReasonPodNotExists, ControllerOwns, "the VMI has no pod"},
		{ReasonPodTerminating, ControllerOwns, "the pod is being deleted or evicted; the message says by whom"},
		{ReasonPodConditionMissing, ControllerOwns, "the kubelet has not reported the pod's readiness"},
		{ReasonContainersNotReady, ControllerOwns, "a container of the pod, or the readiness probe of the VMI, is not ready"},
		{ReasonPodNotReady, ControllerOwns, "the pod is not ready, and does not say why"},
		{ReasonNodeNotReady, ControllerOwns, "the node does not respond; a guest that was started there may still run"},
		{ReasonHandlerNotReady, ControllerOwns, "virt-handler does not run on the node, so the state of the guest is not known"},
		{ReasonPodRemoved, ControllerOwns, "the pod was removed, as by force, and the guest may still run on its node; the status is Unknown"},
		{ReasonLauncherUnresponsive, HandlerOwns, "the launcher does not answer virt-handler"},
		{ReasonLauncherUnsafe, HandlerOwns, "what is in the place of the launcher's socket is not one"},
	}
}

// NotReadyBy is the owner of a reason of a [ConditionReady] that is False or Unknown. One that is not
// in the list is of the pod, and virt-controller's.
func NotReadyBy(reason string) Owner {
	for _, r := range NotReadyReasons() {
		if r.Reason == reason {
			return r.Owner
		}
	}
	return ControllerOwns
}
