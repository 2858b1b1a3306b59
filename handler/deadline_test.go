package handler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// since makes the VMI Scheduled for d.
func since(d time.Duration) vmitest.Option {
	return func(v *vmi.VirtualMachineInstance) {
		v.Status.PhaseTransitionTimestamps = []vmi.PhaseTransitionTimestamp{{Phase: vmi.PhaseScheduled, PhaseTransitionTimestamp: metav1.NewTime(now.Add(-d))}}
	}
}

func TestAGuestThatDoesNotStartFailsAtTheDeadline(t *testing.T) {
	t.Parallel()
	old := since(4 * time.Minute)
	finding := &vmi.Finding{Reason: "NoDisk", Message: "the image is missing"}
	stop := func(v *vmi.VirtualMachineInstance) []Action { return []Action{Put{*desired(v, 2, &protocol.Stop{})}} }
	tests := []struct {
		name    string
		v       *vmi.VirtualMachineInstance
		state   *protocol.State
		session func(*Session)
		reason  string // of Failed; empty: it has not failed
		message string
		actions func(*vmi.VirtualMachineInstance) []Action
	}{
		{"a launcher that does not answer", instance(vmi.PhaseScheduled, old), nil, nil,
			vmi.ReasonLauncherUnresponsive, "The guest did not start within 3m0s: the launcher does not answer", nil},
		{"a launcher that did answer until a moment ago", instance(vmi.PhaseScheduled, old), nil, func(s *Session) { s.Since = now.Add(-time.Second) }, "", "", nil},
		{"a launcher that does not answer, before the deadline", instance(vmi.PhaseScheduled, since(2*time.Minute)), nil, nil, "", "", nil},
		{"a network that cannot be bound", instance(vmi.PhaseScheduled, old), state(protocol.Waiting), func(s *Session) {
			s.Network, s.Put, s.Finding = nil, nil, &vmi.Finding{Reason: ReasonNetworkFailed, Message: "no such link"}
		}, ReasonNetworkFailed, "The guest did not start within 3m0s: no such link", func(v *vmi.VirtualMachineInstance) []Action {
			d := desired(v, 2, &protocol.Stop{})
			d.Interfaces = nil
			return []Action{Put{*d}}
		}},
		{"a launcher that refuses", instance(vmi.PhaseScheduled, old), state(protocol.Waiting), func(s *Session) {
			s.Put, s.Finding = nil, &vmi.Finding{Reason: ReasonLauncherRefuses, Message: "no"}
		}, ReasonLauncherRefuses, "The guest did not start within 3m0s: no", stop},
		{"a start that is tried again", instance(vmi.PhaseScheduled, old), &protocol.State{Phase: protocol.Starting, Finding: finding}, nil,
			"NoDisk", "The guest did not start within 3m0s: the image is missing", stop},
		{"a launcher that only waits", instance(vmi.PhaseScheduled, old), state(protocol.Waiting), nil,
			ReasonStartTimeout, "The guest did not start within 3m0s: the launcher reports phase Waiting and no cause", stop},
		{"a launcher that only starts", instance(vmi.PhaseScheduled, old), state(protocol.Starting), nil,
			ReasonStartTimeout, "The guest did not start within 3m0s: the launcher reports phase Starting and no cause", stop},
		{"a finding of before the connection was made again", instance(vmi.PhaseScheduled, old, withCondition(vmi.Condition{
			Type: vmi.ConditionSynchronized, Status: corev1.ConditionFalse, Reason: ReasonNetworkFailed, Message: "no such link",
		})), state(protocol.Waiting), nil, ReasonNetworkFailed, "The guest did not start within 3m0s: no such link", stop},
		{"a launcher that only starts, before the deadline", instance(vmi.PhaseScheduled, since(2*time.Minute)), state(protocol.Starting), nil, "", "", nil},
		{"a guest that is stopping has the deadline of its stop", instance(vmi.PhaseScheduled, old), state(protocol.Stopping), nil, "", "", nil},
		{"a VMI that is being deleted is virt-controller's to end", instance(vmi.PhaseScheduled, old, deleted), nil, nil, "", "", nil},
		{"a guest that runs", instance(vmi.PhaseScheduled, old), state(protocol.Running), nil, "", "", nil},
		{"a guest that ran and whose launcher does not answer", instance(vmi.PhaseRunning, old), nil, nil, "", "", nil},
		{"a guest that ran and whose launcher reports a finding", instance(vmi.PhaseRunning, old), &protocol.State{Phase: protocol.Starting, Finding: finding}, nil, "", "", nil},
		{"a handler that has just started", instance(vmi.PhaseScheduled, old), state(protocol.Starting), func(s *Session) { s.Began = now.Add(-time.Second) }, "", "", nil},
		{"a handler that has just started and gets no answer", instance(vmi.PhaseScheduled, old), nil, func(s *Session) { s.Began = now.Add(-10 * time.Second) }, "", "", nil},
		{"a status without times, soon", instance(vmi.PhaseScheduled), state(protocol.Starting), nil, "", "", nil},
		{"a status without times, late", instance(vmi.PhaseScheduled), state(protocol.Starting), func(s *Session) { s.Began = now.Add(-StartDeadline) },
			ReasonStartTimeout, "The guest did not start within 3m0s: the launcher reports phase Starting and no cause", stop},
		{"a status with a time in the future", instance(vmi.PhaseScheduled, since(-time.Hour)), state(protocol.Starting), func(s *Session) { s.Began = now.Add(-StartDeadline) },
			ReasonStartTimeout, "The guest did not start within 3m0s: the launcher reports phase Starting and no cause", stop},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := session(tt.v, tt.state)
			s.Began, s.Since = now.Add(-2*time.Minute), now.Add(-2*time.Minute)
			if tt.session != nil {
				tt.session(s)
			}
			p := Decide(observed(tt.v, s))
			if tt.reason == "" {
				require.False(t, p.Status.Phase.Final())
				return
			}
			require.Equal(t, vmi.PhaseFailed, p.Status.Phase)
			require.Equal(t, tt.reason, p.Status.Reason)
			ready := p.Status.Condition(vmi.ConditionReady)
			if tt.state == nil { // the guest may run
				require.Equal(t, corev1.ConditionUnknown, ready.Status)
				require.Equal(t, vmi.ReasonLauncherUnresponsive, ready.Reason)
			} else {
				require.Equal(t, corev1.ConditionFalse, ready.Status)
				require.Equal(t, vmi.ReasonGuestNotRunning, ready.Reason)
			}
			require.Equal(t, tt.message, ready.Message)
			require.Equal(t, []Event{warning(EventStopped, tt.message)}, p.Events)
			var want []Action
			if tt.actions != nil {
				want = tt.actions(tt.v)
			}
			require.Equal(t, want, p.Actions)
		})
	}
}

// A session without a single event must reach its end by rechecks alone.
func TestRechecksAloneEndAVMIWhoseLauncherNeverAnswers(t *testing.T) {
	t.Parallel()
	for name, phase := range map[string]*protocol.State{"it does not answer": nil, "it waits": state(protocol.Waiting), "it starts": state(protocol.Starting)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := instance(vmi.PhaseScheduled, since(time.Second))
			o := observed(v, nil)
			o.Now = now
			decisions := 0
			for !o.Instance.Status.Phase.Final() {
				p := Decide(o)
				o = done(o, p)
				if o.Session != nil && o.Session.State == nil && phase != nil {
					o.Session.State = phase // it answers at once, and then never changes
					continue
				}
				if p.Recheck == 0 && len(p.Actions) == 0 {
					break
				}
				o.Now = o.Now.Add(p.Recheck)
				decisions++
				require.Less(t, decisions, 10, "no polling")
			}
			require.Equal(t, vmi.PhaseFailed, o.Instance.Status.Phase)
			require.LessOrEqual(t, o.Now.Sub(now), StartDeadline+SilenceDelay)
		})
	}
}
