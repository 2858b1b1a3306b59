package effect

// volumeArea is of volumes.
var volumeArea = exceptions{
	without: map[string]string{
		"spec.volumes[].hostDisk.type":                                       "it decides only whether a file that is missing is made; without, the VMI has no disk",
		"spec.volumes[].downwardAPI.fields[].fieldRef.apiVersion":            "v1, which it is without it, is the only version of pods",
		"spec.volumes[].downwardAPI.fields[].resourceFieldRef.containerName": "a file is about one container alone, that with the guest",
	},
	alternatives: map[string][]any{
		"spec.architecture":                                             {"arm64"},
		"spec.volumes[].configMap.optional":                             {true},
		"spec.volumes[].secret.optional":                                {true},
		"spec.volumes[].downwardAPI.fields[].mode":                      {256},
		"spec.volumes[].downwardAPI.fields[].fieldRef.fieldPath":        {"metadata.name"},
		"spec.volumes[].downwardAPI.fields[].resourceFieldRef.resource": {"limits.memory"},
		"spec.volumes[].downwardAPI.fields[].resourceFieldRef.divisor":  {"1Ki"},
		"spec.volumes[].sysprep.secret.name":                            {"other"},
		"spec.volumes[].sysprep.configMap.name":                         {"other"},
	},
	together: map[string]string{
		"spec.serviceAccountName": "spec.volumes[].serviceAccount.serviceAccountName",
	},
}
