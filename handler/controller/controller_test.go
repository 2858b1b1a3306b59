package controller

import (
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

func TestAVMIRunsAndEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.launch(protocol.State{Phase: protocol.Waiting}, obey)
	c, _ := w.handle()
	w.phase(vmi.PhaseRunning)
	v := w.instance()
	require.Equal(t, corev1.ConditionTrue, ready(v))
	require.Equal(t, "10.244.1.7", v.Status.Interfaces[0].IP)
	require.Equal(t, []vmi.VolumeStatus{{Name: "root", Target: "vda", Size: 5}}, v.Status.VolumeStatus)
	require.Equal(t, 1, w.patches(), "Running is one write")
	w.eventually("event", func() bool { return slices.Equal(w.reasons(), []string{"N Started"}) })
	require.NoError(t, c.Ready())

	d := w.puts()
	require.Len(t, d, 1)
	require.Equal(t, "tap0", d[0].Interfaces[0].Tap)
	require.Equal(t, vmi.VirtualMachineInstanceStatus{}, d[0].Instance.Status)
	require.Nil(t, d[0].Stop)

	w.change(func(v *vmi.VirtualMachineInstance) { v.DeletionTimestamp = new(metav1.Now()) })
	w.phase(vmi.PhaseSucceeded)
	require.Equal(t, &protocol.Stop{GracePeriodSeconds: 7}, w.puts()[1].Stop)
	require.Equal(t, 2, w.patches(), "and the end another")
	require.Equal(t, "Shutdown", w.instance().Status.Reason)
	w.eventually("events", func() bool {
		all := w.reasons()
		slices.Sort(all)
		return slices.Equal(all, []string{"N Deleted", "N ShuttingDown", "N Started"})
	})
	w.eventually("the session is ended", func() bool { return c.session(key, podUID) == nil })
}

func TestALauncherThatStartsLateIsConnectedTo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, _ := w.handle()
	w.eventually("session", func() bool { return c.session(key, podUID) != nil })
	w.launch(protocol.State{Phase: protocol.Waiting}, obey)
	w.phase(vmi.PhaseRunning)
	require.Equal(t, 1, w.patches())
}

func TestALauncherIsNotPutTheManifestThatKubectlNotes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(v *vmi.VirtualMachineInstance) {
		v.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "a": "b"}
	})
	w.launch(protocol.State{Phase: protocol.Waiting}, obey)
	w.handle()
	w.phase(vmi.PhaseRunning)
	require.Equal(t, map[string]string{"a": "b"}, w.puts()[0].Instance.Annotations)
	require.Len(t, w.instance().Annotations, 2, "the VMI keeps it")
}

func TestARestartWritesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, _ := w.launch(protocol.State{Phase: protocol.Waiting}, obey)
	_, stop := w.handle()
	w.phase(vmi.PhaseRunning)
	for i := range 3 {
		stop()
		_, stop = w.handle()
		w.eventually("the VMI is put again", func() bool { return len(w.puts()) == 2+i })
	}
	s.Publish(protocol.State{Phase: protocol.Paused, Machine: running.Machine, Disks: running.Disks})
	w.eventually("the new handler reports", func() bool { return ready(w.instance()) == corev1.ConditionFalse })
	require.Equal(t, 2, w.patches(), "a restart writes nothing")
	for i, d := range w.puts() {
		require.Equal(t, int64(i+1), d.Generation, "each handler continues from the generation in force")
		if i > 0 {
			require.Equal(t, []vmi.VolumeStatus{{Name: "root", Target: "vda"}}, d.Instance.Status.VolumeStatus, "the places that were reported")
			d.Instance.Status.VolumeStatus = nil
		}
		d.Generation = 1
		require.Equal(t, w.puts()[0], d, "what is desired is the same as before")
	}
	w.eventually("event", func() bool { return len(w.reasons()) == 1 })
}

func TestAnEndWhileNoHandlerRanIsReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.launch(protocol.State{Phase: protocol.Ended, End: &protocol.End{Reason: protocol.Crashed, Message: "QEMU was killed"}}, nil)
	w.change(func(v *vmi.VirtualMachineInstance) { v.Status.Phase = vmi.PhaseRunning })
	w.handle()
	w.phase(vmi.PhaseFailed)
	require.Equal(t, "Crashed", w.instance().Status.Reason)
	w.eventually("event", func() bool { return slices.Equal(w.reasons(), []string{"W Stopped"}) })
	require.Empty(t, w.puts())
}

func TestALauncherThatIsGoneForAMomentCausesNoWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, kill := w.launch(protocol.State{Phase: protocol.Waiting}, obey)
	c, _ := w.handle()
	w.phase(vmi.PhaseRunning)
	kill()
	w.eventually("noticed", func() bool { return c.session(key, podUID).observe().State == nil })
	require.Equal(t, vmi.PhaseRunning, w.instance().Status.Phase)
	w.launch(running, obey)
	w.eventually("connected again", func() bool { return len(w.puts()) == 2 })
	require.Equal(t, 1, w.patches())
}

func TestTheSessionOfAVMIThatIsGoneIsEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.launch(protocol.State{Phase: protocol.Waiting}, obey)
	c, _ := w.handle()
	w.phase(vmi.PhaseRunning)
	w.api.mu.Lock()
	w.api.change("DELETED", func(*vmi.VirtualMachineInstance) {})
	w.api.mu.Unlock()
	w.eventually("the session is ended", func() bool { return c.session(key, podUID) == nil })
	require.Len(t, w.puts(), 1, "its pod is deleted with it; nothing is stopped")
}

func TestAConflictIsRetried(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.api.conflicts = 2
	w.launch(protocol.State{Phase: protocol.Waiting}, obey)
	w.handle()
	w.phase(vmi.PhaseRunning)
	require.GreaterOrEqual(t, w.patches(), 3)
	require.Equal(t, 1, w.written())
	w.eventually("event", func() bool { return len(w.reasons()) == 1 })
}

func TestANetworkThatCannotBeBoundIsAConditionUntilItIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.binding = errors.New("no such link")
	w.launch(protocol.State{Phase: protocol.Waiting}, obey)
	w.handle()
	synchronized := func() *vmi.Condition { return w.instance().Status.Condition(vmi.ConditionSynchronized) }
	w.eventually("condition", func() bool { return synchronized() != nil })
	require.Equal(t, "NetworkFailed", synchronized().Reason)
	require.Equal(t, "no such link", synchronized().Message)
	require.Empty(t, w.puts(), "a VMI without its network is not put")
	w.mu.Lock()
	w.binding = nil
	w.mu.Unlock()
	w.phase(vmi.PhaseRunning)
	require.Nil(t, synchronized())
	require.Equal(t, 2, w.patches())
	w.eventually("events", func() bool {
		all := w.reasons()
		slices.Sort(all)
		return slices.Equal(all, []string{"N Started", "W SyncFailed"})
	})
}

func TestALauncherOfAnotherVMIIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.change(func(v *vmi.VirtualMachineInstance) { v.UID = "another" })
	w.launch(protocol.State{Phase: protocol.Waiting}, func(*control.Server, protocol.Desired) error { return nil })
	w.handle()
	w.eventually("condition", func() bool { return w.instance().Status.Condition(vmi.ConditionSynchronized) != nil })
	require.Empty(t, w.puts())
}

func TestALauncherThatChangesItsStateAllTheTimeCausesFewWrites(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, _ := w.launch(protocol.State{Phase: protocol.Waiting}, obey)
	w.handle()
	w.phase(vmi.PhaseRunning)
	paused := running
	paused.Phase = protocol.Paused
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		s.Publish(paused)
		s.Publish(running)
		runtime.Gosched()
	}
	require.LessOrEqual(t, w.patches(), 1+requestsAtOnce, "a write for each state would be hundreds")
	s.Publish(protocol.State{Phase: protocol.Ended, End: &protocol.End{Reason: protocol.Shutdown}})
	w.phase(vmi.PhaseSucceeded)
}

func TestNewNeedsWhatIsRequired(t *testing.T) {
	t.Parallel()
	_, err := New(Config{Node: nodeName})
	require.Error(t, err)
}

func TestAStartWhileNoHandlerRanIsReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	// The handler that put the VMI was killed before the guest ran.
	w.launch(running, func(*control.Server, protocol.Desired) error { return nil })
	w.handle()
	w.phase(vmi.PhaseRunning)
	require.Equal(t, 1, w.patches())
	w.eventually("event", func() bool { return slices.Equal(w.reasons(), []string{"N Started"}) })
}
