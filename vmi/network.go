package vmi

// Network is what an interface is attached to: exactly one of its kinds is
// set.
//
// +podvisor:exactlyOne:of=pod;multus,message="a network has exactly one source"
type Network struct {
	// Name is the network's name. The interface of the same name is attached to
	// it. A VMI without an interface of that name is refused.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	NetworkSource `json:",inline"`
}

// NetworkSource is what a network is. Exactly one field is set.
type NetworkSource struct {
	// Pod is the network of the pod, as every pod has it. A VMI has at most one
	// interface on it.
	// +optional
	Pod *PodNetwork `json:"pod,omitempty"`

	// Multus is a further network of the pod, which Multus attaches. Without Multus
	// in the cluster the VMI does not start.
	// +optional
	Multus *MultusNetwork `json:"multus,omitempty"`
}

// PodNetwork is the network of the pod.
type PodNetwork struct {
	// VMNetworkCIDR is the IPv4 network between the guest and the pod when the
	// binding is masquerade: the first host address is the gateway's, the second
	// the guest's. It has at most 30 bits; one that holds the pod's own address
	// keeps the VMI from starting. Other bindings ignore it. Default: 10.0.2.0/24.
	// +optional
	VMNetworkCIDR string `json:"vmNetworkCIDR,omitempty"`

	// VMIPv6NetworkCIDR is the same for IPv6, with at most 126 bits, where the pod
	// has an IPv6 address. The guest gets the second address by DHCPv6. Default:
	// fd10:0:2::/120, so fd10:0:2::2 and the gateway fd10:0:2::1.
	// +optional
	VMIPv6NetworkCIDR string `json:"vmIPv6NetworkCIDR,omitempty"`
}

// MultusNetwork is a network that Multus attaches to the pod.
type MultusNetwork struct {
	// NetworkName is the NetworkAttachmentDefinition, as name or as namespace/name.
	// While it does not exist the pod does not start.
	// +kubebuilder:validation:MinLength=1
	NetworkName string `json:"networkName"`

	// Default makes this network the pod's first one, in place of the cluster's.
	// At most one network has it, and none beside a pod network. Multus looks for a
	// name without a namespace in the namespace of its configuration, mostly
	// kube-system. Default: false.
	// +optional
	Default bool `json:"default,omitempty"`
}
