package validate

import (
	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// tolerations checks what the pod would be refused for.
func tolerations(at *field.Path, all []corev1.Toleration) field.ErrorList {
	var l field.ErrorList
	for i := range all {
		l = append(l, toleration(at.Index(i), &all[i])...)
	}
	return l
}

func toleration(at *field.Path, t *corev1.Toleration) field.ErrorList {
	l := oneOf(at.Child("operator"), t.Operator, corev1.TolerationOpEqual, corev1.TolerationOpExists, corev1.TolerationOpLt, corev1.TolerationOpGt)
	l = append(l, oneOf(at.Child("effect"), t.Effect, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)...)
	if t.Key != "" {
		l = append(l, metav1validation.ValidateLabelName(t.Key, at.Child("key"))...)
	} else if t.Operator != corev1.TolerationOpExists {
		l = append(l, field.Invalid(at.Child("operator"), t.Operator, "must be Exists without a key, which tolerates every taint: or name the taint in key"))
	}
	switch {
	case t.Operator == corev1.TolerationOpExists && t.Value != "":
		l = append(l, field.Invalid(at.Child("value"), t.Value, "must be empty with the operator Exists, which takes every value"))
	case t.Operator == corev1.TolerationOpEqual || t.Operator == "":
		l = append(l, invalid(at.Child("value"), t.Value, validation.IsValidLabelValue(t.Value))...)
	}
	if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
		l = append(l, field.Invalid(at.Child("effect"), t.Effect, "must be NoExecute with tolerationSeconds: other effects do not evict a VMI"))
	}
	return l
}
