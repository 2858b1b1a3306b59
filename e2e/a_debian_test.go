package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/e2e/images"
	"github.com/podvisor/podvisor/vmi"
)

// Parallel tests begin in the order of the files' names, and this one takes longest: some ten minutes
// under emulation, in which the others run. It is the walk of docs/first-vmi.md too.
func TestADebianGuestIsConfiguredByCloudInitAndItsAgent(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	built, err := images.Build(t.Context(), images.Config{Names: []string{"debian-guest"}, Out: t.Output()})
	require.NoError(t, err)
	require.NoError(t, world.cluster.Load(t.Context(), images.Tars(built)...))

	walk := readWalk(t)
	userKey, users := newKey(t, "you@example.com")
	cloudKey, cloud := newKey(t, "of cloud-init")
	agentKey, agent := newKey(t, "of the agent")
	s.secret("cloud", "key", cloud)
	s.secret("bobs", "key", "# none yet\n")
	s.secret("passwords", "bob", "correct horse")
	// The VMI of the page, with more for cloud-init and the agent to do. It has no networks.
	v := walk.instance.DeepCopy()
	require.Empty(t, v.Spec.Networks)
	require.Empty(t, v.Spec.Domain.Devices.Interfaces)
	require.Nil(t, v.Spec.Domain.Devices.AutoattachPodInterface)
	v.Namespace = s.name
	v.Spec.Volumes[0].ContainerDisk.Image = images.Reference("debian-guest")
	// It has more to compute than all other guests together: beside them it gets five times
	// what one of them gets.
	v.Spec.Domain.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}
	seed := v.Spec.Volumes[1].CloudInitNoCloud
	require.Contains(t, seed.UserData, walk.key)
	seed.UserData = strings.Replace(seed.UserData, walk.key, users, 1) + strings.Join([]string{
		"ssh_pwauth: true",
		"users: [default, {name: bob, shell: /bin/bash, lock_passwd: false}]",
		"write_files: [{path: /etc/written, content: \"written by cloud-init\\n\"}]",
		"runcmd: [\"echo run by cloud-init on $(hostname) > /run/commanded\"]",
	}, "\n") + "\n"
	// One address more than DHCP gives. The name follows from the place on the bus.
	seed.NetworkData = "version: 2\nethernets:\n  enp1s0:\n    dhcp4: true\n    addresses: [192.0.2.7/32]\n"
	v.Spec.Hostname = "configured"
	v.Spec.AccessCredentials = []vmi.AccessCredential{
		sshKeys("cloud", vmi.SSHPublicKeyPropagationMethod{NoCloud: &vmi.CloudInitPropagation{}}),
		agentKeys("bobs", "bob"), agentPasswords("passwords"),
	}
	seen := s.newVisitor()
	u := s.user("edit")
	v, err = u.vmis.Create(t.Context(), v, metav1.CreateOptions{})
	require.NoError(t, err)
	u.apply(walk.service)
	s.awaitPhase(v.Name, vmi.PhaseRunning)
	require.Equal(t, s.get(v.Name).Status.NodeName, s.get(v.Name).Labels[vmi.NodeNameLabel])
	silent := u.console(v.Name)

	require.Equal(t, "debian\n", seen.awaitLogin(walk.host, "debian", ssh.PublicKeys(userKey), "id -un"))
	said := seen.awaitSSH(v, "debian", ssh.PublicKeys(cloudKey), "cat /etc/written /run/commanded && hostname && ip -4 -o address && sudo -n id -u")
	for _, want := range []string{"written by cloud-init\n", "run by cloud-init on configured\n", "\nconfigured\n", " " + s.pod(v).Status.PodIP + "/", " 192.0.2.7/32 ", "\n0\n"} {
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
