package handler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// everySession calls f with every combination of what a session can be.
func everySession(v *vmi.VirtualMachineInstance, f func(*Session)) {
	finding := &vmi.Finding{Reason: "Finding", Message: "text"}
	states := []*protocol.State{nil}
	for _, p := range []protocol.Phase{protocol.Waiting, protocol.Starting, protocol.Running, protocol.Paused, protocol.Stopping, protocol.Ended} {
		states = append(states, &protocol.State{Phase: p}, &protocol.State{Phase: p, Emulated: true, Generation: 3, Finding: finding},
			&protocol.State{Phase: p, End: &protocol.End{Reason: protocol.Shutdown}, Pause: &protocol.Pause{Cause: protocol.PausedByIOError, Volume: "root"}})
	}
	for _, state := range states {
		for _, n := range []*Network{nil, bound} {
			for _, put := range []*protocol.Desired{nil, desired(v, 3, nil), desired(v, 3, &protocol.Stop{GracePeriodSeconds: 5})} {
				for _, fault := range []*vmi.Finding{nil, finding} {
					for _, since := range []time.Time{now, now.Add(-time.Hour)} {
						f(&Session{Began: since, State: state, Network: n, Put: put, Generation: 3, Finding: fault, Since: since})
					}
				}
			}
		}
	}
}

// everything calls f with every combination of what can be observed.
func everything(f func(Observed)) {
	for _, phase := range []vmi.Phase{vmi.PhaseUnset, vmi.PhasePending, vmi.PhaseScheduling, vmi.PhaseScheduled, vmi.PhaseRunning, vmi.PhaseSucceeded, vmi.PhaseFailed, vmi.PhaseUnknown} {
		for i := range 4 {
			gone, broken := i&1 != 0, i&2 != 0
			for _, active := range []string{node, "n2"} {
				for _, ready := range []string{"", "GuestNotRunning", "PodTerminating"} {
					v := instance(phase)
					if gone {
						deleted(v)
					}
					if broken {
						unreadable(v)
					}
					if active != node {
						moving(v)
					}
					if ready != "" {
						withCondition(vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionFalse, Reason: ready})(v)
					}
					if !handedOver(v) {
						f(observed(v, session(v, state(protocol.Running))))
						continue
					}
					everySession(v, func(s *Session) { f(observed(v, s)) })
				}
			}
		}
	}
}

// kinds are the actions of a plan by their type.
func kinds(p Plan) (connects, disconnects, binds int, puts []protocol.Desired) {
	for _, a := range p.Actions {
		switch a := a.(type) {
		case Connect:
			connects++
		case Disconnect:
			disconnects++
		case Bind:
			binds++
		case Put:
			puts = append(puts, a.Desired)
		case Emit:
		}
	}
	return connects, disconnects, binds, puts
}

func TestEveryPlanIsSound(t *testing.T) {
	t.Parallel()
	everything(func(o Observed) {
		before, session := o.Instance.DeepCopy(), *o.Session
		p := Decide(o)
		require.Equal(t, before, o.Instance, "what is observed is not changed")
		require.Equal(t, session, *o.Session, "what is observed is not changed")
		connects, disconnects, binds, puts := kinds(p)
		if connects+disconnects > 0 {
			require.Nil(t, p.Status, "without a session nothing is reported: %+v", o)
		}
		if !handedOver(before) {
			require.Equal(t, Plan{Actions: []Action{Disconnect{}}}, p, "a VMI that is not handed over is not handled")
			return
		}
		if before.Status.NodeName != node {
			require.Nil(t, p.Status, "only the handler of the active pod reports")
			for _, d := range puts {
				require.Equal(t, vmi.RoleTarget, d.Role, "only the active pod starts a domain")
			}
		}
		if p.Status != nil && o.Session.State == nil && before.Status.Phase == vmi.PhaseRunning {
			require.Equal(t, vmi.PhaseRunning, p.Status.Phase, "a guest that ran does not fail because its launcher does not answer")
		}
		if p.Status != nil && foreign(&before.Status) && !p.Status.Phase.Final() {
			require.Equal(t, before.Status.Condition(vmi.ConditionReady), p.Status.Condition(vmi.ConditionReady), "a foreign reason is kept")
		}
		if vmi.Unreadable(before) != nil {
			require.Zero(t, len(puts)+binds, "what a launcher shall do is not known")
		}
		for _, d := range puts {
			stopped := before.DeletionTimestamp != nil || p.Status != nil && p.Status.Phase == vmi.PhaseFailed
			require.Equal(t, stopped, d.Stop != nil, "a VMI is stopped if, and only if, it is deleted or has failed")
			require.Greater(t, d.Generation, o.Session.Generation)
		}
		require.False(t, before.DeletionTimestamp != nil && binds > 0, "nothing is bound for a deleted VMI")
	})
}

func TestEveryPlanConverges(t *testing.T) {
	t.Parallel()
	everything(func(o Observed) {
		for range 6 { // until after StartDeadline
			o = done(o, Decide(o))
			o.Now = o.Now.Add(time.Minute)
		}
		p := Decide(o)
		require.Empty(t, p.Actions, "%+v", o)
		require.Empty(t, p.Events, "%+v", o)
		if p.Status != nil {
			require.Equal(t, &o.Instance.Status, p.Status)
		}
		if o.Session != nil && o.Session.State != nil && o.Instance.Status.NodeName == node {
			require.NotEqual(t, protocol.Ended, o.Session.State.Phase, "the session of a VMI that has ended is ended")
		}
	})
}

// done is what is observed after a plan was carried out and nothing else
// happened.
func done(o Observed, p Plan) Observed {
	s := Session{}
	if o.Session != nil {
		s = *o.Session
		o.Session = &s
	}
	for _, a := range p.Actions {
		switch a := a.(type) {
		case Connect:
			s = Session{Began: o.Now, Since: o.Now}
			o.Session = &s
		case Disconnect:
			o.Session = nil
		case Bind:
			s.Network = bound
		case Put:
			s.Put, s.Generation = &a.Desired, a.Generation
		}
	}
	if p.Status != nil {
		o.Instance = o.Instance.DeepCopy()
		o.Instance.Status = *p.Status
	}
	return o
}
