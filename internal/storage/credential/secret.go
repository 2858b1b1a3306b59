package credential

import (
	"fmt"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/storage/volume"
	"github.com/podvisor/podvisor/vmi"
)

// Contents are the values of Secrets by the name of the Secret and the key. A Secret
// that was not read is not in it.
type Contents map[string]map[string][]byte

// Secrets are the names of the Secrets that v's access credentials are in, sorted and
// each once.
func Secrets(v *vmi.VirtualMachineInstance) []string {
	var names []string
	for _, c := range v.Spec.AccessCredentials {
		names = append(names, secretOf(c))
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(n string) bool { return n == "" })
}

// secretOf is the name of the Secret that the credential is in. Empty: none.
func secretOf(c vmi.AccessCredential) string {
	switch {
	case c.SSHPublicKey != nil && c.SSHPublicKey.Source.Secret != nil:
		return c.SSHPublicKey.Source.Secret.SecretName
	case c.UserPassword != nil && c.UserPassword.Source.Secret != nil:
		return c.UserPassword.Source.Secret.SecretName
	default:
		return ""
	}
}

// Dir is the folder with the keys of a Secret in the pod whose root is the folder
// root, which is empty for a process in the pod.
func Dir(root, secret string) string {
	return path.Join(root, "/var/run/kubevirt/secrets", secret, "credentials")
}

// Part returns what the launcher pod needs: each Secret once, as a volume that the
// kubelet keeps up to date. A Secret that does not exist keeps the pod from starting,
// and the kubelet reports it in an event of the pod.
func Part(v *vmi.VirtualMachineInstance) volume.Part {
	var p volume.Part
	for i, secret := range Secrets(v) {
		name := fmt.Sprintf("access-credentials-%d", i)
		p.Volumes = append(p.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: secret, DefaultMode: new(int32(0o440))},
		}})
		p.Mounts = append(p.Mounts, corev1.VolumeMount{Name: name, MountPath: Dir("", secret), ReadOnly: true})
	}
	return p
}
