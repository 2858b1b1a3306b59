package validate

import (
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
)

// PermittedDevices are the resources of the devices that VMIs may have. It is not nil.
func PermittedDevices(p *vmi.PermittedHostDevices) map[string]bool {
	all := map[string]bool{}
	if p == nil {
		return all
	}
	for _, d := range p.PCIHostDevices {
		all[d.ResourceName] = true
	}
	for _, d := range p.MediatedDevices {
		all[d.ResourceName] = true
	}
	return all
}

// Configured are the limits of a cluster with this configuration, with the
// features of a default KubeVirt.
func Configured(c *vmi.KubeVirtConfiguration) Limits {
	var l Limits
	types := map[string][]string{}
	if n := c.Network; n != nil && n.PermitBridgeInterfaceOnPodNetwork != nil {
		l.NoBridgeOnPodNetwork = !*n.PermitBridgeInterfaceOnPodNetwork
	}
	if t := c.DeprecatedEmulatedMachines; len(t) > 0 {
		types[defaults.AMD64] = t
	}
	if a := c.ArchitectureConfiguration; a != nil {
		l.Architecture = a.DefaultArchitecture
		for arch, s := range map[string]*vmi.ArchitectureSettings{defaults.AMD64: a.AMD64, defaults.ARM64: a.ARM64, defaults.S390X: a.S390X} {
			if s != nil && len(s.EmulatedMachines) > 0 {
				types[arch] = s.EmulatedMachines
			}
		}
	}
	if len(types) > 0 {
		l.MachineTypes = types
	}
	if p := c.PermittedHostDevices; p != nil {
		l.Features.HostDevices = len(p.PCIHostDevices)+len(p.MediatedDevices) > 0
		l.Devices = PermittedDevices(p)
	}
	if d := c.DeveloperConfiguration; d != nil {
		gates, _ := FeatureGates(d.FeatureGates...)
		// The others are not served, or need more than a gate.
		l.Features.HostDisk, l.Features.PortRanges = gates.HostDisk, gates.PortRanges
		l.Features.VSOCK, l.Features.SEV = gates.VSOCK, gates.SEV
	}
	l.NoLiveUpdate = c.VMRolloutStrategy != nil && *c.VMRolloutStrategy == vmi.RolloutStage
	return l
}
