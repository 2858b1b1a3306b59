package config

import (
	"strconv"

	"github.com/podvisor/podvisor/vmi"
)

// pods is how the pods of VMIs are rendered. The configuration is valid.
func pods(in *vmi.KubeVirtConfiguration, d *vmi.DeveloperConfiguration) Pods {
	p := Pods{
		ImagePullPolicy:    in.ImagePullPolicy,
		Emulation:          d.UseEmulation,
		CPUAllocationRatio: d.CPUAllocationRatio,
		MemoryOvercommit:   d.MemoryOvercommit,
		NodeSelector:       d.NodeSelectors,
		StateStorageClass:  in.VMStateStorageClass,
	}
	if r := in.AdditionalGuestMemoryOverheadRatio; r != nil {
		p.OverheadRatio, _ = strconv.ParseFloat(*r, 64) // validated
	}
	p.HostDevices = hostDevices(in.PermittedHostDevices)
	return p
}

// hostDevices are the resources of devices that VMIs may have, or nil.
func hostDevices(in *vmi.PermittedHostDevices) map[string]bool {
	if in == nil || len(in.PCIHostDevices)+len(in.MediatedDevices) == 0 {
		return nil
	}
	all := map[string]bool{}
	for _, d := range in.PCIHostDevices {
		all[d.ResourceName] = true
	}
	for _, d := range in.MediatedDevices {
		all[d.ResourceName] = true
	}
	return all
}
