package pod

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/podvisor/podvisor/network/cni"
	"github.com/podvisor/podvisor/vmi"
)

// networkResource is the resource that the network of an interface needs. Empty: none.
func networkResource(i vmi.Interface, f Facts) string {
	if i.State == vmi.InterfaceAbsent || f.Networks[i.Name] == nil {
		return ""
	}
	return f.Networks[i.Name].Resource
}

// wrongResources are the networks whose definitions name a resource that can be none of a
// network.
func wrongResources(v *vmi.VirtualMachineInstance, c Config) field.ErrorList {
	var l field.ErrorList
	for n, net := range v.Spec.Networks {
		at := slices.IndexFunc(v.Spec.Domain.Devices.Interfaces, func(i vmi.Interface) bool { return i.Name == net.Name })
		if at < 0 {
			continue
		}
		if name := networkResource(v.Spec.Domain.Devices.Interfaces[at], c.Facts); name != "" {
			if fault := cni.ResourceFault(name); fault != "" {
				l = append(l, field.Invalid(field.NewPath("spec", "networks").Index(n).Child("multus", "networkName"), net.Name,
					"the annotation "+cni.ResourceAnnotation+" of the NetworkAttachmentDefinition is wrong: "+fault))
			}
		}
	}
	return l
}

// addNetworkResources asks for what the networks need, one for each interface, unless the
// user asks for as many already. Requests and limits of such resources are equal.
func addNetworkResources(d *vmi.DomainSpec, f Facts, req, lim corev1.ResourceList) {
	counts := map[corev1.ResourceName]int64{}
	for _, i := range d.Devices.Interfaces {
		if name := networkResource(i, f); name != "" {
			counts[corev1.ResourceName(name)]++
		}
	}
	for name, n := range counts {
		q := *resource.NewQuantity(n, resource.DecimalSI)
		for _, asked := range []corev1.ResourceList{req, lim} {
			if a, ok := asked[name]; ok && a.Cmp(q) > 0 {
				q = a.DeepCopy()
			}
		}
		req[name], lim[name] = q, q
	}
}

// environment says of which resource the function of an interface with the binding sriov
// is: the device plugin names the functions by their resource.
func environment(v *vmi.VirtualMachineInstance, c Config) []corev1.EnvVar {
	var out []corev1.EnvVar
	for _, i := range v.Spec.Domain.Devices.Interfaces {
		if name := networkResource(i, c.Facts); name != "" && i.IsDevice() {
			out = append(out, corev1.EnvVar{Name: vmi.NetworkResourceVariable + i.Name, Value: name})
		}
	}
	return out
}
