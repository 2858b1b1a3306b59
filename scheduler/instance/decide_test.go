package instance_test

import (
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
	config = pod.Config{Image: "example/virt-launcher:v1"}
)

const (
	node   = "node1"
	podUID = types.UID("pod-uid")
)

// machine is a machine with its finalizer in the phase.
func machine(p vmi.Phase, options ...vmitest.Option) *vmi.VirtualMachineInstance {
	v := vmitest.New(vmitest.WithContainerDisk("root", "example/fedora:40"))
	v.Finalizers = []string{vmi.Finalizer}
	v.CreationTimestamp = metav1.NewTime(now)
	if p != vmi.PhaseUnset {
		v.Status.SetPhase(p, metav1.NewTime(now))
	}
	switch p {
	case vmi.Scheduled, vmi.Running, vmi.Succeeded, vmi.Failed:
		v.Status.NodeName, v.Status.ActivePods = node, map[types.UID]string{podUID: node}
	}
	for _, o := range options {
		o(v)
	}
	return v
}

func deleted(v *vmi.VirtualMachineInstance) { v.DeletionTimestamp = &metav1.Time{Time: now} }
func bare(v *vmi.VirtualMachineInstance)    { v.Finalizers = nil }
func invalid(v *vmi.VirtualMachineInstance) { v.Spec.Domain.Memory = nil }

func condition(t vmi.ConditionType, reason, message string) vmitest.Option {
	return func(v *vmi.VirtualMachineInstance) {
		v.Status.SetCondition(vmi.Condition{Type: t, Status: corev1.ConditionFalse, Reason: reason, Message: message}, metav1.NewTime(now))
	}
}

// launcher is the pod of the machine, in order: made, with a node, and so on.
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

func bound(p *corev1.Pod)   { p.Spec.NodeName = node }
func other(p *corev1.Pod)   { p.UID = "other-uid" }
func strange(p *corev1.Pod) { p.OwnerReferences = nil }
func leaving(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: now} }

func unschedulable(p *corev1.Pod) {
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/2 nodes are available: 2 Insufficient memory."}}
}

func waiting(reason, message string) func(*corev1.Pod) {
	return compute(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}})
}

func running(p *corev1.Pod) {
	p.Status.Phase = corev1.PodRunning
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

// said is what a plan amounts to, in words that fit in a line.
type said struct {
	Do      []string
	Phase   vmi.Phase
	Reason  string
	Because map[vmi.ConditionType]string
	Recheck time.Duration
}

func tell(p scheduler.Plan) said {
	s := said{Recheck: p.Recheck}
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
		case scheduler.Emit:
			s.Do = append(s.Do, a.Type+" "+a.Reason)
		case scheduler.WriteStatus:
			s.Do = append(s.Do, "write")
			s.Phase, s.Reason = a.Status.Phase, a.Status.Reason
			for _, c := range a.Status.Conditions {
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
	tests := []struct {
		name    string
		machine *vmi.VirtualMachineInstance
		pod     *corev1.Pod
		refusal *scheduler.Finding
		want    said
	}{
		{"a new machine gets its pod and is Scheduling in one write", machine(""), nil, nil,
			said{Do: []string{"create pod", "Normal SuccessfulCreate", "write"}, Phase: vmi.Scheduling, Because: notRunning}},
		{"a machine without its finalizer gets that first", machine("", bare), nil, nil,
			said{Do: []string{"add finalizer", "create pod", "Normal SuccessfulCreate", "write"}, Phase: vmi.Scheduling, Because: notRunning}},
		{"a machine that cannot be made waits in Pending and says why", machine("", invalid), nil, nil,
			said{Do: []string{"write", "Warning InvalidSpec"}, Phase: vmi.Pending,
				Because: because{vmi.ConditionSynchronized: "InvalidSpec", vmi.ConditionReady: "PodNotExists"}}},
		{"a refused pod is said once more only with another reason",
			machine(vmi.Pending, condition(vmi.ConditionSynchronized, "FailedCreate", "quota"), condition(vmi.ConditionReady, "PodNotExists", "the machine has no pod")), nil,
			&scheduler.Finding{Reason: "FailedCreate", Message: "quota"}, said{}},
		{"a refused pod leaves the machine in Pending", machine(""), nil, &scheduler.Finding{Reason: "FailedCreate", Message: "quota"},
			said{Do: []string{"write", "Warning FailedCreate"}, Phase: vmi.Pending,
				Because: because{vmi.ConditionSynchronized: "FailedCreate", vmi.ConditionReady: "PodNotExists"}}},
		{"a machine that was refused before tries again", machine(vmi.Pending, condition(vmi.ConditionSynchronized, "FailedCreate", "quota")), nil, nil,
			said{Do: []string{"create pod", "Normal SuccessfulCreate", "write"}, Phase: vmi.Scheduling, Because: notRunning}},
		{"a pod that somebody else made under the name is waited for", machine(""), launcher(strange), nil,
			said{Do: []string{"write", "Warning PodNameTaken"}, Phase: vmi.Pending, Recheck: 10 * time.Second,
				Because: because{vmi.ConditionSynchronized: "PodNameTaken", vmi.ConditionReady: "PodNotExists"}}},
		{"a pod that was made before the phase was written is found again", machine(""), launcher(), nil,
			said{Do: []string{"write"}, Phase: vmi.Scheduling, Because: notRunning}},
		{"a pod that no node has room for says so", machine(vmi.Scheduling), launcher(unschedulable), nil,
			said{Do: []string{"write", "Warning Unschedulable"}, Phase: vmi.Scheduling,
				Because: because{vmi.ConditionReady: "GuestNotRunning", vmi.ConditionPodScheduled: "Unschedulable"}}},
		{"the condition goes when the pod has a node",
			machine(vmi.Scheduling, condition(vmi.ConditionPodScheduled, "Unschedulable", "x")), launcher(bound), nil,
			said{Do: []string{"write"}, Phase: vmi.Scheduling, Because: notRunning}},
		{"an image that cannot be pulled is said", machine(vmi.Scheduling), launcher(bound, waiting("ErrImagePull", `pull "example/fedora:40": not found`)), nil,
			said{Do: []string{"write", "Warning ErrImagePull"}, Phase: vmi.Scheduling,
				Because: because{vmi.ConditionReady: "GuestNotRunning", vmi.ConditionSynchronized: "ErrImagePull"}}},
		{"a container that is being created is nothing to speak of", machine("Scheduling", condition(vmi.ConditionReady, "GuestNotRunning", "the machine's pod does not run yet"), ranAs), launcher(bound, waiting("ContainerCreating", "")), nil, said{}},
		{"a pod that runs is handed to its node", machine(vmi.Scheduling), launcher(running), nil,
			said{Do: []string{"write"}, Phase: vmi.Scheduled, Because: notRunning}},
		{"a pod that runs is handed over even if the phase was never written", machine(""), launcher(running), nil,
			said{Do: []string{"write"}, Phase: vmi.Scheduled, Because: notRunning}},
		{"a pod that is being deleted is not handed over", machine(vmi.Scheduling, condition(vmi.ConditionReady, "GuestNotRunning", "the machine's pod does not run yet"), ranAs), launcher(running, leaving), nil, said{}},
		{"a pod that vanished before it ran has failed the machine", machine(vmi.Scheduling), nil, nil,
			said{Do: []string{"write", "Warning PodGone"}, Phase: vmi.Failed, Reason: "PodGone", Because: notRunning}},
		{"a pod that ended before it was handed over has failed the machine", machine(vmi.Scheduling), launcher(exited(0, 0, "")), nil,
			said{Do: []string{"write", "Warning PodFailed"}, Phase: vmi.Failed, Reason: "PodFailed", Because: notRunning}},
		{"a pod that its node refuses leaves the machine in Pending", machine(vmi.Scheduling), launcher(refused, old), nil,
			said{Do: []string{"write", "Warning UnexpectedAdmissionError"}, Phase: vmi.Pending, Recheck: 5 * time.Second,
				Because: because{vmi.ConditionSynchronized: "UnexpectedAdmissionError", vmi.ConditionReady: "PodNotExists"}}},
		{"a refused pod stays for a moment", refusedBefore(), launcher(refused), nil, said{Recheck: 5 * time.Second}},
		{"a refused pod goes after a moment", refusedBefore(), launcher(refused, old), nil, said{Do: []string{"delete pod pod-uid"}}},
		{"a refused pod that goes is waited for", refusedBefore(), launcher(refused, old, leaving), nil, said{}},
		{"a refused pod that is gone is made again", refusedBefore(), nil, nil,
			said{Do: []string{"create pod", "Normal SuccessfulCreate", "write"}, Phase: vmi.Scheduling, Because: notRunning}},
		{"a machine that runs is the handler's", machine(vmi.Running), launcher(running), nil, said{}},
		{"a pod that has just ended is the handler's for 5 s", machine(vmi.Running), launcher(exited(1, time.Second, "")), nil, said{Recheck: 4 * time.Second}},
		{"a handler that does not report is answered for", machine(vmi.Running), launcher(exited(1, time.Minute, "Crashed: QEMU was killed")), nil,
			said{Do: []string{"write", "Warning Crashed"}, Phase: vmi.Failed, Reason: "Crashed", Because: notRunning}},
		{"a launcher that ended well tells that the guest powered off", machine(vmi.Running), launcher(exited(0, time.Minute, "")), nil,
			said{Do: []string{"write"}, Phase: vmi.Succeeded, Because: notRunning}},
		{"a pod that was evicted says so", machine(vmi.Running), launcher(bound, func(p *corev1.Pod) {
			p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted", "The node was low on resource: memory."
		}), nil, said{Do: []string{"write", "Warning Evicted"}, Phase: vmi.Failed, Reason: "Evicted", Because: notRunning}},
		{"a pod whose node is gone says so", machine(vmi.Running), launcher(bound, func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodFailed
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByPodGC"}}
		}), nil, said{Do: []string{"write", "Warning NodeUnresponsive"}, Phase: vmi.Failed, Reason: "NodeUnresponsive", Because: notRunning}},
		{"a machine whose pod vanished has failed", machine(vmi.Running), nil, nil,
			said{Do: []string{"write", "Warning PodGone"}, Phase: vmi.Failed, Reason: "PodGone", Because: notRunning}},
		{"another pod than the one that ran does not stand for it", machine(vmi.Running), launcher(other, running), nil,
			said{Do: []string{"delete pod other-uid", "write", "Warning PodGone"}, Phase: vmi.Failed, Reason: "PodGone", Because: notRunning}},
		{"the pod of a machine that ended stays for its log", machine(vmi.Succeeded), launcher(exited(0, time.Hour, "")), nil, said{}},
		{"a pod that was made after the end goes", machine(vmi.Failed), launcher(other), nil, said{Do: []string{"delete pod other-uid"}}},
		{"a machine that was deleted before it had a pod goes at once", machine("", deleted), nil, nil, said{Do: []string{"remove finalizer"}}},
		{"a deleted machine without our finalizer is none of our business", machine("", deleted, bare), launcher(), nil, said{}},
		{"a machine that was deleted before it ran loses its pod", machine(vmi.Scheduling, deleted), launcher(bound), nil,
			said{Do: []string{"delete pod pod-uid", "Normal SuccessfulDelete"}}},
		{"a deleted machine waits for its pod to go", machine(vmi.Scheduling, deleted), launcher(bound, leaving), nil, said{}},
		{"a deleted machine goes when its pod has ended", machine(vmi.Scheduling, deleted), launcher(leaving, exited(0, 0, "")), nil, said{Do: []string{"remove finalizer"}}},
		{"a deleted machine that runs is the handler's", machine(vmi.Running, deleted), launcher(running), nil, said{Recheck: time.Minute}},
		{"a deleted machine whose handler does not answer loses its pod", machine(vmi.Running, deleted, long), launcher(running), nil,
			said{Do: []string{"delete pod pod-uid", "Normal SuccessfulDelete"}}},
		{"a deleted machine goes when the handler has reported the end", machine(vmi.Succeeded, deleted), launcher(running), nil, said{Do: []string{"remove finalizer"}}},
		{"a deleted machine goes when its pod is gone, whatever the handler does", machine(vmi.Running, deleted), nil, nil, said{Do: []string{"remove finalizer"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := instance.Observed{VMI: tt.machine, Pod: tt.pod, Config: config, Refusal: tt.refusal, Now: now}
			require.Equal(t, tt.want, tell(instance.Decide(o)))
		})
	}
}

// refused is a pod as the kubelet leaves it when a device is not offered.
func refused(p *corev1.Pod) {
	p.Spec.NodeName = node
	p.CreationTimestamp = metav1.NewTime(now)
	p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "UnexpectedAdmissionError", "no healthy devices present"
}

func old(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(now.Add(-time.Minute)) }

// refusedBefore is a machine that has said that its pod was refused.
func refusedBefore() *vmi.VirtualMachineInstance {
	return machine(vmi.Pending, condition(vmi.ConditionSynchronized, "UnexpectedAdmissionError", "no healthy devices present"),
		condition(vmi.ConditionReady, "PodNotExists", "the machine has no pod"))
}

func ranAs(v *vmi.VirtualMachineInstance) { v.Status.RuntimeUser = vmi.User }
func long(v *vmi.VirtualMachineInstance)  { v.DeletionTimestamp.Time = now.Add(-time.Hour) }

func TestHandOverSaysEverythingAtOnce(t *testing.T) {
	t.Parallel()
	v := machine(vmi.Scheduling, condition(vmi.ConditionSynchronized, "ErrImagePull", "x"), condition(vmi.ConditionPodScheduled, "Unschedulable", "x"))
	plan := instance.Decide(instance.Observed{VMI: v, Pod: launcher(running), Config: config, Now: now})
	require.Len(t, plan.Actions, 1)
	s := plan.Actions[0].(scheduler.WriteStatus).Status
	burstable := corev1.PodQOSBurstable
	require.Equal(t, vmi.VirtualMachineInstanceStatus{
		Phase: vmi.Scheduled, NodeName: node, ActivePods: map[types.UID]string{podUID: node}, RuntimeUser: 107,
		LauncherContainerImageVersion: config.Image, QOSClass: &burstable,
		Memory: &vmi.MemoryStatus{MemoryOverhead: resource.NewQuantity(109<<20, resource.BinarySI)},
		PhaseTransitionTimestamps: []vmi.PhaseTransitionTimestamp{
			{Phase: vmi.Scheduling, PhaseTransitionTimestamp: metav1.NewTime(now)},
			{Phase: vmi.Scheduled, PhaseTransitionTimestamp: metav1.NewTime(now)},
		},
		Conditions: []vmi.Condition{{Type: vmi.ConditionReady, Status: corev1.ConditionFalse, Reason: "GuestNotRunning", Message: "the guest does not run yet", LastTransitionTime: metav1.NewTime(now)}},
	}, s)
}

func TestTheMessageNamesWhoseImageIsMissing(t *testing.T) {
	t.Parallel()
	v := machine(vmi.Scheduling, vmitest.WithContainerDisk("data", "example/fedora:40-data"), vmitest.WithContainerDisk("more", "example/more"))
	tests := []struct{ name, kubelet, want string }{
		{"one volume", `Back-off pulling image "example/fedora:40"`, `volume root: Back-off pulling image "example/fedora:40"`},
		{"a volume whose image's name is longer", `image example/fedora:40-data: not found`, `volume data: image example/fedora:40-data: not found`},
		{"an image at the end of a sentence", `no such image example/more.`, `volume more: no such image example/more.`},
		{"an image before a colon", `example/more: not found`, `volume more: example/more: not found`},
		{"a longer path is another image", `registry.example/more is missing`, `registry.example/more is missing`},
		{"the launcher itself", `pull example/virt-launcher:v1`, `virt-launcher image: pull example/virt-launcher:v1`},
		{"nobody's", `something else`, `something else`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			plan := instance.Decide(instance.Observed{VMI: v, Pod: launcher(bound, waiting("ErrImagePull", tt.kubelet)), Config: config, Now: now})
			s := plan.Actions[0].(scheduler.WriteStatus).Status
			require.Equal(t, tt.want, s.Condition(vmi.ConditionSynchronized).Message)
		})
	}
}

func TestTheKubeletsToAndFroIsOneChange(t *testing.T) {
	t.Parallel()
	pull := launcher(bound, waiting("ErrImagePull", "not found"))
	back := launcher(bound, waiting("ImagePullBackOff", "Back-off pulling image: not found"))
	v := machine(vmi.Scheduling)
	writes := 0
	for i := range 10 {
		p := pull
		if i%2 == 1 {
			p = back
		}
		for _, a := range instance.Decide(instance.Observed{VMI: v, Pod: p, Config: config, Now: now}).Actions {
			if w, ok := a.(scheduler.WriteStatus); ok {
				v.Status = w.Status
				writes++
			}
		}
	}
	require.Equal(t, 2, writes)
	require.Equal(t, "ImagePullBackOff", v.Status.Condition(vmi.ConditionSynchronized).Reason)
}

func TestLastWords(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, message, reason, text string }{
		{"a reason and a message", "Crashed: QEMU was killed", "Crashed", "QEMU was killed"},
		{"a log", "panic: oh\ngoroutine 1", "PodFailed", "container compute ended with exit code 1 (Error): panic: oh\ngoroutine 1"},
		{"nothing", "", "PodFailed", "container compute ended with exit code 1 (Error)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			plan := instance.Decide(instance.Observed{VMI: machine(vmi.Running), Pod: launcher(exited(1, time.Hour, tt.message)), Config: config, Now: now})
			s := plan.Actions[0].(scheduler.WriteStatus).Status
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
	plan := instance.Decide(instance.Observed{VMI: machine(vmi.Scheduling), Pod: p, Config: config, Now: now})
	s := plan.Actions[0].(scheduler.WriteStatus).Status
	require.Equal(t, "container volumeroot ended with exit code 1 (Error): no disk in /disk", s.Condition(vmi.ConditionReady).Message)
}

func TestAnEndSaysWhyAndNothingThatIsOver(t *testing.T) {
	t.Parallel()
	over := launcher(bound, exited(0, time.Hour, ""))
	plan := instance.Decide(instance.Observed{VMI: machine(vmi.Scheduling), Pod: over, Config: config, Now: now})
	s := plan.Actions[0].(scheduler.WriteStatus).Status
	require.Equal(t, vmi.Failed, s.Phase)
	require.Equal(t, "the machine's pod ended before the machine was started", s.Condition(vmi.ConditionReady).Message)

	v := machine(vmi.Running, condition(vmi.ConditionSynchronized, "NetworkFailed", "no netlink"))
	v.Status.SetCondition(vmi.Condition{Type: vmi.ConditionPaused, Status: corev1.ConditionTrue, Reason: "Paused"}, metav1.NewTime(now))
	v.Status.SetCondition(vmi.Condition{Type: vmi.ConditionAgentConnected, Status: corev1.ConditionTrue}, metav1.NewTime(now))
	v.Status.SetCondition(vmi.Condition{Type: vmi.ConditionAgentVersionNotSupported, Status: corev1.ConditionTrue}, metav1.NewTime(now))
	s = instance.Decide(instance.Observed{VMI: v, Config: config, Now: now}).Actions[0].(scheduler.WriteStatus).Status
	require.Equal(t, vmi.Failed, s.Phase)
	require.Nil(t, s.Condition(vmi.ConditionPaused), "as the handler does it")
	require.Nil(t, s.Condition(vmi.ConditionAgentConnected))
	require.Nil(t, s.Condition(vmi.ConditionAgentVersionNotSupported))
	require.Nil(t, s.Condition(vmi.ConditionSynchronized))
}
