package volume

import (
	"path"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/vmi"
)

// added is a kind as a new file would add it: its pod half depends on a fact of
// the cluster, its attach half on what is at its paths.
var added = Kind{
	Name: "persistentVolumeClaim",
	Pod: func(v vmi.Volume, n PodNames, c Cluster) Part {
		name := v.PersistentVolumeClaim.ClaimName
		part := Part{Volumes: []corev1.Volume{{Name: n.Volume, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
		}}}}
		if m := c.Claims[name].Spec.VolumeMode; m != nil && *m == corev1.PersistentVolumeBlock {
			part.Devices = []corev1.VolumeDevice{{Name: n.Volume, DevicePath: "/dev/" + v.Name}}
		} else {
			part.Mounts = []corev1.VolumeMount{{Name: n.Volume, MountPath: "/claims/" + v.Name}}
		}
		return part
	},
	Observe: func(v vmi.Volume, n Node) Observation {
		return Observation{Paths: []string{path.Join(n.Root, "/dev", v.Name), path.Join(n.Root, "/claims", v.Name), path.Join(n.Root, "/claims", v.Name, "disk.img")}}
	},
	Attach: func(_ *vmi.VirtualMachineInstance, v vmi.Volume, n Node) (storage.Attachment, error) {
		device, dir := path.Join(n.Root, "/dev", v.Name), path.Join(n.Root, "/claims", v.Name)
		if f := n.Paths[device]; f.Kind == storage.BlockDevice {
			return storage.Attachment{Path: device, Format: storage.Raw, SizeBytes: f.SizeBytes}, nil
		}
		file := path.Join(dir, "disk.img")
		if f := n.Paths[file]; f.Kind == storage.File {
			return storage.Attachment{Path: file, Format: storage.Raw, SizeBytes: f.SizeBytes}, nil
		}
		return storage.Attachment{Path: file, Format: storage.Raw, SizeBytes: n.Paths[dir].FreeBytes, Source: storage.Persistent{}}, nil
	},
}

func claims() vmi.VolumeSource {
	return vmi.VolumeSource{PersistentVolumeClaim: &vmi.PersistentVolumeClaimVolume{
		PersistentVolumeClaimVolumeSource: corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
	}}
}

func TestAKindHasBothHalves(t *testing.T) {
	t.Parallel()
	all := kinds{emptyDisk, added}
	v := instance(claims())
	block := corev1.PersistentVolumeBlock
	for mode, want := range map[*corev1.PersistentVolumeMode]Part{
		nil:    {Mounts: []corev1.VolumeMount{{Name: "a", MountPath: "/claims/a"}}},
		&block: {Devices: []corev1.VolumeDevice{{Name: "a", DevicePath: "/dev/a"}}},
	} {
		got, err := all.part(v.Spec.Volumes, Cluster{Claims: map[string]*corev1.PersistentVolumeClaim{"data": {Spec: corev1.PersistentVolumeClaimSpec{VolumeMode: mode}}}})
		require.NoError(t, err)
		require.Equal(t, "data", got.Volumes[0].PersistentVolumeClaim.ClaimName)
		require.Equal(t, want, Part{Mounts: got.Mounts, Devices: got.Devices})
	}

	observations, err := all.observations(v.Spec.Volumes, Node{})
	require.NoError(t, err)
	require.Equal(t, []Observation{{Volume: "a", Paths: []string{"/dev/a", "/claims/a", "/claims/a/disk.img"}}}, observations)

	for name, tt := range map[string]struct {
		paths map[string]storage.Facts
		want  storage.Attachment
	}{
		"a device": {map[string]storage.Facts{"/dev/a": {Kind: storage.BlockDevice, SizeBytes: 4096}},
			storage.Attachment{Name: "a", Path: "/dev/a", Format: storage.Raw, SizeBytes: 4096}},
		"a file": {map[string]storage.Facts{"/claims/a": {Kind: storage.Directory, FreeBytes: 100}, "/claims/a/disk.img": {Kind: storage.File, SizeBytes: 8192}},
			storage.Attachment{Name: "a", Path: "/claims/a/disk.img", Format: storage.Raw, SizeBytes: 8192}},
		"an empty directory": {map[string]storage.Facts{"/claims/a": {Kind: storage.Directory, FreeBytes: 1024}},
			storage.Attachment{Name: "a", Path: "/claims/a/disk.img", Format: storage.Raw, SizeBytes: 1024, Source: storage.Persistent{}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := all.resolve(v, Node{Paths: tt.paths})
			require.NoError(t, err)
			require.Equal(t, []storage.Attachment{tt.want}, got)
		})
	}
}

func TestNoKindMayReplaceWhatIsOutsideTheEphemeralDisks(t *testing.T) {
	t.Parallel()
	for p, ok := range map[string]bool{
		"/claims/a/disk.img":                             false,
		"/var/run/kubevirt-ephemeral-disks":              false,
		"/var/run/kubevirt-ephemeral-disks-not/disk.img": false,
		"/var/run/kubevirt-ephemeral-disks/../disk.img":  false,
		"/var/run/kubevirt-ephemeral-disks/a/disk.img":   true,
	} {
		for _, s := range []storage.Source{storage.Blank{}, storage.Overlay{}, storage.Seed{}, storage.Folder{}} {
			careless := Kind{Name: added.Name, Attach: func(*vmi.VirtualMachineInstance, vmi.Volume, Node) (storage.Attachment, error) {
				return storage.Attachment{Path: p, Source: s}, nil
			}}
			_, err := kinds{careless}.resolve(instance(claims()), Node{})
			if ok {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, "volume a: source storage.")
			}
		}
	}
}

func TestAttackADiskThatOutlivesThePodIsRawWhateverAGuestWroteToIt(t *testing.T) {
	t.Parallel()
	for _, s := range []storage.Source{nil, storage.Persistent{}} {
		for format, ok := range map[storage.Format]bool{storage.Raw: true, storage.QCOW2: false, "": false} {
			believing := Kind{Name: added.Name, Attach: func(*vmi.VirtualMachineInstance, vmi.Volume, Node) (storage.Attachment, error) {
				return storage.Attachment{Path: "/claims/a/disk.img", Format: format, Source: s}, nil
			}}
			_, err := kinds{believing}.resolve(instance(claims()), Node{})
			if ok {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, "outlives the pod and is in format")
			}
		}
	}
}

func TestEveryServedKindHasASourceInTheSpecAndADisk(t *testing.T) {
	t.Parallel()
	all := everySource()
	var names []string
	for _, k := range Kinds() {
		names = append(names, k.Name)
		require.NotNil(t, k.Attach, k.Name)
	}
	require.ElementsMatch(t, all.Kinds(), names)
}

func TestWhatVolumesOfAKindCanDoIsInItsEntry(t *testing.T) {
	t.Parallel()
	var pluggable, outlasting, staying, inClaims []string
	for _, k := range Kinds() {
		for _, trait := range []struct {
			has bool
			of  *[]string
		}{{k.Hotpluggable, &pluggable}, {k.Outlasts, &outlasting}, {!k.Migratable, &staying}, {k.Claim != nil, &inClaims}} {
			if trait.has {
				*trait.of = append(*trait.of, k.Name)
			}
		}
	}
	var requested []string // those of a request to add a volume
	for _, f := range reflect.VisibleFields(reflect.TypeFor[vmi.HotplugVolumeSource]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		requested = append(requested, name)
	}
	require.ElementsMatch(t, requested, pluggable)
	require.ElementsMatch(t, []string{"persistentVolumeClaim", "dataVolume", "hostDisk"}, outlasting)
	require.ElementsMatch(t, []string{"hostDisk"}, staying)
	require.ElementsMatch(t, []string{"persistentVolumeClaim", "dataVolume", "ephemeral"}, inClaims)
}

func TestAnEmbedderServesAKindInItsOwnWay(t *testing.T) {
	t.Parallel()
	own := append([]Kind{{
		Name: "emptyDisk",
		Pod: func(v vmi.Volume, n PodNames, _ Cluster) Part {
			return Part{Volumes: []corev1.Volume{{Name: n.Volume}}, Mounts: []corev1.VolumeMount{{Name: n.Volume, MountPath: "/fast/" + v.Name}}}
		},
		Observe: func(vmi.Volume, Node) Observation { return Observation{Paths: []string{"/fast"}} },
		Attach: func(_ *vmi.VirtualMachineInstance, v vmi.Volume, n Node) (storage.Attachment, error) {
			return storage.Attachment{Path: "/fast/" + v.Name, Format: storage.Raw, SizeBytes: n.Paths["/fast"].FreeBytes, Source: storage.Persistent{}}, nil
		},
	}}, Kinds()...)
	v := instance(vmi.VolumeSource{EmptyDisk: &vmi.EmptyDisk{}})
	part, err := Pod(v.Spec.Volumes, Cluster{Kinds: own})
	require.NoError(t, err)
	require.Equal(t, "/fast/a", part.Mounts[0].MountPath)
	observations, err := Observations(v.Spec.Volumes, Node{Kinds: own})
	require.NoError(t, err)
	require.Equal(t, []Observation{{Volume: "a", Paths: []string{"/fast"}}}, observations)
	node := Node{Kinds: own, Paths: map[string]storage.Facts{"/fast": {FreeBytes: 4096}}}
	want := storage.Attachment{Name: "a", Path: "/fast/a", Format: storage.Raw, SizeBytes: 4096, Source: storage.Persistent{}}
	all, err := Resolve(v, node)
	require.NoError(t, err)
	require.Equal(t, []storage.Attachment{want}, all)
	_, err = Pod(v.Spec.Volumes, Cluster{Kinds: []Kind{}})
	require.ErrorContains(t, err, "kind emptyDisk is not served", "no kinds are not all")
}

// everySource is a volume with all sources of the spec.
func everySource() vmi.VolumeSource {
	var s vmi.VolumeSource
	v := reflect.ValueOf(&s).Elem()
	for i := range v.NumField() {
		v.Field(i).Set(reflect.New(v.Field(i).Type().Elem()))
	}
	return s
}
