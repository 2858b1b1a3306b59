package cloudinit_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/storage/cloudinit"
	"github.com/podvisor/podvisor/vmi"
)

func TestConfigDriveHasTheFilesOfTheDataSource(t *testing.T) {
	instance := named("vm")
	instance.UID = "11111111-1111-4111-8111-111111111111"
	meta := func(uuid string) cloudinit.File {
		return cloudinit.File{Name: "openstack/latest/meta_data.json",
			Content: []byte(`{"hostname":"vm","instance_id":"vm.ns","local_hostname":"vm","uuid":"` + uuid + `"}`)}
	}
	user := cloudinit.File{Name: "openstack/latest/user_data", Content: []byte("#cloud-config\n")}
	network := cloudinit.File{Name: "openstack/latest/network_data.json", Content: []byte(`{"links":[]}`)}
	encode := func(f cloudinit.File) string { return base64.StdEncoding.EncodeToString(f.Content) }
	for name, tt := range map[string]struct {
		source  vmi.CloudInitConfigDrive
		secrets cloudinit.Secrets
		want    []cloudinit.File
	}{
		"user data":           {vmi.CloudInitConfigDrive{UserData: string(user.Content)}, cloudinit.Secrets{}, []cloudinit.File{meta(string(instance.UID)), user}},
		"both in base64":      {vmi.CloudInitConfigDrive{UserDataBase64: encode(user), NetworkDataBase64: encode(network)}, cloudinit.Secrets{}, []cloudinit.File{meta(string(instance.UID)), user, network}},
		"network data alone":  {vmi.CloudInitConfigDrive{NetworkData: string(network.Content)}, cloudinit.Secrets{}, []cloudinit.File{meta(string(instance.UID)), network}},
		"both in Secrets":     {vmi.CloudInitConfigDrive{}, cloudinit.Secrets{UserData: user.Content, NetworkData: network.Content}, []cloudinit.File{meta(string(instance.UID)), user, network}},
		"one in each of both": {vmi.CloudInitConfigDrive{NetworkData: string(network.Content)}, cloudinit.Secrets{UserData: user.Content}, []cloudinit.File{meta(string(instance.UID)), user, network}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := cloudinit.ConfigDrive(instance, &tt.source, tt.secrets)
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}

	keys, err := cloudinit.ConfigDrive(instance, &vmi.CloudInitConfigDrive{UserData: string(user.Content)}, cloudinit.Secrets{Keys: []string{"ssh-ed25519 AAAA a", "ssh-rsa BBBB b"}})
	require.NoError(t, err)
	require.JSONEq(t, `{"hostname": "vm", "instance_id": "vm.ns", "local_hostname": "vm", "uuid": "11111111-1111-4111-8111-111111111111",
		"public_keys": {"0": "ssh-ed25519 AAAA a", "1": "ssh-rsa BBBB b"}}`, string(keys[0].Content))

	described, err := cloudinit.ConfigDrive(instance, &vmi.CloudInitConfigDrive{UserData: string(user.Content)}, cloudinit.Secrets{},
		cloudinit.Device{Type: cloudinit.DeviceNIC, Bus: "pci", Address: "0000:01:00.0", MAC: "02:00:00:00:00:01", Tags: []string{"fast"}},
		cloudinit.Device{Type: cloudinit.DeviceDisk, Bus: "usb", Serial: "S1", Tags: []string{"data"}})
	require.NoError(t, err)
	require.JSONEq(t, `{"hostname": "vm", "instance_id": "vm.ns", "local_hostname": "vm", "uuid": "11111111-1111-4111-8111-111111111111", "devices": [
		{"type": "nic", "bus": "pci", "address": "0000:01:00.0", "mac": "02:00:00:00:00:01", "tags": ["fast"]},
		{"type": "disk", "bus": "usb", "serial": "S1", "tags": ["data"]}]}`, string(described[0].Content))

	instance.Spec.Domain.Firmware = &vmi.Firmware{UUID: "5d307ca9-b3ef-428c-8861-06e72d69f223"}
	got, err := cloudinit.ConfigDrive(instance, &vmi.CloudInitConfigDrive{UserData: string(user.Content)}, cloudinit.Secrets{})
	require.NoError(t, err)
	require.Equal(t, meta("5d307ca9-b3ef-428c-8861-06e72d69f223"), got[0], "the one that the guest sees stays the same when a VM starts again")
}

func TestWrongDataOfAConfigDriveIsInvalid(t *testing.T) {
	_, err := cloudinit.ConfigDrive(named("vm"), &vmi.CloudInitConfigDrive{UserDataBase64: "?", NetworkData: "{}"}, cloudinit.Secrets{NetworkData: []byte("{}")})
	require.ErrorIs(t, err, vmi.ErrInvalid)
	require.ErrorContains(t, err, "user data is not base64")
	require.ErrorContains(t, err, "network data is set 2 times")
}

func FuzzConfigDrive(f *testing.F) {
	f.Add("vm", "host", "#cloud-config", "", []byte(nil), []byte("{}"))
	f.Fuzz(func(t *testing.T, name, host, user, user64 string, userSecret, networkSecret []byte) {
		v := named(name)
		v.Spec.Hostname = host
		files, err := cloudinit.ConfigDrive(v, &vmi.CloudInitConfigDrive{UserData: user, UserDataBase64: user64}, cloudinit.Secrets{UserData: userSecret, NetworkData: networkSecret})
		if err != nil {
			require.ErrorIs(t, err, vmi.ErrInvalid)
			return
		}
		var meta map[string]string
		require.NoError(t, json.Unmarshal(files[0].Content, &meta))
		require.Len(t, meta, 4)
	})
}

func ExampleConfigDrive() {
	instance := &vmi.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hello", UID: "8a3f7d1e-5b0c-4f43-9d3e-7c1f5c2b9a10"}}
	// The user data is in a Secret, which the launcher has read.
	files, _ := cloudinit.ConfigDrive(instance, &vmi.CloudInitConfigDrive{}, cloudinit.Secrets{UserData: []byte("#!/bin/sh\necho hello\n")})
	for _, f := range files {
		fmt.Printf("%s:\n%s\n", f.Name, f.Content)
	}
	// Output:
	// openstack/latest/meta_data.json:
	// {"hostname":"hello","instance_id":"hello.default","local_hostname":"hello","uuid":"8a3f7d1e-5b0c-4f43-9d3e-7c1f5c2b9a10"}
	// openstack/latest/user_data:
	// #!/bin/sh
	// echo hello
}
