package instance_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

var (
	now    = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	config = pod.Config{Launcher: pod.Launcher{Image: "example/virt-launcher:v1"}}
)

const (
	node   = "node1"
	podUID = types.UID("pod-uid")
)

// stored is a VMI with its finalizer in the phase.
func stored(p vmi.Phase, options ...vmitest.Option) *vmi.VirtualMachineInstance {
	v := vmitest.New(vmitest.WithContainerDisk("root", "example/fedora:40"))
	v.Finalizers = []string{vmi.Finalizer}
	v.CreationTimestamp = metav1.NewTime(now)
	if p != vmi.PhaseUnset {
		v.Status.SetPhase(p, metav1.NewTime(now))
	}
	switch p {
	case vmi.PhaseScheduling:
		v.Labels = map[string]string{vmi.NodeNameLabel: node}
	case vmi.PhaseScheduled, vmi.PhaseRunning, vmi.PhaseSucceeded, vmi.PhaseFailed:
		v.Status.NodeName, v.Status.ActivePods = node, map[types.UID]string{podUID: node}
		v.Labels = map[string]string{vmi.NodeNameLabel: node}
	}
	for _, o := range options {
		o(v)
	}
	return v
}

// endedBefore makes the time of the phase earlier.
func endedBefore(d time.Duration) vmitest.Option {
	return func(v *vmi.VirtualMachineInstance) {
		v.Status.PhaseTransitionTimestamps[0].PhaseTransitionTimestamp = metav1.NewTime(now.Add(-d))
	}
}

// nowhere makes the VMI one whose node is not known.
func nowhere(v *vmi.VirtualMachineInstance) { v.Status.NodeName, v.Status.ActivePods = "", nil }

// podRemoved is why a VMI is not ready whose pod was removed.
var podRemoved = map[vmi.ConditionType]string{vmi.ConditionReady: "PodRemoved"}

func deleted(v *vmi.VirtualMachineInstance) { v.DeletionTimestamp = &metav1.Time{Time: now} }
func bare(v *vmi.VirtualMachineInstance)    { v.Finalizers = nil }
func kept(v *vmi.VirtualMachineInstance)    { v.Finalizers = append(v.Finalizers, "example.com/kept") }
func invalid(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Memory = nil }

// unreadable makes the VMI one that cannot be decoded.
func unreadable(v *vmi.VirtualMachineInstance) {
	v.Spec = vmi.VirtualMachineInstanceSpec{}
	vmi.SetUnreadable(v, &vmi.UnreadableError{Fields: []vmi.UnreadableField{{Path: "spec.domain.cpu.cores", Value: "-1", Message: "must be a whole number from 0 to 4294967295"}}})
}

func condition(t vmi.ConditionType, reason, message string) vmitest.Option {
	return func(v *vmi.VirtualMachineInstance) {
		v.Status.SetCondition(vmi.Condition{Type: t, Status: corev1.ConditionFalse, Reason: reason, Message: message}, metav1.NewTime(now))
		v.Status.Explain()
	}
}

// observe is what is observed of a VMI with these pods, on a node where all is
// well. Nil is no pod.
func observe(v *vmi.VirtualMachineInstance, pods ...*corev1.Pod) instance.Observed {
	pods = slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return p == nil })
	o := instance.Observed{VMI: v, Pods: instance.PodsByRole(v, pods), Config: config, Now: now}
	if o.Node.Name = o.Pods.NodeName(v); o.Node.Name != "" {
		o.Node.Object = nodeIn(corev1.ConditionTrue, time.Hour)
	}
	return o
}

// nodeIn is a node whose condition Ready has had the status for so long.
func nodeIn(s corev1.ConditionStatus, since time.Duration) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: s, LastTransitionTime: metav1.NewTime(now.Add(-since))},
		}},
	}
}

// statusOf is the status that the plan writes.
func statusOf(t *testing.T, p scheduler.Plan) vmi.VirtualMachineInstanceStatus {
	t.Helper()
	for _, a := range p.Actions {
		if w, ok := a.(writeStatus); ok {
			return w.Object.Status
		}
	}
	require.Fail(t, "the plan writes no status", "%v", p)
	return vmi.VirtualMachineInstanceStatus{}
}

type writeStatus = scheduler.WriteStatus[*vmi.VirtualMachineInstance]

// launcher is the pod of the VMI, in order: created, with a node, and so on.
func launcher(change ...func(*corev1.Pod)) *corev1.Pod {
	p, err := pod.Render(vmitest.New(vmitest.WithContainerDisk("root", "example/fedora:40")), config)
	if err != nil {
		panic(err)
	}
	p.UID = podUID
	p.Status.Phase, p.Status.QOSClass = corev1.PodPending, corev1.PodQOSBurstable
	for _, c := range change {
		c(p)
	}
	return p
}

func bound(p *corev1.Pod)      { p.Spec.NodeName = node }
func other(p *corev1.Pod)      { p.UID = "other-uid" }
func strange(p *corev1.Pod)    { p.OwnerReferences = nil }
func unlabelled(p *corev1.Pod) { p.Labels = nil }
func leaving(p *corev1.Pod)    { p.DeletionTimestamp = &metav1.Time{Time: now} }

func unschedulable(p *corev1.Pod) {
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/2 nodes are available: 2 Insufficient memory."}}
}

func waiting(reason, message string) func(*corev1.Pod) {
	return compute(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}})
}

// open is the readiness gate of a guest that is not paused.
var open = corev1.PodCondition{Type: vmi.PodConditionUnpaused, Status: corev1.ConditionTrue}

func running(p *corev1.Pod) {
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}, open}
	compute(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})(p)
}

func exited(code int32, ago time.Duration, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodFailed
		if code == 0 {
			p.Status.Phase = corev1.PodSucceeded
		}
		compute(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: code, Reason: "Error", Message: message, FinishedAt: metav1.NewTime(now.Add(-ago)),
		}})(p)
	}
}

func compute(s corev1.ContainerState) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.NodeName = node
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: vmi.ComputeContainer, State: s}}
	}
}

// summary is a plan in words that fit in a line.
type summary struct {
	Do      []string
	Phase   vmi.Phase
	Reason  string
	Because map[vmi.ConditionType]string
	Recheck time.Duration
}

func summarize(p scheduler.Plan) summary {
	s := summary{Recheck: p.Recheck}
	for _, a := range p.Actions {
		switch a := a.(type) {
		case scheduler.AddFinalizer:
			s.Do = append(s.Do, "add finalizer")
		case scheduler.RemoveFinalizer:
			s.Do = append(s.Do, "remove finalizer")
		case scheduler.CreatePod:
			s.Do = append(s.Do, "create pod")
		case scheduler.DeletePod:
			s.Do = append(s.Do, "delete pod "+string(a.UID))
		case scheduler.SetPodCondition:
			s.Do = append(s.Do, map[corev1.ConditionStatus]string{corev1.ConditionTrue: "open gate", corev1.ConditionFalse: "close gate"}[a.Condition.Status])
		case scheduler.Emit:
			s.Do = append(s.Do, map[bool]string{true: "Warning ", false: "Normal "}[a.Warning]+a.Reason)
		case writeStatus:
			s.Do = append(s.Do, "write")
			s.Phase, s.Reason = a.Object.Status.Phase, a.Object.Status.Reason
			for _, c := range a.Object.Status.Conditions {
				if c.Type == vmi.ConditionLiveMigratable || c.Type == vmi.ConditionStorageLiveMigratable {
					continue // of what the VMI is made of
				}
				if s.Because == nil {
					s.Because = map[vmi.ConditionType]string{}
				}
				s.Because[c.Type] = c.Reason
			}
		}
	}
	return s
}

func TestDecide(t *testing.T) {
	t.Parallel()
	type because = map[vmi.ConditionType]string
	notRunning := because{vmi.ConditionReady: "GuestNotRunning"}
	noPod := because{vmi.ConditionReady: "PodNotExists"}
	tests := []struct {
		name    string
		vmi     *vmi.VirtualMachineInstance
		pod     *corev1.Pod
		refusal *vmi.Finding
		want    summary
	}{
		{"a new VMI gets its pod, which may run before anything is written", stored(""), nil, nil,
			summary{Do: []string{"create pod", "Normal SuccessfulCreate"}, Recheck: 2 * time.Second}},
		{"a VMI without its finalizer gets that first", stored("", bare), nil, nil,
			summary{Do: []string{"add finalizer", "create pod", "Normal SuccessfulCreate"}, Recheck: 2 * time.Second}},
		{"a new VMI waits for its pod in silence", stored(""), launcher(young), nil, summary{Recheck: time.Second}},
		{"a new VMI whose pod runs at once is handed over", stored(""), launcher(young, running, ungranted), nil,
			summary{Do: []string{"write", "open gate"}, Phase: vmi.PhaseScheduled, Because: notRunning}},
		{"a new VMI whose pod does not run soon is Scheduling", stored(""), launcher(old, bound), nil,
			summary{Do: []string{"write"}, Phase: vmi.PhaseScheduling, Because: notRunning}},
		{"what keeps its pod from running is written at once", stored(""), launcher(young, unschedulable), nil,
			summary{Do: []string{"write", "Warning Unschedulable"}, Phase: vmi.PhaseScheduling, Reason: "Unschedulable", Because: because{vmi.ConditionReady: "GuestNotRunning", vmi.ConditionPodScheduled: "Unschedulable"}}},
		{"a VMI that waited gets its pod and is Scheduling", stored(vmi.PhasePending), nil, nil,
			summary{Do: []string{"create pod", "Normal SuccessfulCreate", "write"}, Phase: vmi.PhaseScheduling, Because: notRunning}},
		{"a VMI with an invalid spec waits in Pending with the reason", stored("", invalid), nil, nil,
			summary{Do: []string{"write", "Warning InvalidSpec"}, Phase: vmi.PhasePending, Reason: "InvalidSpec",
				Because: because{vmi.ConditionSynchronized: "InvalidSpec", vmi.ConditionReady: "PodNotExists"}}},
		{"a VMI that cannot be decoded gets no pod", stored("", unreadable, bare), nil, nil,
			summary{Do: []string{"write", "Warning UnreadableSpec"}, Phase: vmi.PhasePending, Reason: "UnreadableSpec",
				Because: because{vmi.ConditionSynchronized: "UnreadableSpec", vmi.ConditionReady: "PodNotExists"}}},
		{"a pod of a VMI that cannot be decoded is not handed over", stored(vmi.PhaseScheduling, unreadable), launcher(running), nil,
			summary{Do: []string{"write", "Warning UnreadableSpec"}, Phase: vmi.PhaseScheduling, Because: because{vmi.ConditionSynchronized: "UnreadableSpec"}}},
		{"a VMI that runs and cannot be decoded is left to its handler", stored(vmi.PhaseRunning, unreadable), launcher(running), nil, summary{}},
		{"its pod is deleted at once when it is deleted", stored(vmi.PhaseRunning, unreadable, deleted), launcher(running), nil,
			summary{Do: []string{"delete pod pod-uid", "Normal SuccessfulDelete"}}},
		{"a VMI that can be decoded again starts", stored(vmi.PhasePending, condition(vmi.ConditionSynchronized, "UnreadableSpec", "x")), nil, nil,
			summary{Do: []string{"create pod", "Normal SuccessfulCreate", "write"}, Phase: vmi.PhaseScheduling, Because: notRunning}},
		{"a refused pod is written again only with another reason",
			stored(vmi.PhasePending, condition(vmi.ConditionSynchronized, "FailedCreate", "quota"), condition(vmi.ConditionReady, "PodNotExists", "the VMI has no pod")), nil,
			&vmi.Finding{Reason: "FailedCreate", Message: "quota"}, summary{}},
		{"a refused pod leaves the VMI in Pending", stored(""), nil, &vmi.Finding{Reason: "FailedCreate", Message: "quota"},
			summary{Do: []string{"write", "Warning FailedCreate"}, Phase: vmi.PhasePending, Reason: "FailedCreate",
				Because: because{vmi.ConditionSynchronized: "FailedCreate", vmi.ConditionReady: "PodNotExists"}}},
		{"a VMI whose pod was refused before tries again", stored(vmi.PhasePending, condition(vmi.ConditionSynchronized, "FailedCreate", "quota")), nil, nil,
			summary{Do: []string{"create pod", "Normal SuccessfulCreate", "write"}, Phase: vmi.PhaseScheduling, Because: notRunning}},
		{"a pod of another owner with the name is waited for", stored(""), launcher(strange), nil,
			summary{Do: []string{"write", "Warning PodNameTaken"}, Phase: vmi.PhasePending, Reason: "PodNameTaken", Recheck: 10 * time.Second,
				Because: because{vmi.ConditionSynchronized: "PodNameTaken", vmi.ConditionReady: "PodNotExists"}}},
		{"a pod with the owner and without a launcher's labels is waited for", stored(""), launcher(func(p *corev1.Pod) { p.Labels = nil }), nil,
			summary{Do: []string{"write", "Warning PodNameTaken"}, Phase: vmi.PhasePending, Reason: "PodNameTaken", Recheck: 10 * time.Second,
				Because: because{vmi.ConditionSynchronized: "PodNameTaken", vmi.ConditionReady: "PodNotExists"}}},
		{"a pod that was created before the phase was written is found again", stored(""), launcher(), nil,
			summary{Do: []string{"write"}, Phase: vmi.PhaseScheduling, Because: notRunning}},
		{"a pod that no node has room for is a condition", stored(vmi.PhaseScheduling), launcher(unschedulable), nil,
			summary{Do: []string{"write", "Warning Unschedulable"}, Phase: vmi.PhaseScheduling, Reason: "Unschedulable",
				Because: because{vmi.ConditionReady: "GuestNotRunning", vmi.ConditionPodScheduled: "Unschedulable"}}},
		{"the condition goes when the pod has a node",
			stored(vmi.PhaseScheduling, condition(vmi.ConditionPodScheduled, "Unschedulable", "x")), launcher(bound), nil,
			summary{Do: []string{"write"}, Phase: vmi.PhaseScheduling, Because: notRunning}},
		{"an image that cannot be pulled is a condition", stored(vmi.PhaseScheduling), launcher(bound, waiting("ErrImagePull", `pull "example/fedora:40": not found`)), nil,
			summary{Do: []string{"write", "Warning ErrImagePull"}, Phase: vmi.PhaseScheduling, Reason: "ErrImagePull",
				Because: because{vmi.ConditionReady: "GuestNotRunning", vmi.ConditionSynchronized: "ErrImagePull"}}},
		{"a container that is being created is no condition", stored("Scheduling", condition(vmi.ConditionReady, "GuestNotRunning", "the pod of the VMI does not run yet"), ranAs), launcher(bound, waiting("ContainerCreating", "")), nil, summary{}},
		{"a pod that runs is handed to its node", stored(vmi.PhaseScheduling), launcher(running), nil,
			summary{Do: []string{"write"}, Phase: vmi.PhaseScheduled, Because: notRunning}},
		{"a pod that runs is handed over even if the phase was never written", stored(""), launcher(running), nil,
			summary{Do: []string{"write"}, Phase: vmi.PhaseScheduled, Because: notRunning}},
		{"a pod that is being deleted is not handed over", stored(vmi.PhaseScheduling, condition(vmi.ConditionReady, "GuestNotRunning", "the pod of the VMI does not run yet"), ranAs), launcher(running, leaving), nil, summary{}},
		{"a pod that vanished before it ran is a failure", stored(vmi.PhaseScheduling), nil, nil,
			summary{Do: []string{"write", "Warning PodGone"}, Phase: vmi.PhaseFailed, Reason: "PodGone", Because: noPod}},
		{"a pod that ended before it was handed over is a failure", stored(vmi.PhaseScheduling), launcher(exited(0, 0, "")), nil,
			summary{Do: []string{"write", "Warning PodFailed"}, Phase: vmi.PhaseFailed, Reason: "PodFailed", Because: notRunning}},
		{"a pod that its node refuses leaves the VMI in Pending", stored(vmi.PhaseScheduling), launcher(refused, old), nil,
			summary{Do: []string{"write", "Warning UnexpectedAdmissionError"}, Phase: vmi.PhasePending, Reason: "UnexpectedAdmissionError", Recheck: 5 * time.Second,
				Because: because{vmi.ConditionSynchronized: "UnexpectedAdmissionError", vmi.ConditionReady: "PodNotExists"}}},
		{"a refused pod stays for some seconds", refusedBefore(), launcher(refused), nil, summary{Recheck: 5 * time.Second}},
		{"a refused pod is deleted after some seconds", refusedBefore(), launcher(refused, old), nil, summary{Do: []string{"delete pod pod-uid"}}},
		{"a refused pod that is being deleted is waited for", refusedBefore(), launcher(refused, old, leaving), nil, summary{}},
		{"a refused pod that is gone is created again", refusedBefore(), nil, nil,
			summary{Do: []string{"create pod", "Normal SuccessfulCreate", "write"}, Phase: vmi.PhaseScheduling, Because: notRunning}},
		{"a VMI that runs is the handler's", stored(vmi.PhaseRunning), launcher(running), nil, summary{}},
		{"a pod that has just ended is the handler's for 5 s", stored(vmi.PhaseRunning), launcher(exited(1, time.Second, "")), nil, summary{Recheck: 4 * time.Second}},
		{"an end that the handler does not report is written", stored(vmi.PhaseRunning), launcher(exited(1, time.Minute, "Crashed: QEMU was killed")), nil,
			summary{Do: []string{"write", "Warning Crashed"}, Phase: vmi.PhaseFailed, Reason: "Crashed", Because: notRunning}},
		{"a launcher that ended without an error is a guest that powered off", stored(vmi.PhaseRunning), launcher(exited(0, time.Minute, "")), nil,
			summary{Do: []string{"write"}, Phase: vmi.PhaseSucceeded, Because: notRunning}},
		{"a pod that was evicted fails with that reason", stored(vmi.PhaseRunning), launcher(bound, func(p *corev1.Pod) {
			p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted", "The node was low on resource: memory."
		}), nil, summary{Do: []string{"write", "Warning Evicted"}, Phase: vmi.PhaseFailed, Reason: "Evicted", Because: notRunning}},
		{"a pod of a node that is lost is NodeUnresponsive", stored(vmi.PhaseRunning), launcher(bound, func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodFailed
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByPodGC"}}
		}), nil, summary{Do: []string{"write", "Warning NodeUnresponsive"}, Phase: vmi.PhaseFailed, Reason: "NodeUnresponsive", Because: notRunning}},
		{"a VMI whose pod vanished is its node's to answer for", stored(vmi.PhaseRunning), nil, nil,
			summary{Do: []string{"write"}, Phase: vmi.PhaseRunning, Reason: "PodRemoved", Because: podRemoved}},
		{"another pod than the active one is stray", stored(vmi.PhaseRunning), launcher(other, running), nil,
			summary{Do: []string{"delete pod other-uid", "write"}, Phase: vmi.PhaseRunning, Reason: "PodRemoved", Because: podRemoved}},
		{"the pod of a VMI that ended stays for its log", stored(vmi.PhaseSucceeded), launcher(exited(0, time.Hour, "")), nil, summary{}},
		{"the launcher of a VMI that ended has 30 s to end", stored(vmi.PhaseFailed), launcher(running), nil, summary{Recheck: 30 * time.Second}},
		{"a launcher that runs on after the end loses its pod", stored(vmi.PhaseFailed, endedBefore(time.Minute)), launcher(running), nil,
			summary{Do: []string{"delete pod pod-uid", "Normal SuccessfulDelete"}}},
		{"a pod that is being deleted after the end is waited for", stored(vmi.PhaseFailed, endedBefore(time.Minute)), launcher(running, leaving), nil, summary{}},
		{"a pod that was created after the end is deleted", stored(vmi.PhaseFailed), launcher(other), nil, summary{Do: []string{"delete pod other-uid"}}},
		{"a VMI that was deleted before it had a pod is released at once", stored("", deleted), nil, nil, summary{Do: []string{"remove finalizer", "Normal Deleted"}}},
		{"a deleted VMI without our finalizer is left alone", stored("", deleted, bare), launcher(), nil, summary{}},
		{"a VMI that was deleted before it ran loses its pod", stored(vmi.PhaseScheduling, deleted), launcher(bound), nil,
			summary{Do: []string{"delete pod pod-uid", "Normal SuccessfulDelete"}}},
		{"a deleted VMI waits for the end of its pod", stored(vmi.PhaseScheduling, deleted), launcher(bound, leaving), nil, summary{}},
		{"a deleted VMI is released when its pod has ended", stored(vmi.PhaseScheduling, deleted), launcher(leaving, exited(0, 0, "")), nil, summary{Do: []string{"remove finalizer", "Normal Deleted"}}},
		{"a VMI that was deleted before it ran and that others keep has failed", stored(vmi.PhaseScheduling, deleted, kept), launcher(leaving, exited(0, 0, "")), nil,
			summary{Do: []string{"write", "Normal Deleted", "remove finalizer"}, Phase: vmi.PhaseFailed, Reason: "Cancelled", Because: notRunning}},
		{"a VMI that was deleted before it had a pod and that others keep has failed", stored("", deleted, kept), nil, nil,
			summary{Do: []string{"write", "Normal Deleted", "remove finalizer"}, Phase: vmi.PhaseFailed, Reason: "Cancelled", Because: noPod}},
		{"a deleted VMI whose pod vanished and that was on no node has failed", stored(vmi.PhaseRunning, deleted, kept, nowhere), nil, nil,
			summary{Do: []string{"write", "Warning PodGone", "remove finalizer"}, Phase: vmi.PhaseFailed, Reason: "PodGone", Because: noPod}},
		{"the end of a deleted VMI that others keep is the handler's to report", stored(vmi.PhaseRunning, deleted, kept), launcher(exited(0, 0, "")), nil, summary{Recheck: 5 * time.Second}},
		{"an orphaned pod is deleted with the VMI that was deleted before it ran", stored(vmi.PhaseScheduling, deleted), launcher(strange, bound), nil,
			summary{Do: []string{"delete pod pod-uid", "Normal SuccessfulDelete"}}},
		{"an orphaned pod of a deleted VMI that runs is the handler's", stored(vmi.PhaseRunning, deleted), launcher(strange, running), nil, summary{Recheck: time.Minute}},
		{"an orphaned pod without labels is the VMI's by the status", stored(vmi.PhaseRunning, deleted), launcher(strange, unlabelled, running), nil, summary{Recheck: time.Minute}},
		{"a pod that only has the name does not keep a deleted VMI", stored(vmi.PhaseScheduling, deleted), launcher(strange, unlabelled, running), nil,
			summary{Do: []string{"remove finalizer", "Normal Deleted"}}},
		{"a deleted VMI that failed is kept while its launcher may run", stored(vmi.PhaseFailed, deleted), launcher(running), nil,
			summary{Do: []string{"delete pod pod-uid", "Normal SuccessfulDelete"}}},
		{"a deleted VMI that failed is released when its pod has ended", stored(vmi.PhaseFailed, deleted), launcher(exited(1, 0, "")), nil, summary{Do: []string{"remove finalizer"}}},
		{"another pod that a deleted VMI controls is deleted before the VMI is released", stored(vmi.PhaseRunning, deleted), launcher(other, running), nil,
			summary{Do: []string{"delete pod other-uid", "write"}, Phase: vmi.PhaseRunning, Reason: "PodRemoved", Because: podRemoved}},
		{"another pod that a deleted VMI that has failed controls is deleted before the VMI is released", stored(vmi.PhaseFailed, deleted), launcher(other, running), nil,
			summary{Do: []string{"delete pod other-uid"}}},
		{"a VMI that runs and lost its finalizer gets it again", stored(vmi.PhaseScheduled, bare, condition(vmi.ConditionReady, "GuestNotRunning", "x")), launcher(running), nil,
			summary{Do: []string{"add finalizer"}}},
		{"a VMI that ended needs no finalizer", stored(vmi.PhaseSucceeded, bare), launcher(exited(0, time.Hour, "")), nil, summary{}},
		{"a deleted VMI that runs is the handler's", stored(vmi.PhaseRunning, deleted), launcher(running), nil, summary{Recheck: time.Minute}},
		{"a deleted VMI whose handler does not answer loses its pod", stored(vmi.PhaseRunning, deleted, long), launcher(running), nil,
			summary{Do: []string{"delete pod pod-uid", "Normal SuccessfulDelete"}}},
		{"a deleted VMI is released when the handler has reported the end", stored(vmi.PhaseSucceeded, deleted), launcher(running), nil, summary{Do: []string{"remove finalizer"}}},
		{"a deleted VMI is kept when its pod was removed before it ended", stored(vmi.PhaseRunning, deleted), nil, nil,
			summary{Do: []string{"write"}, Phase: vmi.PhaseRunning, Reason: "PodRemoved", Because: podRemoved}},
		{"a deleted VMI that has failed is released when its pod is gone", stored(vmi.PhaseFailed, deleted), nil, nil, summary{Do: []string{"remove finalizer"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := observe(tt.vmi, tt.pod)
			o.Refusal = tt.refusal
			require.Equal(t, tt.want, summarize(instance.Decide(o)))
		})
	}
}

// A handler that works reports the end of a deleted VMI before the VMI is gone, and one
// that does not delays nothing.
func TestADeletedVMIWhosePodHasEndedWaitsForAHandlerThatWorks(t *testing.T) {
	t.Parallel()
	works := instance.Node{Name: node, Object: nodeIn(corev1.ConditionTrue, time.Hour), Handler: &corev1.Pod{}}
	down, alone, fenced := works, works, works
	down.HandlerDown, alone.Handler, fenced.Object = now.Add(-time.Second), nil, nil
	reported := summary{Do: []string{"remove finalizer"}}
	released := summary{Do: []string{"remove finalizer", "Normal Deleted"}}
	for name, tt := range map[string]struct {
		node  instance.Node
		phase vmi.Phase
		pod   *corev1.Pod
		want  summary
	}{
		"at its end":                       {works, vmi.PhaseRunning, launcher(exited(0, 0, "")), summary{Recheck: 5 * time.Second}},
		"with an error":                    {works, vmi.PhaseRunning, launcher(exited(1, 2*time.Second, "")), summary{Recheck: 3 * time.Second}},
		"before its guest ran":             {works, vmi.PhaseScheduled, launcher(exited(0, 0, "")), summary{Recheck: 5 * time.Second}},
		"and the handler has reported it":  {works, vmi.PhaseSucceeded, launcher(exited(0, 0, "")), reported},
		"and the handler takes too long":   {works, vmi.PhaseRunning, launcher(exited(0, 5*time.Second, "")), released},
		"by a clock that is ahead":         {works, vmi.PhaseRunning, launcher(exited(0, -time.Hour, "")), released},
		"and the handler is not ready":     {down, vmi.PhaseRunning, launcher(exited(0, 0, "")), released},
		"and there is no handler":          {alone, vmi.PhaseRunning, launcher(exited(0, 0, "")), released},
		"and its node does not exist":      {fenced, vmi.PhaseRunning, launcher(exited(0, 0, "")), released},
		"and is gone, as its node reports": {works, vmi.PhaseRunning, launcher(exited(137, 0, ""), evicted), released},
	} {
		o := observe(stored(tt.phase, deleted), tt.pod)
		o.Node = tt.node
		require.Equal(t, tt.want, summarize(instance.Decide(o)), name)
	}
}

// refused is a pod as the kubelet leaves it when a device is not offered.
func refused(p *corev1.Pod) {
	p.Spec.NodeName = node
	p.CreationTimestamp = metav1.NewTime(now)
	p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "UnexpectedAdmissionError", "no healthy devices present"
}

func young(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(now.Add(-time.Second)) }

func old(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(now.Add(-time.Minute)) }

// refusedBefore is a VMI whose status says that its pod was refused.
func refusedBefore() *vmi.VirtualMachineInstance {
	return stored(vmi.PhasePending, condition(vmi.ConditionSynchronized, "UnexpectedAdmissionError", "no healthy devices present"),
		condition(vmi.ConditionReady, "PodNotExists", "the VMI has no pod"))
}

func ranAs(v *vmi.VirtualMachineInstance) { v.Status.RuntimeUser = vmi.RuntimeUID }
func long(v *vmi.VirtualMachineInstance)  { v.DeletionTimestamp.Time = now.Add(-time.Hour) }

func TestHandOverIsOneWriteOfTheStatus(t *testing.T) {
	t.Parallel()
	v := stored(vmi.PhaseScheduling, labelledWith(""), condition(vmi.ConditionSynchronized, "ErrImagePull", "x"), condition(vmi.ConditionPodScheduled, "Unschedulable", "x"))
	plan := instance.Decide(observe(v, launcher(running)))
	require.Len(t, plan.Actions, 2)
	require.Equal(t, scheduler.SetLabel{Key: vmi.NodeNameLabel, Value: node}, plan.Actions[0])
	s := statusOf(t, plan)
	burstable := corev1.PodQOSBurstable
	require.Equal(t, vmi.VirtualMachineInstanceStatus{
		Phase: vmi.PhaseScheduled, NodeName: node, ActivePods: map[types.UID]string{podUID: node}, RuntimeUser: 107,
		LauncherContainerImageVersion: config.Image, QOSClass: &burstable,
		Memory: &vmi.MemoryStatus{MemoryOverhead: resource.NewQuantity(109<<20, resource.BinarySI)},
		PhaseTransitionTimestamps: []vmi.PhaseTransitionTimestamp{
			{Phase: vmi.PhaseScheduling, PhaseTransitionTimestamp: metav1.NewTime(now)},
			{Phase: vmi.PhaseScheduled, PhaseTransitionTimestamp: metav1.NewTime(now)},
		},
		Conditions: []vmi.Condition{
			{Type: vmi.ConditionReady, Status: corev1.ConditionFalse, Reason: "GuestNotRunning", Message: "the guest does not run yet", LastTransitionTime: metav1.NewTime(now)},
			{Type: vmi.ConditionLiveMigratable, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now)},
			{Type: vmi.ConditionStorageLiveMigratable, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now)},
		},
		MigrationMethod: vmi.BlockMigration,
	}, s)
}

func TestHandOverShowsTheInterfacesThatMultusAttached(t *testing.T) {
	t.Parallel()
	v := stored(vmi.PhaseScheduling, vmitest.WithMasquerade("default"), vmitest.WithMultus("blue", "lan"))
	p := launcher(running, func(p *corev1.Pod) {
		p.Annotations["k8s.v1.cni.cncf.io/network-status"] = `[{"name": "default/lan", "interface": "pod16477688c0e", "mac": "02:00:00:00:00:07"}]`
	})
	plan := instance.Decide(observe(v, p))
	require.Equal(t, []vmi.InterfaceStatus{{Name: "blue", PodInterfaceName: "pod16477688c0e", InfoSource: "multus-status"}}, statusOf(t, plan).Interfaces)
}

func TestTheMessageNamesTheVolumeOfAMissingImage(t *testing.T) {
	t.Parallel()
	v := stored(vmi.PhaseScheduling, vmitest.WithContainerDisk("data", "example/fedora:40-data"), vmitest.WithContainerDisk("more", "example/more"))
	tests := []struct{ name, kubelet, want string }{
		{"one volume", `Back-off pulling image "example/fedora:40"`, `volume root: Back-off pulling image "example/fedora:40"`},
		{"a volume whose image's name is longer", `image example/fedora:40-data: not found`, `volume data: image example/fedora:40-data: not found`},
		{"an image at the end of a sentence", `no such image example/more.`, `volume more: no such image example/more.`},
		{"an image before a colon", `example/more: not found`, `volume more: example/more: not found`},
		{"a longer path is another image", `registry.example/more is missing`, `registry.example/more is missing`},
		{"the launcher itself", `pull example/virt-launcher:v1`, `virt-launcher image: pull example/virt-launcher:v1`},
		{"no image", `something else`, `something else`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			plan := instance.Decide(observe(v, launcher(bound, waiting("ErrImagePull", tt.kubelet))))
			s := statusOf(t, plan)
			require.Equal(t, tt.want, s.Condition(vmi.ConditionSynchronized).Message)
		})
	}
}

func TestAKubeletThatAlternatesItsReasonsIsWrittenTwice(t *testing.T) {
	t.Parallel()
	pull := launcher(bound, waiting("ErrImagePull", "not found"))
	back := launcher(bound, waiting("ImagePullBackOff", "Back-off pulling image: not found"))
	v := stored(vmi.PhaseScheduling)
	writes := 0
	for i := range 10 {
		p := pull
		if i%2 == 1 {
			p = back
		}
		for _, a := range instance.Decide(observe(v, p)).Actions {
			if w, ok := a.(writeStatus); ok {
				v.Status = w.Object.Status
				writes++
			}
		}
	}
	require.Equal(t, 2, writes, "it goes on to the second reason once, and stays there")
	require.Equal(t, "ImagePullBackOff", v.Status.Condition(vmi.ConditionSynchronized).Reason)
}

func TestTerminationMessages(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, message, reason, text string }{
		{"a reason and a message", "Crashed: QEMU was killed", "Crashed", "QEMU was killed"},
		{"a reason without a message", "Crashed:", "Crashed", "container compute ended with exit code 1 (Error)"},
		{"a message for a terminal", "Crashed: \x1b[2JQEMU\x00 was killed", "Crashed", "[2JQEMU  was killed"},
		{"a reason of the next release", "Adjourned: to node n2", "PodFailed", "container compute ended with exit code 1 (Error): Adjourned: to node n2"},
		{"a reason that is the cluster's to give", "Evicted: by the guest", "PodFailed", "container compute ended with exit code 1 (Error): Evicted: by the guest"},
		{"a log", "panic: oh\ngoroutine 1", "PodFailed", "container compute ended with exit code 1 (Error): panic: oh; goroutine 1"},
		{"a log for a terminal", "oh\x1b[2J\u202eoh", "PodFailed", "container compute ended with exit code 1 (Error): oh [2J oh"},
		{"nothing", "", "PodFailed", "container compute ended with exit code 1 (Error)"},
		{"an image for another architecture", "exec /usr/bin/virt-launcher: exec format error", "PodFailed",
			"container compute ended with exit code 1 (Error), since its image is for another architecture than the node's: exec /usr/bin/virt-launcher: exec format error"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			plan := instance.Decide(observe(stored(vmi.PhaseRunning), launcher(exited(1, time.Hour, tt.message))))
			s := statusOf(t, plan)
			require.Equal(t, tt.reason, s.Reason)
			require.Equal(t, tt.text, s.Condition(vmi.ConditionReady).Message)
		})
	}
}

func TestACopyThatFailedIsTheReason(t *testing.T) {
	t.Parallel()
	p := launcher(bound, func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodFailed
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "volumeroot", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: "no disk in /disk"}}}}
	})
	plan := instance.Decide(observe(stored(vmi.PhaseScheduling), p))
	s := statusOf(t, plan)
	require.Equal(t, "container volumeroot ended with exit code 1 (Error): no disk in /disk", s.Condition(vmi.ConditionReady).Message)
}

func TestAnEndHasItsReasonAndNoConditionOfTheGuest(t *testing.T) {
	t.Parallel()
	over := launcher(bound, exited(0, time.Hour, ""))
	plan := instance.Decide(observe(stored(vmi.PhaseScheduling), over))
	s := statusOf(t, plan)
	require.Equal(t, vmi.PhaseFailed, s.Phase)
	require.Equal(t, "the pod of the VMI ended before the guest was started", s.Condition(vmi.ConditionReady).Message)

	v := stored(vmi.PhaseRunning, condition(vmi.ConditionSynchronized, "NetworkFailed", "no netlink"), nowhere)
	v.Status.SetCondition(vmi.Condition{Type: vmi.ConditionPaused, Status: corev1.ConditionTrue, Reason: "Paused"}, metav1.NewTime(now))
	v.Status.SetCondition(vmi.Condition{Type: vmi.ConditionAgentConnected, Status: corev1.ConditionTrue}, metav1.NewTime(now))
	v.Status.SetCondition(vmi.Condition{Type: vmi.ConditionAgentVersionNotSupported, Status: corev1.ConditionTrue}, metav1.NewTime(now))
	v.Status.FSFreezeStatus = "frozen"
	s = statusOf(t, instance.Decide(observe(v)))
	require.Equal(t, vmi.PhaseFailed, s.Phase)
	require.Empty(t, s.FSFreezeStatus, "a guest that has ended is not frozen")
	require.Nil(t, s.Condition(vmi.ConditionPaused), "as the handler does it")
	require.Nil(t, s.Condition(vmi.ConditionAgentConnected))
	require.Nil(t, s.Condition(vmi.ConditionAgentVersionNotSupported))
	require.Nil(t, s.Condition(vmi.ConditionSynchronized))
}

func TestTheFirstStatusOfAVMINamesTheRevisionThatItWasStartedFrom(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		owner, generation, earlier, want string
	}{
		"a VMI of a VM":                      {"VirtualMachine", "7", "", "revision-start-vm-vm-uid-7"},
		"a VMI of a VM with the same spec":   {"VirtualMachine", "7", "5", "revision-start-vm-vm-uid-5"},
		"a VMI of a VM with a wrong note":    {"VirtualMachine", "7", "x", "revision-start-vm-vm-uid-7"},
		"a VMI of a VM, adopted":             {"VirtualMachine", "0", "", ""},
		"a VMI of a VM, adopted with a note": {"VirtualMachine", "0", "5", ""},
		"a VMI of a set":                     {"VirtualMachineInstanceReplicaSet", "7", "", ""},
		"a VMI that nothing owns":            {"", "7", "", ""},
		"a VMI without generation":           {"VirtualMachine", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := stored(vmi.PhasePending)
			v.Annotations = map[string]string{vmi.VMGenerationAnnotation: c.generation, vmi.StartRevisionAnnotation: c.earlier}
			if c.owner != "" {
				v.OwnerReferences = []metav1.OwnerReference{{APIVersion: "kubevirt.io/v1", Kind: c.owner, Name: v.Name, UID: "vm-uid", Controller: new(true)}}
			}
			p := instance.Decide(instance.Observed{VMI: v, Config: pod.Config{Launcher: pod.Launcher{Image: "example/virt-launcher:v1"}}, Now: time.Unix(1_700_000_000, 0)})
			var names []string
			for _, a := range p.Actions {
				if w, ok := a.(scheduler.WriteStatus[*vmi.VirtualMachineInstance]); ok {
					names = append(names, w.Object.Status.VirtualMachineRevisionName)
				}
			}
			require.Equal(t, []string{c.want}, names)
		})
	}
}
