package volume

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/vmi"
)

// secret is an image with a file for each key of a Secret.
//
// +podvisor:entry
var secret = files{
	name: "secret", dir: "secret",
	source: func(s vmi.VolumeSource) corev1.VolumeSource {
		return corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: s.Secret.SecretName, Optional: s.Secret.Optional}}
	},
	label: func(s vmi.VolumeSource) string { return s.Secret.VolumeLabel },
}.kind()
