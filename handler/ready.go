package handler

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// foreign says that Ready is not True for a reason that is not virt-handler's. It was written
// by virt-controller, about the pod or the node, and stays until virt-controller takes
// it back.
func foreign(s *vmi.VirtualMachineInstanceStatus) bool {
	c := s.Condition(vmi.ConditionReady)
	return c != nil && c.Status != corev1.ConditionTrue && vmi.NotReadyBy(c.Reason) != vmi.HandlerOwns
}

func notReady(reason, message string) vmi.Condition {
	return vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionFalse, Reason: reason, Message: message}
}

// unresponsive makes a VMI not ready whose launcher does not answer: whether its guest
// runs is not known. One whose guest has not started is not ready anyway.
func unresponsive(f vmi.Finding, s *vmi.VirtualMachineInstanceStatus, now metav1.Time) {
	if s.Phase == vmi.PhaseRunning && !foreign(s) {
		s.SetCondition(notReady(f.Reason, "It is not known whether the guest runs: "+f.Message), now)
	}
}

// paused makes Ready and Paused what the guest's phase says, with the events of a
// change of Paused. A guest that is stopped while it is paused stays so to its end.
func (p *Plan) paused(o Observed, s *vmi.VirtualMachineInstanceStatus, now metav1.Time) {
	old := s.Condition(vmi.ConditionPaused)
	if old != nil && o.Session.State.Phase == protocol.Stopping {
		return
	}
	if o.Session.State.Phase != protocol.Paused {
		if old != nil {
			p.Events = append(p.Events, normal(EventResumed, "The guest was resumed"))
		}
		s.RemoveCondition(vmi.ConditionPaused)
		if !foreign(s) {
			s.SetCondition(resumed(o, old != nil), now)
		}
		return
	}
	c := pause(o)
	if c.Reason == vmi.ReasonPausedIOError && (old == nil || old.Status != c.Status || old.Reason != c.Reason) {
		p.Events = append(p.Events, warning(EventIOError, c.Message))
	}
	s.SetCondition(c, now)
	if !foreign(s) {
		s.SetCondition(notReady(vmi.ReasonGuestNotRunning, c.Message), now)
	}
}

// resumed is the condition Ready of a guest that runs, and that was paused before or
// was not. The readiness probe of one that was may have failed meanwhile: that it has
// not is for virt-controller to write, which knows the pod.
func resumed(o Observed, wasPaused bool) vmi.Condition {
	if wasPaused && o.Instance.Spec.ReadinessProbe != nil {
		return notReady(vmi.ReasonContainersNotReady, "The guest was resumed and has not answered its readiness probe yet")
	}
	return vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionTrue}
}

// causes are the reason and the message of each cause of a pause.
var causes = map[protocol.PauseCause]vmi.Finding{
	protocol.PausedByUser:      {Reason: vmi.ReasonPausedByUser, Message: "The guest was paused by a request"},
	protocol.PausedByIOError:   {Reason: vmi.ReasonPausedIOError, Message: "The guest was paused by an I/O error"},
	protocol.PausedByWatchdog:  {Reason: vmi.ReasonPausedWatchdog, Message: "The guest was paused by its watchdog"},
	protocol.PausedByMigration: {Reason: vmi.ReasonPausedByMigrationMonitor, Message: "The guest was paused by its migration"},
	protocol.PausedBySignal:    {Reason: vmi.ReasonPausedSignal, Message: "The guest stands still, since a signal has stopped QEMU"},
	protocol.PausedByPanic:     {Reason: vmi.ReasonPausedPanic, Message: "The guest was paused because its kernel crashed"},
}

// pause is the Paused condition of a guest that is paused. A volume is named if
// the spec has it.
func pause(o Observed) vmi.Condition {
	f := vmi.Finding{Reason: vmi.ReasonPaused, Message: "The guest is paused"}
	if why := o.Session.State.Pause; why != nil {
		if known, ok := causes[why.Cause]; ok {
			f = known
		}
		if hasVolume(o.Instance, why.Volume) {
			f.Message += " on volume " + why.Volume
		}
		if why.Message != "" {
			f.Message += ": " + why.Message
		}
	}
	return vmi.Condition{Type: vmi.ConditionPaused, Status: corev1.ConditionTrue, Reason: f.Reason, Message: f.Message}
}
