package volume

import (
	"errors"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
)

// sysprepLabel is the label of images with answer files.
const sysprepLabel = "unattendCD"

// answerFiles are the names of answer files. Windows reads them in any case, and so the
// keys are written in any.
var answerFiles = []string{"autounattend.xml", "unattend.xml", "Autounattend.xml", "Unattend.xml"}

// sysprep is an image with the answer files of Windows' setup, from a ConfigMap or a
// Secret.
//
// +podvisor:entry
var sysprep = sysprepKind()

func sysprepKind() Kind {
	k := files{
		name: "sysprep", dir: "sysprep",
		source: func(s vmi.VolumeSource) corev1.VolumeSource {
			if r := s.Sysprep.Secret; r != nil {
				return corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: r.Name}}
			}
			if r := s.Sysprep.ConfigMap; r != nil {
				return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: *r}}
			}
			return corev1.VolumeSource{}
		},
		label: unlabelled(sysprepLabel),
	}.kind()
	k.Observe = func(v vmi.Volume, n Node) Observation {
		return Observation{Content: within(filesDir(n.Root, "sysprep", v.Name), answerFiles)}
	}
	attach := k.Attach
	k.Attach = func(i *vmi.VirtualMachineInstance, v vmi.Volume, n Node) (storage.Attachment, error) {
		for _, p := range within(filesDir(n.Root, "sysprep", v.Name), answerFiles) {
			if _, ok := n.Content[p]; ok {
				return attach(i, v, n)
			}
		}
		return storage.Attachment{}, errors.New("it has no key autounattend.xml or unattend.xml: add the answer file, or make the VMI again when it is there")
	}
	return k
}
