package volume

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/vmi"
)

// configMap is an image with a file for each key of a ConfigMap.
//
// +podvisor:entry
var configMap = files{
	name: "configMap", dir: "config-map",
	source: func(s vmi.VolumeSource) corev1.VolumeSource {
		return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: s.ConfigMap.LocalObjectReference, Optional: s.ConfigMap.Optional,
		}}
	},
	label: func(s vmi.VolumeSource) string { return s.ConfigMap.VolumeLabel },
}.kind()
