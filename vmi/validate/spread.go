package validate

import (
	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// topologySpread checks what the pod's constraints would be refused for.
// KubeVirt calls every fault invalid, and reports those of all label selectors
// in one place.
func topologySpread(at *field.Path, all []corev1.TopologySpreadConstraint) field.ErrorList {
	var l field.ErrorList
	for i := range all {
		c, here := &all[i], at.Index(i)
		if c.MaxSkew <= 0 {
			l = append(l, field.Invalid(here.Child("maxSkew"), c.MaxSkew, "must be more than 0"))
		}
		l = append(l, topologyKey(here, c.TopologyKey)...)
		l = append(l, exactlyOneOf(here.Child("whenUnsatisfiable"), c.WhenUnsatisfiable, corev1.DoNotSchedule, corev1.ScheduleAnyway)...)
		for k := i + 1; k < len(all); k++ {
			if o := &all[k]; o.TopologyKey == c.TopologyKey && o.WhenUnsatisfiable == c.WhenUnsatisfiable {
				pair := here.Child("{topologyKey, whenUnsatisfiable}")
				l = append(l, field.Invalid(pair, c.TopologyKey+", "+string(c.WhenUnsatisfiable), "must not be those of "+at.Index(k).String()+": leave one out"))
				break
			}
		}
		l = append(l, minDomains(here.Child("minDomains"), c)...)
		l = append(l, inclusion(here.Child("nodeAffinityPolicy"), c.NodeAffinityPolicy)...)
		l = append(l, inclusion(here.Child("nodeTaintsPolicy"), c.NodeTaintsPolicy)...)
		l = append(l, matchedKeys(here.Child("matchLabelKeys"), c.MatchLabelKeys, c.LabelSelector)...)
		for _, e := range metav1validation.ValidateLabelSelector(c.LabelSelector, metav1validation.LabelSelectorValidationOptions{}, here.Child("labelSelector")) {
			l = append(l, as(at.String()+e.Field[len(here.String()):], e))
		}
	}
	return allInvalid(l)
}

func minDomains(at *field.Path, c *corev1.TopologySpreadConstraint) field.ErrorList {
	var l field.ErrorList
	m := c.MinDomains
	if m != nil && *m <= 0 {
		l = append(l, field.Invalid(at, *m, "must be more than 0"))
	}
	if m != nil && c.WhenUnsatisfiable != corev1.DoNotSchedule {
		l = append(l, field.Invalid(at, *m, "needs whenUnsatisfiable: DoNotSchedule"))
	}
	return l
}

func inclusion(at *field.Path, p *corev1.NodeInclusionPolicy) field.ErrorList {
	if p == nil {
		return nil
	}
	return exactlyOneOf(at, *p, corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore)
}
