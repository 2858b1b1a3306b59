package volume_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/storage/volume"
	"github.com/podvisor/podvisor/vmi"
)

func ExamplePod() {
	part, err := volume.Pod([]vmi.Volume{{Name: "root", VolumeSource: vmi.VolumeSource{
		ContainerDisk: &vmi.ContainerDisk{Image: "example/fedora:40"},
	}}}, volume.Cluster{})
	fmt.Println(part.Volumes[0].Name, part.Volumes[0].Image.Reference, part.Mounts[0].MountPath, err)
	// Output: root example/fedora:40 /var/run/kubevirt/container-disks/root <nil>
}

func ExampleResolve() {
	instance := &vmi.VirtualMachineInstance{}
	instance.Spec.Domain.Devices.Disks = []vmi.Disk{{Name: "scratch"}}
	instance.Spec.Volumes = []vmi.Volume{{Name: "scratch", VolumeSource: vmi.VolumeSource{
		EmptyDisk: &vmi.EmptyDisk{Capacity: resource.MustParse("2Gi")},
	}}}
	attachments, err := volume.Resolve(instance, volume.Node{})
	fmt.Println(attachments[0].Path, attachments[0].Format, attachments[0].SizeBytes, err)
	// Output: /var/run/kubevirt-ephemeral-disks/empty-disks/scratch.qcow2 qcow2 2147483648 <nil>
}

// fast serves the source emptyDisk in another program's way: on a folder of fast disks, which
// its pods mount.
var fast = volume.Kind{
	Name: "emptyDisk",
	Pod: func(_ vmi.Volume, n volume.PodNames, _ volume.Cluster) volume.Part {
		source := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}
		return volume.Part{Volumes: []corev1.Volume{{Name: n.Volume, VolumeSource: source}}, Mounts: []corev1.VolumeMount{{Name: n.Volume, MountPath: "/fast"}}}
	},
	Attach: func(_ *vmi.VirtualMachineInstance, v vmi.Volume, _ volume.Node) (storage.Attachment, error) {
		return storage.Attachment{Path: "/fast/" + v.Name, Format: storage.Raw, SizeBytes: v.EmptyDisk.Capacity.Value(), Source: storage.Persistent{}}, nil
	},
}

// A kind of another program is a [volume.Kind] before those of this package: of two with one
// name, the first serves.
func ExampleKind() {
	own := append([]volume.Kind{fast}, volume.Kinds()...)
	instance := &vmi.VirtualMachineInstance{}
	instance.Spec.Domain.Devices.Disks = []vmi.Disk{{Name: "scratch"}}
	instance.Spec.Volumes = []vmi.Volume{{Name: "scratch", VolumeSource: vmi.VolumeSource{
		EmptyDisk: &vmi.EmptyDisk{Capacity: resource.MustParse("2Gi")},
	}}}
	part, err := volume.Pod(instance.Spec.Volumes, volume.Cluster{Kinds: own})
	if err != nil {
		fmt.Println(err)
		return
	}
	disks, err := volume.Resolve(instance, volume.Node{Kinds: own})
	fmt.Println(part.Mounts[0].MountPath, disks[0].Path, err)
	// Output: /fast /fast/scratch <nil>
}
