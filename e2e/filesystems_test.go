package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/e2e/images"
	"github.com/podvisor/podvisor/launcher"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// withFilesystem adds a volume that the guest mounts by its name.
func withFilesystem(name string, source vmi.VolumeSource) vmitest.Option {
	return func(v *vmi.VirtualMachineInstance) {
		v.Spec.Volumes = append(v.Spec.Volumes, vmi.Volume{Name: name, VolumeSource: source})
		d := &v.Spec.Domain.Devices
		d.Filesystems = append(d.Filesystems, vmi.Filesystem{Name: name, Virtiofs: &vmi.FilesystemVirtiofs{}})
	}
}

// onFilesystems mounts the file systems data and conf, writes to the first and reports
// changes of the second.
const onFilesystems = `#!/bin/sh
mkdir -p /tmp/data /tmp/conf
mount -t virtiofs data /tmp/data && mount -t virtiofs conf /tmp/conf || echo "nothing is mounted" > /dev/console
echo "data holds [$(cat /tmp/data/note)], conf holds [$(cat /tmp/conf/color)]" > /dev/console
mkdir /tmp/data/sub && dd if=/dev/zero of=/tmp/data/sub/large bs=1M count=16 2>/dev/null
echo "from the guest" > /tmp/data/sub/reply
sync
ln -s /etc/hostname /tmp/data/link
echo "the link leads to [$(cat /tmp/data/link)], the owner is $(stat -c %u:%g /tmp/data/sub/reply)" > /dev/console
mknod /tmp/data/device b 1 1 2>/dev/null && echo "a device was made" > /dev/console
echo x > /tmp/conf/color 2>/dev/null && echo "conf was written" > /dev/console
echo "filesystems are used" > /dev/console
until grep -q red /tmp/conf/color; do sleep 1; done
echo "conf has changed" > /dev/console
until [ -s /tmp/data/answer ]; do sleep 1; done
echo "the other guest answers [$(cat /tmp/data/answer)]" > /dev/console
`

// onSharedClaim mounts the file system data, says what another guest wrote there, and answers.
const onSharedClaim = `#!/bin/sh
mkdir -p /tmp/data && mount -t virtiofs data /tmp/data
echo "the other guest wrote [$(cat /tmp/data/sub/reply)]" > /dev/console
echo "from the second guest" > /tmp/data/answer
sync
`

func TestAGuestSharesAClaimAndAConfigMapWithPods(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	core := world.kube.CoreV1()
	s.claimWith("shared", "64Mi", corev1.PersistentVolumeFilesystem, func(c *corev1.PersistentVolumeClaim) {
		c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany} // pods of both nodes have it
	})
	_, err := core.ConfigMaps(s.name).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"color": "blue"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	s.withClaimInPod("writer", "echo 'from a pod' > /claim/note")
	s.awaitPod("writer", corev1.PodSucceeded)

	shared := withFilesystem("data", vmi.VolumeSource{PersistentVolumeClaim: &vmi.PersistentVolumeClaimVolume{
		PersistentVolumeClaimVolumeSource: corev1.PersistentVolumeClaimVolumeSource{ClaimName: "shared"},
	}})
	v := s.create(guest("sharer", onFilesystems, vmitest.WithGracePeriod(5), shared,
		withFilesystem("conf", vmi.VolumeSource{ConfigMap: &vmi.ConfigMapVolume{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}})))
	s.awaitPhase("sharer", vmi.PhaseRunning)
	console := s.awaitConsole(v, "filesystems are used")
	require.Contains(t, console, "data holds [from a pod], conf holds [blue]")
	require.Contains(t, console, "the link leads to [sharer], the owner is 107:107", "the guest follows a link among its own files")
	require.NotContains(t, console, "a device was made")
	require.NotContains(t, console, "conf was written")

	s.withClaimInPod("reader", `[ "$(cat /claim/sub/reply)" = "from the guest" ] && [ "$(wc -c < /claim/sub/large)" -eq 16777216 ]`)
	s.awaitPod("reader", corev1.PodSucceeded)
	_, err = core.ConfigMaps(s.name).Patch(t.Context(), "settings", types.MergePatchType, []byte(`{"data":{"color":"red"}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	pod := s.pod(v)
	s.kubectl("annotate", "pod", pod.Name, "example.com/sync=now") // the kubelet looks at a pod that changes at once
	s.awaitConsole(v, "conf has changed")

	second := s.create(guest("second", onSharedClaim, vmitest.WithGracePeriod(5), shared))
	s.awaitPhase("second", vmi.PhaseRunning)
	s.awaitConsole(second, "the other guest wrote [from the guest]")
	s.awaitConsole(v, "the other guest answers [from the second guest]")
	s.delete("second")

	s.traces(v).kill("share --socket " + vmi.FilesystemSocket("data"))
	eventually(t, soon, func() error {
		c := s.get("sharer").Status.Condition(vmi.ConditionSynchronized)
		if c == nil || c.Reason != launcher.ReasonFilesystemLost {
			return fmt.Errorf("no condition says that the file system is lost: %+v", c)
		}
		return nil
	})
	eventually(t, soon, func() error {
		for _, c := range s.pod(v).Status.InitContainerStatuses {
			if c.Name == "virtiofs-data" && c.RestartCount > 0 && c.State.Running != nil {
				return nil
			}
		}
		return fmt.Errorf("the server is not started again")
	})
	require.Equal(t, vmi.PhaseRunning, s.get("sharer").Status.Phase, "the guest goes on")
	s.delete("sharer")
	s.awaitGone(v)
	s.awaitGone(second)
}

// withClaimInPod makes a pod that runs a script once, with the claim shared in /claim.
func (s space) withClaimInPod(name, script string) {
	s.t.Helper()
	_, err := world.kube.CoreV1().Pods(s.name).Create(s.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyNever,
			TerminationGracePeriodSeconds: new(int64),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), RunAsUser: new(int64(1000)), FSGroup: new(int64(vmi.RuntimeUID)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: name, Image: images.Reference("tools"), ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"sh", "-c", script},
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
				VolumeMounts:    []corev1.VolumeMount{{Name: "claim", MountPath: "/claim"}},
			}},
			Volumes: []corev1.Volume{{Name: "claim", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "shared"},
			}}},
		},
	}, metav1.CreateOptions{})
	require.NoError(s.t, err)
}

// awaitPod waits until a pod is in the phase.
func (s space) awaitPod(name string, want corev1.PodPhase) {
	s.t.Helper()
	eventually(s.t, long, func() error {
		p, err := world.kube.CoreV1().Pods(s.name).Get(s.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if p.Status.Phase != want {
			return fmt.Errorf("pod %s is %s and not %s: %+v", name, p.Status.Phase, want, p.Status.ContainerStatuses)
		}
		return nil
	})
}
