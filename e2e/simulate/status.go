package simulate

import (
	"context"
	"encoding/json"
	"hash/fnv"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// report is what a kubelet says of a pod.
type report struct {
	Phase corev1.PodPhase
	// Ready says that all readiness gates of the pod are open.
	Ready bool
	Exit  Exit
}

// reportOf is the report about a pod whose container runs, or has ended.
func reportOf(p *corev1.Pod, exit *Exit) report {
	if exit == nil {
		return report{Phase: corev1.PodRunning, Ready: !slices.ContainsFunc(p.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool {
			return !isTrue(p, g.ConditionType)
		})}
	}
	if exit.Code == 0 {
		return report{Phase: corev1.PodSucceeded, Exit: *exit}
	}
	return report{Phase: corev1.PodFailed, Exit: *exit}
}

func isTrue(p *corev1.Pod, t corev1.PodConditionType) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == t && c.Status == corev1.ConditionTrue
	})
}

// write writes the status of the pod, if it says something new.
func (k *Kubelets) write(ctx context.Context, p *corev1.Pod, r *pod, now report) error {
	if r.written == now {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": p.UID},
		"status":   status(p, now, metav1.NewTime(r.begun), metav1.Now()),
	})
	if err != nil {
		return err
	}
	_, err = k.config.Kube.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it is gone, or another has its name
	}
	if err == nil {
		r.written = now
	}
	return err
}

// status is the status of a pod for a report, with the conditions that are a kubelet's.
func status(p *corev1.Pod, r report, begun, now metav1.Time) corev1.PodStatus {
	s := corev1.PodStatus{Phase: r.Phase, HostIP: "192.0.2.1", HostIPs: []corev1.HostIP{{IP: "192.0.2.1"}}, StartTime: &begun}
	if r.Phase == corev1.PodRunning {
		s.PodIP = Address(p.UID)
		s.PodIPs = []corev1.PodIP{{IP: s.PodIP}}
	}
	running, reason := r.Phase == corev1.PodRunning, ""
	if over := r.Phase == corev1.PodSucceeded || r.Phase == corev1.PodFailed; over {
		reason = "PodCompleted"
	}
	condition := func(t corev1.PodConditionType, is bool, reason string) {
		c := corev1.PodCondition{Type: t, Status: corev1.ConditionFalse, Reason: reason, LastTransitionTime: now}
		if is {
			c.Status, c.Reason = corev1.ConditionTrue, ""
		}
		s.Conditions = append(s.Conditions, c)
	}
	condition(corev1.PodReadyToStartContainers, running, reason)
	condition(corev1.PodInitialized, true, "")
	condition(corev1.ContainersReady, running, reason)
	gates := reason
	if running && !r.Ready {
		gates = "ReadinessGatesNotReady"
	}
	condition(corev1.PodReady, running && r.Ready, gates)
	for _, c := range p.Spec.Containers {
		cs := corev1.ContainerStatus{Name: c.Name, Image: c.Image, ImageID: c.Image, Ready: running, Started: &running}
		switch {
		case running:
			cs.State.Running = &corev1.ContainerStateRunning{StartedAt: begun}
			cs.ContainerID = "simulated://" + strings.ReplaceAll(string(p.UID), "-", "")
		case reason == "":
			cs.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
		default:
			cs.State.Terminated = &corev1.ContainerStateTerminated{
				ExitCode: r.Exit.Code, Reason: r.Exit.reason(), Message: r.Exit.Message, StartedAt: begun, FinishedAt: now,
			}
		}
		s.ContainerStatuses = append(s.ContainerStatuses, cs)
	}
	return s
}

// Address is the address of a pod, which follows from its UID.
func Address(pod types.UID) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(pod))
	n := h.Sum32()
	return netip.AddrFrom4([4]byte{10, byte(n>>16)&0x3f | 0x40, byte(n >> 8), byte(n)%254 + 1}).String()
}
