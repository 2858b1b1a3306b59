package volume

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
)

var ref = corev1.LocalObjectReference{Name: "o"}

func TestFilesAreMountedWhereTheirImageIsMadeFrom(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		source vmi.VolumeSource
		label  string
	}{
		"a ConfigMap":        {vmi.VolumeSource{ConfigMap: &vmi.ConfigMapVolume{LocalObjectReference: ref, VolumeLabel: "MINE"}}, "MINE"},
		"a Secret":           {vmi.VolumeSource{Secret: &vmi.SecretVolume{SecretName: "o"}}, "cfgdata"},
		"facts of the pod":   {vmi.VolumeSource{DownwardAPI: &vmi.DownwardAPIVolume{}}, "cfgdata"},
		"a service account":  {vmi.VolumeSource{ServiceAccount: &vmi.ServiceAccountVolume{ServiceAccountName: "robot"}}, "cfgdata"},
		"answers, ConfigMap": {vmi.VolumeSource{Sysprep: &vmi.Sysprep{ConfigMap: &ref}}, "unattendCD"},
		"answers, Secret":    {vmi.VolumeSource{Sysprep: &vmi.Sysprep{Secret: &ref}}, "unattendCD"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := instance(tt.source)
			p, err := Pod(v.Spec.Volumes, Cluster{})
			require.NoError(t, err)
			require.Len(t, p.Mounts, 1)
			require.True(t, p.Mounts[0].ReadOnly)
			node := Node{Content: map[string][]byte{"/var/run/kubevirt-private/sysprep/a/Unattend.xml": nil}}
			got, err := Resolve(v, node)
			require.NoError(t, err)
			require.Equal(t, []storage.Attachment{{
				Name: "a", Path: "/var/run/kubevirt-ephemeral-disks/files/a.iso", Format: storage.Raw,
				Source: storage.Folder{Label: tt.label, Dir: p.Mounts[0].MountPath},
			}}, got)
		})
	}
}

func TestTheTokenOfAnAccountIsInAVolumeOfItsOwn(t *testing.T) {
	t.Parallel()
	p, err := Pod(instance(demoDisk, vmi.VolumeSource{ServiceAccount: &vmi.ServiceAccountVolume{ServiceAccountName: "robot"}}).Spec.Volumes, Cluster{ContainerDisks: InitCopy})
	require.NoError(t, err)
	require.Equal(t, "robot", p.Account)
	for _, i := range p.Init {
		for _, m := range i.Mounts {
			require.NotEqual(t, "b", m.Name, "no other container has it")
		}
	}
}

func TestFilesThatMakeNoImageAreAnError(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]vmi.VolumeSource{
		`volume a: volumeLabel "a label with more than 32 letters" has more than 32 characters`: {ConfigMap: &vmi.ConfigMapVolume{VolumeLabel: "a label with more than 32 letters"}},
		`volume a: volumeLabel "ä" has characters that are not printable ASCII`:                 {Secret: &vmi.SecretVolume{VolumeLabel: "ä"}},
		"volume a: it has no key autounattend.xml or unattend.xml":                              {Sysprep: &vmi.Sysprep{Secret: &ref}},
	} {
		_, err := Resolve(instance(s), Node{})
		require.ErrorContains(t, err, want)
	}
}

func TestAnEphemeralClaimIsTheBaseOfAnOverlay(t *testing.T) {
	t.Parallel()
	v := instance(vmi.VolumeSource{Ephemeral: &vmi.EphemeralVolume{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}})
	over := storage.Attachment{Name: "a", Path: "/var/run/kubevirt-ephemeral-disks/disk-data/a/disk.qcow2", Format: storage.QCOW2, SizeBytes: 8192}
	for name, tt := range map[string]struct {
		paths map[string]storage.Facts
		base  storage.Image
	}{
		"a file": {map[string]storage.Facts{testDir: {Kind: storage.Directory}, testFile: {Kind: storage.File, SizeBytes: 8000}},
			storage.Image{Path: testFile, Format: storage.Raw, SizeBytes: 8000}},
		"a device": {map[string]storage.Facts{"/dev/a": {Kind: storage.BlockDevice, SizeBytes: 8192}},
			storage.Image{Path: "/dev/a", Format: storage.Raw, SizeBytes: 8192, Device: true}},
	} {
		t.Run(name, func(t *testing.T) {
			want := over
			want.Source = storage.Overlay{Base: tt.base}
			got, err := Resolve(v, Node{Paths: tt.paths})
			require.NoError(t, err)
			require.Equal(t, []storage.Attachment{want}, got)
		})
	}
	_, err := Resolve(v, Node{Paths: map[string]storage.Facts{testDir: {Kind: storage.Directory, FreeBytes: 1 << 40}}})
	require.ErrorIs(t, err, vmi.ErrInvalid, "no disk is made in a claim that is only read")
	require.ErrorContains(t, err, "volume a: claim data: it is only read and has no file disk.img")
}

func TestADiskOnTheNodeIsWhatIsThereOrIsMade(t *testing.T) {
	t.Parallel()
	const file = testDir + "/a.img"
	disk := func(t vmi.HostDiskType, capacity string) vmi.VolumeSource {
		d := &vmi.HostDisk{Path: "/data/disks/a.img", Type: t}
		if capacity != "" {
			d.Capacity = new(resource.MustParse(capacity))
		}
		return vmi.VolumeSource{HostDisk: d}
	}
	for name, tt := range map[string]struct {
		source vmi.VolumeSource
		facts  storage.Facts
		want   storage.Attachment
		fault  string
	}{
		"a file":            {disk(vmi.HostDiskExists, ""), storage.Facts{Kind: storage.File, SizeBytes: 4096}, storage.Attachment{SizeBytes: 4096}, ""},
		"a file, not made":  {disk(vmi.HostDiskExistsOrCreate, "1Gi"), storage.Facts{Kind: storage.File, SizeBytes: 4096}, storage.Attachment{SizeBytes: 4096}, ""},
		"no file":           {disk(vmi.HostDiskExistsOrCreate, "1Gi"), storage.Facts{}, storage.Attachment{SizeBytes: 1 << 30, Source: storage.Persistent{}}, ""},
		"no file, of Disk":  {disk(vmi.HostDiskExists, ""), storage.Facts{}, storage.Attachment{}, "there is no such file"},
		"no file, no size":  {disk(vmi.HostDiskExistsOrCreate, ""), storage.Facts{}, storage.Attachment{}, "hostDisk.capacity is not above 0"},
		"an empty file":     {disk(vmi.HostDiskExists, ""), storage.Facts{Kind: storage.File}, storage.Attachment{}, "the file is empty"},
		"a folder":          {disk(vmi.HostDiskExists, ""), storage.Facts{Kind: storage.Directory}, storage.Attachment{}, "it is a directory"},
		"a device":          {disk(vmi.HostDiskExists, ""), storage.Facts{Kind: storage.BlockDevice, SizeBytes: 4096}, storage.Attachment{}, "it is a block device"},
		"a path to nothing": {vmi.VolumeSource{HostDisk: &vmi.HostDisk{Path: "/"}}, storage.Facts{}, storage.Attachment{}, "not the absolute path of a file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Resolve(instance(tt.source), Node{Paths: map[string]storage.Facts{file: tt.facts}})
			if tt.fault != "" {
				require.ErrorIs(t, err, vmi.ErrInvalid)
				require.ErrorContains(t, err, "volume a: "+tt.source.HostDisk.Path+" of the node: ")
				require.ErrorContains(t, err, tt.fault)
				return
			}
			require.NoError(t, err)
			tt.want.Name, tt.want.Path, tt.want.Format = "a", file, storage.Raw
			require.Equal(t, []storage.Attachment{tt.want}, got)
		})
	}
}

func TestTheSpaceOfClaimsIsAsTheClusterIsConfigured(t *testing.T) {
	t.Parallel()
	dir := storage.Facts{Kind: storage.Directory, FreeBytes: 900 << 20}
	v := inClaims(sized("1Gi", "1Gi")) // of which a disk of 967Mi is made
	got, err := Resolve(v, Node{Paths: map[string]storage.Facts{testDir: dir}, Space: Space{ReserveBytes: 10 << 20}})
	require.NoError(t, err)
	require.EqualValues(t, 890<<20, got[0].SizeBytes)
	_, err = Resolve(v, Node{Paths: map[string]storage.Facts{testDir: dir}, Space: Space{TolerancePercent: 5}})
	require.ErrorContains(t, err, "900Mi free of its file system are too few for a disk of 967Mi")

	image := func(size int64, s Space) error {
		_, err := Resolve(v, Node{Paths: map[string]storage.Facts{testDir: dir, testFile: {Kind: storage.File, SizeBytes: size}}, Space: s})
		return err
	}
	require.NoError(t, image(1100<<20, Space{}))
	err = image(1100<<20, Space{TolerancePercent: 1})
	require.ErrorIs(t, err, vmi.ErrInvalid)
	require.EqualError(t, err, "volume a: claim data: disk.img in it has 1153433600 bytes, and the claim has 1073741824: make the claim at least as large as the image, or the image smaller: invalid")
	require.Error(t, image(2<<30, Space{}))
}
