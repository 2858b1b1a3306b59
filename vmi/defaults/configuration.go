package defaults

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podvisor/podvisor/vmi"
)

// shareOfEach is the cpuRequest that KubeVirt takes for none, since it is the
// default: the pod asks for a share of each CPU.
var shareOfEach = resource.MustParse("100m")

// Configured is the profile of a cluster with this configuration. Its
// imagePullPolicy is for launchers; container disks have their own.
func Configured(c *vmi.KubeVirtConfiguration) Profile {
	p := Profile{CPUModel: c.CPUModel}
	if q := c.CPURequest; q != nil && !q.Equal(shareOfEach) {
		p.CPURequest = q
	}
	if c.EvictionStrategy != nil {
		p.EvictionStrategy = *c.EvictionStrategy
	}
	if c.Network != nil {
		p.Binding = binding(c.Network)
	}
	types := map[string]string{}
	if t := c.DeprecatedMachineType; t != "" {
		types[AMD64] = t
	}
	if a := c.ArchitectureConfiguration; a != nil {
		p.Architecture = a.DefaultArchitecture
		for arch, s := range map[string]*vmi.ArchitectureSettings{AMD64: a.AMD64, ARM64: a.ARM64, S390X: a.S390X} {
			if s != nil && s.MachineType != "" {
				types[arch] = s.MachineType
			}
		}
	}
	if len(types) > 0 {
		p.MachineTypes = types
	}
	p.NoLiveUpdate = c.VMRolloutStrategy != nil && *c.VMRolloutStrategy == vmi.RolloutStage
	if l := c.LiveUpdateConfiguration; l != nil {
		p.HotplugRatio, p.MaxGuest = l.MaxHotplugRatio, l.MaxGuest
		if l.MaxCPUSockets != nil {
			p.MaxSockets = *l.MaxCPUSockets
		}
	}
	return p
}

// binding is the default of a network. Where the bridge is not permitted, it is
// not the default either.
func binding(n *vmi.NetworkConfiguration) Binding {
	if p := n.PermitBridgeInterfaceOnPodNetwork; p != nil && !*p && n.DefaultNetworkInterface == "" {
		return Masquerade
	}
	return Binding(n.DefaultNetworkInterface)
}
