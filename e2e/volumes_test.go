package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// withVolume adds a virtio disk whose serial number is its name.
func withVolume(name string, source vmi.VolumeSource) vmitest.Option {
	return func(v *vmi.VirtualMachineInstance) {
		vmitest.WithDisk(name, source)(v)
		d := &v.Spec.Domain.Devices.Disks[len(v.Spec.Domain.Devices.Disks)-1]
		d.Serial, d.Disk = name, &vmi.DiskTarget{Bus: vmi.DiskBusVirtio}
	}
}

// onVolumes writes to the console the files of the disks whose serial numbers begin with
// files-, and what is on those that begin with disk-, to which it writes then.
const onVolumes = `#!/bin/sh
for b in /sys/block/vd*; do
  serial=$(cat $b/serial)
  disk=/dev/${b##*/}
  case $serial in
  files-*)
    mkdir -p /tmp/$serial
    mount -t iso9660 -o ro $disk /tmp/$serial || echo "$serial is not mounted" > /dev/console
    for f in $(cd /tmp/$serial && find . -type f | sort); do
      case $f in */token|*/ca.crt) text="$(wc -c < /tmp/$serial/$f | tr -d ' ' | sed 's/^[1-9][0-9]*$/bytes/')" ;; *) text=$(cat /tmp/$serial/$f) ;; esac
      echo "$serial label $(dd if=$disk bs=1 skip=32808 count=32 2>/dev/null | tr -d ' ') ${f#./} is [$text]" > /dev/console
    done ;;
  disk-*)
    echo "$serial of $(cat $b/size) sectors holds [$(dd if=$disk bs=5 count=1 2>/dev/null | tr -d '\000')]" > /dev/console
    printf other | dd of=$disk bs=5 conv=notrunc,fsync 2>/dev/null ;;
  esac
done
sync
echo "volumes are read" > /dev/console
`

func TestAGuestReadsFilesAndLosesWhatItWritesToEphemeralDisks(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	core := world.kube.CoreV1()
	data := map[string]string{"plain.txt": "from a ConfigMap", "A-key.with_a-long.name-of-more-than-31-characters": "long"}
	_, err := core.ConfigMaps(s.name).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: data}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = core.ConfigMaps(s.name).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "answers"}, Data: map[string]string{"unattend.xml": "<unattend/>"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = core.Secrets(s.name).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "keys"}, StringData: map[string]string{"password": "from a Secret", "autounattend.xml": "<unattend/>"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = core.ServiceAccounts(s.name).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	s.claim("claim-base", "16Mi", corev1.PersistentVolumeFilesystem, nil)
	s.claim("claim-block", "16Mi", corev1.PersistentVolumeBlock, nil)
	writer := s.create(guest("writer", onClaims, withClaim("claim-base"), withClaim("claim-block"), vmitest.WithGracePeriod(1)))
	s.awaitPhase("writer", vmi.PhaseRunning)
	s.awaitConsole(writer, "claims are written")

	above := func(claim string) vmi.VolumeSource {
		return vmi.VolumeSource{Ephemeral: &vmi.EphemeralVolume{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}
	}
	v := guest("reader", onVolumes, vmitest.WithGracePeriod(1),
		withVolume("files-config", vmi.VolumeSource{ConfigMap: &vmi.ConfigMapVolume{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}, VolumeLabel: "SETTINGS"}}),
		withVolume("files-none", vmi.VolumeSource{ConfigMap: &vmi.ConfigMapVolume{LocalObjectReference: corev1.LocalObjectReference{Name: "missing"}, Optional: new(true)}}),
		withVolume("files-secret", vmi.VolumeSource{Secret: &vmi.SecretVolume{SecretName: "keys", VolumeLabel: "KEYS"}}),
		withVolume("files-nothing", vmi.VolumeSource{Secret: &vmi.SecretVolume{SecretName: "missing", Optional: new(true)}}),
		withVolume("files-answers", vmi.VolumeSource{Sysprep: &vmi.Sysprep{ConfigMap: &corev1.LocalObjectReference{Name: "answers"}}}),
		withVolume("files-facts", vmi.VolumeSource{DownwardAPI: &vmi.DownwardAPIVolume{VolumeLabel: "FACTS", Fields: []corev1.DownwardAPIVolumeFile{
			{Path: "labels/all", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['tier']"}},
		}}}),
		withVolume("files-account", vmi.VolumeSource{ServiceAccount: &vmi.ServiceAccountVolume{ServiceAccountName: "robot"}}),
		withVolume("files-sysprep", vmi.VolumeSource{Sysprep: &vmi.Sysprep{Secret: &corev1.LocalObjectReference{Name: "keys"}}}),
		withVolume("disk-file", above("claim-base")), withVolume("disk-block", above("claim-block")),
		withVolume("disk-empty", vmi.VolumeSource{EmptyDisk: &vmi.EmptyDisk{Capacity: resource.MustParse("16Mi")}}))
	v.Labels = map[string]string{"tier": "web"}
	s.vmOf(v)
	eventually(t, soon, func() error {
		_, err := world.vmis.VirtualMachineInstances(s.name).Get(t.Context(), "reader", metav1.GetOptions{})
		return err
	})
	s.awaitReason("reader", "ClaimInUse")
	require.Contains(t, s.get("reader").Status.Condition(vmi.ConditionSynchronized).Message, "volume disk-file: PersistentVolumeClaim claim-base is a disk of VMI writer")
	s.delete("writer")

	for _, when := range []string{"first", "after a stop and start"} {
		s.awaitPrinted("reader", vmi.StatusRunning)
		console := s.awaitConsole(s.get("reader"), "volumes are read")
		for _, want := range []string{
			"files-config label SETTINGS plain.txt is [from a ConfigMap]",
			"files-config label SETTINGS A-key.with_a-long.name-of-more-than-31-characters is [long]",
			"files-secret label KEYS password is [from a Secret]",
			"files-answers label unattendCD unattend.xml is [<unattend/>]",
			"files-facts label FACTS labels/all is [web]",
			"files-account label cfgdata namespace is [" + s.name + "]",
			"files-account label cfgdata token is [bytes]",
			"files-account label cfgdata ca.crt is [bytes]",
			"files-sysprep label unattendCD autounattend.xml is [<unattend/>]",
			"disk-file of 30720 sectors holds [kept!]", "disk-block of 32768 sectors holds [kept!]", "disk-empty of 32768 sectors holds []",
		} {
			require.Contains(t, console, want, when)
		}
		require.NotContains(t, console, "is not mounted", when)
		if when != "first" {
			return
		}
		before := s.get("reader")
		s.run("reader", vmi.RunHalted)
		s.awaitPrinted("reader", vmi.StatusStopped)
		s.awaitGone(before)
		s.run("reader", vmi.RunAlways)
	}
}
