package vm

import (
	"maps"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
)

// Instance is the VMI that a start of the VM makes: the template, with the identity
// that the guest keeps over all starts. The firmware's UUID and serial number and the
// MAC addresses follow from the VM's UID where the template leaves them open.
func Instance(v *vmi.VirtualMachine, p defaults.Profile) *vmi.VirtualMachineInstance {
	whole := defaults.VirtualMachine(v, p)
	t := whole.Spec.Template
	out := &vmi.VirtualMachineInstance{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: v.Namespace, Name: v.Name,
			Labels: maps.Clone(t.ObjectMeta.Labels), Annotations: maps.Clone(t.ObjectMeta.Annotations),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(v, vmi.VirtualMachines.GroupVersionKind)},
			Finalizers:      []string{vmi.Finalizer},
		},
		Spec: *defaults.Spec(&t.Spec, p),
	}
	if out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	out.Annotations[vmi.VMGenerationAnnotation] = strconv.FormatInt(v.Generation, 10)
	addresses(v, &out.Spec)
	return out
}

// addresses gives each interface the MAC address that it keeps. A device of the node
// has its own.
func addresses(v *vmi.VirtualMachine, s *vmi.VirtualMachineInstanceSpec) {
	for i := range s.Domain.Devices.Interfaces {
		n := &s.Domain.Devices.Interfaces[i]
		if n.MacAddress == "" && n.SRIOV == nil {
			n.MacAddress = network.MAC(v.UID, n.Name)
		}
	}
}
