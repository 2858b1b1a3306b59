package defaults

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podvisor/podvisor/vmi"
)

// Binding is the way in which an interface that names none is bound to the pod
// network.
type Binding string

// The default bindings. The zero value stands for Bridge.
const (
	Bridge     Binding = "bridge"
	Masquerade Binding = "masquerade"
)

// Profile is what a cluster decides for machines that leave it open. The zero
// value is KubeVirt's default configuration.
type Profile struct {
	// CPURequest is asked of the node for machines that say nothing about it.
	// Nil: the spec stays as it is, and the pod asks for a share of each CPU.
	CPURequest *resource.Quantity
	// Binding of interfaces that name none. Empty: bridge. A cluster that forbids
	// the bridge on the pod network wants masquerade here.
	Binding Binding
}

func (p Profile) binding() vmi.InterfaceBinding {
	if p.Binding == Masquerade {
		return vmi.InterfaceBinding{Masquerade: &vmi.InterfaceMasquerade{}}
	}
	return vmi.InterfaceBinding{Bridge: &vmi.InterfaceBridge{}}
}

// resources asks for processor time where the machine says nothing about it.
func resources(d *vmi.DomainSpec, p Profile) {
	r := &d.Resources
	_, asked := r.Requests[corev1.ResourceCPU]
	_, limited := r.Limits[corev1.ResourceCPU]
	if p.CPURequest == nil || asked || limited {
		return
	}
	if r.Requests == nil {
		r.Requests = corev1.ResourceList{}
	}
	r.Requests[corev1.ResourceCPU] = p.CPURequest.DeepCopy()
}
