package volume

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
)

const (
	testDir  = "/var/run/kubevirt-private/vmi-disks/a"
	testFile = testDir + "/disk.img"
)

// inClaims has a volume in a claim of 1 GiB, of which the status knows.
func inClaims(info *vmi.PersistentVolumeClaimInfo) *vmi.VirtualMachineInstance {
	v := instance(claims())
	v.Status.VolumeStatus = []vmi.VolumeStatus{{Name: "a", PersistentVolumeClaimInfo: info}}
	return v
}

func sized(capacity, requests string) *vmi.PersistentVolumeClaimInfo {
	i := &vmi.PersistentVolumeClaimInfo{FilesystemOverhead: new("0.055"), Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(requests)}}
	if capacity != "" {
		i.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(capacity)}
	}
	return i
}

func TestADiskInAClaimIsWhatIsInThePod(t *testing.T) {
	t.Parallel()
	dir := storage.Facts{Kind: storage.Directory, FreeBytes: 10 << 30}
	for name, tt := range map[string]struct {
		info  *vmi.PersistentVolumeClaimInfo
		paths map[string]storage.Facts
		want  storage.Attachment
	}{
		"a device": {nil, map[string]storage.Facts{"/dev/a": {Kind: storage.BlockDevice, SizeBytes: 4096}},
			storage.Attachment{Path: "/dev/a", SizeBytes: 4096}},
		"an image": {nil, map[string]storage.Facts{testDir: dir, testFile: {Kind: storage.File, SizeBytes: 8192}},
			storage.Attachment{Path: testFile, SizeBytes: 8192}},
		"an empty file system": {sized("1Gi", "500Mi"), map[string]storage.Facts{testDir: dir},
			storage.Attachment{Path: testFile, SizeBytes: 967 << 20, Source: storage.Persistent{}}},
		"an empty file system whose claim has no capacity": {sized("", "500Mi"), map[string]storage.Facts{testDir: dir},
			storage.Attachment{Path: testFile, SizeBytes: 472 << 20, Source: storage.Persistent{}}},
		"an empty file system with a little less space": {sized("1Gi", "1Gi"), map[string]storage.Facts{testDir: {Kind: storage.Directory, FreeBytes: 900 << 20}},
			storage.Attachment{Path: testFile, SizeBytes: 899 << 20, Source: storage.Persistent{}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.want.Name, tt.want.Format = "a", storage.Raw
			got, err := Resolve(inClaims(tt.info), Node{Paths: tt.paths})
			require.NoError(t, err)
			require.Equal(t, []storage.Attachment{tt.want}, got)
			require.False(t, got[0].Ephemeral())
		})
	}
}

func TestADiskThatAClaimCannotHoldIsAnError(t *testing.T) {
	t.Parallel()
	dir := storage.Facts{Kind: storage.Directory, FreeBytes: 10 << 30}
	for name, tt := range map[string]struct {
		info    *vmi.PersistentVolumeClaimInfo
		paths   map[string]storage.Facts
		invalid bool
		want    string
	}{
		"nothing in the pod":         {nil, nil, false, "neither its file system is at " + testDir + " nor its device at /dev/a"},
		"a device without a size":    {nil, map[string]storage.Facts{"/dev/a": {Kind: storage.BlockDevice}}, false, "size of 0 bytes"},
		"an empty file":              {sized("1Gi", "1Gi"), map[string]storage.Facts{testDir: dir, testFile: {Kind: storage.File}}, true, "disk.img in it is empty"},
		"a folder of that name":      {sized("1Gi", "1Gi"), map[string]storage.Facts{testDir: dir, testFile: {Kind: storage.Directory}}, true, "disk.img in it is a directory"},
		"a size that is not known":   {nil, map[string]storage.Facts{testDir: dir}, false, "its size is not known"},
		"too little space":           {sized("1Gi", "1Gi"), map[string]storage.Facts{testDir: {Kind: storage.Directory, FreeBytes: 800 << 20}}, false, "800Mi free of its file system are too few for a disk of 967Mi"},
		"no space":                   {sized("1Gi", "1Gi"), map[string]storage.Facts{testDir: {Kind: storage.Directory}}, false, "0 free of its file system"},
		"a claim of nothing":         {sized("", "0"), map[string]storage.Facts{testDir: dir}, true, "too small for a disk"},
		"a share that is no number":  {&vmi.PersistentVolumeClaimInfo{FilesystemOverhead: new("much")}, map[string]storage.Facts{testDir: dir}, false, `the share "much"`},
		"a share that is everything": {&vmi.PersistentVolumeClaimInfo{FilesystemOverhead: new("1")}, map[string]storage.Facts{testDir: dir}, false, `the share "1"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Resolve(inClaims(tt.info), Node{Paths: tt.paths})
			require.ErrorContains(t, err, "volume a: claim data: ")
			require.ErrorContains(t, err, tt.want)
			if tt.invalid {
				require.ErrorIs(t, err, vmi.ErrInvalid)
			} else {
				require.NotErrorIs(t, err, vmi.ErrInvalid)
			}
		})
	}
}

func TestAReadOnlyClaimIsReadOnlyInThePodAndInTheGuest(t *testing.T) {
	t.Parallel()
	v := inClaims(sized("1Gi", "1Gi"))
	v.Spec.Volumes[0].PersistentVolumeClaim.ReadOnly = true
	p, err := Pod(v.Spec.Volumes, Cluster{})
	require.NoError(t, err)
	require.True(t, p.Volumes[0].PersistentVolumeClaim.ReadOnly)
	require.True(t, p.Mounts[0].ReadOnly)
	dir := storage.Facts{Kind: storage.Directory, FreeBytes: 10 << 30}
	got, err := Resolve(v, Node{Paths: map[string]storage.Facts{testDir: dir, testFile: {Kind: storage.File, SizeBytes: 8192}}})
	require.NoError(t, err)
	require.True(t, got[0].ReadOnly)
	_, err = Resolve(v, Node{Paths: map[string]storage.Facts{testDir: dir}})
	require.ErrorContains(t, err, "only read and has no file disk.img")
	require.ErrorIs(t, err, vmi.ErrInvalid)
}

// A claim could take the place of a device that the launcher needs.
func TestAttackTheNameOfAVolumeTakesNoDeviceOfTheContainer(t *testing.T) {
	t.Parallel()
	block := map[string]*corev1.PersistentVolumeClaim{"data": {Spec: corev1.PersistentVolumeClaimSpec{VolumeMode: new(corev1.PersistentVolumeBlock)}}}
	for _, name := range []string{"kvm", "null", "urandom", "vhost-net", "shm"} {
		v := inClaims(nil)
		v.Spec.Volumes[0].Name, v.Spec.Domain.Devices.Disks[0].Name = name, name
		p, err := Pod(v.Spec.Volumes, Cluster{Claims: block})
		require.NoError(t, err)
		require.Equal(t, "/dev/volume."+name, p.Devices[0].DevicePath)
		got, err := Resolve(v, Node{Paths: map[string]storage.Facts{"/dev/" + name: {Kind: storage.BlockDevice, SizeBytes: 512}, "/dev/volume." + name: {Kind: storage.BlockDevice, SizeBytes: 1024}}})
		require.NoError(t, err)
		require.Equal(t, "/dev/volume."+name, got[0].Path)
	}
}

func TestAClaimIsOneDiskUnlessItIsOnlyRead(t *testing.T) {
	t.Parallel()
	again := vmi.VolumeSource{DataVolume: &vmi.DataVolumeVolume{Name: "data"}}
	_, err := Pod(instance(claims(), again).Spec.Volumes, Cluster{})
	require.ErrorIs(t, err, vmi.ErrInvalid)
	require.ErrorContains(t, err, "volume b: claim data is that of volume a too")
	one, other := claims(), claims()
	one.PersistentVolumeClaim.ReadOnly, other.PersistentVolumeClaim.ReadOnly = true, true
	_, err = Pod(instance(one, other).Spec.Volumes, Cluster{})
	require.NoError(t, err)
}
