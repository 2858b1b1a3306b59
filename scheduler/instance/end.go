package instance

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/vmi"
)

// Reasons why a machine failed, as far as the cluster side finds out.
const (
	// PodGone: somebody removed the pod.
	PodGone = "PodGone"
	// PodFailed: the pod ended, and nothing says why.
	PodFailed = "PodFailed"
	// NodeUnresponsive: the node does not answer any more.
	NodeUnresponsive = "NodeUnresponsive"
)

var podGone = scheduler.Finding{Reason: PodGone, Message: "the machine's pod does not exist any more"}

// runs says that the pod's launcher runs on a node.
func runs(p *corev1.Pod) bool {
	if p.Spec.NodeName == "" || p.DeletionTimestamp != nil {
		return false
	}
	s := compute(p)
	return s != nil && s.State.Running != nil
}

// over says that the pod has ended: its launcher does not run and never will
// again. Containers that somebody else put in may still run.
func over(p *corev1.Pod) bool {
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return true
	}
	s := compute(p)
	return s != nil && s.State.Terminated != nil
}

// compute is the state of the launcher's container, or nil if there is none yet.
func compute(p *corev1.Pod) *corev1.ContainerStatus {
	i := slices.IndexFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == vmi.ComputeContainer })
	if i < 0 {
		return nil
	}
	return &p.Status.ContainerStatuses[i]
}

// end is how a pod ended.
type end struct {
	succeeded bool
	// at is the time, or zero if it is not known.
	at time.Time
	scheduler.Finding
}

// endOf reads how a pod that is over ended: what its node says about it, or else
// what the first container that did not end well says.
func endOf(p *corev1.Pod) end {
	e := end{Finding: scheduler.Finding{Reason: PodFailed, Message: p.Status.Message}}
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		t := s.State.Terminated
		if t == nil {
			continue
		}
		if s.Name == vmi.ComputeContainer {
			e.succeeded, e.at = t.ExitCode == 0, t.FinishedAt.Time
		}
		if t.ExitCode != 0 {
			e.at, e.Finding = t.FinishedAt.Time, said(s.Name, t)
			break
		}
	}
	switch {
	case nodeLost(p):
		e.succeeded, e.Finding = false, scheduler.Finding{Reason: NodeUnresponsive, Message: "the node of the machine's pod does not answer"}
	case p.Status.Reason != "":
		e.succeeded, e.Finding = false, scheduler.Finding{Reason: p.Status.Reason, Message: p.Status.Message}
	}
	return e
}

// tooEarly is why a machine failed whose pod ended before its time, however well.
func tooEarly(p *corev1.Pod) scheduler.Finding {
	f := endOf(p).Finding
	if f.Message == "" {
		f.Message = "the machine's pod ended before the machine was started"
	}
	return f
}

// nodeLost says that the pod was given up because of its node.
func nodeLost(p *corev1.Pod) bool {
	if p.Status.Reason == "NodeLost" {
		return true
	}
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && c.Reason == "DeletionByPodGC"
	})
}

// lastWords matches the last words of a launcher: a reason in one word and a message.
var lastWords = regexp.MustCompile(`^([A-Z][A-Za-z]{2,63}): (.+)$`)

// maxMessage is how much of a container's last words becomes a message.
const maxMessage = 512

// said reads a container's last words.
func said(container string, t *corev1.ContainerStateTerminated) scheduler.Finding {
	text := strings.TrimSpace(t.Message)
	if m := lastWords.FindStringSubmatch(text); m != nil {
		return scheduler.Finding{Reason: m[1], Message: m[2]}
	}
	if len(text) > maxMessage {
		text = "…" + strings.ToValidUTF8(text[len(text)-maxMessage:], "")
	}
	return scheduler.Finding{
		Reason:  PodFailed,
		Message: strings.TrimSuffix(fmt.Sprintf("container %s ended with exit code %d (%s): %s", container, t.ExitCode, t.Reason, text), ": "),
	}
}

// fail is the end of a machine that did not end well.
func fail(o Observed, f scheduler.Finding) scheduler.Plan {
	return finish(o, vmi.Failed, f, scheduler.Emit{Type: corev1.EventTypeWarning, Reason: f.Reason, Message: f.Message})
}

// succeed is the end of a machine whose guest powered off.
func succeed(o Observed) scheduler.Plan {
	return finish(o, vmi.Succeeded, scheduler.Finding{Reason: guestNotRunning, Message: "the guest powered off"})
}

func finish(o Observed, p vmi.Phase, f scheduler.Finding, events ...scheduler.Emit) scheduler.Plan {
	return write(o, func(s *vmi.VirtualMachineInstanceStatus, now metav1.Time) {
		s.SetPhase(p, now)
		if p == vmi.Failed {
			s.Reason = f.Reason
		}
		for _, t := range []vmi.ConditionType{
			vmi.ConditionPodScheduled, vmi.ConditionSynchronized, vmi.ConditionPaused, vmi.ConditionAgentConnected, vmi.ConditionAgentVersionNotSupported,
		} {
			s.RemoveCondition(t) // they are about a machine that may still run
		}
		s.SetCondition(notReady(guestNotRunning, f.Message), now)
	}, events...)
}
