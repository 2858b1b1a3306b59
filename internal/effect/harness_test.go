package effect

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/launcher/domain"
	"github.com/podvisor/podvisor/scheduler"
	"github.com/podvisor/podvisor/scheduler/instance"
	"github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
)

// effects are what is made of a VMI, as text, by the name of what it is.
type effects map[string]string

// effectsOf makes of a VMI all that the library makes of it. The error says that
// the VMI is refused. What cannot be made of a VMI that is not refused is missing.
func effectsOf(v *vmi.VirtualMachineInstance) (effects, error) {
	out := effects{}
	var p *corev1.Pod
	var err error
	for _, way := range []pod.ContainerDisks{pod.InitCopy, pod.ImageVolume} {
		if p, err = podOf(v, way); err != nil {
			return nil, err
		}
		if out["pod "+string(way)], err = text(p); err != nil {
			return nil, err
		}
	}
	v = defaults.Instance(v, defaults.Profile{})
	p.Spec.NodeName = "node-a"
	if out["eviction"], err = text(instance.Eviction(v, p, defaults.Profile{})); err != nil {
		return nil, err
	}
	if out["gate"], err = text(gateOf(v, p)); err != nil {
		return nil, err
	}
	plan, err := planOf(v)
	if err != nil {
		return nil, err
	}
	if out["network"], err = text(plan); err != nil {
		return nil, err
	}
	volumes, disks, err := disksOf(v, domain.Tagged(v, domain.Host{Interfaces: plan.Attachments}))
	if err != nil {
		return nil, err
	}
	if out["disks"], err = text(volumes); err != nil {
		return nil, err
	}
	if out["agent"], err = agentOf(v); err != nil {
		return nil, err
	}
	d, err := domainOf(v, plan.Attachments, disks)
	if err != nil && !errors.Is(err, vmi.ErrInvalid) {
		return nil, err
	}
	if err == nil {
		out["domain"] = d
	}
	return out, nil
}

// differ says that something is different of what both have.
func (e effects) differ(other effects) bool {
	for name, text := range e {
		if o, ok := other[name]; ok && o != text {
			return true
		}
	}
	return false
}

// gateOf is what is made of the readiness gate of the VMI's pod before its guest runs.
func gateOf(v *vmi.VirtualMachineInstance, p *corev1.Pod) []corev1.ConditionStatus {
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: vmi.ComputeContainer, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	var out []corev1.ConditionStatus
	for _, a := range instance.Decide(instance.Observed{VMI: v, Pods: instance.Pods{Active: p}, Node: instance.Node{Name: "node-a", Object: &corev1.Node{}}}).Actions {
		if g, ok := a.(scheduler.SetPodCondition); ok {
			out = append(out, g.Condition.Status)
		}
	}
	return out
}

// text is JSON, in which equal values are equal.
func text(v any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("show %T: %w", v, err)
	}
	return string(b), nil
}

func TestTheVMIsThatAreChangedAreRight(t *testing.T) {
	for name, tree := range bases(t) {
		e, err := effectsOf(decode(t, tree))
		require.NoError(t, err, name)
		require.Len(t, e, 8, name)
	}
}
