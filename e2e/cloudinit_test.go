package e2e

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/e2e/images"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/defaults"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// secret makes a Secret with one key.
func (s space) secret(name, key, content string) {
	s.t.Helper()
	_, err := world.kube.CoreV1().Secrets(s.name).Create(s.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{key: content},
	}, metav1.CreateOptions{})
	require.NoError(s.t, err)
}

// seeded makes a VMI with the demo guest, this volume, and an interface with the
// hardware address 02:00:00:00:00:07.
func seeded(name string, seed vmi.VolumeSource) *vmi.VirtualMachineInstance {
	v := vmitest.New(
		vmitest.WithName(name),
		vmitest.WithContainerDisk("root", images.Reference("demo-guest")),
		vmitest.WithDisk("seed", seed),
		vmitest.WithMasquerade("default"),
	)
	v.UID = ""
	v.Spec.Domain.Devices.Interfaces[0].MacAddress = "02:00:00:00:00:07"
	return v
}

// script writes the name to the console, and is longer than the spec allows.
func script(name string) string {
	return "#!/bin/sh\n" + strings.Repeat("# more than the spec may hold\n", 200) + "echo the user data of " + name + " > /dev/console\n"
}

func reference(name string) *corev1.LocalObjectReference {
	return &corev1.LocalObjectReference{Name: name}
}

// The other forms are those of the tests of access credentials.
func TestAGuestReadsCloudInitsDataOfSecretsAndInBase64(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	const drive = `{"links": [{"id": "a", "type": "phy", "ethernet_mac_address": "02:00:00:00:00:07"}],
		"networks": [{"id": "n", "link": "a", "type": "ipv4", "ip_address": "10.0.2.2", "netmask": "255.255.255.0"}]}`
	const cloud = "version: 2\nethernets: {eth0: {addresses: [10.0.2.2/24]}}\n"
	s.secret("users-drive", "userData", script("drive"))
	s.secret("users-cloud", "userdata", script("cloud"))
	s.secret("networks", "networkdata", cloud)
	all := []*vmi.VirtualMachineInstance{
		s.create(seeded("drive", vmi.VolumeSource{CloudInitConfigDrive: &vmi.CloudInitConfigDrive{
			UserDataSecretRef: reference("users-drive"), NetworkData: drive,
		}})),
		s.create(seeded("cloud", vmi.VolumeSource{CloudInitNoCloud: &vmi.CloudInitNoCloud{
			UserDataSecretRef: reference("users-cloud"), NetworkDataSecretRef: reference("networks"),
		}})),
	}
	// In base64, for what is not text; it may be no longer than the spec allows.
	encode := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	short := func(name string) string {
		return encode("#!/bin/sh\necho the user data of " + name + " > /dev/console\n")
	}
	tagged := seeded("drive64", vmi.VolumeSource{CloudInitConfigDrive: &vmi.CloudInitConfigDrive{
		UserDataBase64: encode("#!/bin/sh\necho the user data of drive64 > /dev/console\n" +
			`echo "the tag system is at $(strings /dev/vdb | grep -o '"address":"[^"]*"' | head -n 1), vda is $(readlink -f /sys/block/vda/device)" > /dev/console` + "\n"),
		NetworkDataBase64: encode(drive),
	}})
	tagged.Spec.Domain.Devices.Disks[0].Tag = "system"
	all = append(all,
		s.create(tagged),
		s.create(seeded("cloud64", vmi.VolumeSource{CloudInitNoCloud: &vmi.CloudInitNoCloud{
			UserDataBase64: short("cloud64"), NetworkDataBase64: encode(cloud),
		}})))
	for _, v := range all {
		s.awaitPhase(v.Name, vmi.PhaseRunning)
		console := s.awaitConsole(v, "the user data of "+v.Name)
		require.Contains(t, console, "eth0 has address 10.0.2.2/24 from network-config")
		require.Contains(t, console, "ready, serving HTTP on port 80 as "+v.Name)
	}
	require.Contains(t, s.console(all[0]), fmt.Sprintf("cloud-init data of instance %q", defaults.Instance(all[0], defaults.Profile{}).Spec.Domain.Firmware.UUID))
	require.Regexp(t, `the tag system is at "address":"(0000:05:00\.0)", vda is \S*/0000:05:00\.0/virtio`, s.awaitConsole(s.get(tagged.Name), ", vda is "))
	for _, v := range all {
		s.delete(v.Name)
	}
	for _, v := range all {
		s.awaitGone(v)
	}
}

func TestASecretThatIsMissingIsSaidAndTheVMIStartsWhenItIsThere(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	drive := func(name string) vmi.VolumeSource {
		return vmi.VolumeSource{CloudInitConfigDrive: &vmi.CloudInitConfigDrive{UserDataSecretRef: reference(name)}}
	}
	s.secret("other-key", "user-data", script("no-key"))
	all := []*vmi.VirtualMachineInstance{s.create(seeded("missing", drive("later"))), s.create(seeded("no-key", drive("other-key")))}

	c := s.awaitCondition("missing", soon, vmi.ConditionSynchronized, metav1.ConditionFalse, "FailedMount")
	require.Contains(t, c.Message, `secret "later" not found`)
	s.secret("later", "userdata", script("missing"))
	c = s.awaitCondition("no-key", soon, vmi.ConditionSynchronized, metav1.ConditionFalse, "StartFailed")
	require.Contains(t, c.Message, `volume seed: secret "other-key" has no key userdata (or userData)`)
	s.awaitPhase("missing", vmi.PhaseRunning)
	s.awaitConsole(all[0], "the user data of missing")
	require.Nil(t, s.get("missing").Status.Condition(vmi.ConditionSynchronized))
	for _, v := range all {
		s.delete(v.Name)
	}
	for _, v := range all {
		s.awaitGone(v)
	}
}
