package cni

import (
	"encoding/json"
	"strings"

	"github.com/podvisor/podvisor/network"
	"github.com/podvisor/podvisor/vmi"
)

// Annotations of pods, which are contracts of Multus.
const (
	// NetworksAnnotation has the networks that a pod gets besides its first one, as a
	// JSON list.
	NetworksAnnotation = "k8s.v1.cni.cncf.io/networks"
	// DefaultNetworkAnnotation has the network that takes the place of the cluster's.
	DefaultNetworkAnnotation = "v1.multus-cni.io/default-network"
	// StatusAnnotation is written by Multus, see [ParseStatus].
	StatusAnnotation = "k8s.v1.cni.cncf.io/network-status"
)

// element is one network of [NetworksAnnotation].
type element struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	MAC       string `json:"mac,omitempty"`
	Interface string `json:"interface"`
}

// Selection returns the annotations by which the pod of the VMI gets the networks of
// the VMI's spec. It is empty if they are all the pod's own. An interface that is
// absent gets none.
//
// A default network without a namespace is passed on as it is: Multus looks for it in
// the namespace of its configuration, mostly kube-system.
func Selection(v *vmi.VirtualMachineInstance) map[string]string {
	selection := map[string]string{}
	var elements []element
	for _, n := range v.Spec.Networks {
		i, ok := interfaceOf(&v.Spec, n)
		switch {
		case n.Multus == nil || !ok:
		case n.Multus.Default:
			selection[DefaultNetworkAnnotation] = n.Multus.NetworkName
		default:
			namespace, name := split(n.Multus.NetworkName, v.Namespace)
			elements = append(elements, element{
				Name: name, Namespace: namespace, MAC: i.MacAddress, Interface: network.PodLinkName(n),
			})
		}
	}
	if len(elements) > 0 {
		data, err := json.Marshal(elements)
		if err != nil {
			panic(err) // strings alone cannot fail to marshal
		}
		selection[NetworksAnnotation] = string(data)
	}
	return selection
}

// Links returns the names of the pod's links, by the name of the VMI's network: those
// that [Selection] asks for. An interface that is absent has none.
func Links(v *vmi.VirtualMachineInstance) map[string]string {
	links := map[string]string{}
	for _, n := range v.Spec.Networks {
		if _, ok := interfaceOf(&v.Spec, n); ok {
			links[n.Name] = network.PodLinkName(n)
		}
	}
	return links
}

// interfaceOf is the interface of the network. False: there is none, or it is absent.
func interfaceOf(s *vmi.VirtualMachineInstanceSpec, n vmi.Network) (vmi.Interface, bool) {
	for _, i := range s.Domain.Devices.Interfaces {
		if i.Name == n.Name {
			return i, i.State != vmi.InterfaceAbsent
		}
	}
	return vmi.Interface{}, false
}

// split takes namespace/name apart.
func split(networkName, namespace string) (string, string) {
	if before, after, ok := strings.Cut(networkName, "/"); ok {
		return before, after
	}
	return namespace, networkName
}
