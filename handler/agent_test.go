package handler

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/config"
)

func TestTheStatusTellsOfTheGuestsAgent(t *testing.T) {
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
		phase  GuestPhase
		agent  *Agent
		agents config.AgentVersions
		before []vmi.Condition
		want   []vmi.Condition
	}{
		{"no agent is not worth a word", GuestRunning, nil, nil, nil, nil},
		{"an agent that comes", GuestRunning, &Agent{Version: "7.2.22"}, nil, nil, []vmi.Condition{connected}},
		{"an agent of no supported version", GuestRunning, &Agent{Version: "7.2.22"}, only, nil, []vmi.Condition{connected, complaint}},
		{"an agent that is too old", GuestRunning, &Agent{Version: "1.7"}, nil, nil,
			[]vmi.Condition{connected, unsupported("The guest's agent has version 1.7; supported are 2.* and later")}},
		{"an agent without a version is not complained about", GuestRunning, &Agent{}, only, nil, []vmi.Condition{connected}},
		{"a version that was allowed meanwhile", GuestRunning, &Agent{Version: "9.0.1"}, only, []vmi.Condition{connected, complaint}, []vmi.Condition{connected}},
		{"another version", GuestRunning, &Agent{Version: "8.0"}, only, []vmi.Condition{connected, complaint},
			[]vmi.Condition{connected, unsupported("The guest's agent has version 8.0; supported are 1.*, 9.0.?")}},
		{"an agent that goes", GuestRunning, nil, only, []vmi.Condition{connected, complaint}, nil},
		{"an agent in a guest that is paused", GuestPaused, &Agent{Version: "7.2.22"}, only, nil, []vmi.Condition{connected, complaint}},
		{"an agent that goes before its guest", GuestStopping, nil, only, []vmi.Condition{connected, complaint}, []vmi.Condition{connected, complaint}},
		{"an agent whose guest has ended", GuestEnded, &Agent{Version: "7.2.22"}, only, []vmi.Condition{connected, complaint}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v := machine(vmi.Running)
			v.Status.Conditions = append(v.Status.Conditions, tt.before...)
			g := guestIn(tt.phase)
			g.Agent = tt.agent
			o := Observed{Instance: v, Link: &Link{PodUID: pod, Guest: g, Plumbing: plumbing, Put: &Wish{}}, Agents: tt.agents, Now: now}
			p := Decide(o)
			var got []vmi.Condition
			for _, c := range p.Status.Conditions {
				if c.Type == vmi.ConditionAgentConnected || c.Type == vmi.ConditionAgentVersionNotSupported {
					got = append(got, c)
				}
			}
			require.Equal(t, tt.want, got)
			if tt.phase != GuestEnded {
				require.Empty(t, p.Actions)
				v.Status = *p.Status
				require.Equal(t, p.Status, Decide(o).Status, "it is said once")
			}
		})
	}
}
