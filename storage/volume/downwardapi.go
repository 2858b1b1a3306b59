package volume

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/vmi"
)

// downwardAPI is an image with facts about the pod as files, as they are when the VMI
// starts.
//
// +podvisor:entry
var downwardAPI = files{
	name: "downwardAPI", dir: "downwardapi",
	source: func(s vmi.VolumeSource) corev1.VolumeSource {
		return corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: s.DownwardAPI.Fields}}
	},
	label: func(s vmi.VolumeSource) string { return s.DownwardAPI.VolumeLabel },
}.kind()
