package handler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

func TestAGuestWhoseVMICannotBeDecodedIsLeftAlone(t *testing.T) {
	t.Parallel()
	v := instance(vmi.PhaseRunning, withCondition(vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionTrue}))
	s := session(v, state(protocol.Running))
	repaired := v.DeepCopy()
	unreadable(v)
	p := Decide(observed(v, s))
	require.Empty(t, p.Actions)
	require.Equal(t, vmi.PhaseRunning, p.Status.Phase)
	require.Equal(t, corev1.ConditionTrue, p.Status.Condition(vmi.ConditionReady).Status)
	c := p.Status.Condition(vmi.ConditionSynchronized)
	require.Equal(t, corev1.ConditionFalse, c.Status)
	require.Equal(t, "UnreadableSpec", c.Reason)
	require.Contains(t, c.Message, "spec.hostname: 1: must be a string")
	require.Equal(t, []Event{warning("UnreadableSpec", c.Message)}, p.Events)

	v.Status = *p.Status
	require.Empty(t, Decide(observed(v, s)).Events, "it is said once")
	deleted(v)
	require.Empty(t, Decide(observed(v, s)).Actions, "virt-controller deletes the pod")
	s.State = &protocol.State{Phase: protocol.Ended, End: &protocol.End{Reason: protocol.Shutdown}}
	require.Equal(t, vmi.PhaseSucceeded, Decide(observed(v, s)).Status.Phase, "the end is reported")

	repaired.Status = *p.Status
	s.State = state(protocol.Running)
	o := observed(repaired, s)
	o.Now = now.Add(time.Hour)
	p = Decide(o)
	require.Empty(t, p.Actions, "the guest is what the spec says")
	require.Nil(t, p.Status.Condition(vmi.ConditionSynchronized))
}
