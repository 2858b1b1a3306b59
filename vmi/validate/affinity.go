package validate

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// affinity checks what the pod's affinity would be refused for. KubeVirt leaves
// affinity out of the fields' paths and calls every fault invalid.
func affinity(at *field.Path, a *corev1.Affinity) field.ErrorList {
	if a == nil {
		return nil
	}
	var l field.ErrorList
	if n := a.NodeAffinity; n != nil {
		l = append(l, nodeAffinity(at.Child("nodeAffinity"), n)...)
	}
	if p := a.PodAffinity; p != nil {
		l = append(l, podTerms(at.Child("podAffinity"), p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)...)
	}
	if p := a.PodAntiAffinity; p != nil {
		l = append(l, podTerms(at.Child("podAntiAffinity"), p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)...)
	}
	return allInvalid(l)
}

// allInvalid gives all faults one kind.
func allInvalid(l field.ErrorList) field.ErrorList {
	for _, e := range l {
		if e.Type == field.ErrorTypeRequired {
			e.BadValue = field.OmitValueType{}
		}
		e.Type = field.ErrorTypeInvalid
	}
	return l
}

const (
	requiredTerms  = "requiredDuringSchedulingIgnoredDuringExecution"
	preferredTerms = "preferredDuringSchedulingIgnoredDuringExecution"
)

func nodeAffinity(at *field.Path, n *corev1.NodeAffinity) field.ErrorList {
	var l field.ErrorList
	if r := n.RequiredDuringSchedulingIgnoredDuringExecution; r != nil {
		terms := at.Child(requiredTerms, "nodeSelectorTerms")
		if len(r.NodeSelectorTerms) == 0 {
			l = append(l, field.Required(terms, "must have at least one term"))
		}
		for i := range r.NodeSelectorTerms {
			l = append(l, nodeTerm(terms.Index(i), &r.NodeSelectorTerms[i])...)
		}
	}
	for i := range n.PreferredDuringSchedulingIgnoredDuringExecution {
		p, here := &n.PreferredDuringSchedulingIgnoredDuringExecution[i], at.Child(preferredTerms).Index(i)
		l = append(l, weight(here, p.Weight)...)
		l = append(l, nodeTerm(here.Child("preference"), &p.Preference)...)
	}
	return l
}

func weight(at *field.Path, w int32) field.ErrorList {
	if w < 1 || w > 100 {
		return field.ErrorList{field.Invalid(at.Child("weight"), w, "must be from 1 to 100")}
	}
	return nil
}

func nodeTerm(at *field.Path, t *corev1.NodeSelectorTerm) field.ErrorList {
	var l field.ErrorList
	for i := range t.MatchExpressions {
		r, here := &t.MatchExpressions[i], at.Child("matchExpressions").Index(i)
		l = append(l, nodeRequirement(here, r)...)
		l = append(l, metav1validation.ValidateLabelName(r.Key, here.Child("key"))...)
	}
	for i := range t.MatchFields {
		l = append(l, nodeField(at.Child("matchFields").Index(i), &t.MatchFields[i])...)
	}
	return l
}

func nodeRequirement(at *field.Path, r *corev1.NodeSelectorRequirement) field.ErrorList {
	n := len(r.Values)
	switch r.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if n == 0 {
			return field.ErrorList{field.Required(at.Child("values"), "the operators In and NotIn need values")}
		}
		var l field.ErrorList
		for i, v := range r.Values {
			l = append(l, invalid(at.Child("values").Index(i), v, validation.IsValidLabelValue(v))...)
		}
		return l
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		if n > 0 {
			return field.ErrorList{field.Forbidden(at.Child("values"), "the operators Exists and DoesNotExist have no values")}
		}
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		if n != 1 {
			return field.ErrorList{field.Required(at.Child("values"), "the operators Gt and Lt need exactly one value")}
		}
	default:
		return field.ErrorList{field.Invalid(at.Child("operator"), r.Operator, "must be In, NotIn, Exists, DoesNotExist, Gt or Lt")}
	}
	return nil
}

// nodeName is the only field of a node that can be matched.
const nodeName = "metadata.name"

func nodeField(at *field.Path, r *corev1.NodeSelectorRequirement) field.ErrorList {
	var l field.ErrorList
	if r.Operator != corev1.NodeSelectorOpIn && r.Operator != corev1.NodeSelectorOpNotIn {
		l = append(l, field.Invalid(at.Child("operator"), r.Operator, "must be In or NotIn"))
	} else if len(r.Values) != 1 {
		l = append(l, field.Required(at.Child("values"), "must have exactly one value"))
	}
	if r.Key != nodeName {
		return append(l, field.Invalid(at.Child("key"), r.Key, "must be "+nodeName))
	}
	for i, v := range r.Values {
		l = append(l, invalid(at.Child("values").Index(i), v, validation.IsDNS1123Subdomain(v))...)
	}
	return l
}

func podTerms(at *field.Path, required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) field.ErrorList {
	var l field.ErrorList
	for i := range required {
		l = append(l, podTerm(at.Child(requiredTerms).Index(i), &required[i])...)
	}
	for i := range preferred {
		here := at.Child(preferredTerms).Index(i)
		l = append(l, weight(here, preferred[i].Weight)...)
		l = append(l, podTerm(here.Child("podAffinityTerm"), &preferred[i].PodAffinityTerm)...)
	}
	return l
}

func podTerm(at *field.Path, t *corev1.PodAffinityTerm) field.ErrorList {
	options := metav1validation.LabelSelectorValidationOptions{}
	l := metav1validation.ValidateLabelSelector(t.LabelSelector, options, at.Child("labelSelector"))
	l = append(l, metav1validation.ValidateLabelSelector(t.NamespaceSelector, options, at.Child("namespaceSelector"))...)
	for i, n := range t.Namespaces {
		for _, e := range invalid(at.Child("namespaces").Index(i), n, validation.IsDNS1123Label(n)) {
			l = append(l, as(at.Child("namespace").String(), e))
		}
	}
	l = append(l, matchedKeys(at.Child("matchLabelKeys"), t.MatchLabelKeys, t.LabelSelector)...)
	l = append(l, matchedKeys(at.Child("mismatchLabelKeys"), t.MismatchLabelKeys, t.LabelSelector)...)
	for i, k := range t.MatchLabelKeys {
		if slices.Contains(t.MismatchLabelKeys, k) {
			l = append(l, field.Invalid(at.Child("matchLabelKeys").Index(i), k, "must not be in mismatchLabelKeys too: leave one out"))
		}
	}
	return append(l, topologyKey(at, t.TopologyKey)...)
}

func topologyKey(at *field.Path, key string) field.ErrorList {
	if key == "" {
		return field.ErrorList{field.Required(at.Child("topologyKey"), "name a label of nodes, such as kubernetes.io/hostname")}
	}
	return metav1validation.ValidateLabelName(key, at.Child("topologyKey"))
}

// matchedKeys checks labels whose values are those of the VMI's pod.
func matchedKeys(at *field.Path, keys []string, s *metav1.LabelSelector) field.ErrorList {
	if len(keys) == 0 {
		return nil
	}
	if s == nil {
		return field.ErrorList{field.Invalid(at, keys, "needs labelSelector, to which these labels are added")}
	}
	var l field.ErrorList
	for i, k := range keys {
		l = append(l, metav1validation.ValidateLabelName(k, at.Index(i))...)
		named := slices.ContainsFunc(s.MatchExpressions, func(r metav1.LabelSelectorRequirement) bool { return r.Key == k })
		if _, ok := s.MatchLabels[k]; ok || named {
			l = append(l, field.Invalid(at.Index(i), k, "must not be a label of labelSelector: leave one out"))
		}
	}
	return l
}
