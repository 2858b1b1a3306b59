package cloudinit_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/podvisor/podvisor/storage/cloudinit"
	"github.com/podvisor/podvisor/vmi"
)

func named(name string) *vmi.VirtualMachineInstance {
	return &vmi.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
}

func TestNoCloudHasTheFilesOfTheDataSource(t *testing.T) {
	meta := cloudinit.File{Name: "meta-data", Content: []byte("instance-id: vm.ns\nlocal-hostname: vm\n")}
	user := cloudinit.File{Name: "user-data", Content: []byte("#cloud-config\n")}
	network := cloudinit.File{Name: "network-config", Content: []byte("version: 2\n")}
	large := []byte(strings.Repeat("x", 100_000))
	encode := func(f cloudinit.File) string { return base64.StdEncoding.EncodeToString(f.Content) }
	for name, tt := range map[string]struct {
		source  vmi.CloudInitNoCloud
		secrets cloudinit.Secrets
		want    []cloudinit.File
	}{
		"user data":           {vmi.CloudInitNoCloud{UserData: string(user.Content)}, cloudinit.Secrets{}, []cloudinit.File{meta, user}},
		"user data in base64": {vmi.CloudInitNoCloud{UserDataBase64: encode(user)}, cloudinit.Secrets{}, []cloudinit.File{meta, user}},
		"both":                {vmi.CloudInitNoCloud{UserData: string(user.Content), NetworkDataBase64: encode(network)}, cloudinit.Secrets{}, []cloudinit.File{meta, user, network}},
		"network data alone, with an empty user-data": {vmi.CloudInitNoCloud{NetworkData: string(network.Content)}, cloudinit.Secrets{}, []cloudinit.File{meta, {Name: "user-data"}, network}},
		"user data of the largest size":               {vmi.CloudInitNoCloud{UserData: strings.Repeat("x", 2048)}, cloudinit.Secrets{}, []cloudinit.File{meta, {Name: "user-data", Content: []byte(strings.Repeat("x", 2048))}}},
		"user data in a Secret, which may be larger than the spec allows": {vmi.CloudInitNoCloud{NetworkData: string(network.Content)},
			cloudinit.Secrets{UserData: large}, []cloudinit.File{meta, {Name: "user-data", Content: large}, network}},
		"network data in a Secret": {vmi.CloudInitNoCloud{UserData: string(user.Content)}, cloudinit.Secrets{NetworkData: network.Content}, []cloudinit.File{meta, user, network}},
		"keys": {vmi.CloudInitNoCloud{UserData: string(user.Content)}, cloudinit.Secrets{Keys: []string{"ssh-ed25519 AAAA a", "ssh-rsa BBBB #b"}},
			[]cloudinit.File{{Name: "meta-data", Content: []byte("instance-id: vm.ns\nlocal-hostname: vm\npublic-keys:\n- ssh-ed25519 AAAA a\n- 'ssh-rsa BBBB #b'\n")}, user}},
		"nothing in the key of a Secret": {vmi.CloudInitNoCloud{}, cloudinit.Secrets{UserData: []byte{}}, []cloudinit.File{meta, {Name: "user-data", Content: []byte{}}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := cloudinit.NoCloud(named("vm"), &tt.source, tt.secrets)
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestNamesThatLookLikeNumbersAreQuoted(t *testing.T) {
	v := named("1e3")
	v.Spec.Hostname = "true"
	files, err := cloudinit.NoCloud(v, &vmi.CloudInitNoCloud{UserData: "x"}, cloudinit.Secrets{})
	require.NoError(t, err)
	var got map[string]any
	require.NoError(t, yaml.Unmarshal(files[0].Content, &got))
	require.Equal(t, map[string]any{"instance-id": "1e3.ns", "local-hostname": "true"}, got)
}

func TestAGuestReadsWhichInstanceTypeItHas(t *testing.T) {
	v := named("vm")
	for annotation, want := range map[string]string{"kubevirt.io/instancetype-name": "small", "kubevirt.io/cluster-instancetype-name": "u1.small"} {
		v.Annotations = map[string]string{"kubevirt.io/instancetype-name": "small", annotation: want}
		files, err := cloudinit.NoCloud(v, &vmi.CloudInitNoCloud{UserData: "x"}, cloudinit.Secrets{})
		require.NoError(t, err)
		require.Equal(t, "instance-id: vm.ns\ninstance-type: "+want+"\nlocal-hostname: vm\n", string(files[0].Content))
		files, err = cloudinit.ConfigDrive(v, &vmi.CloudInitConfigDrive{UserData: "x"}, cloudinit.Secrets{})
		require.NoError(t, err)
		require.Contains(t, string(files[0].Content), `"instance_type":"`+want+`"`)
	}
}

func TestWrongDataIsInvalid(t *testing.T) {
	_, err := cloudinit.NoCloud(named("vm"), &vmi.CloudInitNoCloud{
		UserData: "a", UserDataBase64: "YQ==",
		NetworkDataBase64: "?",
	}, cloudinit.Secrets{})
	require.ErrorIs(t, err, vmi.ErrInvalid)
	require.ErrorContains(t, err, "user data is set 2 times")
	require.ErrorContains(t, err, "network data is not base64")

	_, err = cloudinit.NoCloud(named("vm"), &vmi.CloudInitNoCloud{UserData: "a"}, cloudinit.Secrets{UserData: []byte("b")})
	require.ErrorIs(t, err, vmi.ErrInvalid)
	require.ErrorContains(t, err, "user data is set 2 times; it is text, base64 or in a Secret")

	_, err = cloudinit.NoCloud(named("vm"), &vmi.CloudInitNoCloud{UserDataBase64: base64.StdEncoding.EncodeToString(make([]byte, 2049))}, cloudinit.Secrets{})
	require.ErrorIs(t, err, vmi.ErrInvalid)
	require.ErrorContains(t, err, "2049 bytes")
}

func FuzzNoCloud(f *testing.F) {
	f.Add("vm", "host", "#cloud-config", "", "", "dmVyc2lvbjogMg==")
	f.Fuzz(func(t *testing.T, name, host, user, user64, network, network64 string) {
		v := named(name)
		v.Spec.Hostname = host
		files, err := cloudinit.NoCloud(v, &vmi.CloudInitNoCloud{UserData: user, UserDataBase64: user64, NetworkData: network, NetworkDataBase64: network64}, cloudinit.Secrets{})
		if err != nil {
			return
		}
		var meta map[string]string
		require.NoError(t, yaml.Unmarshal(files[0].Content, &meta))
		require.Len(t, meta, 2)
		for _, f := range files[1:] {
			require.LessOrEqual(t, len(f.Content), cloudinit.MaxBytes)
		}
	})
}

func ExampleNoCloud() {
	instance := &vmi.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hello"}}
	files, _ := cloudinit.NoCloud(instance, &vmi.CloudInitNoCloud{UserData: "#!/bin/sh\necho hello\n"}, cloudinit.Secrets{})
	for _, f := range files {
		fmt.Printf("%s:\n%s", f.Name, f.Content)
	}
	// Output:
	// meta-data:
	// instance-id: hello.default
	// local-hostname: hello
	// user-data:
	// #!/bin/sh
	// echo hello
}
