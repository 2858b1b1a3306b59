package effect

// platformArea is of processors, timers, features and the devices that only the domain has.
var platformArea = exceptions{
	without: map[string]string{
		"spec.domain.devices.inputs[].type": "there is no other input device than the tablet",
	},
	alternatives: map[string][]any{
		"spec.domain.devices.disks[].disk.pciAddress":     {"0000:07:00.0", "0000:00:1d.0"},
		"spec.domain.devices.interfaces[].pciAddress":     {"0000:03:00.0"},
		"spec.domain.devices.inputs[].bus":                {"usb", "virtio"},
		"spec.domain.devices.watchdog.i6300esb.action":    {"poweroff", "reset", "shutdown"},
		"spec.domain.devices.sound.model":                 {"ac97"},
		"spec.domain.devices.video.type":                  {"vga", "cirrus", "virtio", "ramfb", "bochs"},
		"spec.domain.devices.autoattachGraphicsDevice":    {false},
		"spec.domain.devices.autoattachSerialConsole":     {false},
		"spec.domain.devices.logSerialConsole":            {false},
		"spec.domain.devices.autoattachMemBalloon":        {false},
		"spec.domain.devices.panicDevices[].model":        {"isa", "hyperv"},
		"spec.domain.features.acpi.enabled":               {false},
		"spec.domain.features.hyperv.spinlocks.spinlocks": {8191.0},
		// It is on by default where it has a name, and refused where it has none.
		"spec.domain.features.hyperv.vendorid.enabled":  {false},
		"spec.domain.features.hyperv.vendorid.vendorid": {"Podvisor"},
		"spec.domain.clock.timezone":                    {"Europe/Rome"},
		"spec.domain.clock.timer.hpet.tickPolicy":       {"delay", "catchup", "merge", "discard"},
		"spec.domain.clock.timer.pit.tickPolicy":        {"delay", "catchup", "discard"},
		"spec.domain.clock.timer.rtc.tickPolicy":        {"delay", "catchup"},
		"spec.domain.clock.timer.rtc.track":             {"guest", "wall"},
		"spec.domain.rebootPolicy":                      {"Terminate"},
	},
	instead: map[string][]string{
		"spec.domain.clock.timezone": {"utc"},
	},
}
