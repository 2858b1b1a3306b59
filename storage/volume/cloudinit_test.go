package volume

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/storage"
	"github.com/podvisor/podvisor/storage/cloudinit"
	"github.com/podvisor/podvisor/vmi"
)

var (
	users    = &corev1.LocalObjectReference{Name: "users"}
	networks = &corev1.LocalObjectReference{Name: "networks"}
	noName   = &corev1.LocalObjectReference{}
)

// seeds are the same data in both kinds of cloud-init volumes.
func seeds(c vmi.CloudInitNoCloud) map[string]vmi.VolumeSource {
	drive := vmi.CloudInitConfigDrive(c)
	return map[string]vmi.VolumeSource{"noCloud": {CloudInitNoCloud: &c}, "configdrive": {CloudInitConfigDrive: &drive}}
}

func TestASecretIsMountedWhereItsKeysAreRead(t *testing.T) {
	t.Parallel()
	secret := func(name, secret string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}}}
	}
	const dir = "/var/run/kubevirt/secrets/a/"
	user := corev1.VolumeMount{Name: "a", MountPath: dir + "user", ReadOnly: true}
	network := corev1.VolumeMount{Name: "networkdata-a", MountPath: dir + "network", ReadOnly: true}
	userFiles, networkFiles := []string{dir + "user/userdata", dir + "user/userData"}, []string{dir + "network/networkdata", dir + "network/networkData"}
	for name, tt := range map[string]struct {
		source vmi.CloudInitNoCloud
		want   Part
		files  []string
	}{
		"both": {vmi.CloudInitNoCloud{UserDataSecretRef: users, NetworkDataSecretRef: networks},
			Part{Volumes: []corev1.Volume{secret("a", "users"), secret("networkdata-a", "networks")}, Mounts: []corev1.VolumeMount{user, network}}, append(userFiles, networkFiles...)},
		"user data": {vmi.CloudInitNoCloud{UserDataSecretRef: users, NetworkData: "version: 2"},
			Part{Volumes: []corev1.Volume{secret("a", "users")}, Mounts: []corev1.VolumeMount{user}}, userFiles},
		"network data": {vmi.CloudInitNoCloud{UserData: "#!/bin/sh", NetworkDataSecretRef: networks},
			Part{Volumes: []corev1.Volume{secret("networkdata-a", "networks")}, Mounts: []corev1.VolumeMount{network}}, networkFiles},
		"a reference without a name": {vmi.CloudInitNoCloud{UserDataSecretRef: noName, NetworkDataSecretRef: networks},
			Part{Volumes: []corev1.Volume{secret("networkdata-a", "networks")}, Mounts: []corev1.VolumeMount{network}}, networkFiles},
		"none": {vmi.CloudInitNoCloud{UserData: "#!/bin/sh"}, Part{}, nil},
	} {
		for kind, source := range seeds(tt.source) {
			t.Run(name+" of "+kind, func(t *testing.T) {
				t.Parallel()
				v := instance(source)
				got, err := Pod(v.Spec.Volumes, Cluster{Reserved: own})
				require.NoError(t, err)
				require.Equal(t, tt.want, got)
				observations, err := Observations(v.Spec.Volumes, Node{Root: "/pod"})
				require.NoError(t, err)
				var files []string
				for _, f := range tt.files {
					files = append(files, "/pod"+f)
				}
				require.Equal(t, []Observation{{Volume: "a", Content: files}}, observations)
			})
		}
	}
}

func TestTheDataOfASecretIsOnTheDisk(t *testing.T) {
	t.Parallel()
	const dir = "/var/run/kubevirt/secrets/a/"
	drive := instance(seeds(vmi.CloudInitNoCloud{UserDataSecretRef: users, NetworkDataSecretRef: networks})["configdrive"])
	drive.UID = "uid"
	meta := cloudinit.File{Name: "openstack/latest/meta_data.json", Content: []byte(`{"hostname":"vm","instance_id":"vm.ns","local_hostname":"vm","uuid":"uid"}`)}
	got, err := Resolve(drive, Node{Content: map[string][]byte{dir + "user/userdata": []byte("u"), dir + "network/networkData": []byte("n")}})
	require.NoError(t, err)
	require.Equal(t, []storage.Attachment{{
		Name: "a", Path: "/var/run/kubevirt-ephemeral-disks/cloud-init-data/ns/vm/configdrive.iso", Format: storage.Raw,
		Source: storage.Seed{Label: "config-2", Files: []cloudinit.File{meta,
			{Name: "openstack/latest/user_data", Content: []byte("u")}, {Name: "openstack/latest/network_data.json", Content: []byte("n")}}},
	}}, got)

	cloud := instance(seeds(vmi.CloudInitNoCloud{UserDataSecretRef: users, NetworkDataSecretRef: users})["noCloud"])
	for name, tt := range map[string]struct {
		content map[string]string
		want    []cloudinit.File
	}{
		"the first key counts": {map[string]string{"user/userdata": "1", "user/userData": "2", "network/networkData": "3"},
			[]cloudinit.File{{Name: "user-data", Content: []byte("1")}, {Name: "network-config", Content: []byte("3")}}},
		"a key may be empty": {map[string]string{"user/userData": "", "network/networkdata": ""},
			[]cloudinit.File{{Name: "user-data", Content: []byte{}}, {Name: "network-config", Content: []byte{}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node := Node{Root: "/pod", Content: map[string][]byte{}}
			for p, c := range tt.content {
				node.Content["/pod"+dir+p] = []byte(c)
			}
			got, err := Resolve(cloud, node)
			require.NoError(t, err)
			require.Equal(t, tt.want, got[0].Source.(storage.Seed).Files[1:])
		})
	}
}

func TestAKeyThatIsMissingIsNamedAndMayStillCome(t *testing.T) {
	t.Parallel()
	for kind, source := range seeds(vmi.CloudInitNoCloud{UserDataSecretRef: users, NetworkDataSecretRef: networks}) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			_, err := Resolve(instance(source), Node{})
			require.ErrorContains(t, err, `volume a: secret "users" has no key userdata (or userData)`)
			require.NotErrorIs(t, err, vmi.ErrInvalid)
			_, err = Resolve(instance(source), Node{Content: map[string][]byte{"/var/run/kubevirt/secrets/a/user/userdata": nil}})
			require.ErrorContains(t, err, `volume a: secret "networks" has no key networkdata (or networkData)`)
		})
	}
}
