package volume

import (
	"cmp"
	"fmt"
	"path"

	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
)

// filesLabel is the label of images of files that have no other.
const filesLabel = "cfgdata"

// maxLabel is the longest label of an ISO 9660 file system.
const maxLabel = 32

// files are volumes that show the files of a volume of the pod, such as a ConfigMap:
// the kubelet mounts them, and the launcher makes an image of them when the VMI
// starts. The image does not change while the VMI runs.
type files struct {
	// name is the JSON name of the kind, and dir the folder of its volumes.
	name, dir string
	// source is the volume of the pod.
	source func(vmi.VolumeSource) corev1.VolumeSource
	// label is the label of the image. Empty: filesLabel.
	label func(vmi.VolumeSource) string
}

func (f files) kind() Kind {
	return Kind{
		Name: f.name, Migratable: true,
		Pod: func(v vmi.Volume, n PodNames, _ Cluster) Part { return f.pod(v, n) },
		Attach: func(_ *vmi.VirtualMachineInstance, v vmi.Volume, n Node) (storage.Attachment, error) {
			return f.attach(v, n)
		},
	}
}

// pod mounts the files where their image is made from. An object that does not exist
// keeps the pod from starting, unless it is optional, and the kubelet reports it in an
// event of the pod.
func (f files) pod(v vmi.Volume, n PodNames) Part {
	return Part{
		Volumes: []corev1.Volume{{Name: n.Volume, VolumeSource: f.source(v.VolumeSource)}},
		Mounts:  []corev1.VolumeMount{{Name: n.Volume, MountPath: filesDir("", f.dir, v.Name), ReadOnly: true}},
	}
}

func (f files) attach(v vmi.Volume, n Node) (storage.Attachment, error) {
	label := cmp.Or(f.label(v.VolumeSource), filesLabel)
	if fault := labelFault(label); fault != "" {
		return storage.Attachment{}, fmt.Errorf("volumeLabel %q %s: %w", label, fault, vmi.ErrInvalid)
	}
	return storage.Attachment{
		Path:   filesImagePath(n.Root, v.Name),
		Format: storage.Raw,
		Source: storage.Folder{Label: label, Dir: filesDir(n.Root, f.dir, v.Name)},
	}, nil
}

// labelFault says why a text is no label of a file system. Empty: it is one.
func labelFault(label string) string {
	if len(label) > maxLabel {
		return fmt.Sprintf("has more than %d characters", maxLabel)
	}
	for _, c := range label {
		if c < ' ' || c > '~' {
			return "has characters that are not printable ASCII"
		}
	}
	return ""
}

// unlabelled is for kinds whose label the spec does not choose.
func unlabelled(label string) func(vmi.VolumeSource) string {
	return func(vmi.VolumeSource) string { return label }
}

// filesImagePath is the file of an image of files.
func filesImagePath(root, volume string) string {
	return path.Join(ephemeralDir(root), "files", volume+".iso")
}

// filesDir is the folder with the files of a volume of the kind, from which its image
// is made.
func filesDir(root, kind, volume string) string {
	return path.Join(root, vmi.PrivateDir, kind, volume)
}
