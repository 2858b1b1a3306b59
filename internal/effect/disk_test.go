package effect

// diskArea is of disks and how they are read and written.
var diskArea = exceptions{
	without: map[string]string{
		"spec.domain.devices.disks[].cdrom.readonly": "nothing that a guest sends writes to a CD-ROM, so that false says no more than true",
		"spec.domain.devices.disks[].lun.bus":        "scsi is the only bus of a LUN, and its default",
	},
	alternatives: map[string][]any{
		"spec.domain.devices.disks[].disk.bus":                            {"virtio", "sata", "scsi", "usb"},
		"spec.domain.devices.disks[].cdrom.bus":                           {"sata", "scsi", "usb"},
		"spec.domain.devices.disks[].cdrom.tray":                          {"open", "closed"},
		"spec.domain.devices.disks[].cache":                               {"none", "writethrough", "writeback"},
		"spec.domain.devices.disks[].io":                                  {"native", "threads"},
		"spec.domain.devices.disks[].errorPolicy":                         {"stop", "ignore", "report", "enospace"},
		"spec.domain.devices.disks[].blockSize.custom.logical":            {512.0, 4096.0},
		"spec.domain.devices.disks[].blockSize.custom.physical":           {4096.0, 16384.0},
		"spec.domain.devices.disks[].blockSize.custom.discardGranularity": {65536.0, 32768.0},
		"spec.domain.ioThreadsPolicy":                                     {"shared", "auto"},
		"spec.domain.ioThreads.supplementalPoolThreadCount":               {3.0, 5.0},
	},
}
