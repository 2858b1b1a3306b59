package handler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

func TestReadyIsTakenBackOnlyByItsWriter(t *testing.T) {
	t.Parallel()
	silence := vmi.Finding{Reason: vmi.ReasonLauncherUnresponsive, Message: "no answer"}
	tests := []struct {
		name   string
		before string // the reason of a Ready that is False; empty: it is True
		state  *protocol.State
		want   string // the reason of a Ready that is False, or True
	}{
		{"a guest that runs", "GuestNotRunning", state(protocol.Running), "True"},
		{"a guest that runs in a pod that is not ready", "ContainersNotReady", state(protocol.Running), "ContainersNotReady"},
		{"a guest that runs on a node that does not answer", "NodeUnresponsive", state(protocol.Running), "NodeUnresponsive"},
		{"a guest that is paused", "GuestNotRunning", state(protocol.Paused), "GuestNotRunning"},
		{"a guest that is paused in a pod that is not ready", "PodTerminating", state(protocol.Paused), "PodTerminating"},
		{"a launcher that does not answer", "", nil, "LauncherUnresponsive"},
		{"a launcher that does not answer after a pause", "GuestNotRunning", nil, "LauncherUnresponsive"},
		{"a guest whose launcher answers again", "LauncherUnresponsive", state(protocol.Running), "True"},
		{"a guest whose launcher's socket is safe again", "LauncherUnsafe", state(protocol.Running), "True"},
		{"a launcher that does not answer in a pod that is not ready", "PodTerminating", nil, "PodTerminating"},
		{"a guest that has ended in a pod that is not ready", "PodTerminating", state(protocol.Ended), "GuestNotRunning"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v := instance(vmi.PhaseRunning, withCondition(vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionFalse, Reason: tt.before}))
			if tt.before == "" {
				v.Status.Conditions[0].Status = corev1.ConditionTrue
			}
			s := session(v, tt.state)
			if tt.state == nil {
				s.Finding, s.Since = &silence, now.Add(-SilenceDelay)
			}
			c := Decide(observed(v, s)).Status.Condition(vmi.ConditionReady)
			if tt.want == "True" {
				require.Equal(t, corev1.ConditionTrue, c.Status)
				require.Empty(t, c.Reason)
				return
			}
			require.Equal(t, corev1.ConditionFalse, c.Status)
			require.Equal(t, tt.want, c.Reason)
		})
	}
}

func TestEveryReasonIsTakenBackByItsOwner(t *testing.T) {
	t.Parallel()
	for _, r := range vmi.NotReadyReasons() {
		v := instance(vmi.PhaseRunning, withCondition(vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionFalse, Reason: r.Reason}))
		s := Decide(observed(v, session(v, state(protocol.Running)))).Status
		taken := s != nil && s.Condition(vmi.ConditionReady).Status == corev1.ConditionTrue
		require.Equal(t, r.Owner == vmi.HandlerOwns, taken, r.Reason)
	}
}

func TestAPausedGuestHasTheCauseAndTheVolume(t *testing.T) {
	t.Parallel()
	paused := func(p *protocol.Pause) *protocol.State { return &protocol.State{Phase: protocol.Paused, Pause: p} }
	full := &protocol.Pause{Cause: protocol.PausedByIOError, Volume: "root", Message: "No space left on device"}
	said := "The guest was paused by an I/O error on volume root: No space left on device"
	before := func(reason string) *vmi.Condition {
		return &vmi.Condition{Type: vmi.ConditionPaused, Status: corev1.ConditionTrue, Reason: reason, Message: said}
	}
	failed, resumed := []Event{warning("IOerror", said)}, []Event{normal("Resumed", "The guest was resumed")}
	tests := []struct {
		name   string
		before *vmi.Condition
		state  *protocol.State
		want   *vmi.Finding
		events []Event
	}{
		{"no cause", nil, paused(nil), &vmi.Finding{Reason: "Paused", Message: "The guest is paused"}, nil},
		{"a user", nil, paused(&protocol.Pause{Cause: protocol.PausedByUser}), &vmi.Finding{Reason: "PausedByUser", Message: "The guest was paused by a request"}, nil},
		{"a migration", nil, paused(&protocol.Pause{Cause: protocol.PausedByMigration}), &vmi.Finding{Reason: "PausedByMigrationMonitor", Message: "The guest was paused by its migration"}, nil},
		{"a watchdog", nil, paused(&protocol.Pause{Cause: protocol.PausedByWatchdog}), &vmi.Finding{Reason: "PausedWatchdog", Message: "The guest was paused by its watchdog"}, nil},
		{"a signal", nil, paused(&protocol.Pause{Cause: protocol.PausedBySignal}), &vmi.Finding{Reason: "PausedSignal", Message: "The guest stands still, since a signal has stopped QEMU"}, nil},
		{"a panic", nil, paused(&protocol.Pause{Cause: protocol.PausedByPanic}), &vmi.Finding{Reason: "PausedPanic", Message: "The guest was paused because its kernel crashed"}, nil},
		{"a cause of a newer launcher", nil, paused(&protocol.Pause{Cause: "Sleep", Message: "it sleeps"}), &vmi.Finding{Reason: "Paused", Message: "The guest is paused: it sleeps"}, nil},
		{"an I/O error", nil, paused(full), &vmi.Finding{Reason: "PausedIOError", Message: said}, failed},
		{"an I/O error that lasts", before("PausedIOError"), paused(full), &vmi.Finding{Reason: "PausedIOError", Message: said}, nil},
		{"an I/O error after another cause", before("PausedByUser"), paused(full), &vmi.Finding{Reason: "PausedIOError", Message: said}, failed},
		{"an I/O error on a volume that is not in the spec", nil, paused(&protocol.Pause{Cause: protocol.PausedByIOError, Volume: "other"}),
			&vmi.Finding{Reason: "PausedIOError", Message: "The guest was paused by an I/O error"}, []Event{warning("IOerror", "The guest was paused by an I/O error")}},
		{"a guest that is resumed", before("PausedIOError"), state(protocol.Running), nil, resumed},
		{"a guest that was not paused", nil, state(protocol.Running), nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v := instance(vmi.PhaseRunning)
			if tt.before != nil {
				withCondition(*tt.before)(v)
			}
			p := Decide(observed(v, session(v, tt.state)))
			var got *vmi.Finding
			if c := p.Status.Condition(vmi.ConditionPaused); c != nil {
				require.Equal(t, corev1.ConditionTrue, c.Status)
				got = &vmi.Finding{Reason: c.Reason, Message: c.Message}
				ready := p.Status.Condition(vmi.ConditionReady)
				require.Equal(t, vmi.ReasonGuestNotRunning, ready.Reason)
				require.Equal(t, c.Message, ready.Message)
			}
			require.Equal(t, tt.want, got)
			require.Equal(t, tt.events, p.Events)
		})
	}
}

func TestAGuestThatIsStoppedWhileItIsPausedDoesNotBecomeReady(t *testing.T) {
	t.Parallel()
	v := instance(vmi.PhaseRunning)
	paused := Decide(observed(v, session(v, state(protocol.Paused)))).Status
	require.Equal(t, corev1.ConditionFalse, paused.Condition(vmi.ConditionReady).Status)
	v.Status = *paused
	p := Decide(observed(v, session(v, state(protocol.Stopping))))
	require.Equal(t, paused, p.Status, "nothing is written before its end")
	require.Empty(t, p.Events)
}

func TestAGuestWithAReadinessProbeIsReadyAfterAPauseWhenItsPodIs(t *testing.T) {
	t.Parallel()
	v := instance(vmi.PhaseRunning)
	v.Status = *Decide(observed(v, session(v, state(protocol.Paused)))).Status
	require.Equal(t, corev1.ConditionTrue, Decide(observed(v, session(v, state(protocol.Running)))).Status.Condition(vmi.ConditionReady).Status, "without a probe at once")

	v.Spec.ReadinessProbe = &vmi.Probe{ProbeHandler: vmi.ProbeHandler{GuestAgentPing: &vmi.GuestAgentPing{}}}
	resumed := Decide(observed(v, session(v, state(protocol.Running)))).Status
	require.Nil(t, resumed.Condition(vmi.ConditionPaused))
	require.Equal(t, corev1.ConditionFalse, resumed.Condition(vmi.ConditionReady).Status)
	require.Equal(t, "ContainersNotReady", resumed.Condition(vmi.ConditionReady).Reason, "which virt-controller takes back")
	v.Status = *resumed
	require.Equal(t, resumed, Decide(observed(v, session(v, state(protocol.Running)))).Status, "and virt-handler keeps")
}

func TestEachIOErrorHasOneEvent(t *testing.T) {
	t.Parallel()
	v := instance(vmi.PhaseRunning)
	failed := &protocol.State{Phase: protocol.Paused, Pause: &protocol.Pause{Cause: protocol.PausedByIOError, Volume: "root"}}
	var all []string
	for i, s := range []*protocol.State{state(protocol.Running), failed, failed, state(protocol.Running), failed, failed} {
		o := observed(v, session(v, s))
		o.Now = now.Add(time.Duration(i) * time.Minute)
		p := Decide(o)
		v.Status = *p.Status
		for _, e := range p.Events {
			all = append(all, e.Reason)
		}
	}
	require.Equal(t, []string{"IOerror", "Resumed", "IOerror"}, all)
}
