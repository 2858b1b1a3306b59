package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"

	"github.com/podvisor/podvisor/e2e/images"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// Parallel tests begin in the order of the files' names, and this one takes longest: some ten minutes
// under emulation, in which the others run.
func TestADebianGuestIsConfiguredByCloudInitAndItsAgent(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	built, err := images.Build(t.Context(), images.Config{Names: images.Extra(), Out: t.Output()})
	require.NoError(t, err)
	require.NoError(t, world.cluster.Load(t.Context(), images.Tars(built)...))

	cloudKey, cloud := newKey(t, "of cloud-init")
	agentKey, agent := newKey(t, "of the agent")
	s.secret("cloud", "key", cloud)
	s.secret("bobs", "key", "# none yet\n")
	s.secret("passwords", "bob", "correct horse")
	v := vmitest.New(
		vmitest.WithName("debian"), vmitest.WithMemory("384Mi"), vmitest.WithMasquerade("default"),
		vmitest.WithContainerDisk("root", images.Reference("debian-guest")),
		vmitest.WithDisk("seed", vmi.VolumeSource{CloudInitNoCloud: &vmi.CloudInitNoCloud{
			UserData: cloudConfig(
				"ssh_pwauth: true",
				"users: [default, {name: bob, shell: /bin/bash, lock_passwd: false}]",
				"write_files: [{path: /etc/written, content: \"written by cloud-init\\n\"}]",
				"runcmd: [\"echo run by cloud-init on $(hostname) > /run/commanded\"]",
			),
			NetworkData: "version: 2\nethernets:\n  first:\n    match: {macaddress: \"02:00:00:00:00:07\"}\n    addresses: [10.0.2.2/24]\n    gateway4: 10.0.2.1\n",
		}}),
	)
	v.UID = ""
	v.Spec.Hostname = "configured"
	v.Spec.Domain.Devices.Interfaces[0].MacAddress = "02:00:00:00:00:07"
	v.Spec.AccessCredentials = []vmi.AccessCredential{
		sshKeys("cloud", vmi.SSHPublicKeyPropagationMethod{NoCloud: &vmi.CloudInitPropagation{}}),
		agentKeys("bobs", "bob"), agentPasswords("passwords"),
	}
	seen := s.newVisitor()
	v = s.create(v)
	s.awaitPhase(v.Name, vmi.Running)
	silent := s.user("edit").console(v.Name)

	said := seen.awaitSSH(v, "debian", ssh.PublicKeys(cloudKey), "cat /etc/written /run/commanded && hostname && ip -4 -o address && sudo -n id -u")
	for _, want := range []string{"written by cloud-init\n", "run by cloud-init on configured\n", "\nconfigured\n", " 10.0.2.2/24 ", "\n0\n"} {
		require.Contains(t, said, want)
	}
	s.awaitCredentials(v.Name, slow, corev1.ConditionTrue, "has written")
	require.NotNil(t, s.get(v.Name).Status.Condition(vmi.ConditionAgentConnected))
	require.Equal(t, "bob\n", seen.awaitSSH(v, "bob", ssh.Password("correct horse"), "id -un"))
	_, err = seen.ssh(v, "bob", ssh.PublicKeys(agentKey), "id -un")
	require.Error(t, err, "the key is not in the Secret yet")

	s.setSecret(v, "bobs", "key", agent)
	require.Equal(t, "bob\n", seen.awaitSSH(v, "bob", ssh.PublicKeys(agentKey), "id -un"))

	s.askGuest(v)
	s.freezeGuest(v, seen, "debian", ssh.PublicKeys(cloudKey))
	// Nothing was typed for minutes: neither the API server nor what is behind it ends that.
	silent.types("bob\r")
	silent.shows("Password:", "")
	s.rebootGuest(v)
	s.delete(v.Name)
	s.awaitGone(v)
}
