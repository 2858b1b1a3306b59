package validate

import (
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/vmi"
)

// tolerations checks what the pod would be refused for.
func tolerations(at *field.Path, all []vmi.Toleration) field.ErrorList {
	var l field.ErrorList
	for i := range all {
		l = append(l, toleration(at.Index(i), &all[i])...)
	}
	return l
}

func toleration(at *field.Path, t *vmi.Toleration) field.ErrorList {
	l := oneOf(at.Child("operator"), t.Operator, vmi.TolerationEqual, vmi.TolerationExists, vmi.TolerationLess, vmi.TolerationGreater)
	l = append(l, oneOf(at.Child("effect"), t.Effect, vmi.TaintNoSchedule, vmi.TaintPreferNoSchedule, vmi.TaintNoExecute)...)
	if t.Key != "" {
		l = append(l, metav1validation.ValidateLabelName(t.Key, at.Child("key"))...)
	} else if t.Operator != vmi.TolerationExists {
		l = append(l, field.Invalid(at.Child("operator"), t.Operator, "must be Exists without a key, which tolerates every taint: or name the taint in key"))
	}
	switch {
	case t.Operator == vmi.TolerationExists && t.Value != "":
		l = append(l, field.Invalid(at.Child("value"), t.Value, "must be empty with the operator Exists, which takes every value"))
	case t.Operator == vmi.TolerationEqual || t.Operator == "":
		l = append(l, invalid(at.Child("value"), t.Value, validation.IsValidLabelValue(t.Value))...)
	}
	if t.TolerationSeconds != nil && t.Effect != vmi.TaintNoExecute {
		l = append(l, field.Invalid(at.Child("effect"), t.Effect, "must be NoExecute with tolerationSeconds: others never end a machine"))
	}
	return l
}
