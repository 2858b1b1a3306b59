package handler

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// report completes the plan with the status that follows from what is
// observed, and with the events of its changes.
func (p *Plan) report(o Observed) {
	if state := o.Session.State; state != nil && state.Phase == protocol.Ended {
		if !movedAway(o, state.End) {
			p.ended(o, state.End)
		}
		return
	}
	now := metav1.NewTime(o.Now)
	s := o.Instance.Status.DeepCopy()
	if runs(o) && !standsStill(o) {
		p.running(o, s, now)
	}
	p.moving(o, s, now)
	if !isSent(o) {
		p.obstacle(o, s, now)
	}
	s.Explain()
	if starts(o) {
		p.recheck(deadline(o).Sub(o.Now))
	}
	p.Status = s
}

// runs says that the guest runs and that its network is known, so that
// everything can be reported at once. A guest that is being stopped may never
// have run.
func runs(o Observed) bool {
	if o.Session.State == nil || o.Session.Network == nil {
		return false
	}
	switch o.Session.State.Phase {
	case protocol.Running, protocol.Paused:
		return true
	case protocol.Stopping:
		return o.Instance.Status.Phase == vmi.PhaseRunning
	default:
		return false
	}
}

// running is the status of a VMI whose guest runs.
func (p *Plan) running(o Observed, s *vmi.VirtualMachineInstanceStatus, now metav1.Time) {
	state := o.Session.State
	if s.Phase != vmi.PhaseRunning {
		p.Events = append(p.Events, normal(EventStarted, "The guest was started"))
	}
	s.SetPhase(vmi.PhaseRunning, now)
	s.Interfaces = interfaces(o.Instance, o.Bindings, linked(o.Session.Network.Interfaces, state.Links), state.Interfaces)
	s.VolumeStatus = volumes(o.Instance, state.Disks)
	s.Memory = memory(&o.Instance.Spec.Domain, s.Memory)
	s.CurrentCPUTopology = topology(o.Instance.Spec.Domain.CPU)
	s.RuntimeUser = vmi.RuntimeUID
	if state.Machine != "" {
		s.Machine = &vmi.Machine{Type: state.Machine}
	}
	// A launcher reads the files once; one that reports others later causes no write.
	if s.KernelBootStatus == nil && o.Instance.Spec.Domain.BootContainer() != nil {
		s.KernelBootStatus = state.KernelBoot
	}
	// A guest keeps its number as long as it runs.
	if on := o.Instance.Spec.Domain.Devices.AutoattachVSOCK; s.VSOCKCID == nil && on != nil && *on && state.VSOCKCID != 0 {
		s.VSOCKCID = new(state.VSOCKCID)
	}
	if state.Emulated {
		s.SetCondition(vmi.Condition{
			Type: vmi.ConditionSoftwareEmulation, Status: corev1.ConditionTrue, Reason: "NoHardwareVirtualization",
			Message: "The node has no usable hardware virtualization; the guest is emulated, which is much slower",
		}, now)
	} else {
		s.RemoveCondition(vmi.ConditionSoftwareEmulation)
	}
	s.FSFreezeStatus = frozen(state)
	movable(state, s, now)
	p.paused(o, s, now)
	p.occurred(o, s)
	p.notBooted(state, s, now)
	if state.Phase != protocol.Stopping { // the agent ends before the guest, and the end removes its conditions
		agent(o, s, now)
		p.credentials(o.Instance, state, s, now)
	}
}

// volumes are the status of the disks that are in the spec, each once.
func volumes(v *vmi.VirtualMachineInstance, disks []protocol.Disk) []vmi.VolumeStatus {
	var all []vmi.VolumeStatus
	for _, d := range disks {
		listed := slices.ContainsFunc(all, func(s vmi.VolumeStatus) bool { return s.Name == d.Name })
		if hasVolume(v, d.Name) && !listed {
			all = append(all, vmi.VolumeStatus{Name: d.Name, Target: d.Target, Size: d.SizeBytes, PersistentVolumeClaimInfo: claim(v, d.Name)})
		}
	}
	return all
}

// claim is what virt-controller wrote about the claim of the volume. Nil: nothing.
func claim(v *vmi.VirtualMachineInstance, volume string) *vmi.PersistentVolumeClaimInfo {
	for _, s := range v.Status.VolumeStatus {
		if s.Name == volume {
			return s.PersistentVolumeClaimInfo
		}
	}
	return nil
}

func hasVolume(v *vmi.VirtualMachineInstance, name string) bool {
	return slices.ContainsFunc(v.Spec.Volumes, func(volume vmi.Volume) bool { return volume.Name == name })
}

// movedAway says that the guest has moved from this node, which ends no VMI: the handler
// of the node that it has moved to reports it. A launcher that says so without a migration
// from here is not believed.
func movedAway(o Observed, e *protocol.End) bool {
	m := o.Instance.Status.MigrationState
	return e != nil && e.Reason == protocol.MovedAway && m != nil && m.SourceNode == o.Node && !m.Failed
}

// ended is the end that the launcher reports.
func (p *Plan) ended(o Observed, e *protocol.End) {
	if e == nil {
		e = &protocol.End{Reason: protocol.UnknownReason, Message: "The launcher did not report how the guest ended"}
	}
	phase, f := vmi.PhaseFailed, vmi.Finding{Reason: string(e.Reason), Message: e.Message}
	if e.Reason.Succeeded() {
		phase = vmi.PhaseSucceeded
	}
	switch {
	case o.Instance.DeletionTimestamp == nil:
		if d, ok := disrupted(o, e); ok {
			f = d
		}
	case e.Reason == protocol.Cancelled:
		f.Message = "the VMI was deleted before its guest ran"
	}
	p.finish(o, phase, f)
}

// disrupted is how a VMI ended whose pod was ended, as by an eviction: virt-controller has
// written by what, or else the launcher says that it was. No handler reads pods, and a
// virt-controller that is drained with the VMI writes nothing.
func disrupted(o Observed, e *protocol.End) (vmi.Finding, bool) {
	f, ok := o.Instance.Status.Disruption()
	switch {
	case ok || !e.Terminated:
	case isRemoved(o):
		f, ok = vmi.Finding{Reason: vmi.ReasonPodDeleted, Message: "the pod of the VMI was deleted"}, true
	default:
		f, ok = vmi.Finding{Reason: vmi.ReasonEvicted, Message: vmi.UnknownDisruption}, true
	}
	if !ok {
		return f, false
	}
	return e.DisruptedBy(f)
}

// finish is the status and the event of a VMI that has ended.
func (p *Plan) finish(o Observed, phase vmi.Phase, f vmi.Finding) {
	s := o.Instance.Status.DeepCopy()
	if f.Message == "" {
		f.Message = "The guest has ended: " + f.Reason
	}
	s.End(phase, f.Reason, vmi.Finding{Reason: vmi.ReasonGuestNotRunning, Message: f.Message}, metav1.NewTime(o.Now))
	p.occurred(o, s)
	p.Status = s
	switch {
	case o.Instance.DeletionTimestamp != nil:
		// The user requested the end, so the event is no warning.
		p.Events = append(p.Events, normal(EventDeleted, f.Message))
	case phase == vmi.PhaseFailed, s.Disrupted():
		p.Events = append(p.Events, warning(EventStopped, f.Message))
	default:
		p.Events = append(p.Events, normal(EventStopped, f.Message))
	}
}

// obstacle is the condition that says why the VMI is not as it is desired. It is
// removed when the guest runs, in the write that reports that.
func (p *Plan) obstacle(o Observed, s *vmi.VirtualMachineInstanceStatus, now metav1.Time) {
	f, wait := obstacle(o)
	switch {
	case wait > 0:
		p.recheck(wait)
	case f != nil:
		p.notSynchronized(*f, s, now)
		if o.Session.State == nil {
			unresponsive(*f, s, now)
		}
	case runs(o):
		s.RemoveCondition(vmi.ConditionSynchronized)
	}
}

func (p *Plan) notSynchronized(f vmi.Finding, s *vmi.VirtualMachineInstanceStatus, now metav1.Time) {
	p.warn(f, warning(EventSyncFailed, fmt.Sprintf("%s: %s", f.Reason, f.Message)), s, now)
}

// warn makes Synchronized False because of the finding, with the event if that is
// new.
func (p *Plan) warn(f vmi.Finding, e Event, s *vmi.VirtualMachineInstanceStatus, now metav1.Time) {
	c := vmi.Condition{Type: vmi.ConditionSynchronized, Status: corev1.ConditionFalse, Reason: f.Reason, Message: f.Message}
	if old := s.Condition(c.Type); old != nil && old.Status == c.Status && old.Reason == c.Reason && old.Message == c.Message {
		return
	}
	s.SetCondition(c, now)
	p.Events = append(p.Events, e)
}

// memory is the guest's memory. The overhead is virt-controller's and is kept.
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
