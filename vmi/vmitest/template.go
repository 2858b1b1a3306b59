package vmitest

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
)

// template is what New(options...) would be made from.
func template(options []Option) (*vmi.VirtualMachineInstance, *vmi.VirtualMachineInstanceTemplateSpec) {
	v := New(options...)
	return v, &vmi.VirtualMachineInstanceTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: v.Labels, Annotations: v.Annotations},
		Spec:       v.Spec,
	}
}

// NewVM makes a VirtualMachine that runs as strategy says. Its template
// is of the VMI that New makes of the options; it has that one's name.
func NewVM(strategy vmi.RunStrategy, options ...Option) *vmi.VirtualMachine {
	v, t := template(options)
	return &vmi.VirtualMachine{
		TypeMeta:   metav1.TypeMeta{APIVersion: vmi.GroupVersion.String(), Kind: vmi.VirtualMachines.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: v.Name, UID: UID, Generation: 1},
		Spec:       vmi.VirtualMachineSpec{RunStrategy: &strategy, Template: t},
	}
}

// NewReplicaSet makes a VirtualMachineInstanceReplicaSet of n VMIs. Its
// template is of the VMI that New makes of the options, with the label set=NAME
// that its selector asks for.
func NewReplicaSet(n int32, options ...Option) *vmi.VirtualMachineInstanceReplicaSet {
	v, t := template(options)
	labels := map[string]string{"set": v.Name}
	for k, l := range t.ObjectMeta.Labels {
		labels[k] = l
	}
	t.ObjectMeta.Labels = labels
	return &vmi.VirtualMachineInstanceReplicaSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: vmi.GroupVersion.String(), Kind: vmi.VirtualMachineInstanceReplicaSets.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: v.Name, UID: UID, Generation: 1},
		Spec: vmi.VirtualMachineInstanceReplicaSetSpec{
			Replicas: &n, Template: t,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"set": v.Name}},
		},
	}
}
