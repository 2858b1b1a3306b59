package handler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

func TestAGuestWaitsForAnotherThatHoldsTheSame(t *testing.T) {
	t.Parallel()
	v := instance(vmi.PhaseScheduled, since(time.Hour))
	s := session(v, state(protocol.Waiting))
	s.Put, s.Began, s.HeldSince, s.Held = nil, now.Add(-time.Hour), now, now
	o := observed(v, s)
	o.Beside = &vmi.Finding{Reason: ReasonClaimInUse, Message: "pod-2 has it"}
	p := Decide(o)
	require.Empty(t, p.Actions, "it is not put, and does not fail for what is not its fault")
	require.Equal(t, findingDelay, p.Recheck)
	require.Nil(t, p.Status.Condition(vmi.ConditionSynchronized), "what is over in a moment is not written")

	s.HeldSince = now.Add(-findingDelay)
	p = Decide(o)
	require.Empty(t, p.Actions)
	require.Equal(t, vmi.PhaseScheduled, p.Status.Phase)
	require.Equal(t, "ClaimInUse", p.Status.Condition(vmi.ConditionSynchronized).Reason)
	require.Equal(t, "pod-2 has it", p.Status.Condition(vmi.ConditionSynchronized).Message)
	require.Equal(t, lookPeriod, p.Recheck)

	s.Network = nil
	require.Equal(t, []Action{Bind{}}, Decide(o).Actions, "its network can be bound")
	s.Network = bound
	v.DeletionTimestamp = new(metav1.NewTime(now))
	require.NotEmpty(t, Decide(o).Actions, "it is stopped when it is deleted")
	v.DeletionTimestamp = nil

	o.Beside, s.HeldSince = nil, time.Time{}
	require.IsType(t, Put{}, Decide(o).Actions[0])
	require.Equal(t, vmi.PhaseScheduled, Decide(o).Status.Phase, "it has its time from then on")
	s.Held = now.Add(-StartDeadline)
	require.Equal(t, vmi.PhaseFailed, Decide(o).Status.Phase)

	o.Beside = &vmi.Finding{Reason: ReasonClaimInUse, Message: "pod-2 has it"}
	s.Put = desired(v, 1, nil)
	require.Equal(t, vmi.PhaseFailed, Decide(o).Status.Phase, "it was put, so it may run")
}
