package instance_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// notReady is a pod with a container beside compute that is not ready.
func notReady(p *corev1.Pod) {
	p.Status.ContainerStatuses[0].Ready = true
	p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: "proxy"})
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady", Message: "containers with unready status: [proxy]"}, open}
}

// unanswered is a pod whose container compute runs and is not ready: its probe fails.
func unanswered(p *corev1.Pod) {
	p.Status.ContainerStatuses[0].Ready = false
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady", Message: "containers with unready status: [compute]"}, open}
}

// probed is a VMI with a readiness probe.
func probed(v *vmi.VirtualMachineInstance) {
	v.Spec.ReadinessProbe = &vmi.Probe{ProbeHandler: vmi.ProbeHandler{GuestAgentPing: &vmi.GuestAgentPing{}}}
}

// ungranted is a pod that is not ready because its gate has no condition yet.
func ungranted(p *corev1.Pod) {
	p.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.ContainersReady, Status: corev1.ConditionTrue},
		{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ReadinessGatesNotReady", Message: `corresponding condition of pod readiness gate "kubevirt.io/virtual-machine-unpaused" does not exist.`},
	}
}

// shutGate is the same, as the gate of a paused guest is.
func shutGate(p *corev1.Pod) {
	ungranted(p)
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: vmi.PodConditionUnpaused, Status: corev1.ConditionFalse})
}

func othersGate(p *corev1.Pod) {
	p.Spec.ReadinessGates = append(p.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: "example.com/mesh"})
}

func alsoUnanswered(p *corev1.Pod) { p.Status.ContainerStatuses[0].Ready = false }

func noConditions(p *corev1.Pod) { p.Status.Conditions = []corev1.PodCondition{open} }

// ready is a VMI with the condition Ready as virt-handler writes it.
func ready(v *vmi.VirtualMachineInstance) {
	v.Status.SetCondition(vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionTrue}, metav1.NewTime(now))
}

func paused(v *vmi.VirtualMachineInstance) {
	v.Status.SetCondition(vmi.Condition{Type: vmi.ConditionPaused, Status: corev1.ConditionTrue, Reason: vmi.ReasonPausedIOError, Message: "volume root is full"}, metav1.NewTime(now))
	v.Status.SetCondition(vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionFalse, Reason: vmi.ReasonGuestNotRunning, Message: "volume root is full"}, metav1.NewTime(now))
	v.Status.Explain()
}

func because(reason string) vmitest.Option { return condition(vmi.ConditionReady, reason, "x") }

func TestReadyIsThePodsReadinessAndTheGuests(t *testing.T) {
	t.Parallel()
	const (
		none   = ""
		isTrue = "True"
	)
	handlerDown := func(ago time.Duration) func(*instance.Node) {
		return func(n *instance.Node) { n.HandlerDown = now.Add(-ago) }
	}
	handlerStarted := func(ago time.Duration) func(*instance.Node) {
		return func(n *instance.Node) {
			n.HandlerDown, n.Handler = now.Add(-time.Hour), &corev1.Pod{}
			n.Handler.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now.Add(-ago))}}}}
		}
	}
	is := func(s corev1.ConditionStatus, since time.Duration) func(*instance.Node) {
		return func(n *instance.Node) { n.Object = nodeIn(s, since) }
	}
	back := func(n *instance.Node) {
		n.Object, n.HandlerDown = nodeIn(corev1.ConditionTrue, 5*time.Second), now.Add(-time.Hour)
	}
	tests := []struct {
		name    string
		vmi     *vmi.VirtualMachineInstance
		pod     *corev1.Pod
		node    func(*instance.Node)
		ready   string // what is written: none, True, or the reason of False
		event   string
		recheck time.Duration
	}{
		{"a VMI that is ready costs nothing", stored(vmi.PhaseRunning, ready), launcher(running), nil, none, none, 0},
		{"a launcher that does not answer is virt-handler's reason", stored(vmi.PhaseRunning, because("LauncherUnresponsive")), launcher(running), nil, none, none, 0},
		{"a launcher whose socket is unsafe is virt-handler's reason", stored(vmi.PhaseRunning, because("LauncherUnsafe")), launcher(running), nil, none, none, 0},
		{"a guest that does not run yet costs nothing", stored(vmi.PhaseScheduled, because("GuestNotRunning")), launcher(running), nil, none, none, 0},
		{"a pod that is not ready gives its reason", stored(vmi.PhaseRunning, ready), launcher(running, notReady), nil, "ContainersNotReady", none, 0},
		{"a readiness probe that fails is a reason", stored(vmi.PhaseRunning, ready, probed), launcher(running, unanswered), nil, "ContainersNotReady", none, 0},
		{"a readiness probe that succeeds is taken back", stored(vmi.PhaseRunning, probed, because("ContainersNotReady")), launcher(running), nil, isTrue, none, 0},
		{"a readiness probe of a paused guest is none", stored(vmi.PhaseRunning, paused, probed), launcher(running, unanswered), nil, none, none, 0},
		{"a container beside a paused guest is a reason", stored(vmi.PhaseRunning, paused, probed), launcher(running, notReady, alsoUnanswered), nil, "ContainersNotReady", none, 0},
		{"the readiness gate of a paused guest is none", stored(vmi.PhaseRunning, paused), launcher(running, shutGate), nil, none, none, 0},
		{"a gate of others is a reason", stored(vmi.PhaseRunning, ready), launcher(running, shutGate, othersGate), nil, "ReadinessGatesNotReady", none, 0},
		{"a pod without the condition is a reason", stored(vmi.PhaseRunning, ready), launcher(running, noConditions), nil, "PodConditionMissing", none, 0},
		{"a pod that is being deleted is a reason", stored(vmi.PhaseRunning, ready), launcher(running, leaving), nil, "PodTerminating", none, 0},
		{"a pod that is ready again is taken back", stored(vmi.PhaseRunning, because("ContainersNotReady")), launcher(running), nil, isTrue, none, 0},
		{"what has no reason is taken back, since virt-handler keeps it", stored(vmi.PhaseRunning, because("")), launcher(running), nil, isTrue, none, 0},
		{"a pod that is ready again leaves a guest that is paused", stored(vmi.PhaseRunning, paused, because("ContainersNotReady")), launcher(running), nil, "GuestNotRunning", none, 0},
		{"a pod that is ready again leaves a guest that does not run", stored(vmi.PhaseScheduled, because("ContainersNotReady")), launcher(running), nil, "GuestNotRunning", none, 0},
		{"a paused guest is the handler's", stored(vmi.PhaseRunning, paused), launcher(running), nil, none, none, 0},
		{"a node that does not report is a reason at once", stored(vmi.PhaseRunning, ready), launcher(running), is(corev1.ConditionUnknown, 0), "NodeNotReady", "NodeNotReady", 0},
		{"a VMI that waits in Scheduled on such a node has the reason", stored(vmi.PhaseScheduled, because("GuestNotRunning")), launcher(running), is(corev1.ConditionUnknown, 0), "NodeNotReady", "NodeNotReady", 0},
		{"a node that reports itself as not ready has some seconds", stored(vmi.PhaseRunning, ready), launcher(running, notReady), is(corev1.ConditionFalse, 5*time.Second), none, none, 10 * time.Second},
		{"a node that stays so is a reason", stored(vmi.PhaseRunning, ready), launcher(running, notReady), is(corev1.ConditionFalse, time.Minute), "NodeNotReady", "NodeNotReady", 0},
		{"what follows from it is not written too", stored(vmi.PhaseRunning, because("NodeNotReady")), launcher(running, notReady), is(corev1.ConditionUnknown, time.Hour), none, none, 0},
		{"a handler that restarts has some seconds", stored(vmi.PhaseRunning, ready), launcher(running), handlerDown(15 * time.Second), none, none, 25 * time.Second},
		{"a handler that stays away is a reason", stored(vmi.PhaseRunning, ready), launcher(running), handlerDown(40 * time.Second), "HandlerNotReady", "HandlerNotReady", 0},
		{"a handler that waited for its image has its time from its start", stored(vmi.PhaseRunning, ready), launcher(running), handlerStarted(5 * time.Second), none, none, 35 * time.Second},
		{"a handler that started and does not become ready is a reason", stored(vmi.PhaseRunning, ready), launcher(running), handlerStarted(40 * time.Second), "HandlerNotReady", "HandlerNotReady", 0},
		{"a handler whose clock is ahead has no more time", stored(vmi.PhaseRunning, ready), launcher(running), handlerStarted(-time.Hour), "HandlerNotReady", "HandlerNotReady", 0},
		{"a controller that restarts keeps the reason", stored(vmi.PhaseRunning, because("HandlerNotReady")), launcher(running), handlerDown(0), none, none, 0},
		{"a handler that is back is taken back", stored(vmi.PhaseRunning, because("HandlerNotReady")), launcher(running), nil, isTrue, none, 0},
		{"a node that is back gives its handler time", stored(vmi.PhaseRunning, because("NodeNotReady")), launcher(running), back, isTrue, none, 10 * time.Second},
		{"a node that is back gives its pods time", stored(vmi.PhaseRunning, because("NodeNotReady")), launcher(running, notReady), back, none, none, 10 * time.Second},
		{"a clock that is behind does not make it longer", stored(vmi.PhaseRunning, ready), launcher(running), handlerDown(-time.Hour), none, none, 40 * time.Second},
		{"a deleted VMI has the reason of its node", stored(vmi.PhaseRunning, ready, deleted), launcher(running), is(corev1.ConditionUnknown, 0), "NodeNotReady", "NodeNotReady", time.Minute},
		{"a deleted VMI whose pod cannot end has it too", stored(vmi.PhaseRunning, ready, deleted), launcher(running, leaving), is(corev1.ConditionUnknown, 0), "NodeNotReady", "NodeNotReady", 0},
		{"a deleted VMI has no reason of its pod", stored(vmi.PhaseRunning, ready, deleted), launcher(running, leaving), nil, none, none, 0},
		{"a pod that waits on such a node has the reason", stored(vmi.PhaseScheduling, because("GuestNotRunning"), ranAs), launcher(bound), is(corev1.ConditionUnknown, 0), "NodeNotReady", "NodeNotReady", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := observe(tt.vmi, tt.pod)
			if tt.node != nil {
				tt.node(&o.Node)
			}
			plan := instance.Decide(o)
			got := summarize(plan)
			require.Equal(t, tt.recheck, got.Recheck)
			var do []string
			if tt.ready != none {
				do = append(do, "write")
				s := statusOf(t, plan)
				c := s.Condition(vmi.ConditionReady)
				require.Equal(t, tt.ready == isTrue, c.Status == corev1.ConditionTrue)
				if tt.ready != isTrue {
					require.Equal(t, tt.ready, c.Reason)
					require.NotEmpty(t, c.Message)
				}
			}
			if tt.event != none {
				do = append(do, "Warning "+tt.event)
			}
			var done []string
			for _, a := range got.Do {
				if !strings.HasSuffix(a, " gate") {
					done = append(done, a)
				}
			}
			require.Equal(t, do, done)
		})
	}
}

func TestEveryReasonIsTakenBackByItsOwner(t *testing.T) {
	t.Parallel()
	for _, r := range vmi.NotReadyReasons() {
		plan := instance.Decide(observe(stored(vmi.PhaseRunning, because(r.Reason)), launcher(running)))
		var written []string
		for _, a := range summarize(plan).Do {
			if a == "write" {
				s := statusOf(t, plan)
				written = append(written, string(s.Condition(vmi.ConditionReady).Status))
			}
		}
		if r.Owner == vmi.ControllerOwns {
			require.Equal(t, []string{"True"}, written, r.Reason)
		} else {
			require.Empty(t, written, r.Reason)
		}
	}
}

func TestHandOverWritesWhyThePodIsNotReady(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"a pod that is ready":         {launcher(running), "GuestNotRunning"},
		"a pod that is not ready":     {launcher(running, notReady), "ContainersNotReady"},
		"a pod without conditions":    {launcher(running, noConditions), "PodConditionMissing"},
		"a pod with its gate closed":  {launcher(running, ungranted), "GuestNotRunning"},
		"a pod with another in front": {launcher(running, injected), "GuestNotRunning"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := statusOf(t, instance.Decide(observe(stored(vmi.PhaseScheduling), tt.pod)))
			require.Equal(t, vmi.PhaseScheduled, s.Phase)
			require.Equal(t, tt.want, s.Condition(vmi.ConditionReady).Reason)
			require.Equal(t, config.Image, s.LauncherContainerImageVersion)
		})
	}
}

// injected puts a container before compute, as an injector of sidecars does.
func injected(p *corev1.Pod) {
	p.Spec.Containers = append([]corev1.Container{{Name: "proxy", Image: "example/proxy"}}, p.Spec.Containers...)
	p.Status.ContainerStatuses = append([]corev1.ContainerStatus{{Name: "proxy", Image: "example/proxy"}}, p.Status.ContainerStatuses...)
}

func TestAnInjectedContainerDoesNotDecideTheEnd(t *testing.T) {
	t.Parallel()
	killed := func(p *corev1.Pod) {
		injected(p)
		p.Status.Phase = corev1.PodFailed
		p.Status.ContainerStatuses[0].State.Terminated = &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "Error", Message: "Killed: by the kubelet", FinishedAt: metav1.NewTime(now)}
	}
	s := statusOf(t, instance.Decide(observe(stored(vmi.PhaseRunning), launcher(exited(0, time.Minute, ""), killed))))
	require.Equal(t, vmi.PhaseSucceeded, s.Phase)
	s = statusOf(t, instance.Decide(observe(stored(vmi.PhaseRunning), launcher(exited(1, time.Minute, "Crashed: QEMU was killed"), killed))))
	require.Equal(t, "Crashed", s.Reason)
	s = statusOf(t, instance.Decide(observe(stored(vmi.PhaseScheduling), launcher(bound, killed))))
	require.Equal(t, "PodFailed", s.Reason, "only the launcher's termination message has a reason")
}

func TestTheEndOfAVMIWhoseNodeIsGone(t *testing.T) {
	t.Parallel()
	tainted := nodeIn(corev1.ConditionUnknown, time.Hour)
	tainted.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}
	alive := tainted.DeepCopy()
	alive.Status = nodeIn(corev1.ConditionTrue, time.Hour).Status
	for name, tt := range map[string]struct {
		phase  vmi.Phase
		pod    *corev1.Pod
		node   *corev1.Node
		reason string
	}{
		"a node that does not respond is no end":                     {vmi.PhaseRunning, launcher(running), nodeIn(corev1.ConditionUnknown, time.Hour), ""},
		"a pod that is being deleted there is no end":                {vmi.PhaseRunning, launcher(running, leaving), nodeIn(corev1.ConditionUnknown, time.Hour), ""},
		"a pod that was removed by force is no end":                  {vmi.PhaseRunning, nil, nodeIn(corev1.ConditionUnknown, time.Hour), ""},
		"a pod that was removed before the node was deleted is":      {vmi.PhaseRunning, nil, nil, "NodeUnresponsive"},
		"a pod that was removed there before the taint is":           {vmi.PhaseRunning, nil, tainted, "NodeUnresponsive"},
		"a node that was deleted is":                                 {vmi.PhaseRunning, launcher(running), nil, "NodeUnresponsive"},
		"a node that is out of service is":                           {vmi.PhaseRunning, launcher(running), tainted, "NodeUnresponsive"},
		"a node that is out of service but responds is not":          {vmi.PhaseRunning, launcher(running), alive, ""},
		"a VMI whose guest never ran ends in the same way":           {vmi.PhaseScheduled, launcher(running), nil, "NodeUnresponsive"},
		"a VMI that was not handed over ends in the same way":        {vmi.PhaseScheduling, launcher(bound), tainted, "NodeUnresponsive"},
		"a pod that ended before its node was deleted has its cause": {vmi.PhaseRunning, launcher(exited(1, time.Minute, "Crashed: QEMU was killed")), nil, "Crashed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := observe(stored(tt.phase), tt.pod)
			o.Node = instance.Node{Name: node, Object: tt.node}
			plan := instance.Decide(o)
			if tt.reason == "" {
				require.NotEqual(t, vmi.PhaseFailed, summarize(plan).Phase)
				return
			}
			s := statusOf(t, plan)
			require.Equal(t, vmi.PhaseFailed, s.Phase)
			require.Equal(t, tt.reason, s.Reason)
			require.Contains(t, summarize(plan).Do, "Warning "+tt.reason)
		})
	}
	o := observe(stored(vmi.PhaseRunning, deleted), launcher(running, leaving))
	o.Node = instance.Node{Name: node, Object: tainted}
	require.Equal(t, []string{"remove finalizer", "Normal Deleted"}, summarize(instance.Decide(o)).Do, "a deleted VMI does not wait for a pod on a fenced node")
}

func TestMessagesNameTheNodeAndTheHandler(t *testing.T) {
	t.Parallel()
	message := func(n instance.Node) string {
		o := observe(stored(vmi.PhaseRunning), launcher(running))
		o.Node = n
		s := statusOf(t, instance.Decide(o))
		return s.Condition(vmi.ConditionReady).Message
	}
	up, down := nodeIn(corev1.ConditionTrue, time.Hour), now.Add(-time.Hour)
	handler := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "vms", Name: "virt-handler-x"}}
	require.Equal(t, "node node1 is not ready, and the guest may still run there; if the node does not come back, power it off and then delete the Node "+
		"or taint it node.kubernetes.io/out-of-service=nodeshutdown:NoExecute, which ends the VMI",
		message(instance.Node{Name: node, Object: nodeIn(corev1.ConditionUnknown, 0)}))
	said := func(o instance.Observed) string {
		s := statusOf(t, instance.Decide(o))
		return s.Condition(vmi.ConditionReady).Message
	}
	waits := observe(stored(vmi.PhaseScheduling), launcher(bound))
	waits.Node = instance.Node{Name: node, Object: nodeIn(corev1.ConditionUnknown, 0)}
	const noGuest = "node node1 is not ready, and no guest of this VMI runs there yet; if the node does not come back, power it off"
	require.Contains(t, said(waits), noGuest)
	apply(&waits, instance.Decide(waits))
	waits.Pods.Active = launcher(running)
	require.Contains(t, said(waits), "the guest may still run there", "it was handed over")
	waits = observe(stored(vmi.PhaseScheduling, deleted), launcher(bound))
	waits.Node = instance.Node{Name: node, Object: nodeIn(corev1.ConditionUnknown, 0), HandlerDown: down}
	require.Contains(t, said(waits), noGuest)
	waits.Node.Object = up
	require.Zero(t, count[writeStatus](instance.Decide(waits)), "the handler has nothing to do for it")
	require.Equal(t, "pod vms/virt-handler-x on node node1 is not ready, so the state of the guest is not known; see the events and the log of the pod",
		message(instance.Node{Name: node, Object: up, Handler: handler, HandlerDown: down}))
	require.Equal(t, "node node1 has no pod of virt-handler, so the state of the guest is not known; see the events of the DaemonSet virt-handler",
		message(instance.Node{Name: node, Object: up, HandlerDown: down}))
}

func TestRoles(t *testing.T) {
	t.Parallel()
	target := launcher(running, func(p *corev1.Pod) {
		p.Name, p.UID, p.Labels[vmi.MigrationJobLabel] = "virt-launcher-testvmi-target", "target-uid", "job"
	})
	source, second := launcher(running), launcher(other)
	second.Name = "virt-launcher-testvmi-2"
	moved := stored(vmi.PhaseRunning)
	moved.Status.NodeName = "node2"
	moved.Status.ActivePods = map[types.UID]string{podUID: node, "target-uid": "node2"}
	waiting := moved.DeepCopy()
	waiting.Status.NodeName = node
	for name, tt := range map[string]struct {
		vmi  *vmi.VirtualMachineInstance
		pods []*corev1.Pod
		want instance.Pods
	}{
		"before the hand-over the name decides":                           {stored(vmi.PhaseScheduling), []*corev1.Pod{second, source}, instance.Pods{Active: source, Stray: []*corev1.Pod{second}}},
		"after it the status decides":                                     {stored(vmi.PhaseRunning), []*corev1.Pod{launcher(other), second, source}, instance.Pods{Active: source, Stray: []*corev1.Pod{launcher(other), second}}},
		"a target of a migration is neither":                              {stored(vmi.PhaseRunning), []*corev1.Pod{target, source}, instance.Pods{Active: source, Targets: []*corev1.Pod{target}}},
		"after a migration the target is active":                          {moved, []*corev1.Pod{target, source}, instance.Pods{Active: target, Stray: []*corev1.Pod{source}}},
		"before the hand-over a target is no active pod":                  {stored(vmi.PhaseScheduling), []*corev1.Pod{target}, instance.Pods{Targets: []*corev1.Pod{target}}},
		"a target that the status names is active only on the VMI's node": {waiting, []*corev1.Pod{source, target}, instance.Pods{Active: source, Targets: []*corev1.Pod{target}}},
		"a pod of another owner is never a target":                        {stored(vmi.PhaseRunning), []*corev1.Pod{foreign(target)}, instance.Pods{Stray: []*corev1.Pod{foreign(target)}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, instance.PodsByRole(tt.vmi, tt.pods))
		})
	}
}

func foreign(p *corev1.Pod) *corev1.Pod {
	p = p.DeepCopy()
	p.OwnerReferences = nil
	return p
}

// TestAnOutageOfANodeIsOneWriteAndOneEvent plays what Kubernetes reports of a node
// that goes away and comes back, as it arrives.
func TestAnOutageOfANodeIsOneWriteAndOneEvent(t *testing.T) {
	t.Parallel()
	v, p := stored(vmi.PhaseRunning, ready), launcher(running)
	clock, transition, status := now, now.Add(-time.Hour), corev1.ConditionTrue
	var handlerDown time.Time
	var did []string
	observeNow := func() {
		o := observe(v, p)
		o.Now = clock
		o.Node.Object = nodeIn(status, now.Sub(transition))
		o.Node.HandlerDown = handlerDown
		plan := instance.Decide(o)
		did = append(did, summarize(plan).Do...)
		for _, a := range plan.Actions {
			if w, ok := a.(writeStatus); ok {
				v = w.Object
			}
		}
	}
	steps := func(all ...func()) []string {
		did = nil
		for _, step := range all {
			step()
			observeNow()
			clock = clock.Add(time.Second)
		}
		return did
	}
	pass := func(d time.Duration) func() { return func() { clock = clock.Add(d) } }
	become := func(s corev1.ConditionStatus) func() { return func() { status, transition = s, clock } }

	require.Equal(t, []string{"write", "Warning NodeNotReady"}, steps(
		become(corev1.ConditionUnknown),
		func() { notReady(p) },
		func() { handlerDown = clock },
		pass(time.Minute),
		func() { leaving(p) },
		pass(time.Hour),
	))
	p.DeletionTimestamp = nil
	require.Equal(t, []string{"write"}, steps(
		become(corev1.ConditionTrue),
		func() { running(p) },
		func() { handlerDown = time.Time{} },
		pass(time.Hour),
	))
	require.Equal(t, corev1.ConditionTrue, v.Status.Condition(vmi.ConditionReady).Status)
	require.Empty(t, steps(
		func() { handlerDown = clock }, // the DaemonSet is updated
		pass(30*time.Second),
		func() { handlerDown = time.Time{} },
		become(corev1.ConditionFalse), // the kubelet restarts
		func() { notReady(p) },
		func() { running(p) },
		become(corev1.ConditionTrue),
		pass(time.Hour),
	))
	require.Equal(t, []string{"write", "Warning HandlerNotReady", "write"}, steps(
		func() { handlerDown = clock },
		pass(handlerTime),
		pass(time.Hour),
		func() { handlerDown = time.Time{} },
	))
}

const handlerTime = 40 * time.Second
