package handler

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
)

// report completes the plan with the status that follows from what is
// observed, and with the events of its changes.
func (p *Plan) report(o Observed) {
	now := metav1.NewTime(o.Now)
	s := o.Instance.Status.DeepCopy()
	switch g := o.Link.Guest; {
	case g == nil:
	case g.Phase == GuestEnded:
		p.end(o, s, now)
	case isRunning(o):
		p.running(o, s, now)
	}
	p.synchronized(o, s, now)
	p.Status = s
}

// isRunning says that the guest runs and that its network is known, so that all
// can be said about it at once. A guest that is being stopped may never have run.
func isRunning(o Observed) bool {
	if o.Link.Guest == nil || o.Link.Plumbing == nil {
		return false
	}
	switch o.Link.Guest.Phase {
	case GuestRunning, GuestPaused:
		return true
	case GuestStopping:
		return o.Instance.Status.Phase == vmi.Running
	default:
		return false
	}
}

// running is the status of a machine whose guest runs: everything about it at
// once.
func (p *Plan) running(o Observed, s *vmi.VirtualMachineInstanceStatus, now metav1.Time) {
	g := o.Link.Guest
	if s.Phase != vmi.Running {
		p.Events = append(p.Events, Event{Reason: EventStarted, Message: "The guest was started"})
	}
	s.SetPhase(vmi.Running, now)
	s.Interfaces = o.Link.Plumbing.Interfaces
	s.VolumeStatus = g.Disks
	s.Memory = memory(&o.Instance.Spec.Domain, s.Memory)
	s.CurrentCPUTopology = topology(o.Instance.Spec.Domain.CPU)
	s.RuntimeUser = vmi.User
	if g.Machine != "" {
		s.Machine = &vmi.Machine{Type: g.Machine}
	}
	if g.Emulated {
		s.SetCondition(vmi.Condition{
			Type: vmi.ConditionSoftwareEmulation, Status: corev1.ConditionTrue, Reason: "NoHardwareVirtualization",
			Message: "The node has no usable hardware virtualization; the guest is emulated, which is much slower",
		}, now)
	} else {
		s.RemoveCondition(vmi.ConditionSoftwareEmulation)
	}
	readiness(g.Phase, s, now)
	if g.Phase != GuestStopping { // its agent goes first, and the end says it all
		agent(o, s, now)
	}
}

// readiness is Ready, and Paused while that is the reason for not being so.
func readiness(g GuestPhase, s *vmi.VirtualMachineInstanceStatus, now metav1.Time) {
	if g != GuestPaused {
		s.SetCondition(vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionTrue}, now)
		s.RemoveCondition(vmi.ConditionPaused)
		return
	}
	const message = "The guest is paused"
	s.SetCondition(vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionFalse, Reason: notRunning, Message: message}, now)
	s.SetCondition(vmi.Condition{Type: vmi.ConditionPaused, Status: corev1.ConditionTrue, Reason: vmi.ReasonPaused, Message: message}, now)
}

// notRunning is the reason of a Ready condition that is False for the guest's
// sake.
const notRunning = "GuestNotRunning"

// end is the status of a machine that has ended.
func (p *Plan) end(o Observed, s *vmi.VirtualMachineInstanceStatus, now metav1.Time) {
	e := End{Finding: Finding{Reason: "Unknown", Message: "The launcher did not say how the guest ended"}}
	if o.Link.Guest.End != nil {
		e = *o.Link.Guest.End
	}
	phase := vmi.Failed
	if e.Succeeded {
		phase = vmi.Succeeded
	}
	s.SetPhase(phase, now)
	s.Reason = e.Reason
	s.RemoveCondition(vmi.ConditionPaused)
	noAgent(s)
	message := e.Message
	if message == "" {
		message = "The guest has ended: " + e.Reason
	}
	s.SetCondition(vmi.Condition{Type: vmi.ConditionReady, Status: corev1.ConditionFalse, Reason: notRunning, Message: message}, now)
	event := Event{Warning: phase == vmi.Failed, Reason: EventStopped, Message: message}
	if o.Instance.DeletionTimestamp != nil {
		// The user wanted the end; how it came is no warning.
		event = Event{Reason: EventDeleted, Message: message}
	}
	p.Events = append(p.Events, event)
}

// synchronized is the condition that says why the machine is not as its spec
// wants it. What is over is taken back when the guest runs, in the same write.
func (p *Plan) synchronized(o Observed, s *vmi.VirtualMachineInstanceStatus, now metav1.Time) {
	if s.Phase.Final() {
		s.RemoveCondition(vmi.ConditionSynchronized)
		return
	}
	f, wait := fault(o)
	if wait > 0 {
		p.Recheck = wait
		return
	}
	switch old := s.Condition(vmi.ConditionSynchronized); {
	case f != nil && (old == nil || old.Status != corev1.ConditionFalse || old.Reason != f.Reason || old.Message != f.Message):
		s.SetCondition(vmi.Condition{Type: vmi.ConditionSynchronized, Status: corev1.ConditionFalse, Reason: f.Reason, Message: f.Message}, now)
		p.Events = append(p.Events, Event{Warning: true, Reason: EventSyncFailed, Message: fmt.Sprintf("%s: %s", f.Reason, f.Message)})
	case f == nil && isRunning(o):
		s.RemoveCondition(vmi.ConditionSynchronized)
	}
}

// fault is what goes wrong: the launcher's own problem, or one of this handler
// that has lasted. It returns how long to wait for the patience to end.
func fault(o Observed) (*Finding, time.Duration) {
	if g := o.Link.Guest; g != nil && g.Problem != nil {
		return g.Problem, 0
	}
	f := o.Link.Fault
	if f == nil {
		return nil, 0
	}
	if wait := faultPatience - o.Now.Sub(o.Link.Since); wait > 0 {
		return nil, wait
	}
	return f, 0
}

// memory is the guest's memory. What the pod is given beside it is
// virt-controller's to say and is kept.
func memory(d *vmi.DomainSpec, old *vmi.MemoryStatus) *vmi.MemoryStatus {
	guest := func() *resource.Quantity {
		q := d.GuestMemory().DeepCopy()
		return &q
	}
	m := &vmi.MemoryStatus{}
	if old != nil {
		m = old
	}
	if m.GuestAtBoot == nil {
		m.GuestAtBoot = guest()
	}
	m.GuestCurrent, m.GuestRequested = guest(), guest()
	return m
}

func topology(c *vmi.CPU) *vmi.CPUTopology {
	if c == nil {
		c = &vmi.CPU{}
	}
	return &vmi.CPUTopology{Cores: max(c.Cores, 1), Sockets: max(c.Sockets, 1), Threads: max(c.Threads, 1)}
}
