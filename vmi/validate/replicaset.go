package validate

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
)

// ReplicaSet returns what is wrong with a VirtualMachineInstanceReplicaSet that
// the user makes or changes, or nothing.
func ReplicaSet(r *vmi.VirtualMachineInstanceReplicaSet, by User, lim Limits) field.ErrorList {
	return judged(vmi.VirtualMachineInstanceReplicaSets.Kind, r, lim, replicaSet(r, by, lim))
}

// replicaSet checks what the schema does not: see virtualMachine.
func replicaSet(r *vmi.VirtualMachineInstanceReplicaSet, by User, lim Limits) field.ErrorList {
	at, s := field.NewPath("spec"), &r.Spec
	l := replicas(at, s)
	if s.Template == nil {
		l = append(l, field.Required(at.Child("template"), "describe the VMIs"))
	} else {
		here, spec := at.Child("template"), templateSpec(s.Template, lim)
		l = append(l, metadata(here.Child("metadata"), &s.Template.ObjectMeta, by)...)
		l = append(l, Spec(here.Child("spec"), spec, lim)...)
		l = append(l, places(here.Child("spec"), spec, s.Template.ObjectMeta.Annotations)...)
		l = append(l, memoryRequested(at.Child("template", "spec"), &s.Template.Spec.Domain)...)
	}
	return append(l, Selector(s)...)
}

// replicas checks how many VMIs the set is to have.
func replicas(at *field.Path, s *vmi.VirtualMachineInstanceReplicaSetSpec) field.ErrorList {
	if s.Replicas != nil && *s.Replicas < 0 {
		return field.ErrorList{field.Invalid(at.Child("replicas"), *s.Replicas, "must not be negative")}
	}
	return nil
}

// Selector returns why the set would not find the VMIs that it makes, or nothing.
func Selector(s *vmi.VirtualMachineInstanceReplicaSetSpec) field.ErrorList {
	if s.Template == nil {
		return selects(s.Selector, nil, "VMIs", "template")
	}
	return selects(s.Selector, &s.Template.ObjectMeta, "VMIs", "template")
}

// selects returns why a selector does not select what is made with the metadata of a template,
// or nothing. Nil: the template is missing.
func selects(s *metav1.LabelSelector, made *metav1.ObjectMeta, what, template string) field.ErrorList {
	at := field.NewPath("spec", "selector")
	if s == nil {
		return field.ErrorList{field.Required(at, "must select the "+what+" by labels of the template")}
	}
	if l := metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, at); len(l) > 0 {
		return l
	}
	sel, err := metav1.LabelSelectorAsSelector(s)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(at, field.OmitValueType{}, err.Error())}
	case sel.Empty():
		return field.ErrorList{field.Invalid(at, "{}", "must not be empty: it would select all "+what+" of the namespace")}
	case made != nil && !sel.Matches(labels.Set(made.Labels)):
		return field.ErrorList{field.Invalid(at, sel.String(), "must select the labels of the "+template+"'s metadata")}
	}
	return nil
}

// ReplicaSetUpdate returns why the user may not change a ReplicaSet so. Both are
// complete. A template that does not change is not judged again, by what the cluster
// allows now: it must stay possible to scale the set to 0.
func ReplicaSetUpdate(old, r *vmi.VirtualMachineInstanceReplicaSet, by User, lim Limits) field.ErrorList {
	var l field.ErrorList
	if equal(old.Spec.Template, r.Spec.Template) {
		at := field.NewPath("spec")
		l = append(replicas(at, &r.Spec), Selector(&r.Spec)...)
	} else {
		l = replicaSet(r, by, lim)
	}
	if !equal(old.Spec.Selector, r.Spec.Selector) {
		l = append(l, field.Invalid(field.NewPath("spec", "selector"), metav1.FormatLabelSelector(r.Spec.Selector), "must not change: VMIs would be left behind. Make another set"))
	}
	return l
}
