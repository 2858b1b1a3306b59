package vm

import (
	"maps"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
)

// Instance is the VMI that a start of the VM makes: the template, with the identity
// that the guest keeps over all starts. Where the template leaves them open, the
// firmware's UUID and serial number and the MAC addresses follow from the VM's UID,
// and machine type and networks from the profile. Everything else that the template
// leaves open is decided for the VMI. Among are the bindings of interfaces; nil:
// [network.Bindings].
//
// Of the template's metadata the VMI has the labels and annotations, but for the
// labels that only Podvisor writes.
func Instance(v *vmi.VirtualMachine, p defaults.Profile, among []network.Binding) *vmi.VirtualMachineInstance {
	t := whole(v, &v.Spec, p, among)
	out := &vmi.VirtualMachineInstance{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: v.Namespace, Name: v.Name,
			Labels: vmi.UserLabels(t.ObjectMeta.Labels), Annotations: maps.Clone(t.ObjectMeta.Annotations),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(v, vmi.VirtualMachines.GroupVersionKind)},
			Finalizers:      []string{vmi.Finalizer},
		},
		Spec: t.Spec,
	}
	if out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	delete(out.Annotations, vmi.StartRevisionAnnotation) // of another VM, that a user copied
	out.Annotations[vmi.VMGenerationAnnotation] = strconv.FormatInt(v.Generation, 10)
	return out
}

// whole is the template of a spec of the VM, with what each of its VMIs gets.
func whole(v *vmi.VirtualMachine, s *vmi.VirtualMachineSpec, p defaults.Profile, among []network.Binding) *vmi.VirtualMachineInstanceTemplateSpec {
	p.UUID, p.Serial = defaults.UUID(v.UID), string(defaults.UUID(v.UID+"/serial"))
	t := defaults.VirtualMachine(&vmi.VirtualMachine{Spec: *s}, p).Spec.Template
	decided := defaults.Spec(&t.Spec, p)
	t.Spec.Domain.Devices.Interfaces, t.Spec.Networks = decided.Domain.Devices.Interfaces, decided.Networks
	addresses(v, &t.Spec, among)
	return t
}

// addresses gives each interface the MAC address that it keeps. A device of the node
// has its own. A guest that is bridged to the pod network takes over the address of
// its pod, and no other one is allowed there.
func addresses(v *vmi.VirtualMachine, s *vmi.VirtualMachineInstanceSpec, among []network.Binding) {
	for i := range s.Domain.Devices.Interfaces {
		n := &s.Domain.Devices.Interfaces[i]
		if n.MacAddress == "" && !n.IsDevice() && !takesOver(s, n, among) {
			n.MacAddress = network.MAC(v.UID, n.Name)
		}
	}
}

// takesOver says that the guest has the address of its pod.
func takesOver(s *vmi.VirtualMachineInstanceSpec, n *vmi.Interface, among []network.Binding) bool {
	return network.TraitsOf(*n, among).TakesOver && slices.ContainsFunc(s.Networks, func(w vmi.Network) bool { return w.Name == n.Name && w.Pod != nil })
}
