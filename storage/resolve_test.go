package storage_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/storage/cloudinit"
	"github.com/podvisor/podvisor/vmi"
)

var (
	containerDisk = vmi.VolumeSource{ContainerDisk: &vmi.ContainerDisk{Image: "demo"}}
	noCloud       = vmi.VolumeSource{CloudInitNoCloud: &vmi.CloudInitNoCloud{UserData: "#!/bin/sh"}}
	oneGi         = vmi.VolumeSource{EmptyDisk: &vmi.EmptyDisk{Capacity: resource.MustParse("1Gi")}}
)

// machine has a disk for each of the volumes, which are named a, b, ….
func machine(sources ...vmi.VolumeSource) *vmi.VirtualMachineInstance {
	v := &vmi.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "vm"}}
	for i, s := range sources {
		name := string(rune('a' + i))
		v.Spec.Volumes = append(v.Spec.Volumes, vmi.Volume{Name: name, VolumeSource: s})
		v.Spec.Domain.Devices.Disks = append(v.Spec.Domain.Devices.Disks, vmi.Disk{Name: name})
	}
	return v
}

func TestEveryDiskIsAttachedToItsVolume(t *testing.T) {
	image := storage.Image{Path: "/images/a/disk/x.img", Format: storage.Raw, SizeBytes: 1000}
	got, err := storage.Resolve(machine(containerDisk, noCloud, oneGi), storage.Place{Images: map[string]storage.Image{"a": image}})
	require.NoError(t, err)
	require.Equal(t, []storage.Attachment{
		{Name: "a", Path: "/var/run/kubevirt-ephemeral-disks/disk-data/a/disk.qcow2", Format: storage.QCOW2, SizeBytes: 1024, Source: storage.Overlay{Base: image}},
		{Name: "b", Path: "/var/run/kubevirt-ephemeral-disks/cloud-init-data/ns/vm/noCloud.iso", Format: storage.Raw, Source: storage.Seed{Label: "cidata", Files: []cloudinit.File{
			{Name: "meta-data", Content: []byte("instance-id: vm.ns\nlocal-hostname: vm\n")},
			{Name: "user-data", Content: []byte("#!/bin/sh")},
		}}},
		{Name: "c", Path: "/var/run/kubevirt-ephemeral-disks/empty-disks/c.qcow2", Format: storage.QCOW2, SizeBytes: 1 << 30, Source: storage.Blank{}},
	}, got)
}

func TestAWrongVolumeIsTheSpecsFault(t *testing.T) {
	for name, tt := range map[string]struct {
		vmi  *vmi.VirtualMachineInstance
		says string
	}{
		"no volume":       {func() *vmi.VirtualMachineInstance { v := machine(oneGi); v.Spec.Volumes = nil; return v }(), "disk a: there is no volume"},
		"no source":       {machine(vmi.VolumeSource{}), "disk a: its volume has no source"},
		"no capacity":     {machine(vmi.VolumeSource{EmptyDisk: &vmi.EmptyDisk{}}), "above 0"},
		"two cloud-inits": {machine(noCloud, noCloud), "at most one cloud-init volume"},
		"too much data":   {machine(vmi.VolumeSource{CloudInitNoCloud: &vmi.CloudInitNoCloud{UserData: strings.Repeat("x", 2049)}}), "2049 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := storage.Resolve(tt.vmi, storage.Place{})
			require.ErrorIs(t, err, vmi.ErrInvalid)
			require.ErrorContains(t, err, tt.says)
		})
	}
}

func TestAllFaultsAreToldAtOnce(t *testing.T) {
	_, err := storage.Resolve(machine(vmi.VolumeSource{}, vmi.VolumeSource{EmptyDisk: &vmi.EmptyDisk{}}), storage.Place{})
	require.ErrorContains(t, err, "disk a")
	require.ErrorContains(t, err, "disk b")
}

func TestAContainerDiskThatNobodyLookedIntoIsNotTheSpecsFault(t *testing.T) {
	_, err := storage.Resolve(machine(containerDisk), storage.Place{})
	require.ErrorContains(t, err, "disk a")
	require.NotErrorIs(t, err, vmi.ErrInvalid)
}

func ExampleResolve() {
	instance := &vmi.VirtualMachineInstance{}
	instance.Spec.Domain.Devices.Disks = []vmi.Disk{{Name: "scratch"}}
	instance.Spec.Volumes = []vmi.Volume{{Name: "scratch", VolumeSource: vmi.VolumeSource{
		EmptyDisk: &vmi.EmptyDisk{Capacity: resource.MustParse("2Gi")},
	}}}
	attachments, err := storage.Resolve(instance, storage.Place{EphemeralDisks: "/tmp"})
	fmt.Println(attachments[0].Path, attachments[0].Format, attachments[0].SizeBytes, err)
	// Output: /tmp/empty-disks/scratch.qcow2 qcow2 2147483648 <nil>
}
