package effect

// firmwareArea is of firmware, kernels and TPMs.
var firmwareArea = exceptions{
	alternatives: map[string][]any{
		"spec.domain.firmware.kernelBoot.container.kernelPath":      {"/vmlinuz"},
		"spec.domain.firmware.kernelBoot.container.initrdPath":      {"/initrd"},
		"spec.domain.firmware.kernelBoot.container.imagePullPolicy": {"Never", "IfNotPresent"},
	},
	instead: map[string][]string{
		"spec.domain.firmware.bootloader.bios": {"efi"},
	},
}
