package effect

import "github.com/podvisor/podvisor/vmi"

// networkArea is of interfaces and networks.
var networkArea = exceptions{
	alternatives: map[string][]any{
		"spec.domain.devices.interfaces[].portRanges[].protocol":               {"TCP", "UDP"},
		"spec.domain.devices.interfaces[].state":                               {string(vmi.InterfaceUp), string(vmi.InterfaceDown)},
		"spec.domain.devices.interfaces[].dhcpOptions.ntpServers[]":            {"192.0.2.99"},
		"spec.domain.devices.interfaces[].dhcpOptions.privateOptions[].option": {230.0},
	},
}
