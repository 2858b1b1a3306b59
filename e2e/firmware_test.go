package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/vmi"
	"github.com/podvisor/podvisor/vmi/vmitest"
)

// ofFirmware writes to the console whether UEFI started the guest, and a digest of the
// endorsement key of its TPM (TPM2_ReadPublic of 0x81010001), which each TPM has another
// one of.
const ofFirmware = `#!/bin/sh
[ -d /sys/firmware/efi ] && echo "started by UEFI" > /dev/console
exec 3<>/dev/tpm0
printf '\200\001\000\000\000\016\000\000\001\163\201\001\000\001' >&3
dd bs=4096 count=1 <&3 2>/dev/null > /tmp/key
echo "TPM answered $(od -An -tx1 -j6 -N4 /tmp/key | tr -d ' ') with a key $(md5sum < /tmp/key)" > /dev/console
`

func TestAGuestStartedByUEFIHasTheSameTPMAfterAStop(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.vmOf(guest("uefi", ofFirmware, vmitest.WithMemory("192Mi"), vmitest.WithGracePeriod(5), func(v *vmi.VirtualMachineInstance) {
		v.Spec.Domain.Firmware = &vmi.Firmware{Bootloader: &vmi.Bootloader{EFI: &vmi.EFI{SecureBoot: new(false), Persistent: new(true)}}}
		v.Spec.Domain.Devices.TPM = &vmi.TPM{Persistent: new(true)}
	}))
	key := regexp.MustCompile(`TPM answered 00000000 with a key ([0-9a-f]{32})`)
	var keys []string
	for range 2 {
		s.awaitPrinted("uefi", vmi.StatusRunning)
		v := s.get("uefi")
		require.Contains(t, s.pod(v).Spec.Containers[0].Image, "virt-launcher-full")
		console := s.awaitConsole(v, "TPM answered")
		require.Contains(t, console, "started by UEFI")
		found := key.FindStringSubmatch(console)
		require.NotEmpty(t, found, console)
		keys = append(keys, found[1])
		s.run("uefi", vmi.RunHalted)
		s.awaitPrinted("uefi", vmi.StatusStopped)
		s.awaitGone(v)
		s.run("uefi", vmi.RunAlways)
	}
	require.Equal(t, keys[0], keys[1])
	claim, err := world.kube.CoreV1().PersistentVolumeClaims(s.name).Get(t.Context(), "persistent-state-for-uefi", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, vmi.VirtualMachines.Kind, claim.OwnerReferences[0].Kind)
}

func TestAGuestIsStartedByAKernelOfAnImage(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	const reference = "localhost/podvisor-e2e/kernel:1"
	disk := demoDisk(t)
	raw := disk + ".raw"
	out, err := exec.Command(testenv.Program(t, "qemu-img"), "convert", "-O", "raw", disk, raw).CombinedOutput()
	require.NoError(t, err, "%s", out)
	out, err = exec.Command(testenv.Program(t, "mcopy"), "-i", raw, "::vmlinuz.efi", "::initrd", "::syslinux.cfg", filepath.Dir(raw)).CombinedOutput()
	require.NoError(t, err, "%s", out)
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(filepath.Dir(raw), name))
		require.NoError(t, err)
		return string(b)
	}
	_, arguments, _ := strings.Cut(read("syslinux.cfg"), " APPEND ")
	require.NoError(t, world.cluster.Load(t.Context(), imageOf(t, reference, []entry{
		{"boot/", 0, 0o755, ""}, {"boot/kernel", 107, 0o440, read("vmlinuz.efi")}, {"boot/initrd", 107, 0o440, read("initrd")},
	})))
	v := vmitest.New(vmitest.WithName("kernel"), vmitest.WithMemory("128Mi"), vmitest.WithGracePeriod(1), vmitest.WithMasquerade("default"))
	v.UID = ""
	v.Spec.Domain.Firmware = &vmi.Firmware{KernelBoot: &vmi.KernelBoot{KernelArgs: strings.TrimSpace(arguments) + " podvisor.kernel=image",
		Container: &vmi.KernelBootContainer{Image: reference, KernelPath: "/boot/kernel", InitrdPath: "/boot/initrd"}}}
	v = s.create(v)
	s.awaitPhase("kernel", vmi.Running)
	s.awaitConsole(v, "ready, serving HTTP on port 80")
}
