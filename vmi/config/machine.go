package config

import (
	"strconv"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/validate"
)

// profile is how machines are completed.
func profile(in *vmi.KubeVirtConfiguration) defaults.Profile {
	p := defaults.Profile{CPURequest: in.CPURequest}
	if n := in.Network; n != nil {
		p.Binding = defaults.Binding(n.DefaultNetworkInterface)
	}
	if p.Binding == "" && rules(in).NoBridge {
		p.Binding = defaults.Masquerade
	}
	return p
}

// rules are what machines may not have.
func rules(in *vmi.KubeVirtConfiguration) validate.Rules {
	if in.Network == nil || in.Network.PermitBridgeInterfaceOnPodNetwork == nil {
		return validate.Rules{}
	}
	return validate.Rules{NoBridge: !*in.Network.PermitBridgeInterfaceOnPodNetwork}
}

// pods is how the pods of machines are rendered. The configuration is valid.
func pods(in *vmi.KubeVirtConfiguration, d *vmi.DeveloperConfiguration) Pods {
	p := Pods{
		ImagePullPolicy:    in.ImagePullPolicy,
		Emulation:          d.UseEmulation,
		CPUAllocationRatio: d.CPUAllocationRatio,
		MemoryOvercommit:   d.MemoryOvercommit,
		NodeSelector:       d.NodeSelectors,
	}
	if r := in.AdditionalGuestMemoryOverheadRatio; r != nil {
		p.OverheadRatio, _ = strconv.ParseFloat(*r, 64) // validated
	}
	return p
}
