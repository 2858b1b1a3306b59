package defaults

import "github.com/podvisor/podvisor/vmi"

// Configured is the profile of a cluster with this configuration.
func Configured(c *vmi.KubeVirtConfiguration) Profile {
	p := Profile{CPUModel: c.CPUModel, CPURequest: c.CPURequest, ImagePullPolicy: c.ImagePullPolicy, MachineTypes: map[string]string{}}
	if c.EvictionStrategy != nil {
		p.EvictionStrategy = *c.EvictionStrategy
	}
	if c.Network != nil {
		p.Binding = Binding(c.Network.DefaultNetworkInterface)
	}
	if t := c.DeprecatedMachineType; t != "" {
		p.MachineTypes[AMD64] = t
	}
	if a := c.ArchitectureConfiguration; a != nil {
		p.Architecture = a.DefaultArchitecture
		for arch, s := range map[string]*vmi.ArchitectureSettings{AMD64: a.AMD64, ARM64: a.ARM64, S390X: a.S390X} {
			if s != nil && s.MachineType != "" {
				p.MachineTypes[arch] = s.MachineType
			}
		}
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
