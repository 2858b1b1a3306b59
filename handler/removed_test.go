package handler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// podRemoved is what virt-controller has written of a pod that was removed.
var podRemoved = withCondition(vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionUnknown, Reason: vmi.ReasonPodRemoved, Message: "x"})

func drained(v *vmi.VirtualMachineInstance) {
	withCondition(vmi.Condition{Type: vmi.ConditionDisruptionTarget, Status: corev1.ConditionTrue, Reason: vmi.ReasonEvicted, Message: "it is drained"})(v)
}

func TestTheEndOfAPodThatWasRemovedIsReportedWhenNothingIsLeft(t *testing.T) {
	t.Parallel()
	const none = "the pod of the VMI was removed, and nothing of it is left on node n1"
	off := &protocol.State{Phase: protocol.Ended, End: &protocol.End{Reason: protocol.Shutdown, Message: "the guest powered off"}}
	terminated := &protocol.State{Phase: protocol.Ended, End: &protocol.End{Reason: protocol.Shutdown, Message: "the guest powered off", Terminated: true}}
	silent := func(v *vmi.VirtualMachineInstance) *Session {
		return &Session{Began: now.Add(-time.Hour), Since: now.Add(-time.Hour), Generation: 1}
	}
	with := func(s *protocol.State) func(*vmi.VirtualMachineInstance) *Session {
		return func(v *vmi.VirtualMachineInstance) *Session { return session(v, s) }
	}
	without := func(*vmi.VirtualMachineInstance) *Session { return nil }
	for name, tt := range map[string]struct {
		v       *vmi.VirtualMachineInstance
		session func(*vmi.VirtualMachineInstance) *Session
		gone    bool
		phase   vmi.Phase // empty: no end is reported
		reason  string
		message string
		actions []Action
	}{
		"nothing is left":                              {instance(vmi.PhaseRunning, podRemoved), without, true, vmi.PhaseFailed, "PodGone", none, nil},
		"nothing is left, and no launcher answers":     {instance(vmi.PhaseRunning, podRemoved), silent, true, vmi.PhaseFailed, "PodGone", none, nil},
		"nothing is left of a guest that never ran":    {instance(vmi.PhaseScheduled, podRemoved), silent, true, vmi.PhaseFailed, "PodGone", none, nil},
		"nothing is left after an eviction":            {instance(vmi.PhaseRunning, podRemoved, drained), silent, true, vmi.PhaseFailed, "Evicted", "it is drained; how the guest ended is not known", nil},
		"nothing is left, and the launcher said how":   {instance(vmi.PhaseRunning, podRemoved), with(off), true, vmi.PhaseSucceeded, "Shutdown", "the guest powered off", nil},
		"nothing is left of a launcher that was asked": {instance(vmi.PhaseRunning, podRemoved), with(terminated), true, vmi.PhaseSucceeded, "PodDeleted", "the pod of the VMI was deleted; the guest powered off", nil},
		"nothing is left of a deleted VMI":             {instance(vmi.PhaseRunning, podRemoved, deleted), silent, true, vmi.PhaseFailed, "PodGone", none, nil},
		"nothing is left of what cannot be decoded":    {instance(vmi.PhaseRunning, podRemoved, unreadable), silent, true, vmi.PhaseFailed, "PodGone", none, nil},
		"a launcher answers from where nothing is":     {instance(vmi.PhaseRunning, podRemoved), with(state(protocol.Running)), true, "", "", "", nil},
		"the kubelet has not ended it":                 {instance(vmi.PhaseRunning, podRemoved), with(state(protocol.Running)), false, "", "", "", nil},
		"the kubelet has not ended what is silent":     {instance(vmi.PhaseRunning, podRemoved), silent, false, "", "", "", nil},
		"the kubelet has not removed what has ended":   {instance(vmi.PhaseRunning, podRemoved), with(off), false, "", "", "", nil},
		"the launcher is not connected to":             {instance(vmi.PhaseRunning, podRemoved), without, false, "", "", "", []Action{Connect{pod}}},
		"the launcher of a VMI that failed is silent":  {instance(vmi.PhaseFailed, podRemoved), silent, false, "", "", "", []Action{Disconnect{}}},
		"the launcher of a deleted VMI is stopped": {instance(vmi.PhaseRunning, podRemoved, deleted), with(state(protocol.Running)), false, "", "", "", []Action{
			Put{*desired(instance(vmi.PhaseRunning), 2, &protocol.Stop{GracePeriodSeconds: 5})}, Emit{normal(EventShuttingDown, "The guest is asked to power off")},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := observed(tt.v, nil)
			require.Equal(t, pod, string(o.Pod.UID))
			o.Session, o.NothingLeft = tt.session(tt.v), tt.gone
			p := Decide(o)
			require.Equal(t, tt.actions, p.Actions)
			if tt.phase == "" {
				require.NotZero(t, p.Recheck)
				require.LessOrEqual(t, p.Recheck, time.Second, "it is looked again")
				if p.Status != nil {
					require.Equal(t, tt.v.Status.Phase, p.Status.Phase)
					require.True(t, p.Status.PodRemoved(), "it is virt-controller's to take back")
				}
				return
			}
			require.Equal(t, tt.phase, p.Status.Phase)
			require.Equal(t, tt.reason, p.Status.Reason)
			c := p.Status.Condition(vmi.ConditionReady)
			require.Equal(t, corev1.ConditionFalse, c.Status)
			require.Equal(t, tt.message, c.Message)
			require.Len(t, p.Events, 1)
		})
	}
}

func TestAFailedVMIWhoseLauncherHungIsCertainWhenNothingIsLeft(t *testing.T) {
	t.Parallel()
	v := instance(vmi.PhaseFailed, podRemoved, func(v *vmi.VirtualMachineInstance) { v.Status.Reason = "LauncherUnresponsive" })
	o := observed(v, nil)
	o.NothingLeft = true
	p := Decide(o)
	require.False(t, p.Status.Uncertain())
	require.Equal(t, "LauncherUnresponsive", p.Status.Reason)
	require.Equal(t, vmi.PhaseFailed, p.Status.Phase)
	require.Empty(t, p.Events, "its end was said")
}

// The launcher has to end its guest then, and nothing but what is left on the node says
// when it has.
func TestAGuestThatDidNotStartInAPodThatWasRemovedHoldsItsVolumesUntilNothingIsLeft(t *testing.T) {
	t.Parallel()
	v := instance(vmi.PhaseScheduled, podRemoved, since(4*time.Minute))
	s := session(v, state(protocol.Starting))
	s.Began = now.Add(-time.Hour)
	p := Decide(observed(v, s))
	require.Equal(t, vmi.PhaseFailed, p.Status.Phase)
	require.True(t, p.Status.Uncertain())
	require.True(t, p.Status.PodRemoved())
	v.Status = *p.Status
	require.Len(t, Pods(v, node), 1, "it is looked for")
	o := observed(v, nil)
	o.NothingLeft = true
	require.False(t, Decide(o).Status.Uncertain())
}

// Nothing but the condition of virt-controller says that a pod was removed.
func TestNothingIsConcludedOfAPodThatIsNotSaidToBeRemoved(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]vmitest.Option{
		"no condition":                 nil,
		"another reason":               {withCondition(vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionUnknown, Reason: "Other"})},
		"the reason with another sign": {withCondition(vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionFalse, Reason: vmi.ReasonPodRemoved})},
		"on another node": {podRemoved, func(v *vmi.VirtualMachineInstance) {
			v.Status.NodeName = "n2"
			v.Status.ActivePods["pod-2"] = "n2"
		}},
	} {
		v := instance(vmi.PhaseRunning, options...)
		o := observed(v, &Session{Began: now})
		o.NothingLeft = true
		p := Decide(o)
		require.True(t, p.Status == nil || !p.Status.Phase.Final(), name)
	}
	require.Empty(t, Pods(instance(vmi.PhaseFailed), node))
	require.Empty(t, Pods(instance(vmi.PhaseSucceeded, podRemoved), node))
}
