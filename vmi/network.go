package vmi

// Network is what an interface is connected to: exactly one of its kinds is
// set.
//
// +kubebuilder:validation:XValidation:rule="has(self.pod)",message="a network has exactly one source: pod"
type Network struct {
	// Name is the network's name. The interface of the same name is connected
	// to it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	NetworkSource `json:",inline"`
}

// NetworkSource is what a network is. Exactly one field is set.
type NetworkSource struct {
	// Pod is the network of the pod, as every pod has it.
	// +optional
	Pod *PodNetwork `json:"pod,omitempty"`
}

// PodNetwork is the network of the pod.
type PodNetwork struct {
	// VMNetworkCIDR is the IPv4 network between the guest and the pod when the
	// binding is masquerade: the first host address is the gateway's, the second
	// the guest's. Default: 10.0.2.0/24.
	// +optional
	VMNetworkCIDR string `json:"vmNetworkCIDR,omitempty"`

	// VMIPv6NetworkCIDR is the same for IPv6. Default: fd10:0:2::/120.
	// +optional
	VMIPv6NetworkCIDR string `json:"vmIPv6NetworkCIDR,omitempty"`
}

// Interface is a network interface of a machine. It is connected to the
// network of the same name by exactly one binding.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.bridge) && has(self.masquerade))",message="an interface has exactly one binding: bridge or masquerade"
type Interface struct {
	// Name is the name of the network that this interface is connected to.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-]+$`
	Name string `json:"name"`

	InterfaceBinding `json:",inline"`

	// Model is the network card that the guest sees: virtio (the fastest),
	// e1000, e1000e, igb, ne2k_pci, pcnet or rtl8139. Default: virtio.
	// +optional
	// +kubebuilder:validation:Enum=e1000;e1000e;igb;ne2k_pci;pcnet;rtl8139;virtio
	Model string `json:"model,omitempty"`

	// MacAddress is the interface's MAC address, for example 02:00:00:12:34:56.
	// Default with the bridge binding: the pod's; otherwise one that follows
	// from the machine's UID.
	// +optional
	// +kubebuilder:validation:Pattern=`^([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}$`
	MacAddress string `json:"macAddress,omitempty"`

	// Ports are the ports that the masquerade binding forwards to the guest.
	// Default: all.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	Ports []Port `json:"ports,omitempty"`
}

// InterfaceBinding is how an interface is connected to its network. At most one
// field is set.
type InterfaceBinding struct {
	// Bridge connects the guest to the pod's interface by a bridge: the guest
	// takes over the pod's MAC and IP addresses.
	// +optional
	Bridge *InterfaceBridge `json:"bridge,omitempty"`

	// Masquerade connects the guest by network address translation: the guest
	// has a private address, and the pod's address stands for it.
	// +optional
	Masquerade *InterfaceMasquerade `json:"masquerade,omitempty"`
}

// InterfaceBridge is the bridge binding. It has no settings.
type InterfaceBridge struct{}

// InterfaceMasquerade is the masquerade binding. It has no settings.
type InterfaceMasquerade struct{}

// Port is a port of the guest.
type Port struct {
	// Name is the port's name, which a Service may use as its target.
	// +optional
	Name string `json:"name,omitempty"`

	// Protocol is TCP or UDP. Default: TCP.
	// +optional
	// +kubebuilder:validation:Enum=TCP;UDP
	Protocol string `json:"protocol,omitempty"`

	// Port is the port number.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`
}
