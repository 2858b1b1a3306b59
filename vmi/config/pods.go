package config

import (
	"strconv"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/validate"
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
	if all := validate.PermittedDevices(in.PermittedHostDevices); len(all) > 0 {
		p.HostDevices = all
	}
	return p
}
