package validate

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
)

// VirtualMachine returns what is wrong with a VirtualMachine that the user makes
// or changes, or nothing. The template may leave open what defaults decide when a
// VMI is made. An object that is being deleted is right.
func VirtualMachine(v *vmi.VirtualMachine, by User, lim Limits) field.ErrorList {
	if v.DeletionTimestamp != nil {
		return nil
	}
	return judged(vmi.VirtualMachines.Kind, v, lim, virtualMachine(v, by, lim))
}

// virtualMachine checks what the schema does not. The schema judges a change itself, and
// lets what is stored already stay as it is.
func virtualMachine(v *vmi.VirtualMachine, by User, lim Limits) field.ErrorList {
	if v.DeletionTimestamp != nil {
		return nil
	}
	at := field.NewPath("spec")
	l := strategy(at, &v.Spec, lim)
	if u := v.Spec.UpdateVolumesStrategy; u != nil {
		l = append(l, exactlyOneOf(at.Child("updateVolumesStrategy"), *u, vmi.UpdateVolumesMigration, vmi.UpdateVolumesReplacement)...)
	}
	if v.Spec.Template == nil {
		return append(l, field.Required(at.Child("template"), "describe the VMI"))
	}
	l = append(l, template(at.Child("template"), v.Spec.Template, by, lim)...)
	if v.Spec.Instancetype == nil {
		l = append(l, memoryRequested(at.Child("template", "spec"), &v.Spec.Template.Spec.Domain)...)
	}
	l = append(l, volumeRequests(v)...)
	if len(l) == 0 {
		l = requested(v, lim)
	}
	return append(l, dataVolumeTemplates(at, v)...)
}

// template checks what VMIs are made of, as they will be: with defaults.
func template(at *field.Path, t *vmi.VirtualMachineInstanceTemplateSpec, by User, lim Limits) field.ErrorList {
	l := metadata(at.Child("metadata"), &t.ObjectMeta, by)
	s := templateSpec(t, lim)
	l = append(l, Spec(at.Child("spec"), s, lim)...)
	l = append(l, memoryHotplug(at.Child("spec"), s, lim)...)
	return append(l, places(at.Child("spec"), s, t.ObjectMeta.Annotations)...)
}

// templateSpec is the spec of a VMI that the template makes, without the
// machine type if the template names none: which one a cluster gives it is not
// known here, only that it is allowed (see [KubeVirt]).
func templateSpec(t *vmi.VirtualMachineInstanceTemplateSpec, lim Limits) *vmi.VirtualMachineInstanceSpec {
	s := defaults.Spec(&t.Spec, lim.profile())
	if m := t.Spec.Domain.Machine; m == nil || m.Type == "" {
		s.Domain.Machine = m
	}
	return s
}

// profile gives templates the defaults that any cluster with these limits gives
// them.
func (l Limits) profile() defaults.Profile {
	p := defaults.Profile{Architecture: l.Architecture}
	if l.NoBridgeOnPodNetwork {
		p.Binding = defaults.Masquerade
	}
	return p
}

// strategy checks when the VM runs.
func strategy(at *field.Path, s *vmi.VirtualMachineSpec, lim Limits) field.ErrorList {
	if s.RunStrategy == nil {
		if s.Running == nil {
			return field.ErrorList{field.Invalid(at.Child("running"), field.OmitValueType{}, "there is neither running nor runStrategy: set runStrategy, to Always for a VM that is to run")}
		}
		return nil
	}
	var l field.ErrorList
	if s.Running != nil {
		l = append(l, field.Invalid(at.Child("running"), *s.Running, "excludes runStrategy: leave running out, it is the older way"))
	}
	allowed := []vmi.RunStrategy{vmi.RunAlways, vmi.RunRerunOnFailure, vmi.RunManual, vmi.RunHalted, vmi.RunOnce}
	if !lim.Features.NoDecentralizedMigration {
		allowed = append(allowed, vmi.RunWaitAsReceiver)
	}
	return append(l, exactlyOneOf(at.Child("runStrategy"), *s.RunStrategy, allowed...)...)
}
