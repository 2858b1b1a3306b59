package live

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// installations are the names of the definitions of kinds by which an installation
// of KubeVirt is recognised.
func installations() []string {
	return []string{"virtualmachineinstances.kubevirt.io", "kubevirts.kubevirt.io"}
}

// Marks of KubeVirt's operator on the definitions that it makes, or that are
// installed with it.
const (
	managedLabel  = "app.kubernetes.io/managed-by"
	operator      = "virt-operator"
	operatorLabel = "operator.kubevirt.io"
	operatorMarks = "kubevirt.io/install-strategy-"
)

// foreign says by what a definition of a kind is known to be that of an
// installation of KubeVirt itself, in a sentence, or "" if it is not: Podvisor
// takes its place, and the two must not work on the same objects.
func foreign(m metav1.Object) string {
	why := ""
	for k := range m.GetAnnotations() {
		if strings.HasPrefix(k, operatorMarks) {
			why = "has annotations " + operatorMarks + "*"
		}
	}
	if _, ok := m.GetLabels()[operatorLabel]; ok {
		why = "has the label " + operatorLabel
	}
	if m.GetLabels()[managedLabel] == operator {
		why = "has the label " + managedLabel + "=" + operator
	}
	if why == "" {
		return ""
	}
	return "KubeVirt is installed in this cluster (the CustomResourceDefinition " + m.GetName() + " " + why + "): remove it, with its definitions, or Podvisor"
}
