package controller

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/vmi"
)

func TestAMachineRunsAndEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.launch(control.State{Phase: control.Waiting}, obey)
	c, _ := w.handle()
	w.phase(vmi.Running)
	v := w.machine()
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
	w.phase(vmi.Succeeded)
	require.Equal(t, &control.Stop{GracePeriodSeconds: 7}, w.puts()[1].Stop)
	require.Equal(t, 2, w.patches(), "and the end another")
	require.Equal(t, "Shutdown", w.machine().Status.Reason)
	w.eventually("events", func() bool {
		all := w.reasons()
		slices.Sort(all)
		return slices.Equal(all, []string{"N Deleted", "N ShuttingDown", "N Started"})
	})
	w.eventually("the launcher is let go", func() bool { return c.session(key) == nil })
}

func TestALauncherThatComesLateIsFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, _ := w.handle()
	w.eventually("looks for it", func() bool { return c.session(key) != nil })
	w.launch(control.State{Phase: control.Waiting}, obey)
	w.phase(vmi.Running)
	require.Equal(t, 1, w.patches())
}

func TestARestartDisturbsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, _ := w.launch(control.State{Phase: control.Waiting}, obey)
	_, stop := w.handle()
	w.phase(vmi.Running)
	for i := range 3 {
		stop()
		_, stop = w.handle()
		w.eventually("the launcher is told again", func() bool { return len(w.puts()) == 2+i })
	}
	s.Publish(control.State{Phase: control.Paused, Machine: running.Machine, Disks: running.Disks})
	w.eventually("the new handler follows", func() bool { return ready(w.machine()) == corev1.ConditionFalse })
	require.Equal(t, 2, w.patches(), "a restart writes nothing")
	for _, d := range w.puts() {
		require.Equal(t, w.puts()[0], d, "what is wanted is the same as before")
	}
	w.eventually("event", func() bool { return len(w.reasons()) == 1 })
}

func TestAnEndThatNobodySawIsReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.launch(control.State{Phase: control.Ended, End: &control.End{Reason: control.Crashed, Message: "QEMU was killed"}}, nil)
	w.change(func(v *vmi.VirtualMachineInstance) { v.Status.Phase = vmi.Running })
	w.handle()
	w.phase(vmi.Failed)
	require.Equal(t, "Crashed", w.machine().Status.Reason)
	w.eventually("event", func() bool { return slices.Equal(w.reasons(), []string{"W Stopped"}) })
	require.Empty(t, w.puts())
}

func TestNothingIsConcludedFromALauncherThatIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, kill := w.launch(control.State{Phase: control.Waiting}, obey)
	c, _ := w.handle()
	w.phase(vmi.Running)
	kill()
	w.eventually("noticed", func() bool { return c.session(key).observe().Guest == nil })
	require.Equal(t, vmi.Running, w.machine().Status.Phase)
	w.launch(running, obey)
	w.eventually("connected again", func() bool { return len(w.puts()) == 2 })
	require.Equal(t, 1, w.patches())
}

func TestAMachineThatVanishesIsLetGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.launch(control.State{Phase: control.Waiting}, obey)
	c, _ := w.handle()
	w.phase(vmi.Running)
	w.api.mu.Lock()
	w.api.change("DELETED", func(*vmi.VirtualMachineInstance) {})
	w.api.mu.Unlock()
	w.eventually("let go", func() bool { return c.session(key) == nil })
	require.Len(t, w.puts(), 1, "its pod goes with it; nobody is asked to stop")
}

func TestAConflictIsOvercome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.api.conflicts = 2
	w.launch(control.State{Phase: control.Waiting}, obey)
	w.handle()
	w.phase(vmi.Running)
	require.Equal(t, 3, w.patches())
	w.eventually("event", func() bool { return len(w.reasons()) == 1 })
}

func TestAFaultIsSaidOnceAndTakenBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.plumbing = errors.New("no such link")
	w.launch(control.State{Phase: control.Waiting}, obey)
	w.handle()
	synchronized := func() *vmi.Condition { return w.machine().Status.Condition(vmi.ConditionSynchronized) }
	w.eventually("said", func() bool { return synchronized() != nil })
	require.Equal(t, "NetworkFailed", synchronized().Reason)
	require.Equal(t, "no such link", synchronized().Message)
	require.Empty(t, w.puts(), "a machine without its network does not start")
	w.mu.Lock()
	w.plumbing = nil
	w.mu.Unlock()
	w.phase(vmi.Running)
	require.Nil(t, synchronized())
	require.Equal(t, 2, w.patches())
	w.eventually("events", func() bool {
		all := w.reasons()
		slices.Sort(all)
		return slices.Equal(all, []string{"N Started", "W SyncFailed"})
	})
}

func TestARefusalIsSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.launch(control.State{Phase: control.Waiting}, func(*control.Server, control.Desired) error {
		return fmt.Errorf("%w: the disk has no bus", vmi.ErrInvalid)
	})
	w.handle()
	w.eventually("said", func() bool { return w.machine().Status.Condition(vmi.ConditionSynchronized) != nil })
	c := w.machine().Status.Condition(vmi.ConditionSynchronized)
	require.Equal(t, "LauncherRefuses", c.Reason)
	require.Contains(t, c.Message, "the disk has no bus")
}

func TestALauncherThatDoesNotAnswerHoldsUpNobodyForLong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hang := make(chan struct{})
	w.launch(control.State{Phase: control.Waiting}, func(*control.Server, control.Desired) error {
		<-hang
		return nil
	})
	defer close(hang)
	w.handle()
	w.eventually("said", func() bool { return w.machine().Status.Condition(vmi.ConditionSynchronized) != nil })
	require.Equal(t, "LauncherRefuses", w.machine().Status.Condition(vmi.ConditionSynchronized).Reason)
}

func TestALauncherOfAnotherMachineIsNotObeyed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.change(func(v *vmi.VirtualMachineInstance) { v.UID = "another" })
	w.launch(control.State{Phase: control.Waiting}, func(*control.Server, control.Desired) error { return nil })
	w.handle()
	w.eventually("said", func() bool { return w.machine().Status.Condition(vmi.ConditionSynchronized) != nil })
	require.Empty(t, w.puts())
}

func TestALauncherThatChattersIsHeardSlowly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, _ := w.launch(control.State{Phase: control.Waiting}, obey)
	w.handle()
	w.phase(vmi.Running)
	paused := running
	paused.Phase = control.Paused
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		s.Publish(paused)
		s.Publish(running)
		runtime.Gosched()
	}
	require.LessOrEqual(t, w.patches(), statesAtOnce+2*statesPerSecond, "a write for each of its states would be hundreds")
	s.Publish(control.State{Phase: control.Ended, End: &control.End{Reason: control.Shutdown}})
	w.phase(vmi.Succeeded)
}

func TestNewNeedsWhatIsRequired(t *testing.T) {
	t.Parallel()
	_, err := New(Config{Node: nodeName})
	require.Error(t, err)
}

func TestAStartThatNobodySawIsReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	// The handler that told the launcher died before the guest ran.
	w.launch(running, func(*control.Server, control.Desired) error { return nil })
	w.handle()
	w.phase(vmi.Running)
	require.Equal(t, 1, w.patches())
	w.eventually("event", func() bool { return slices.Equal(w.reasons(), []string{"N Started"}) })
}
