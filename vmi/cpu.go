package vmi

// CPU is the processor of a guest. The guest sees Sockets × Cores × Threads
// processors, at most 255.
//
// +kubebuilder:validation:XValidation:rule="!has(self.isolateEmulatorThread) || !self.isolateEmulatorThread || (has(self.dedicatedCpuPlacement) && self.dedicatedCpuPlacement)",message="isolateEmulatorThread needs dedicatedCpuPlacement: set dedicatedCpuPlacement to true, or leave isolateEmulatorThread out",fieldPath=".isolateEmulatorThread"
// +kubebuilder:validation:XValidation:rule="!has(self.numa) || !has(self.numa.guestMappingPassthrough) || (has(self.dedicatedCpuPlacement) && self.dedicatedCpuPlacement)",message="numa.guestMappingPassthrough needs dedicatedCpuPlacement: set dedicatedCpuPlacement to true, or leave numa out",fieldPath=".numa.guestMappingPassthrough"
// +kubebuilder:validation:XValidation:rule="!has(self.maxSockets) || self.maxSockets == 0 || (has(self.sockets) ? self.sockets : 1) <= self.maxSockets",message="sockets is more than maxSockets: raise maxSockets, or ask for fewer sockets",fieldPath=".sockets"
type CPU struct {
	// Cores per socket. Default: 1.
	// +optional
	Cores uint32 `json:"cores,omitempty"`

	// Sockets is the number of processor sockets. Default: 1; if cores and
	// threads are left out too, as many as the CPU limit or else the CPU request
	// of the resources needs, or else the cluster's cpuRequest.
	// +optional
	Sockets uint32 `json:"sockets,omitempty"`

	// MaxSockets is the number of sockets that can be had without a restart, by
	// adding processors to the running guest. Default: four times sockets, as long
	// as the guest would see at most 512 processors. A value below sockets is
	// refused.
	// +optional
	MaxSockets uint32 `json:"maxSockets,omitempty"`

	// Threads per core. Default: 1.
	// +optional
	Threads uint32 `json:"threads,omitempty"`

	// Model is the processor that the guest sees: host-model, the closest to the
	// node's that has a name; host-passthrough, the node's own, down to what has
	// none; or a model of libvirt's by its name, such as Haswell, which limits the
	// nodes to those that have it (label cpu-model.node.kubevirt.io/<model>). A
	// guest that is emulated sees the same model on every node with the first two,
	// EPYC without what emulation lacks, and of the named models has those that can
	// be emulated in full. Default: the cluster's, or host-model.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$`
	Model string `json:"model,omitempty"`

	// Features adds features to the model or takes them away. Those that are
	// required or forbidden limit the nodes, by the labels
	// cpu-feature.node.kubevirt.io/<feature>.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Features []CPUFeature `json:"features,omitempty"`

	// DedicatedCPUPlacement gives every processor of the guest a CPU of the node
	// for itself. It needs a node whose kubelet runs the static CPU manager, and
	// makes CPU requests and limits equal. Default: false.
	// +optional
	DedicatedCPUPlacement bool `json:"dedicatedCpuPlacement,omitempty"`

	// IsolateEmulatorThread gives QEMU's own work one more CPU, so that it never
	// takes time from the guest's. It needs dedicatedCpuPlacement. Default:
	// false.
	// +optional
	IsolateEmulatorThread bool `json:"isolateEmulatorThread,omitempty"`

	// NUMA shows the guest the node's memory topology. It needs
	// dedicatedCpuPlacement and hugepages.
	// +optional
	NUMA *NUMA `json:"numa,omitempty"`
}

// CPUFeature is a feature of a processor, for example vmx or pcid.
type CPUFeature struct {
	// Name is the feature as libvirt names it, for example sse4.2.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	Name string `json:"name"`

	// Policy says what to do about it: force shows it even if the node lacks
	// it; require shows it and limits the nodes to those that have it; optional
	// shows it if the node has it; disable hides it; forbid hides it and limits
	// the nodes to those that lack it. Default: require.
	// +optional
	Policy CPUFeaturePolicy `json:"policy,omitempty"`
}

// CPUFeaturePolicy says what to do about a feature of a processor.
//
// +podvisor:enum
type CPUFeaturePolicy string

// The policies of a processor's feature. The zero value stands for require.
const (
	CPUFeatureUnset    CPUFeaturePolicy = ""
	CPUFeatureForce    CPUFeaturePolicy = "force"
	CPUFeatureRequire  CPUFeaturePolicy = "require"
	CPUFeatureOptional CPUFeaturePolicy = "optional"
	CPUFeatureDisable  CPUFeaturePolicy = "disable"
	CPUFeatureForbid   CPUFeaturePolicy = "forbid"
)

// Processor models that are not names of processors.
const (
	CPUModelHost        = "host-model"
	CPUModelPassthrough = "host-passthrough"
)

// NUMA is the memory topology that the guest sees.
type NUMA struct {
	// GuestMappingPassthrough shows the guest the topology of the CPUs and
	// hugepages that its pod was given.
	// +optional
	GuestMappingPassthrough *NUMAGuestMappingPassthrough `json:"guestMappingPassthrough,omitempty"`
}

// NUMAGuestMappingPassthrough has no settings.
type NUMAGuestMappingPassthrough struct{}

// VCPUs is the number of processors that the guest sees, at least 1. A nil CPU
// has one.
func (c *CPU) VCPUs() uint32 {
	if c == nil {
		return 1
	}
	return max(c.Cores, 1) * max(c.Sockets, 1) * max(c.Threads, 1)
}

// Named says that the model is one of libvirt's by its name, and not what the node
// has. A nil CPU has none.
func (c *CPU) Named() bool {
	return c != nil && c.Model != "" && c.Model != CPUModelHost && c.Model != CPUModelPassthrough
}

// Required says that a node must have the feature.
func (f CPUFeature) Required() bool {
	return f.Policy == CPUFeatureUnset || f.Policy == CPUFeatureRequire
}

// CPUTopology is the processor topology that a guest sees.
type CPUTopology struct {
	// Cores per socket.
	// +optional
	Cores uint32 `json:"cores,omitempty"`
	// Sockets is the number of sockets.
	// +optional
	Sockets uint32 `json:"sockets,omitempty"`
	// Threads per core.
	// +optional
	Threads uint32 `json:"threads,omitempty"`
}
