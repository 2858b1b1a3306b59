package instance

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/internal/scheduler/launched"
	"github.com/podvisor/podvisor/vmi"
)

// Silence is what is known of a pod that has a node and whose containers wait
// without a reason. What the kubelet cannot do before the first container, such as to
// mount a Secret that does not exist or to make the pod's network, is only in the
// events of the pod.
type Silence struct {
	// Since is when the pod was first observed to be silent.
	Since time.Time
	// Read is when Events were read. Zero: they were not.
	Read time.Time
	// Events are the events of the pod.
	Events []corev1.Event
}

// Times between the events of a silent pod being read.
const (
	// silenceDelay is how long a pod may be silent before its events are read. A pod
	// whose images are on the node starts within it.
	silenceDelay = 2 * time.Second
	// mostSilence is the longest time between two reads.
	mostSilence = 2 * time.Minute
	// pullDelay is how long a pod is silent before the image is named that it waits
	// for.
	pullDelay = 10 * time.Second
)

// PodWaitsSilently reports whether the pod of the VMI waits on its node and does not say why.
func PodWaitsSilently(v *vmi.VirtualMachineInstance, p *corev1.Pod) bool {
	if p == nil || v.DeletionTimestamp != nil || handedOver(v) || v.Status.Phase.Final() || p.Spec.NodeName == "" || p.DeletionTimestamp != nil || launched.Ended(p) {
		return false
	}
	return !slices.ContainsFunc(containers(p), func(s corev1.ContainerStatus) bool {
		return s.State.Running != nil || stuck(s)
	})
}

// Due is when the events are to be read next: soon at first, and then in times that
// grow with the silence.
func (s *Silence) Due() time.Time {
	if s.Read.IsZero() {
		return s.Since.Add(silenceDelay)
	}
	return s.Read.Add(min(max(s.Read.Sub(s.Since)/2, silenceDelay), mostSilence))
}

// silenceSettles is when the events of a silent pod are to be read next. 0: never.
func silenceSettles(o Observed) time.Duration {
	if o.Silence == nil {
		return 0
	}
	if left := o.Silence.Due().Sub(o.Now); left > 0 {
		return left
	}
	return silenceDelay // too many others were read
}

// causeOf are the reasons of events that say why a pod cannot start, with the
// reasons of the VMI that follow.
var causeOf = map[string]string{
	failedAttach:                    failedAttach,
	failedMount:                     failedMount,
	failedMap:                       failedMap,
	"FailedPrepareDynamicResources": "FailedPrepareDynamicResources",
	"FailedCreatePodContainer":      "FailedCreatePodContainer",
	"NetworkNotReady":               "NetworkNotReady",
	"FailedCreatePodSandBox":        "FailedCreatePodSandBox",
	noNetworkFound:                  noNetworkFound,
	imageFailed:                     errImagePull,
}

// noNetworkFound is the reason of an event of Multus: a NetworkAttachmentDefinition is
// not there. Each is followed by one of the kubelet, whose message has that of Multus
// and much more.
const noNetworkFound = "NoNetworkFound"

// Reasons of events about volumes, images and containers.
const (
	failedAttach  = "FailedAttachVolume"
	failedMount   = "FailedMount"
	failedMap     = "FailedMapVolume"
	imageFailed   = "Failed" // also of a container, whose state says more
	imagePulling  = "Pulling"
	imagePulled   = "Pulled"
	containerMade = "Created"
)

// mostCauses is how many causes a message has at most.
const mostCauses = 3

// unstartable: the kubelet cannot make what the containers need, as its events say.
// Of several causes all are in the message that have the reason of the newest.
func unstartable(o Observed) (obstacle, bool) {
	if o.Silence == nil {
		return obstacle{}, false
	}
	if o.Silence.Read.IsZero() {
		return keptCause(o)
	}
	current := slices.DeleteFunc(slices.Clone(o.Silence.Events), func(e corev1.Event) bool { return !isCause(o, e) || isPast(o, e) })
	if len(current) == 0 {
		return obstacle{}, false
	}
	newest := slices.MaxFunc(current, func(a, b corev1.Event) int {
		return cmp.Or(precise(a)-precise(b), lastSeen(a).Compare(lastSeen(b)), strings.Compare(a.Reason, b.Reason))
	})
	said := map[string]string{}
	for _, e := range current {
		m := strings.TrimSpace(strings.TrimPrefix(e.Message, combined))
		f := vmi.Finding{Reason: causeOf[e.Reason], Message: whose(o, m) + m}
		if e.Reason == newest.Reason && said[steady(f)] == "" && lastSeen(newest).Sub(lastSeen(e)) <= max(lasted(e), leastGap) {
			said[steady(f)] = f.Message
		}
	}
	var messages []string
	for _, key := range slices.Sorted(maps.Keys(said)) {
		messages = append(messages, said[key])
	}
	if more := len(messages) - mostCauses; more > 0 {
		messages = append(messages[:mostCauses], fmt.Sprintf("and %d more", more))
	}
	return obstacle{vmi.ConditionSynchronized, settle(o, vmi.ConditionSynchronized, "", vmi.Finding{Reason: causeOf[newest.Reason], Message: strings.Join(messages, "; ")})}, true
}

// precise puts the event of Multus after that of the kubelet that follows from it.
func precise(e corev1.Event) int {
	if e.Reason == noNetworkFound {
		return 1
	}
	return 0
}

// keptCause is the cause that the VMI has from events that are not known here yet, as
// after a restart of virt-controller.
func keptCause(o Observed) (obstacle, bool) {
	c := o.VMI.Status.Condition(vmi.ConditionSynchronized)
	if c == nil || c.Status != corev1.ConditionFalse || !slices.Contains(slices.Collect(maps.Values(causeOf)), c.Reason) {
		return obstacle{}, false
	}
	return obstacle{vmi.ConditionSynchronized, vmi.Finding{Reason: c.Reason, Message: c.Message}}, true
}

// combined is what the kubelet's recorder puts before the message of an event that
// stands for many.
const combined = "(combined from similar events): "

// isCause reports whether the event says why the pod cannot start. Of the kubelet's
// events about images only those that name one of the VMI's say more than the pod
// will.
func isCause(o Observed, e corev1.Event) bool {
	return e.Type == corev1.EventTypeWarning && causeOf[e.Reason] != "" && e.InvolvedObject.UID == o.Pods.Active.UID &&
		(e.Reason != imageFailed || whose(o, e.Message) != "")
}

// Times that say how long an event counts that did not happen again.
const (
	leastGap     = 5 * time.Second
	leastCurrent = time.Minute
	mostCurrent  = 12 * time.Minute
)

// isPast reports whether what the event says is over. The kubelet tries again after
// times that double, so what lasted for a time is tried again within that time; and
// it pulls images and creates containers only after everything else.
func isPast(o Observed, e corev1.Event) bool {
	last := lastSeen(e)
	if o.Now.Sub(last) > min(max(lasted(e), leastCurrent), mostCurrent) {
		return true
	}
	return slices.ContainsFunc(o.Silence.Events, func(other corev1.Event) bool {
		switch other.Reason {
		case imagePulling, imagePulled:
			return e.Reason != imageFailed && !lastSeen(other).Before(last)
		case containerMade:
			return !lastSeen(other).Before(last)
		}
		return false
	})
}

// pulling is the message of the event that says what a pod pulls that is silent for
// long, or "".
func pulling(o Observed) string {
	if o.Silence == nil || o.Silence.Read.Sub(o.Silence.Since) < pullDelay {
		return ""
	}
	var last corev1.Event
	for _, e := range o.Silence.Events {
		if (e.Reason == imagePulling || e.Reason == imagePulled) && !lastSeen(e).Before(lastSeen(last)) {
			last = e
		}
	}
	if last.Reason != imagePulling {
		return ""
	}
	return whose(o, last.Message) + last.Message
}

// lasted is how long the event has happened again and again.
func lasted(e corev1.Event) time.Duration {
	return lastSeen(e).Sub(firstSet(e.FirstTimestamp.Time, e.EventTime.Time, e.CreationTimestamp.Time))
}

func lastSeen(e corev1.Event) time.Time {
	if e.Series != nil {
		return e.Series.LastObservedTime.Time
	}
	return firstSet(e.LastTimestamp.Time, e.EventTime.Time, e.CreationTimestamp.Time)
}

func firstSet(all ...time.Time) time.Time {
	for _, t := range all {
		if !t.IsZero() {
			return t
		}
	}
	return time.Time{}
}

// containers are the states of all containers of the pod.
func containers(p *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses)
}

// stuck reports whether the container waits and says why.
func stuck(s corev1.ContainerStatus) bool {
	w := s.State.Waiting
	return w != nil && w.Reason != "" && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing"
}
