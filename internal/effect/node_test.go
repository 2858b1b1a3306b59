package effect

import "github.com/podvisor/podvisor/vmi"

// nodeArea is of where a VMI runs and what it takes there.
var nodeArea = exceptions{
	alternatives: map[string][]any{
		"spec.domain.cpu.model":                        {vmi.CPUModelPassthrough, "Haswell", "Skylake-Server-noTSX-IBRS"},
		"spec.domain.cpu.features[].name":              {"aes"},
		"spec.domain.cpu.features[].policy":            {"force", "require", "optional", "disable", "forbid"},
		"spec.domain.memory.hugepages.pageSize":        {"2Mi", "1Gi"},
		"spec.domain.devices.gpus[].deviceName":        {"example.com/vgpu", "example.com/gpu"},
		"spec.domain.devices.hostDevices[].deviceName": {"example.com/vgpu", "example.com/gpu"},
	},
}
