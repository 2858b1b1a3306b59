package volume

import (
	"path"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/vmi"
)

// StateVolume is the name of the volume in the pod that holds what outlasts the VMI
// besides its disks.
const StateVolume = "vm-state"

// State returns what the pod of a VMI with the spec d needs for what outlasts it besides
// its disks, which is in the claim of this name. The folders of the claim are KubeVirt's.
func State(d *vmi.DomainSpec, claim string) Part {
	dirs := d.StateDirs()
	if len(dirs) == 0 {
		return Part{}
	}
	p := Part{Volumes: []corev1.Volume{{Name: StateVolume, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
	}}}}
	for _, dir := range dirs {
		p.Mounts = append(p.Mounts, corev1.VolumeMount{Name: StateVolume, MountPath: dir, SubPath: path.Base(dir)})
	}
	return p
}
