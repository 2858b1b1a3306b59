package instance

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/internal/shorten"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
)

// notAdmitted is the reason of a pod that its node does not admit, since a device is
// not offered. A node admits a pod before it starts it, and again when it was
// restarted itself.
const notAdmitted = "UnexpectedAdmissionError"

// leaving says that a migration moves, or has moved, the VMI from the node of its active
// pod, and has not failed. A launcher that reports so without one is not believed.
func leaving(o Observed) bool {
	m := o.VMI.Status.MigrationState
	return m != nil && !m.Failed && m.SourceNode != "" && m.SourceNode == o.Pods.Active.Spec.NodeName
}

// podGone is why a VMI failed whose pod does not exist.
func podGone(o Observed) vmi.Finding {
	if f, ok := o.VMI.Status.Disruption(); ok && f.Reason != PodDeleted {
		f.Message += "; how the guest ended is not known"
		return f
	}
	if fenced(o.Node) {
		return nodeGone(o)
	}
	return vmi.Finding{Reason: PodGone, Message: "the pod of the VMI does not exist any more"}
}

// nodeGone is why a VMI failed whose node is fenced.
func nodeGone(o Observed) vmi.Finding {
	if o.Node.Object == nil {
		return vmi.Finding{Reason: NodeUnresponsive, Message: fmt.Sprintf("node %s of the VMI does not exist any more", o.Node.Name)}
	}
	return vmi.Finding{Reason: NodeUnresponsive, Message: fmt.Sprintf("node %s of the VMI does not respond and is out of service", o.Node.Name)}
}

// runs reports whether the pod's launcher runs on a node.
func runs(p *corev1.Pod) bool {
	if p.Spec.NodeName == "" || p.DeletionTimestamp != nil {
		return false
	}
	s := launched.Compute(p)
	return s != nil && s.State.Running != nil
}

// end is how a pod ended.
type end struct {
	succeeded bool
	// at is the time, or zero if it is not known.
	at time.Time
	// byNode says that Kubernetes, or its node, ended the pod, which the launcher did
	// not survive to report.
	byNode bool
	// disrupted says that the pod was ended from outside, and the guest with it.
	disrupted bool
	// movedAway says that the launcher reports that the guest runs in another pod.
	movedAway bool
	vmi.Finding
}

// endOf reads how a pod that is over ended: what its node says about it, or else
// what its launcher says, or else what the first container says that failed.
func endOf(p *corev1.Pod) end {
	e := end{Finding: vmi.Finding{Reason: PodFailed, Message: p.Status.Message}}
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		t := s.State.Terminated
		switch {
		case t == nil:
		case s.Name == vmi.ComputeContainer:
			e = end{succeeded: t.ExitCode == 0, at: t.FinishedAt.Time, Finding: e.Finding}
			if f := said(s.Name, t); t.ExitCode != 0 {
				e.Finding = f
			} else if launched.MovedAway(p) {
				e.succeeded, e.movedAway, e.Finding = false, true, f
			}
		case t.ExitCode != 0 && e.at.IsZero():
			e.at, e.Finding = t.FinishedAt.Time, said(s.Name, t)
		}
	}
	if f, ok := endByNode(p); ok {
		e.byNode = !e.succeeded
		e.succeeded, e.Finding = false, f
		return e
	}
	said := protocol.End{Reason: protocol.EndReason(e.Reason), Message: e.Message}
	if e.succeeded {
		said = protocol.End{Reason: protocol.Shutdown, Message: poweredOff}
	}
	if f, ok := disruptedEnd(p, e.at, said); ok {
		e.disrupted, e.Finding = true, f
	}
	return e
}

// tooEarly is why a VMI failed whose pod ended before it was handed over, however
// well.
func tooEarly(p *corev1.Pod) vmi.Finding {
	f := endOf(p).Finding
	if f.Message == "" {
		f.Message = "the pod of the VMI ended before the guest was started"
	}
	return f
}

// maxMessage is how much of a termination message becomes a message, in bytes.
const maxMessage = 512

// said is what a container's termination message says. Only the launcher's has a
// reason; what other containers write is text.
func said(container string, t *corev1.ContainerStateTerminated) vmi.Finding {
	text := strings.TrimSpace(t.Message)
	message := fmt.Sprintf("container %s ended with exit code %d (%s)", container, t.ExitCode, t.Reason)
	if e, ok := protocol.ParseTermination(text); ok && container == vmi.ComputeContainer {
		return vmi.Finding{Reason: string(e.Reason), Message: cmp.Or(shorten.Tail(e.Message, maxMessage), message)}
	}
	if strings.Contains(text, otherArchitecture) {
		message += ", since its image is for another architecture than the node's"
	}
	return vmi.Finding{Reason: PodFailed, Message: strings.TrimSuffix(message+": "+shorten.Tail(protocol.OneLine(text), maxMessage), ": ")}
}

// otherArchitecture is what Linux says of a program for another architecture.
const otherArchitecture = "exec format error"

// fail is the end of a VMI that did not end well.
func fail(o Observed, f vmi.Finding) scheduler.Plan {
	return finish(o, vmi.PhaseFailed, f, scheduler.Emit{Warning: true, Finding: f})
}

// poweredOff is the message of a guest that powered itself off.
const poweredOff = "the guest powered off"

// succeed is the end of a VMI whose guest powered off.
func succeed(o Observed, e end) scheduler.Plan {
	if e.disrupted && o.VMI.DeletionTimestamp == nil {
		return finish(o, vmi.PhaseSucceeded, e.Finding, scheduler.Emit{Warning: true, Finding: e.Finding})
	}
	return finish(o, vmi.PhaseSucceeded, vmi.Finding{Message: poweredOff})
}

func finish(o Observed, p vmi.Phase, f vmi.Finding, events ...scheduler.Emit) scheduler.Plan {
	ready := vmi.ReasonGuestNotRunning
	if o.Pods.Active == nil {
		ready = vmi.ReasonPodNotExists
	}
	return write(o, func(s *vmi.VirtualMachineInstanceStatus, now metav1.Time) {
		s.End(p, f.Reason, vmi.Finding{Reason: ready, Message: f.Message}, now)
	}, events...)
}
