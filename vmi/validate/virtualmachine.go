package validate

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
)

// VirtualMachine returns what is wrong with a VirtualMachine that the user makes
// or changes, or nothing. The template may leave open what defaults decide when a
// machine is made. An object that is being deleted is right.
func VirtualMachine(v *vmi.VirtualMachine, by User, lim Limits) field.ErrorList {
	if v.DeletionTimestamp != nil {
		return nil
	}
	at := field.NewPath("spec")
	l := strategy(at, &v.Spec)
	if u := v.Spec.UpdateVolumesStrategy; u != nil {
		l = append(l, exactlyOneOf(at.Child("updateVolumesStrategy"), *u, vmi.UpdateVolumesMigration, vmi.UpdateVolumesReplacement)...)
	}
	if v.Spec.Template == nil {
		return append(l, field.Required(at.Child("template"), "describe the machine"))
	}
	l = append(l, template(at.Child("template"), v.Spec.Template, by, lim)...)
	l = append(l, dataVolumeTemplates(at, &v.Spec)...)
	return append(l, volumeRequests(v)...)
}

// template checks what machines are made of, as they will be: with defaults.
func template(at *field.Path, t *vmi.VirtualMachineInstanceTemplate, by User, lim Limits) field.ErrorList {
	l := metadata(at.Child("metadata"), &t.ObjectMeta, by, lim)
	s := templateSpec(t, lim)
	l = append(l, Spec(at.Child("spec"), s, lim)...)
	return append(l, memoryHotplug(at.Child("spec"), s, lim)...)
}

// templateSpec is the spec of a machine that the template makes, without the
// machine type if the template names none: which one a cluster gives it is not
// known here, only that it is allowed (see [KubeVirt]).
func templateSpec(t *vmi.VirtualMachineInstanceTemplate, lim Limits) *vmi.VirtualMachineInstanceSpec {
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

// strategy checks when the machine runs.
func strategy(at *field.Path, s *vmi.VirtualMachineSpec) field.ErrorList {
	switch {
	case s.Running != nil && s.RunStrategy != nil:
		return field.ErrorList{field.Invalid(at.Child("running"), *s.Running, "excludes runStrategy: leave running out, it is the older way")}
	case s.Running == nil && s.RunStrategy == nil:
		return field.ErrorList{field.Invalid(at.Child("running"), "unset", "set runStrategy, to Always for a machine that shall run")}
	case s.RunStrategy != nil:
		return exactlyOneOf(at.Child("runStrategy"), *s.RunStrategy, vmi.RunAlways, vmi.RunRerunOnFailure, vmi.RunManual, vmi.RunHalted, vmi.RunOnce, vmi.RunWaitAsReceiver)
	}
	return nil
}

// dataVolumeTemplates checks that each is used. KubeVirt reports them without
// the plural.
func dataVolumeTemplates(at *field.Path, s *vmi.VirtualMachineSpec) field.ErrorList {
	var l field.ErrorList
	used := map[string]bool{}
	for _, v := range s.Template.Spec.Volumes {
		if v.DataVolume != nil {
			used[v.DataVolume.Name] = true
		}
		if v.PersistentVolumeClaim != nil {
			used[v.PersistentVolumeClaim.ClaimName] = true
		}
	}
	for i, d := range s.DataVolumeTemplates {
		here, name := at.Child("dataVolumeTemplates").Index(i), at.Child("dataVolumeTemplate").Index(i)
		if d.ObjectMeta.Name == "" {
			l = append(l, as(name.Child("name").String(), field.Required(here.Child("metadata", "name"), "name the DataVolume")))
		}
		if !used[d.ObjectMeta.Name] {
			l = append(l, as(name.String(), field.Required(here, "must be used by a volume of the template, as dataVolume.name")))
		}
	}
	return l
}
