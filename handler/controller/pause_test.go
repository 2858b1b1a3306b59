package controller

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

func TestAVMIIsPausedUntilItIsUnpaused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var launcher *control.Server
	var state atomic.Pointer[protocol.State]
	state.Store(&running)
	publish := func(s protocol.State) func(context.Context) error {
		return func(context.Context) error { state.Store(&s); launcher.Publish(s); return nil }
	}
	pauses := running
	pauses.Phase, pauses.Pause = protocol.Paused, &protocol.Pause{Cause: protocol.PausedByUser}
	w.calls = map[protocol.Call]func(context.Context) error{protocol.CallPause: publish(pauses), protocol.CallUnpause: publish(running)}
	launcher, _ = w.launch(protocol.State{Phase: protocol.Waiting}, func(s *control.Server, _ protocol.Desired) error {
		s.Publish(*state.Load())
		return nil
	})
	c, stop := w.handle()
	w.phase(vmi.PhaseRunning)

	require.NoError(t, c.Pause(t.Context(), "default", "testvmi", vmitest.UID))
	w.eventually("the condition Paused", func() bool { return w.instance().Status.Condition(vmi.ConditionPaused) != nil })
	v := w.instance()
	require.Equal(t, vmi.PhaseRunning, v.Status.Phase)
	require.Equal(t, vmi.ReasonPausedByUser, v.Status.Condition(vmi.ConditionPaused).Reason)
	require.Equal(t, vmi.ReasonGuestNotRunning, v.Status.Condition(vmi.ConditionReady).Reason)
	require.Equal(t, corev1.ConditionFalse, ready(v))
	require.Equal(t, 2, w.patches(), "a pause is one write")
	require.NoError(t, c.Pause(t.Context(), "default", "testvmi", ""), "a guest that is paused")

	stop()
	c, _ = w.handle()
	w.eventually("a session of the next handler", func() bool { return len(w.puts()) == 2 })
	require.NotNil(t, w.instance().Status.Condition(vmi.ConditionPaused), "a handler that starts anew resumes nothing")

	require.NoError(t, c.Unpause(t.Context(), "default", "testvmi", vmitest.UID))
	w.eventually("no condition Paused", func() bool { return w.instance().Status.Condition(vmi.ConditionPaused) == nil })
	require.Equal(t, corev1.ConditionTrue, ready(w.instance()))
	require.Equal(t, 3, w.patches())
}

func TestAVMIThatIsNotHandledHereIsNotPaused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	called := make(chan struct{}, 10)
	w.calls = map[protocol.Call]func(context.Context) error{
		protocol.CallPause: func(context.Context) error { called <- struct{}{}; return errors.New("the guest does not run") },
	}
	w.launch(protocol.State{Phase: protocol.Waiting}, obey)
	c, _ := w.handle()
	w.phase(vmi.PhaseRunning)
	for name, call := range map[string]func() error{
		"another VMI":       func() error { return c.Pause(t.Context(), "default", "other", "") },
		"another namespace": func() error { return c.Pause(t.Context(), "other", "testvmi", "") },
		"another UID": func() error {
			return c.Pause(t.Context(), "default", "testvmi", "0b7c6f1e-2a33-4d4c-8c39-6a9d5b1f7c0d")
		},
	} {
		require.ErrorIs(t, call(), ErrNotHere, name)
	}
	require.Empty(t, called)

	err := c.Pause(t.Context(), "default", "testvmi", vmitest.UID)
	var refusal *control.Error
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, vmi.Finding{Reason: protocol.ReasonUnavailable, Message: "the guest does not run"}, refusal.Finding)
	require.ErrorContains(t, err, "pause VMI default/testvmi: ")
	require.Len(t, called, 1)
	require.ErrorAs(t, c.Unpause(t.Context(), "default", "testvmi", ""), &refusal)
	require.Equal(t, protocol.ReasonUnknown, refusal.Reason, "a launcher that does not know the call")

	w.change(func(v *vmi.VirtualMachineInstance) { v.Status.NodeName = "n2" })
	w.eventually("a VMI that is elsewhere", func() bool { return errors.Is(c.Pause(t.Context(), "default", "testvmi", ""), ErrNotHere) })
}

func TestAVMIThatIsBeingDeletedIsNotPaused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.launch(protocol.State{Phase: protocol.Waiting}, func(s *control.Server, d protocol.Desired) error {
		if d.Stop != nil {
			s.Publish(protocol.State{Phase: protocol.Stopping, Generation: d.Generation})
			return nil
		}
		return obey(s, d)
	})
	c, _ := w.handle()
	w.phase(vmi.PhaseRunning)
	w.change(func(v *vmi.VirtualMachineInstance) { v.DeletionTimestamp = new(metav1.Now()) })
	w.eventually("refused", func() bool { return errors.Is(c.Pause(t.Context(), "default", "testvmi", ""), ErrStopping) })
}
