package controller

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// move makes the VMI one that moves to the other pod.
func move(v *vmi.VirtualMachineInstance) {
	v.Status.ActivePods[otherPod] = otherNode
	v.Status.MigrationState = &vmi.MigrationState{MigrationUID: "m1", SourceNode: nodeName, TargetNode: otherNode}
}

// target is a launcher in the other pod that does what one does that knows roles.
type target struct {
	mu   sync.Mutex
	puts []protocol.Desired
}

func (l *target) put(s *control.Server, d protocol.Desired) error {
	l.mu.Lock()
	l.puts = append(l.puts, d)
	l.mu.Unlock()
	switch {
	case d.Stop != nil:
		s.Publish(protocol.State{Generation: d.Generation, Phase: protocol.Ended, End: &protocol.End{Reason: protocol.Cancelled, Message: "stopped"}})
	case d.Role == vmi.RoleTarget:
		s.Publish(protocol.State{Generation: d.Generation, Phase: protocol.Waiting})
	default:
		return obey(s, d)
	}
	return nil
}

func (l *target) all() []protocol.Desired {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]protocol.Desired(nil), l.puts...)
}

// moving is a world whose VMI runs in its pod and waits in the other one, with the
// handlers of both nodes.
func moving(t *testing.T) (w *world, source, other *Controller, second *target, server *control.Server) {
	t.Helper()
	return movingFrom(t, obey)
}

// movingFrom is moving with a first launcher that takes what it is put with put.
func movingFrom(t *testing.T, put func(*control.Server, protocol.Desired) error) (w *world, source, other *Controller, second *target, server *control.Server) {
	t.Helper()
	w = newWorld(t)
	w.launch(protocol.State{Phase: protocol.Waiting}, put)
	source, _ = w.handle()
	other, _ = w.handleOn(otherNode)
	w.phase(vmi.PhaseRunning)
	require.Nil(t, other.session(key, otherPod), "the other handler has nothing to do")
	second = &target{}
	server, _ = w.launchIn(otherPod, protocol.State{Phase: protocol.Waiting}, second.put)
	w.change(move)
	w.eventually("the second pod waits", func() bool { return len(second.all()) == 1 })
	return w, source, other, second, server
}

func TestASecondPodWaitsAndIsRemovedAndTheFirstIsNeverDisturbed(t *testing.T) {
	t.Parallel()
	w, source, other, second, server := moving(t)
	d := second.all()[0]
	require.Equal(t, vmi.RoleTarget, d.Role)
	require.Equal(t, "tap0", d.Interfaces[0].Tap, "its network is bound")
	require.Nil(t, d.Stop)
	before := w.instance().Status
	first := source.session(key, podUID)

	server.Publish(protocol.State{Phase: protocol.Ended, End: &protocol.End{Reason: protocol.Cancelled, Message: "the launcher was stopped before the guest ran"}})
	w.eventually("its end is known", func() bool {
		s := other.session(key, otherPod).observe().State
		return s != nil && s.Phase == protocol.Ended
	})
	w.change(func(v *vmi.VirtualMachineInstance) {
		v.Status.MigrationState.Failed = true
		delete(v.Status.ActivePods, otherPod)
	})
	w.eventually("its session is ended", func() bool { return other.session(key, otherPod) == nil })

	after := w.instance().Status
	before.MigrationState, before.ActivePods = after.MigrationState, after.ActivePods
	require.Equal(t, before, after, "nothing of it is reported")
	require.Equal(t, 1, w.patches(), "that the guest runs")
	require.Len(t, second.all(), 1)
	require.Len(t, w.puts(), 1, "the first launcher was put nothing")
	require.Same(t, first, source.session(key, podUID), "the session with it goes on")
	w.eventually("one event, of the start", func() bool { return len(w.reasons()) == 1 })
}

func TestATargetThatClaimsToRunChangesNoStatus(t *testing.T) {
	t.Parallel()
	w, _, other, second, server := moving(t)
	known := func(p protocol.Phase) {
		w.eventually("it is known", func() bool {
			s := other.session(key, otherPod).observe().State
			return s != nil && s.Phase == p
		})
	}
	server.Publish(running)
	known(protocol.Running)
	w.elapse(time.Hour)
	w.eventually("it is decided about", func() bool { return len(second.all()) == 2 })
	server.Publish(protocol.State{Phase: protocol.Ended, End: &protocol.End{Reason: protocol.Shutdown}})
	known(protocol.Ended)
	require.Never(t, func() bool { return w.patches() > 1 }, 300*time.Millisecond, 10*time.Millisecond)
	require.Equal(t, vmi.PhaseRunning, w.instance().Status.Phase)
	require.Equal(t, corev1.ConditionTrue, ready(w.instance()))
}

func TestTheTargetOfADeletedVMIIsStopped(t *testing.T) {
	t.Parallel()
	// The guest ends after the target was stopped: the target of a VMI that has ended is
	// left to virt-controller, which deletes its pod.
	asked := make(chan *control.Server, 1)
	w, _, _, second, _ := movingFrom(t, func(s *control.Server, d protocol.Desired) error {
		if d.Stop != nil {
			asked <- s
			return nil
		}
		return obey(s, d)
	})
	w.change(func(v *vmi.VirtualMachineInstance) { v.DeletionTimestamp = new(metav1.Now()) })
	w.eventually("it is stopped", func() bool {
		all := second.all()
		return len(all) == 2 && all[1].Stop != nil
	})
	require.NoError(t, obey(<-asked, protocol.Desired{Stop: &protocol.Stop{}}))
	w.phase(vmi.PhaseSucceeded)
	require.Equal(t, "Shutdown", w.instance().Status.Reason, "the first launcher's end counts")
}

func TestAVMIThatHasArrivedKeepsItsSession(t *testing.T) {
	t.Parallel()
	w, source, other, second, _ := moving(t)
	s := other.session(key, otherPod)
	w.change(func(v *vmi.VirtualMachineInstance) {
		v.Status.NodeName, v.Status.MigrationState.Completed = otherNode, true
	})
	w.eventually("it is put to run", func() bool { return len(second.all()) == 2 })
	require.Equal(t, vmi.RoleActive, second.all()[1].Role)
	require.Same(t, s, other.session(key, otherPod))
	w.eventually("the first handler leaves it", func() bool { return source.session(key, podUID) == nil })
	require.Len(t, w.puts(), 1, "and puts no stop")
	require.Equal(t, vmi.PhaseRunning, w.instance().Status.Phase)
}

func TestARequestReachesTheLauncherOfThePodThatItNames(t *testing.T) {
	t.Parallel()
	w, source, other, _, _ := moving(t)
	named := func(pod types.UID) protocol.Target {
		l := own
		l.Pod = pod
		return l
	}
	for _, tt := range []struct {
		name    string
		handler *Controller
		pod     types.UID
		want    string
	}{
		{"the pod that the VMI runs in", source, podUID, protocol.ReasonUnknown},
		{"no pod", source, "", protocol.ReasonUnknown},
		{"the pod that it moves to, at the handler of the other", source, otherPod, protocol.ReasonNotFound},
		{"the pod that it moves to", other, otherPod, protocol.ReasonUnknown},
		{"no pod, at the handler of the pod that it moves to", other, "", protocol.ReasonNotFound},
		{"the pod that it runs in, at the handler of the other", other, podUID, protocol.ReasonNotFound},
	} {
		_, err := tt.handler.Stream(t.Context(), named(tt.pod), "of the future")
		var r *vmi.Refusal
		require.ErrorAs(t, err, &r, tt.name)
		require.Equal(t, tt.want, r.Reason, "%s: %s", tt.name, r.Message)
	}
	require.Equal(t, vmi.PhaseRunning, w.instance().Status.Phase)
}

func TestAVMIWhoseStatusNamesThePodOfAnotherHasNotTheOthersSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.launch(protocol.State{Phase: protocol.Waiting}, obey)
	c, _ := w.handle()
	w.phase(vmi.PhaseRunning)
	first := c.session(key, podUID)
	require.NotNil(t, first)
	require.Nil(t, c.session("default/other", podUID))
	require.Empty(t, c.others("default/other", nil))
	c.connect(t.Context(), "default/other", podUID)
	second := c.session("default/other", podUID)
	require.NotSame(t, first, second)
	require.Same(t, first, c.session(key, podUID))
	c.disconnect("default/other", second)
	require.Same(t, first, c.session(key, podUID))
}
