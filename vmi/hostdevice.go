package vmi

// GPU is a graphics processor of the node.
type GPU struct {
	// Name is the device's name, unique in the VMI.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// DeviceName is the resource that the node offers the device as, for example
	// nvidia.com/GP102GL_Tesla_P40. It must be permitted by the cluster's
	// configuration. The VMI waits until a node offers it.
	// +optional
	DeviceName string `json:"deviceName,omitempty"`

	// ClaimRequest is the request of a resource claim that the device comes from,
	// instead of deviceName.
	*ClaimRequest `json:",inline"`

	// VirtualGPUOptions are settings of a mediated device.
	// +optional
	VirtualGPUOptions *VGPUOptions `json:"virtualGPUOptions,omitempty"`

	// Tag reaches the guest with the device's address, in cloud-init's
	// configuration drive.
	// +optional
	Tag string `json:"tag,omitempty"`
}

// VGPUOptions are settings of a mediated graphics device.
type VGPUOptions struct {
	// Display shows what the device draws on the VNC screen.
	// +optional
	Display *VGPUDisplayOptions `json:"display,omitempty"`
}

// VGPUDisplayOptions says how a mediated device draws.
type VGPUDisplayOptions struct {
	// Enabled shows the device on the VNC screen. Default: true.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// RamFB gives the guest a simple screen before its driver is there.
	// Default: enabled, if the display is.
	// +optional
	RamFB *FeatureState `json:"ramFB,omitempty"`
}

// HostDevice is a device of the node.
type HostDevice struct {
	// Name is the device's name, unique in the VMI.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// DeviceName is the resource that the node offers the device as. It must be
	// permitted by the cluster's configuration. The VMI waits until a node offers
	// it.
	// +optional
	DeviceName string `json:"deviceName,omitempty"`

	// ClaimRequest is the request of a resource claim that the device comes from,
	// instead of deviceName.
	*ClaimRequest `json:",inline"`

	// Tag reaches the guest with the device's address, in cloud-init's
	// configuration drive.
	// +optional
	Tag string `json:"tag,omitempty"`
}

// ClaimRequest names what dynamic resource allocation gives to the pod.
type ClaimRequest struct {
	// ClaimName is the name of one of resourceClaims. Required, with requestName.
	// +optional
	// +podvisor:unserved=pods have no resource claims
	ClaimName *string `json:"claimName,omitempty"`

	// RequestName is the name of the request in the claim that the device is
	// allocated for. Required, with claimName.
	// +optional
	// +podvisor:unserved=pods have no resource claims
	RequestName *string `json:"requestName,omitempty"`
}
