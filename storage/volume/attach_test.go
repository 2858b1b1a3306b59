package volume

import (
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
	demoDisk = vmi.VolumeSource{ContainerDisk: &vmi.ContainerDisk{Image: "demo", Path: "/images/demo.img"}}
	noCloud  = vmi.VolumeSource{CloudInitNoCloud: &vmi.CloudInitNoCloud{UserData: "#!/bin/sh"}}
	oneGi    = vmi.VolumeSource{EmptyDisk: &vmi.EmptyDisk{Capacity: resource.MustParse("1Gi")}}
)

// instance has a disk for each of the volumes, which are named a, b, ….
func instance(sources ...vmi.VolumeSource) *vmi.VirtualMachineInstance {
	v := &vmi.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "vm"}}
	for i, s := range sources {
		name := string(rune('a' + i))
		v.Spec.Volumes = append(v.Spec.Volumes, vmi.Volume{Name: name, VolumeSource: s})
		v.Spec.Domain.Devices.Disks = append(v.Spec.Domain.Devices.Disks, vmi.Disk{Name: name})
	}
	return v
}

func TestEveryDiskIsAttachedToItsVolume(t *testing.T) {
	t.Parallel()
	image := storage.Image{Path: "/images/a/disk/x.img", Format: storage.Raw, SizeBytes: 1000}
	for root, prefix := range map[string]string{"": "", "/proc/7/root": "/proc/7/root"} {
		got, err := Resolve(instance(demoDisk, noCloud, oneGi), Node{Root: root, Images: map[string]storage.Image{"a": image}})
		require.NoError(t, err)
		require.Equal(t, []storage.Attachment{
			{Name: "a", Path: prefix + "/var/run/kubevirt-ephemeral-disks/disk-data/a/disk.qcow2", Format: storage.QCOW2, SizeBytes: 1024, Source: storage.Overlay{Base: image}},
			{Name: "b", Path: prefix + "/var/run/kubevirt-ephemeral-disks/cloud-init-data/ns/vm/noCloud.iso", Format: storage.Raw, Source: storage.Seed{Label: "cidata", Files: []cloudinit.File{
				{Name: "meta-data", Content: []byte("instance-id: vm.ns\nlocal-hostname: vm\n")},
				{Name: "user-data", Content: []byte("#!/bin/sh")},
			}}},
			{Name: "c", Path: prefix + "/var/run/kubevirt-ephemeral-disks/empty-disks/c.qcow2", Format: storage.QCOW2, SizeBytes: 1 << 30, Source: storage.Blank{}},
		}, got)
	}
}

func TestTheDisksDecideOrderAndNumberOfAttachments(t *testing.T) {
	t.Parallel()
	v := instance(oneGi, oneGi, oneGi)
	d := v.Spec.Domain.Devices.Disks
	v.Spec.Domain.Devices.Disks = []vmi.Disk{d[2], d[0]}
	got, err := Resolve(v, Node{})
	require.NoError(t, err)
	require.Len(t, got, 2)
	require.Equal(t, "c", got[0].Name)
	require.Equal(t, "a", got[1].Name)
}

func TestContainerDisksHaveToBeObservedBeforeTheyAreAttached(t *testing.T) {
	t.Parallel()
	got, err := Observations(instance(demoDisk, noCloud, oneGi).Spec.Volumes, Node{Root: "/pod"})
	require.NoError(t, err)
	require.Equal(t, []Observation{{Volume: "a", Image: &ContainerImage{
		Reference: "demo", Dir: "/pod/var/run/kubevirt/container-disks/a", File: "/images/demo.img",
	}}, {Volume: "b"}}, got)
}

func TestAWrongVolumeIsInvalid(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		vmi  *vmi.VirtualMachineInstance
		want string
	}{
		"no volume":       {func() *vmi.VirtualMachineInstance { v := instance(oneGi); v.Spec.Volumes = nil; return v }(), "volume a: not in spec.volumes"},
		"no source":       {instance(vmi.VolumeSource{}), "volume a: no source is set"},
		"two sources":     {instance(vmi.VolumeSource{ContainerDisk: demoDisk.ContainerDisk, EmptyDisk: oneGi.EmptyDisk}), "volume a: 2 sources are set (containerDisk, emptyDisk), not one"},
		"no capacity":     {instance(vmi.VolumeSource{EmptyDisk: &vmi.EmptyDisk{}}), "volume a: capacity 0 is not above 0"},
		"two cloud-inits": {instance(noCloud, noCloud), "volume b: /var/run/kubevirt-ephemeral-disks/cloud-init-data/ns/vm/noCloud.iso is the file of volume a"},
		"too much data":   {instance(vmi.VolumeSource{CloudInitNoCloud: &vmi.CloudInitNoCloud{UserData: strings.Repeat("x", 2049)}}), "volume a: user data has 2049 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Resolve(tt.vmi, Node{})
			require.ErrorIs(t, err, vmi.ErrInvalid)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestAllFaultsAreReturnedAtOnce(t *testing.T) {
	t.Parallel()
	v := instance(vmi.VolumeSource{}, oneGi)
	without := kinds{containerDisk}
	_, resolve := without.resolve(v, Node{})
	_, observations := without.observations(v.Spec.Volumes, Node{})
	_, pod := without.part(v.Spec.Volumes, Cluster{})
	for _, err := range []error{resolve, observations, pod} {
		require.ErrorIs(t, err, vmi.ErrInvalid)
		require.ErrorContains(t, err, "volume a: no source is set")
		require.ErrorContains(t, err, "volume b: kind emptyDisk is not served")
	}
}

func TestAContainerDiskThatWasNotObservedIsNotInvalid(t *testing.T) {
	t.Parallel()
	_, err := Resolve(instance(demoDisk), Node{})
	require.EqualError(t, err, "volume a: container disk not observed")
	require.NotErrorIs(t, err, vmi.ErrInvalid)
}
