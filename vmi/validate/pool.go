package validate

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmpool"
)

// Pool returns what is wrong with a VirtualMachinePool that the user makes or changes, or
// nothing. What its template names is not known: VMs are judged by it when they are made.
func Pool(p *vmpool.VirtualMachinePool, by User, lim Limits) field.ErrorList {
	return judged(vmpool.VirtualMachinePools.Kind, p, lim, pool(p, by, lim))
}

// pool checks what the schema does not: see virtualMachine.
func pool(p *vmpool.VirtualMachinePool, by User, lim Limits) field.ErrorList {
	l := poolItself(&p.Spec)
	at := field.NewPath("spec", "virtualMachineTemplate")
	t := p.Spec.VirtualMachineTemplate
	if t == nil {
		return append(l, field.Required(at, "describe the VMs"))
	}
	v := &vmi.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}, Spec: t.Spec}
	l = append(l, metav1validation.ValidateLabels(t.ObjectMeta.Labels, at.Child("metadata", "labels"))...)
	return append(l, below(at, append(References(v), virtualMachine(v, by, lim)...))...)
}

// below are the faults of an object that is in another one at the path.
func below(at *field.Path, l field.ErrorList) field.ErrorList {
	for _, e := range l {
		e.Field = at.Child(e.Field).String()
	}
	return l
}

// poolItself checks a pool without its template.
func poolItself(s *vmpool.VirtualMachinePoolSpec) field.ErrorList {
	at := field.NewPath("spec")
	l := PoolSelector(s)
	if s.Replicas != nil && *s.Replicas < 0 {
		l = append(l, field.Invalid(at.Child("replicas"), *s.Replicas, "must not be negative"))
	}
	if m := s.MaxUnavailable; m != nil {
		n, err := intstr.GetScaledValueFromIntOrPercent(m, 100, true)
		if err != nil || n < 0 || m.Type == intstr.String && n > 100 {
			l = append(l, field.Invalid(at.Child("maxUnavailable"), m.String(), `must be a number that is not negative, or a percentage as "30%" of at most 100%`))
		}
	}
	if a := s.Autohealing; a != nil && a.MinFailingToStartDuration != nil && a.MinFailingToStartDuration.Duration < 0 {
		l = append(l, field.Invalid(at.Child("autohealing", "minFailingToStartDuration"), a.MinFailingToStartDuration.Duration.String(), "must not be negative"))
	}
	if u := s.UpdateStrategy; u != nil && u.Proactive != nil {
		l = append(l, selectionPolicy(at.Child("updateStrategy", "proactive", "selectionPolicy"), u.Proactive.SelectionPolicy)...)
	}
	if u := s.ScaleInStrategy; u != nil && u.Proactive != nil {
		l = append(l, selectionPolicy(at.Child("scaleInStrategy", "proactive", "selectionPolicy"), u.Proactive.SelectionPolicy)...)
	}
	return l
}

// selectionPolicy checks which VMs are first.
func selectionPolicy(at *field.Path, p *vmpool.PoolSelectionPolicy) field.ErrorList {
	if p == nil || p.Selectors == nil || p.Selectors.LabelSelector == nil {
		return nil
	}
	return metav1validation.ValidateLabelSelector(p.Selectors.LabelSelector, metav1validation.LabelSelectorValidationOptions{}, at.Child("selectors", "labelSelector"))
}

// PoolSelector returns why the selector of a pool does not select what the pool makes, or
// nothing.
func PoolSelector(s *vmpool.VirtualMachinePoolSpec) field.ErrorList {
	if s.VirtualMachineTemplate == nil {
		return selects(s.Selector, nil, "VMs", "virtualMachineTemplate")
	}
	return selects(s.Selector, &s.VirtualMachineTemplate.ObjectMeta, "VMs", "virtualMachineTemplate")
}

// PoolUpdate returns why the user may not change a pool so. A template that does not change is
// not judged again: see [ReplicaSetUpdate].
func PoolUpdate(old, p *vmpool.VirtualMachinePool, by User, lim Limits) field.ErrorList {
	var l field.ErrorList
	if equal(old.Spec.VirtualMachineTemplate, p.Spec.VirtualMachineTemplate) {
		l = poolItself(&p.Spec)
	} else {
		l = pool(p, by, lim)
	}
	if !equal(old.Spec.Selector, p.Spec.Selector) {
		l = append(l, field.Invalid(field.NewPath("spec", "selector"), metav1.FormatLabelSelector(p.Spec.Selector), "must not change: autoscalers find the VMs by it. Make another pool"))
	}
	if t := p.Spec.VirtualMachineTemplate; t != nil && len(t.Spec.DataVolumeTemplates) > 0 && p.Spec.Preserves() && !old.Spec.Preserves() {
		l = append(l, field.Invalid(field.NewPath("spec", "scaleInStrategy"), vmpool.PreserveOffline,
			"the DataVolumes of the VMs that there are would still go with their VMs. Make another pool"))
	}
	return l
}
