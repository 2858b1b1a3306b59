package controller

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
)

func TestTheActivePodOfAVMIThatHasMovedIsTheTarget(t *testing.T) {
	t.Parallel()
	first := pod.Name(stored(""))
	moving := &vmi.MigrationState{SourceNode: "node1", SourcePod: first, TargetNode: "node2", TargetPod: "second"}
	for name, tt := range map[string]struct {
		node string
		move *vmi.MigrationState
		want string
	}{
		"one that never moved": {"node1", nil, first},
		"one without a node":   {"", &vmi.MigrationState{TargetPod: "other"}, first},
		"one that moves":       {"node1", moving, first},
		"one that has moved":   {"node2", moving, "second"},
		"one that moves again": {"node2", &vmi.MigrationState{SourceNode: "node2", SourcePod: "second", TargetNode: "node1", TargetPod: "third"}, "second"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := stored(vmi.PhaseRunning)
			v.Status.NodeName, v.Status.MigrationState = tt.node, tt.move
			require.Equal(t, tt.want, instance.ActivePodName(v))
		})
	}
}
