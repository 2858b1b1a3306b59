package handler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
)

func TestTheAgentHasConditions(t *testing.T) {
	t.Parallel()
	at := metav1.NewTime(now)
	connected := vmi.Condition{Type: vmi.ConditionAgentConnected, Status: corev1.ConditionTrue, LastTransitionTime: at}
	unsupported := func(message string) vmi.Condition {
		return vmi.Condition{
			Type: vmi.ConditionAgentVersionNotSupported, Status: corev1.ConditionTrue, Reason: "VersionNotSupported", Message: message, LastTransitionTime: at,
		}
	}
	complaint := unsupported("The guest's agent has version 7.2.22; supported are 1.*, 9.0.?")
	only := config.AgentVersions{"1.*", "9.0.?"}
	tests := []struct {
		name   string
		phase  protocol.Phase
		agent  *protocol.Agent
		agents config.AgentVersions
		before []vmi.Condition
		want   []vmi.Condition
	}{
		{"no agent", protocol.Running, nil, nil, nil, nil},
		{"an agent that connects", protocol.Running, &protocol.Agent{Version: "7.2.22"}, nil, nil, []vmi.Condition{connected}},
		{"an agent of no supported version", protocol.Running, &protocol.Agent{Version: "7.2.22"}, only, nil, []vmi.Condition{connected, complaint}},
		{"an agent that is too old", protocol.Running, &protocol.Agent{Version: "1.7"}, nil, nil,
			[]vmi.Condition{connected, unsupported("The guest's agent has version 1.7; supported are 2.* and later")}},
		{"an agent without a version counts as supported", protocol.Running, &protocol.Agent{}, only, nil, []vmi.Condition{connected}},
		{"a version that is supported now", protocol.Running, &protocol.Agent{Version: "9.0.1"}, only, []vmi.Condition{connected, complaint}, []vmi.Condition{connected}},
		{"another version", protocol.Running, &protocol.Agent{Version: "8.0"}, only, []vmi.Condition{connected, complaint},
			[]vmi.Condition{connected, unsupported("The guest's agent has version 8.0; supported are 1.*, 9.0.?")}},
		{"an agent that disconnects", protocol.Running, nil, only, []vmi.Condition{connected, complaint}, nil},
		{"an agent in a guest that is paused", protocol.Paused, &protocol.Agent{Version: "7.2.22"}, only, nil, []vmi.Condition{connected, complaint}},
		{"an agent that disconnects before its guest ends", protocol.Stopping, nil, only, []vmi.Condition{connected, complaint}, []vmi.Condition{connected, complaint}},
		{"an agent whose guest has ended", protocol.Ended, &protocol.Agent{Version: "7.2.22"}, only, []vmi.Condition{connected, complaint}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v := instance(vmi.PhaseRunning)
			v.Status.Conditions = append(v.Status.Conditions, tt.before...)
			st := state(tt.phase)
			st.Agent = tt.agent
			o := observed(v, session(v, st))
			o.Agents = tt.agents
			p := Decide(o)
			var got []vmi.Condition
			for _, c := range p.Status.Conditions {
				if c.Type == vmi.ConditionAgentConnected || c.Type == vmi.ConditionAgentVersionNotSupported {
					got = append(got, c)
				}
			}
			require.Equal(t, tt.want, got)
			if tt.phase != protocol.Ended {
				require.Empty(t, p.Actions)
				v.Status = *p.Status
				require.Equal(t, p.Status, Decide(o).Status, "nothing changes the second time")
			}
		})
	}
}

func TestTheCredentialsHaveACondition(t *testing.T) {
	t.Parallel()
	before := metav1.NewTime(now.Add(-time.Hour))
	at := metav1.NewTime(now)
	is := func(at metav1.Time) *vmi.Condition {
		return &vmi.Condition{
			Type: vmi.ConditionAccessCredentialsSynchronized, Status: corev1.ConditionTrue, Reason: "AccessCredentialsSyncSuccess", LastTransitionTime: at,
			Message: "The guest's agent has written the keys and passwords of the access credentials",
		}
	}
	isNot := func(message string, at metav1.Time) *vmi.Condition {
		return &vmi.Condition{Type: vmi.ConditionAccessCredentialsSynchronized, Status: corev1.ConditionFalse, Reason: "AccessCredentialsSyncFailed", LastTransitionTime: at, Message: message}
	}
	noted := func(message string) *vmi.Condition {
		return &vmi.Condition{Type: vmi.ConditionAccessCredentialsSynchronized, Status: corev1.ConditionTrue, Reason: "AccessCredentialsSyncSuccess", LastTransitionTime: at, Message: message}
	}
	succeeded := []Event{normal("AccessCredentialsSyncSuccess", is(at).Message)}
	failed := func(why string) []Event { return []Event{warning("AccessCredentialsSyncFailed", why)} }
	for name, tt := range map[string]struct {
		phase       protocol.Phase
		credentials *protocol.Credentials
		before      *vmi.Condition
		want        *vmi.Condition
		events      []Event
	}{
		"none":    {protocol.Running, nil, nil, nil, nil},
		"written": {protocol.Running, &protocol.Credentials{}, nil, is(at), succeeded},
		"an odd key that cloud-init has": {protocol.Running, &protocol.Credentials{Note: "line 1 is odd"}, nil, noted("cloud-init has the SSH public keys of the access credentials; line 1 is odd"),
			[]Event{normal("AccessCredentialsSyncSuccess", "cloud-init has the SSH public keys of the access credentials; line 1 is odd")}},
		"written already":              {protocol.Running, &protocol.Credentials{}, is(before), is(before), nil},
		"failed":                       {protocol.Running, &protocol.Credentials{Failure: "no user"}, is(before), isNot("no user", at), failed("no user")},
		"failed in another way":        {protocol.Running, &protocol.Credentials{Failure: "no agent"}, isNot("no user", before), isNot("no agent", before), failed("no agent")},
		"failed as before":             {protocol.Running, &protocol.Credentials{Failure: "no user"}, isNot("no user", before), isNot("no user", before), nil},
		"written in a guest that ends": {protocol.Stopping, nil, is(before), is(before), nil},
		"of a guest that has ended":    {protocol.Ended, &protocol.Credentials{}, is(before), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := instance(vmi.PhaseRunning)
			if tt.before != nil {
				v.Status.Conditions = append(v.Status.Conditions, *tt.before)
			}
			st := state(tt.phase)
			st.Credentials = tt.credentials
			p := Decide(observed(v, session(v, st)))
			require.Equal(t, tt.want, p.Status.Condition(vmi.ConditionAccessCredentialsSynchronized))
			if tt.phase != protocol.Ended {
				require.Equal(t, tt.events, p.Events)
			}
		})
	}
}

func TestAFreezeIsOneWriteAndAThawIsOne(t *testing.T) {
	t.Parallel()
	v := instance(vmi.PhaseRunning)
	st := state(protocol.Running)
	st.Agent = &protocol.Agent{Version: "7.2.22"}
	step := func(frozen bool) vmi.VirtualMachineInstanceStatus {
		before := *v.Status.DeepCopy()
		st.Frozen = frozen
		p := Decide(observed(v, session(v, st)))
		require.Empty(t, p.Events)
		v.Status = *p.Status.DeepCopy()
		after := *p.Status
		after.FSFreezeStatus, before.FSFreezeStatus = "", ""
		require.Equal(t, before, after, "nothing else changes")
		return v.Status
	}
	v.Status = *Decide(observed(v, session(v, st))).Status
	require.Equal(t, "frozen", step(true).FSFreezeStatus)
	require.Equal(t, "frozen", step(true).FSFreezeStatus)
	require.Empty(t, step(false).FSFreezeStatus)
	step(true)
	v.Status = *Decide(observed(v, session(v, &protocol.State{Phase: protocol.Ended, End: &protocol.End{Reason: protocol.Shutdown}, Frozen: true}))).Status
	require.Empty(t, v.Status.FSFreezeStatus, "a guest that has ended is not frozen")
}
