package volume_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

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
