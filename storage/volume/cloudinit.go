package volume

import (
	"fmt"
	"path"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/storage/cloudinit"
	"github.com/podvisor/podvisor/vmi"
)

// Cloud-init's data in Secrets, for each kind of volume with such data. The
// Secrets are volumes of the pod, which the kubelet mounts and keeps up to date;
// the launcher reads the keys when it makes the disk.

// The keys of the Secrets that hold the data. The first that is there counts.
var (
	userKeys    = []string{"userdata", "userData"}
	networkKeys = []string{"networkdata", "networkData"}
)

// references are the Secrets of a volume with cloud-init's data. Empty: none.
type references struct{ user, network string }

func newReferences(user, network *corev1.LocalObjectReference) references {
	var r references
	if user != nil {
		r.user = user.Name
	}
	if network != nil {
		r.network = network.Name
	}
	return r
}

// pod mounts the Secrets. A Secret that does not exist keeps the pod from
// starting, and the kubelet reports it in an event of the pod.
func (r references) pod(v vmi.Volume, n PodNames) Part {
	var p Part
	mount := func(secret, name, path string) {
		if secret == "" {
			return
		}
		p.Volumes = append(p.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: secret},
		}})
		p.Mounts = append(p.Mounts, corev1.VolumeMount{Name: name, MountPath: path, ReadOnly: true})
	}
	mount(r.user, n.Volume, userSecretDir("", v.Name))
	mount(r.network, n.NetworkData, networkSecretDir("", v.Name))
	return p
}

// observe asks for the content of the keys.
func (r references) observe(v vmi.Volume, n Node) Observation {
	var o Observation
	if r.user != "" {
		o.Content = append(o.Content, within(userSecretDir(n.Root, v.Name), userKeys)...)
	}
	if r.network != "" {
		o.Content = append(o.Content, within(networkSecretDir(n.Root, v.Name), networkKeys)...)
	}
	return o
}

// read returns the data that is in the Secrets.
func (r references) read(v vmi.Volume, n Node) (cloudinit.Secrets, error) {
	var s cloudinit.Secrets
	var err error
	if r.user != "" {
		if s.UserData, err = key(n, r.user, userSecretDir(n.Root, v.Name), userKeys); err != nil {
			return cloudinit.Secrets{}, err
		}
	}
	if r.network != "" {
		if s.NetworkData, err = key(n, r.network, networkSecretDir(n.Root, v.Name), networkKeys); err != nil {
			return cloudinit.Secrets{}, err
		}
	}
	return s, nil
}

// key is the content of the first of the keys that the Secret has. That it has
// none is not a fault of the spec: the key may be added.
func key(n Node, secret, dir string, keys []string) ([]byte, error) {
	for _, p := range within(dir, keys) {
		if content, ok := n.Content[p]; ok {
			return append([]byte{}, content...), nil
		}
	}
	return nil, fmt.Errorf("secret %q has no key %s (or %s): add it, or make the VMI again when the Secret has it", secret, keys[0], keys[1])
}

func within(dir string, names []string) []string {
	var all []string
	for _, n := range names {
		all = append(all, path.Join(dir, n))
	}
	return all
}

// secretsDir is the folder of the Secrets that the launcher reads.
const secretsDir = "/var/run/kubevirt/secrets"

// userSecretDir is the folder with the keys of the Secret with a volume's user
// data.
func userSecretDir(root, volume string) string {
	return path.Join(root, secretsDir, volume, "user")
}

// networkSecretDir is the folder with the keys of the Secret with a volume's
// network data.
func networkSecretDir(root, volume string) string {
	return path.Join(root, secretsDir, volume, "network")
}
