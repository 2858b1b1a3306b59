package instance_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func evicted(p *corev1.Pod) {
	p.Status.Reason, p.Status.Message = "Evicted", "The node was low on resource: memory. "
}

// lostContainer is a pod as containerd finds it when its node was restarted.
func lostContainer(p *corev1.Pod) {
	t := p.Status.ContainerStatuses[0].State.Terminated
	t.Reason, t.FinishedAt = "Unknown", metav1.Time{}
}

func oom(p *corev1.Pod) { p.Status.ContainerStatuses[0].State.Terminated.Reason = "OOMKilled" }

func disrupted(reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason, Message: message})
	}
}

func drained(p *corev1.Pod) { disrupted("EvictionByEvictionAPI", "Eviction API: evicting")(p) }

func rejectedNow(p *corev1.Pod) {
	p.Spec.NodeName = node
	p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "UnexpectedAdmissionError", "Pod was rejected: no healthy devices present"
}

func unknownStatus(p *corev1.Pod) {
	p.Status.ContainerStatuses[0].State.Terminated.Reason = "ContainerStatusUnknown"
}

func TestAnEndByKubernetesIsNamedForWhatItIs(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name            string
		pod             *corev1.Pod
		reason, message string
	}{
		{"an eviction by the kubelet", launcher(exited(137, 0, ""), evicted), "Evicted", "node node1 evicted the pod of the VMI: The node was low on resource: memory."},
		{"a guest that was evicted and did not power off", launcher(exited(1, time.Minute, "GracePeriodExceeded: the guest had not powered off"), drained), "Evicted",
			"the pod of the VMI is evicted from node node1 (Eviction API: evicting); the guest had not powered off"},
		{"a guest that made room and did not power off", launcher(exited(1, time.Minute, "GracePeriodExceeded: the guest had not powered off"),
			disrupted("PreemptionByScheduler", "default-scheduler: preempting")), "Preempted",
			"the pod of the VMI makes room for another one on node node1 (default-scheduler: preempting); the guest had not powered off"},
		{"a guest that crashed while it was evicted", launcher(exited(1, time.Minute, "Crashed: QEMU was killed"), drained), "Crashed", "QEMU was killed"},
		{"a node that shuts down", launcher(exited(137, 0, ""), func(p *corev1.Pod) {
			p.Status.Reason, p.Status.Message = "Terminated", "Pod was terminated in response to imminent node shutdown."
		}), "Terminated", "Pod was terminated in response to imminent node shutdown."},
		{"a node that was restarted", launcher(exited(255, 0, "{log}"), lostContainer), "NodeRestarted",
			"node node1 was restarted, or what runs its containers, which ended the guest"},
		{"a node that was restarted and refuses the pod", launcher(exited(255, 0, "{log}"), lostContainer, rejectedNow), "NodeRestarted",
			"node node1 was restarted, or what runs its containers, which ended the guest"},
		{"a node that was restarted and knows no container", launcher(rejectedNow), "NodeRestarted",
			"node node1 was restarted, which ended the guest, and does not start its pod again: Pod was rejected: no healthy devices present"},
		{"a node that was restarted without its containers", launcher(exited(137, 0, ""), unknownStatus), "NodeRestarted",
			"node node1 was restarted, or what runs its containers, which ended the guest"},
		{"a pod that used too much memory", launcher(exited(137, 0, ""), oom), "OOMKilled",
			"the kernel of node node1 killed the pod of the VMI, which used more memory than its limit or than the node has: give the VMI more memory, or run less on the node"},
		{"an exit code alone is no restart", launcher(exited(255, time.Minute, "")), "PodFailed", "container compute ended with exit code 255 (Error)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			plan := instance.Decide(observe(stored(vmi.PhaseRunning, ready), tt.pod))
			s := statusOf(t, plan)
			require.Equal(t, vmi.PhaseFailed, s.Phase)
			require.Equal(t, tt.reason, s.Reason)
			require.Equal(t, tt.message, s.Condition(vmi.ConditionReady).Message)
			require.Equal(t, []string{"write", "Warning " + tt.reason}, summarize(plan).Do)
		})
	}
}

func failedFor(reason, message string) *vmi.VirtualMachineInstance {
	return endedFor(vmi.PhaseFailed, reason, message)
}

func endedFor(p vmi.Phase, reason, message string) *vmi.VirtualMachineInstance {
	v := stored(p, condition(vmi.ConditionReady, "GuestNotRunning", message))
	v.Status.Reason = reason
	return v
}

func TestWhatTheHandlerCouldNotKnowOfAnEndIsCorrectedOnce(t *testing.T) {
	t.Parallel()
	const exceeded = "the guest had not powered off when its grace period was over"
	tests := []struct {
		name   string
		vmi    *vmi.VirtualMachineInstance
		pod    *corev1.Pod
		reason string // empty: nothing is written
	}{
		{"an eviction by the kubelet", failedFor("GracePeriodExceeded", exceeded), launcher(exited(137, 0, ""), evicted), "Evicted"},
		{"an eviction by a drain, while the pod is there", failedFor("GracePeriodExceeded", exceeded), launcher(running, leaving, drained), "Evicted"},
		{"a guest that was killed for memory", failedFor("Crashed", "QEMU was killed"), launcher(exited(137, 0, ""), oom), "OOMKilled"},
		{"a guest that crashed", failedFor("Crashed", "QEMU was killed"), launcher(exited(1, 0, "Crashed: QEMU was killed")), ""},
		{"a guest that crashed and is evicted then", failedFor("Crashed", "QEMU was killed"), launcher(running, leaving, drained), ""},
		{"a grace period without an eviction", failedFor("GracePeriodExceeded", exceeded), launcher(exited(1, 0, "")), ""},
		{"a drain that the handler did not know of", endedFor(vmi.PhaseSucceeded, "Shutdown", "the guest powered off"), launcher(exited(0, 0, ""), drained), "Evicted"},
		{"a drain of which nothing but the end of the pod was known", failedFor("Evicted", vmi.UnknownDisruption+"; "+exceeded), launcher(running, leaving, drained), "Evicted"},
		{"a preemption of which nothing but the end of the pod was known", endedFor(vmi.PhaseSucceeded, "Evicted", vmi.UnknownDisruption+"; off"),
			launcher(exited(0, 0, ""), disrupted("PreemptionByScheduler", "x")), "Preempted"},
		{"a liveness probe that failed, of which nothing but the end of the pod was known", livenessProbed(), launcher(exited(0, 0, "")), "LivenessProbeFailed"},
		{"the same, while the pod still runs", livenessProbed(), launcher(running), ""},
		{"the same, of a pod whose launcher ran on and was deleted", livenessProbed(endedBefore(30 * time.Second)), launcher(exited(0, 0, ""), leaving), "LivenessProbeFailed"},
		{"the same, when the deletion may have been first", livenessProbed(endedBefore(5 * time.Second)), launcher(exited(0, 0, ""), leaving), ""},
		{"a pod with a liveness probe that was deleted", livenessProbed(), launcher(exited(0, 0, ""), leaving), "PodDeleted"},
		{"a pod without a liveness probe", endedFor(vmi.PhaseSucceeded, "Evicted", vmi.UnknownDisruption+"; off"), launcher(exited(0, 0, "")), ""},
		{"a guest that powered off before its pod was evicted", stored(vmi.PhaseSucceeded), launcher(exited(0, 0, ""), evicted), ""},
		{"another pod than the VMI's", failedFor("Crashed", "x"), launcher(exited(137, 0, ""), evicted, other), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := observe(tt.vmi, tt.pod)
			plan := instance.Decide(o)
			if tt.reason == "" {
				require.Zero(t, count[writeStatus](plan))
				return
			}
			require.Equal(t, []string{"write", "Warning " + tt.reason}, summarize(plan).Do)
			s := statusOf(t, plan)
			require.Equal(t, tt.vmi.Status.Phase, s.Phase)
			require.Equal(t, tt.reason, s.Reason)
			require.NotContains(t, s.Condition(vmi.ConditionReady).Message, vmi.UnknownDisruption)
			apply(&o, plan)
			require.Zero(t, count[writeStatus](instance.Decide(o)))
		})
	}
	gone := launcher(running)
	gone.DeletionTimestamp = &metav1.Time{}
	o := observe(failedFor("Evicted", vmi.UnknownDisruption+"; "+exceeded))
	o.Pods.Removed = gone
	plan := instance.Decide(o)
	require.Equal(t, []string{"write", "Warning PodDeleted"}, summarize(plan).Do, "a pod that was removed by force while its launcher ran")
	corrected := statusOf(t, plan)
	require.Equal(t, "the pod of the VMI was deleted; "+exceeded, corrected.Condition(vmi.ConditionReady).Message)
	apply(&o, plan)
	require.Zero(t, count[writeStatus](instance.Decide(o)))
	o = observe(stored(vmi.PhaseSucceeded))
	o.Pods.Removed = gone
	require.Zero(t, count[writeStatus](instance.Decide(o)), "a guest that powered itself off before")

	late := failedFor("StartFailed", "no disk")
	endedBefore(time.Minute)(late)
	require.Zero(t, count[writeStatus](instance.Decide(observe(late, launcher(exited(137, 0, ""), evicted)))), "the VMI had ended long before")
}

// livenessProbed is a VMI that was ended from outside, and has a liveness probe.
func livenessProbed(options ...vmitest.Option) *vmi.VirtualMachineInstance {
	v := endedFor(vmi.PhaseSucceeded, "Evicted", vmi.UnknownDisruption+"; off")
	v.Spec.LivenessProbe = &vmi.Probe{}
	for _, option := range options {
		option(v)
	}
	return v
}

func atTime(d time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions[len(p.Status.Conditions)-1].LastTransitionTime = metav1.Time{Time: now.Add(d)}
	}
}

// removed is a pod that a user deletes at that time.
func removed(d time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: now.Add(d + 30*time.Second)}, new(int64(30))
	}
}

func TestAGuestThatItsPodsEndPoweredOffDidNotPowerItselfOff(t *testing.T) {
	t.Parallel()
	off := exited(0, time.Minute, "Shutdown: the guest powered off") // a minute ago
	tests := []struct {
		name            string
		vmi             *vmi.VirtualMachineInstance
		pod             *corev1.Pod
		phase           vmi.Phase
		reason, message string
	}{
		{"a drain", stored(vmi.PhaseRunning, ready), launcher(off, drained, atTime(-2*time.Minute)), vmi.PhaseSucceeded, "Evicted",
			"the pod of the VMI is evicted from node node1 (Eviction API: evicting); the guest powered off"},
		{"a preemption", stored(vmi.PhaseRunning, ready), launcher(off, disrupted("PreemptionByScheduler", "default-scheduler: preempting")), vmi.PhaseSucceeded, "Preempted",
			"the pod of the VMI makes room for another one on node node1 (default-scheduler: preempting); the guest powered off"},
		{"a pod that was deleted", stored(vmi.PhaseRunning, ready), launcher(off, removed(-2*time.Minute)), vmi.PhaseSucceeded, "PodDeleted", "the pod of the VMI was deleted; the guest powered off"},
		{"a pod that was deleted and whose guest did not power off", stored(vmi.PhaseRunning, ready),
			launcher(exited(1, time.Minute, "GracePeriodExceeded: the guest had not powered off"), removed(-2*time.Minute)), vmi.PhaseFailed, "PodDeleted", "the pod of the VMI was deleted; the guest had not powered off"},
		{"a drain after the guest powered itself off", stored(vmi.PhaseRunning, ready), launcher(off, drained, atTime(0)), vmi.PhaseSucceeded, "", "the guest powered off"},
		{"a pod that was deleted after its guest powered itself off", stored(vmi.PhaseRunning, ready), launcher(off, removed(0)), vmi.PhaseSucceeded, "", "the guest powered off"},
		{"a guest that powered itself off", stored(vmi.PhaseRunning, ready), launcher(off), vmi.PhaseSucceeded, "", "the guest powered off"},
		{"a drain of a VMI that its user deletes", stored(vmi.PhaseRunning, ready, deleted, kept), launcher(off, drained), vmi.PhaseSucceeded, "", "the guest powered off"},
		{"a pod that is gone, of a VMI that knew of the drain", stored(vmi.PhaseRunning, ready, knows("Evicted", "the pod of the VMI is evicted from node node1"), nowhere), nil, vmi.PhaseFailed, "Evicted",
			"the pod of the VMI is evicted from node node1; how the guest ended is not known"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			plan := instance.Decide(observe(tt.vmi, tt.pod))
			s := statusOf(t, plan)
			require.Equal(t, tt.phase, s.Phase)
			require.Equal(t, tt.reason, s.Reason)
			require.Equal(t, tt.message, s.Condition(vmi.ConditionReady).Message)
			require.Equal(t, tt.reason != "", s.Disrupted())
			if tt.reason != "" {
				require.Contains(t, summarize(plan).Do, "Warning "+tt.reason)
			}
		})
	}
}

// knows is a VMI of whose disruption virt-controller has written.
func knows(reason, message string) func(*vmi.VirtualMachineInstance) {
	return func(v *vmi.VirtualMachineInstance) {
		v.Status.SetCondition(vmi.Condition{Type: vmi.ConditionDisruptionTarget, Status: corev1.ConditionTrue, Reason: reason, Message: message}, metav1.Time{Time: now})
	}
}

func TestADisruptionIsWrittenWhileTheGuestRuns(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		pod             *corev1.Pod
		reason, message string
	}{
		"an eviction":  {launcher(running, leaving, drained), "Evicted", "the pod of the VMI is evicted from node node1 (Eviction API: evicting)"},
		"a preemption": {launcher(running, disrupted("PreemptionByScheduler", "x")), "Preempted", "the pod of the VMI makes room for another one on node node1 (x)"},
		"a deletion":   {launcher(running, leaving), "PodDeleted", "the pod of the VMI was deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := observe(stored(vmi.PhaseRunning, ready), tt.pod)
			plan := instance.Decide(o)
			s := statusOf(t, plan)
			f, ok := s.Disruption()
			require.True(t, ok)
			require.Equal(t, vmi.Finding{Reason: tt.reason, Message: tt.message}, f)
			require.False(t, s.Disrupted(), "it runs")
			apply(&o, plan)
			require.Zero(t, count[writeStatus](instance.Decide(o)))
		})
	}
}

func TestAPodThatIsEvictedSaysSo(t *testing.T) {
	t.Parallel()
	s := statusOf(t, instance.Decide(observe(stored(vmi.PhaseRunning, ready), launcher(running, leaving, drained))))
	require.Equal(t, "PodTerminating", s.Reason)
	require.Equal(t, "the pod of the VMI is evicted from node node1 (Eviction API: evicting)", s.Condition(vmi.ConditionReady).Message)
}

func TestADeviceThatIsMissingIsSaidWithTheHandlerThatOffersIt(t *testing.T) {
	t.Parallel()
	o := observe(stored(vmi.PhaseScheduling), launcher(rejectedNow, old))
	o.Node.HandlerDown = now
	s := statusOf(t, instance.Decide(o))
	require.Equal(t, vmi.PhasePending, s.Phase)
	require.Equal(t, "virt-handler, which offers the devices of VMIs, is not ready on node node1: Pod was rejected: no healthy devices present",
		s.Condition(vmi.ConditionReady).Message)
}

func TestAPodWhoseContainerARestartedKubeletDoesNotFindIsMadeAgainBeforeItsGuestRuns(t *testing.T) {
	t.Parallel()
	pod := launcher(exited(137, 0, "The container could not be located when the pod was terminated"), unknownStatus, rejectedNow, old)
	require.Equal(t, vmi.PhasePending, statusOf(t, instance.Decide(observe(stored(vmi.PhaseScheduling), pod))).Phase)
	require.Equal(t, vmi.PhaseFailed, statusOf(t, instance.Decide(observe(stored(vmi.PhaseRunning, ready), pod))).Phase, "its guest ran")
}
