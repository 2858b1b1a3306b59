package effect

// sharingArea is of file systems that are shared.
var sharingArea = exceptions{
	without: map[string]string{
		"spec.domain.devices.filesystems[].virtiofs": "it has no settings, and without it the VMI is refused: there is no other kind",
	},
	together: map[string]string{
		"spec.domain.devices.filesystems[].name": "spec.volumes[].name",
	},
}
