package e2e

import (
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/podvisor/podvisor/e2e/debian"
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
	s.stateful("uefi", ofFirmware)
	var keys []string
	for range 2 {
		s.awaitPrinted("uefi", vmi.StatusRunning)
		v := s.get("uefi")
		require.Contains(t, s.pod(v).Spec.Containers[0].Image, "virt-launcher-full")
		keys = append(keys, s.key(v))
		require.Contains(t, s.console(v), "started by UEFI")
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

// signedDisk is a disk with the demo guest's kernel, which Debian has signed, and Debian's
// boot loaders.
func signedDisk(t *testing.T) string {
	t.Helper()
	require.NoError(t, debian.Ensure(t.Context(), t.Output(), "dosfstools", "grub-efi-amd64-signed", "mtools", "qemu-utils", "shim-signed"))
	dir := t.TempDir()
	demo, raw, disk := filepath.Join(dir, "demo.raw"), filepath.Join(dir, "disk.raw"), filepath.Join(dir, "disk.qcow2")
	// Neither quiet, nor with so little memory that the kernel must be tuned to it.
	const config = "linux /vmlinuz.efi console=ttyS0 panic=-1\ninitrd /initrd\nboot\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "grub.cfg"), []byte(config), 0o600))
	require.NoError(t, os.WriteFile(raw, nil, 0o600))
	require.NoError(t, os.Truncate(raw, 40<<20))
	for _, step := range [][]string{
		{"qemu-img", "convert", "-O", "raw", demoDisk(t), demo},
		{"mcopy", "-i", demo, "::vmlinuz.efi", "::initrd", dir},
		{"/usr/sbin/mkfs.vfat", "-F", "16", raw},
		{"mmd", "-i", raw, "::EFI", "::EFI/BOOT", "::EFI/debian"},
		{"mcopy", "-i", raw, filepath.Join(dir, "vmlinuz.efi"), filepath.Join(dir, "initrd"), "::"},
		{"mcopy", "-i", raw, filepath.Join(dir, "grub.cfg"), "::EFI/debian"},
		{"mcopy", "-i", raw, "/usr/lib/shim/shimx64.efi.signed", "::EFI/BOOT/BOOTX64.EFI"},
		{"mcopy", "-i", raw, "/usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed", "::EFI/BOOT/grubx64.efi"},
		{"qemu-img", "convert", "-O", "qcow2", raw, disk},
	} {
		out, err := exec.Command(step[0], step[1:]...).CombinedOutput()
		require.NoError(t, err, "%v: %s", step, out)
	}
	b, err := os.ReadFile(disk)
	require.NoError(t, err)
	return string(b)
}

func TestAKernelSaysThatSecureBootIsOn(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	const reference = "localhost/podvisor-e2e/signed:1"
	require.NoError(t, world.cluster.Load(t.Context(), imageOf(t, reference, []entry{{"disk/", 107, 0o755, ""}, {"disk/disk.qcow2", 107, 0o440, signedDisk(t)}})))
	v := vmitest.New(vmitest.WithName("secure"), vmitest.WithMemory("320Mi"), vmitest.WithGracePeriod(1), vmitest.WithContainerDisk("root", reference))
	v.UID = ""
	v.Spec.Domain.CPU = &vmi.CPU{Model: "Westmere"}
	v.Spec.Domain.Features = &vmi.Features{SMM: &vmi.FeatureState{}}
	v.Spec.Domain.Firmware = &vmi.Firmware{Bootloader: &vmi.Bootloader{EFI: &vmi.EFI{}}} // secure boot is the default
	v = s.create(v)
	s.awaitPhase("secure", vmi.PhaseRunning)
	s.awaitConsole(v, "secureboot: Secure boot enabled")
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
	s.awaitPhase("kernel", vmi.PhaseRunning)
	s.awaitConsole(v, "ready, serving HTTP on port 80")
	require.Equal(t, &vmi.KernelBootStatus{
		KernelInfo: &vmi.BootFileInfo{Checksum: crc32.ChecksumIEEE([]byte(read("vmlinuz.efi")))},
		InitrdInfo: &vmi.BootFileInfo{Checksum: crc32.ChecksumIEEE([]byte(read("initrd")))},
	}, s.get("kernel").Status.KernelBootStatus)
}
