package effect

// volumeArea is of volumes.
var volumeArea = exceptions{
	without: map[string]string{
		"spec.volumes[].hostDisk.type": "it decides only whether a file that is missing is made; without, the VMI has no disk",
	},
	alternatives: map[string][]any{
		"spec.volumes[].configMap.optional":        {true},
		"spec.volumes[].secret.optional":           {true},
		"spec.volumes[].downwardAPI.fields[].mode": {256},
		"spec.volumes[].sysprep.secret.name":       {"other"},
		"spec.volumes[].sysprep.configMap.name":    {"other"},
	},
	together: map[string]string{
		"spec.serviceAccountName": "spec.volumes[].serviceAccount.serviceAccountName",
	},
}
