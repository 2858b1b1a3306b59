package vmi

// Interface is a network interface of a VMI. It is attached to the network of
// the same name by at most one binding. Default: bridge. A VMI that lists no
// interface and no network gets one interface, with the binding that the
// cluster's configuration names.
//
// +podvisor:atMostOne:of=bridge;masquerade;sriov;passtBinding;binding,message="an interface has at most one binding"
// +kubebuilder:validation:XValidation:rule="!has(self.ports) || !has(self.portRanges) || self.ports.size() == 0 || self.portRanges.size() == 0",message="ports and portRanges exclude each other: write single ports as ranges of one, or leave portRanges out",fieldPath=".portRanges"
type Interface struct {
	// Name is the name of the network that this interface is attached to. A VMI
	// without a network of that name is refused.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-]+$`
	Name string `json:"name"`

	InterfaceBinding `json:",inline"`

	// Binding attaches the guest by a binding plugin.
	// +optional
	// +podvisor:unserved=there are no binding plugins
	Binding *PluginBinding `json:"binding,omitempty"`

	// Model is the network card that the guest sees: virtio (the fastest),
	// e1000, e1000e, ne2k_pci, pcnet or rtl8139. Default: virtio.
	// +optional
	Model InterfaceModel `json:"model,omitempty"`

	// MacAddress is the interface's MAC address, for example 02:00:00:12:34:56.
	// One that is zero or for groups is refused, and with the masquerade binding
	// 02:00:00:00:00:00, which is the gateway's. Default with the bridge binding:
	// the pod's, and on the pod network any other is refused; otherwise one that
	// follows from the VMI's UID.
	// +optional
	// +kubebuilder:validation:Pattern=`^([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}$`
	MacAddress string `json:"macAddress,omitempty"`

	// Ports are the ports that the masquerade binding forwards to the guest; with
	// the bridge binding all reach it. The pod lists them, so that Services can
	// name them. Default: all.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	Ports []Port `json:"ports,omitempty"`

	// PortRanges are ranges of ports that the masquerade binding forwards to the
	// guest. They exclude ports, and need the feature gate PortRangesSpec. The pod
	// does not list them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	PortRanges []PortRange `json:"portRanges,omitempty"`

	// BootOrder is the position in which the firmware tries to boot from this
	// interface, counted from 1, over all disks and interfaces. Default: the
	// guest does not boot from it. Two devices with the same number are refused.
	// +optional
	// +kubebuilder:validation:Minimum=1
	BootOrder *uint `json:"bootOrder,omitempty"`

	// DHCPOptions are sent to the guest with its address.
	// +optional
	DHCPOptions *DHCPOptions `json:"dhcpOptions,omitempty"`

	// PciAddress is the interface's address on the guest's PCI bus, for example
	// 0000:02:00.0: device 0 behind one of the guest's ports, each of which has a bus
	// of its own, or a free one of bus 00. Default: by the interface's position in the
	// list.
	// +optional
	PciAddress string `json:"pciAddress,omitempty"`

	// ACPIIndex is the interface's number for the guest, from which Linux makes
	// the name (eno3 from 3). Two interfaces with the same number are refused.
	// Default: none.
	// +optional
	ACPIIndex int `json:"acpiIndex,omitempty"`

	// Tag reaches the guest with the interface's address, in cloud-init's
	// configuration drive.
	// +optional
	Tag string `json:"tag,omitempty"`

	// State is the cable: up, down (the guest sees a cable that is not plugged in) or
	// absent (the guest has no such interface, and its pod is not attached to the
	// network; bridge binding only, and not the pod network). In the template of a
	// VirtualMachine it can be changed between up and down while the guest runs.
	// Default: up.
	// +optional
	State InterfaceState `json:"state,omitempty"`
}

// InterfaceModel is the network card that a guest sees.
//
// +podvisor:enum
type InterfaceModel string

// The network cards. The zero value stands for virtio.
const (
	InterfaceModelVirtio  InterfaceModel = "virtio"
	InterfaceModelE1000   InterfaceModel = "e1000"
	InterfaceModelE1000e  InterfaceModel = "e1000e"
	InterfaceModelNE2kPCI InterfaceModel = "ne2k_pci"
	InterfaceModelPCnet   InterfaceModel = "pcnet"
	InterfaceModelRTL8139 InterfaceModel = "rtl8139"
	InterfaceModelIGB     InterfaceModel = "igb"
)

// InterfaceBinding is how an interface is attached to its network. At most one
// field is set. The trait "device" says that the guest has a device of the node, and
// "removable" that an interface can be removed from a running VMI.
type InterfaceBinding struct {
	// Bridge attaches the guest to the pod's interface by a bridge: the guest
	// takes over the pod's MAC and IP addresses. It gets the IPv4 address by DHCP,
	// and on the pod network that of IPv6 by router advertisements and DHCPv6, if the
	// pod's router answers at the link-local address that its MAC makes. Otherwise it
	// must be configured with that of IPv6, for example by cloud-init's network data.
	// +optional
	Bridge *InterfaceBridge `json:"bridge,omitempty" traits:"removable"`

	// Masquerade attaches the guest by network address translation: the guest has
	// a private address, which is translated to the pod's. It gets the IPv4
	// address by DHCP, and that of IPv6 by router advertisements and DHCPv6.
	// +optional
	Masquerade *InterfaceMasquerade `json:"masquerade,omitempty"`

	// SRIOV gives the guest a virtual function of the node's network card for
	// itself. Its network is one of Multus, whose
	// NetworkAttachmentDefinition names in its annotation
	// k8s.v1.cni.cncf.io/resourceName the resource by which a device plugin gives the
	// pod the function.
	// +optional
	SRIOV *InterfaceSRIOV `json:"sriov,omitempty" traits:"device"`

	// PasstBinding attaches the guest by passt, an unprivileged program that opens
	// the guest's connections from the pod: guest and pod share the pod's address.
	// +optional
	// +podvisor:unserved=passt needs a user namespace and mounts for itself, which a launcher's pod may not make (seccomp RuntimeDefault)
	PasstBinding *InterfacePasst `json:"passtBinding,omitempty"`

	// DeprecatedSlirp is a binding that KubeVirt has removed.
	// +optional
	// +podvisor:refused=the binding is discontinued: use masquerade or passtBinding
	DeprecatedSlirp *DeprecatedBinding `json:"slirp,omitempty"`

	// DeprecatedMacvtap is a binding that KubeVirt has removed.
	// +optional
	// +podvisor:refused=the binding is discontinued: use bridge or sriov
	DeprecatedMacvtap *DeprecatedBinding `json:"macvtap,omitempty"`

	// DeprecatedPasst is a binding that KubeVirt has removed.
	// +optional
	// +podvisor:refused=the binding is discontinued: use passtBinding
	DeprecatedPasst *DeprecatedBinding `json:"passt,omitempty"`
}

// Bindings are the bindings that are set, by their names in JSON.
func (b *InterfaceBinding) Bindings() []string { return set(*b) }

// IsDevice says that the guest has a device of the node for the interface.
func (b *InterfaceBinding) IsDevice() bool { return has(*b, "device") }

// IsRemovable says that the interface can be removed from a VMI that runs.
func (b *InterfaceBinding) IsRemovable() bool { return has(*b, "removable") }

// RemovableBindings are the bindings whose interfaces can be removed from a VMI that
// runs.
func RemovableBindings() []string { return having[InterfaceBinding]("removable") }

// InterfaceBridge is the bridge binding. It has no settings.
type InterfaceBridge struct{}

// InterfaceMasquerade is the masquerade binding. It has no settings.
type InterfaceMasquerade struct{}

// InterfaceSRIOV is the SR-IOV binding. It has no settings.
type InterfaceSRIOV struct{}

// InterfacePasst is the passt binding. It has no settings.
type InterfacePasst struct{}

// DeprecatedBinding is a binding that no longer exists. It has a type so that
// validation can name what to use instead.
type DeprecatedBinding struct{}

// PluginBinding is a binding that a plugin makes.
type PluginBinding struct {
	// Name is the plugin as the cluster's configuration names it.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
}

// Protocols of a port.
const (
	ProtocolTCP = "TCP"
	ProtocolUDP = "UDP"
)

// Port is a port of the guest.
type Port struct {
	// Name is the port's name, which a Service may use as its target. Two ports of
	// a VMI cannot have the same name.
	// +optional
	Name string `json:"name,omitempty"`

	// Protocol is TCP or UDP. Default: TCP.
	// +optional
	// +kubebuilder:default=TCP
	// +kubebuilder:validation:Enum=TCP;UDP
	Protocol string `json:"protocol,omitempty"`

	// Port is the port number.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`
}

// PortRange is a range of ports of the guest.
//
// +kubebuilder:validation:XValidation:rule="self.start <= self.end",message="start is more than end: a range begins at start and includes end",fieldPath=".end"
type PortRange struct {
	// Protocol is TCP or UDP.
	// +kubebuilder:validation:Enum=TCP;UDP
	Protocol string `json:"protocol"`

	// Start is the first port.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Start int32 `json:"start"`

	// End is the last port.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	End int32 `json:"end"`
}

// InterfaceState is the cable of an interface.
//
// +podvisor:enum
type InterfaceState string

// The states of an interface's cable. The zero value stands for up.
const (
	InterfaceUp     InterfaceState = "up"
	InterfaceDown   InterfaceState = "down"
	InterfaceAbsent InterfaceState = "absent"
)

// HasLink says that the interface has a link that can be switched while the guest runs. A
// device of the node has none of its own, nor has an interface that is absent.
func (i *Interface) HasLink() bool { return !i.IsDevice() && i.State != InterfaceAbsent }

// Link is the state of the link of an interface that has one: up or down.
func (i *Interface) Link() InterfaceState {
	if i.State == InterfaceDown {
		return InterfaceDown
	}
	return InterfaceUp
}

// DHCPOptions are sent to the guest with its address.
type DHCPOptions struct {
	// BootFileName is the file that a guest which boots from the network loads
	// (option 67).
	// +optional
	BootFileName string `json:"bootFileName,omitempty"`

	// TFTPServerName is the server that it loads it from (option 66).
	// +optional
	TFTPServerName string `json:"tftpServerName,omitempty"`

	// NTPServers are the IPv4 addresses of time servers (option 42).
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	NTPServers []string `json:"ntpServers,omitempty"`

	// PrivateOptions are options of the user's own.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=31
	PrivateOptions []DHCPPrivateOption `json:"privateOptions,omitempty"`
}

// DHCPPrivateOption is an option of the user's own.
type DHCPPrivateOption struct {
	// Option is the option's number, 224 to 254.
	// +kubebuilder:validation:Minimum=224
	// +kubebuilder:validation:Maximum=254
	Option int `json:"option"`

	// Value is the option's text.
	Value string `json:"value"`
}

// What the information of an [InterfaceStatus] is from.
const (
	InfoSourceDomain     = "domain"
	InfoSourceGuestAgent = "guest-agent"
	// InfoSourceMultusStatus is the annotation by which Multus reports the networks of
	// a pod.
	InfoSourceMultusStatus = "multus-status"
)

// InterfaceStatus is an observed network interface.
type InterfaceStatus struct {
	// Name is the name of the interface in the spec. Empty: only the guest has it.
	// +optional
	Name string `json:"name,omitempty"`
	// IP is the first one of IPs.
	// +optional
	IP string `json:"ipAddress,omitempty"`
	// IPs are all addresses: with the masquerade binding the pod's, under which the
	// guest is reached; otherwise those that the guest's agent reports, and the pod's
	// while there is no agent. A guest may report any address.
	// +optional
	// +listType=atomic
	IPs []string `json:"ipAddresses,omitempty"`
	// MAC is the interface's MAC address.
	// +optional
	MAC string `json:"mac,omitempty"`
	// InterfaceName is the interface's name in the guest, if the guest's agent
	// reported it.
	// +optional
	InterfaceName string `json:"interfaceName,omitempty"`
	// PodInterfaceName is the pod's interface behind it.
	// +optional
	PodInterfaceName string `json:"podInterfaceName,omitempty"`
	// InfoSource is where this information is from: domain, guest-agent,
	// multus-status, or several of them with commas between.
	// +optional
	InfoSource string `json:"infoSource,omitempty"`
	// QueueCount is the number of queues.
	// +optional
	QueueCount int32 `json:"queueCount,omitempty"`
	// LinkState is up or down, as a cable that is plugged in or not.
	// +optional
	LinkState string `json:"linkState,omitempty"`
}
