package pod

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/vmi"
)

// nodeSelector are the labels of the nodes that the VMI can run on. There is none
// for the machine type: QEMU is in the launcher's image, not on the node.
func nodeSelector(v *vmi.VirtualMachineInstance, c Config) map[string]string {
	s := c.move().added()
	s[vmi.SchedulableLabel] = "true"
	maps.Copy(s, c.Cluster.Pods.NodeSelector)
	maps.Copy(s, v.Spec.NodeSelector)
	// Last, since no label of the user's makes the guest run on another processor.
	s[corev1.LabelArchStable] = v.Spec.Architecture
	if cpu := v.Spec.Domain.CPU; cpu != nil {
		processor(s, cpu)
	}
	if l := v.Spec.Domain.LaunchSecurity; l.EncryptsMemory() {
		s[vmi.SEVLabel] = "true"
		if l.EncryptsState() {
			s[vmi.SEVESLabel] = "true"
		}
	}
	if !c.Emulation() {
		c.move().processor(s, v.Spec.Domain.CPU)
	}
	return s
}

// processor adds the labels of nodes that have the processor. The handler of a node
// writes them by what it runs guests with: KVM, or emulation.
func processor(s map[string]string, c *vmi.CPU) {
	if c.Named() {
		s[vmi.CPUModelLabelPrefix+c.Model] = "true"
	}
	if c.DedicatedCPUPlacement {
		s[vmi.CPUManagerLabel] = "true"
	}
	for _, f := range c.Features {
		if f.Required() {
			s[vmi.CPUFeatureLabelPrefix+f.Name] = "true"
		}
	}
}

// affinity is the VMI's, with the labels that its node must not have: those of
// features that are forbidden, and where the guest would have a model that the
// configuration calls obsolete because the node's own is one.
func affinity(v *vmi.VirtualMachineInstance, c Config) *corev1.Affinity {
	cpu := v.Spec.Domain.CPU
	if cpu == nil {
		return v.Spec.Affinity
	}
	var without []corev1.NodeSelectorRequirement
	if cpu.Model == vmi.CPUModelHost && !c.Emulation() {
		without = append(without, absent(vmi.ObsoleteHostModelLabel))
	}
	for _, f := range cpu.Features {
		if f.Policy == vmi.CPUFeatureForbid {
			without = append(without, absent(vmi.CPUFeatureLabelPrefix+f.Name))
		}
	}
	if len(without) == 0 {
		return v.Spec.Affinity
	}
	a := v.Spec.Affinity.DeepCopy()
	if a == nil {
		a = &corev1.Affinity{}
	}
	if a.NodeAffinity == nil {
		a.NodeAffinity = &corev1.NodeAffinity{}
	}
	a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = also(a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution, without)
	return a
}

// also adds what must be true of a node too. A node is right if it is right for one
// of the terms, so each has to say it; a term that says nothing is right for no node
// and stays so.
func also(s *corev1.NodeSelector, all []corev1.NodeSelectorRequirement) *corev1.NodeSelector {
	if s == nil {
		return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: all}}}
	}
	for i := range s.NodeSelectorTerms {
		if t := &s.NodeSelectorTerms[i]; len(t.MatchExpressions)+len(t.MatchFields) > 0 {
			t.MatchExpressions = append(t.MatchExpressions, all...)
		}
	}
	return s
}

func absent(label string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: label, Operator: corev1.NodeSelectorOpDoesNotExist}
}
