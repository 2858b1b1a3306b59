package supervisor

import (
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/internal/testguest"
	"github.com/podvisor/podvisor/launcher/protocol"
	overhead "github.com/podvisor/podvisor/scheduler/pod"
	"github.com/podvisor/podvisor/vmi"
)

// folder is a folder that the processes of sandboxes can read, or write if it is
// theirs.
func folder(t *testing.T, owner int, names ...string) string {
	t.Helper()
	testenv.Root(t)
	require.NoError(t, prepared())
	dir, err := os.MkdirTemp(shared(), "folder")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	for _, n := range names {
		require.NoError(t, os.Mkdir(filepath.Join(dir, n), 0o755))
		require.NoError(t, os.Chown(filepath.Join(dir, n), 0, owner))
		require.NoError(t, os.Chmod(filepath.Join(dir, n), 0o775)) // as the kubelet makes it: root's
	}
	return dir
}

// kernel is the guest of the boot sector as the kernel of an old version of the boot
// protocol: 512 bytes that are not run, and code that puts the guest where a BIOS
// would and starts it there.
func kernel(t *testing.T) []byte {
	t.Helper()
	// cld; mov ax,cs; mov ds,ax; xor ax,ax; mov es,ax; mov si,0x1a; mov di,0x7c00;
	// mov cx,0x100; rep movsw; jmp 0:0x7c00
	start := []byte{0xfc, 0x8c, 0xc8, 0x8e, 0xd8, 0x31, 0xc0, 0x8e, 0xc0, 0xbe, 0x1a, 0x00, 0xbf, 0x00, 0x7c,
		0xb9, 0x00, 0x01, 0xf3, 0xa5, 0xea, 0x00, 0x7c, 0x00, 0x00, 0x90}
	require.Len(t, start, 0x1a)
	out := make([]byte, 16<<10)
	copy(out[512:], start)
	copy(out[512+len(start):], testguest.Disk()[:510])
	return out
}

// kernelOf is the instance, started by the kernel.
func kernelOf(path string) *vmi.VirtualMachineInstance {
	v := instance()
	v.Spec.Domain.Firmware = &vmi.Firmware{KernelBoot: &vmi.KernelBoot{KernelArgs: "quiet", Container: &vmi.KernelBootContainer{Image: "example/kernel:1", KernelPath: path}}}
	return v
}

func TestAGuestIsStartedByTheKernelOfAnImage(t *testing.T) {
	t.Parallel()
	dir := folder(t, 0, "boot")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "boot", "vmlinuz"), kernel(t), 0o644))
	p := newPod(t, map[string][]byte{"empty.img": make([]byte, 1<<20)}, "KERNEL="+dir)
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: kernelOf("/boot/vmlinuz")}))
	p.says("test guest is up", 1)
	p.reports("the checksum of the kernel", func(s protocol.State) bool {
		return s.KernelBoot != nil && s.KernelBoot.KernelInfo.Checksum == crc32.ChecksumIEEE(kernel(t)) && s.KernelBoot.InitrdInfo == nil
	})
	p.write("o")
	p.ends(protocol.Shutdown, "the guest powered off")
}

func TestAttackAKernelThatLeadsOutOfItsImageIsNotStarted(t *testing.T) {
	t.Parallel()
	dir := folder(t, 0, "boot")
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "boot", "link")))
	require.NoError(t, os.Symlink("/", filepath.Join(dir, "root")))
	for path, says := range map[string]string{
		"/boot/link":       "/boot/link is or contains a symbolic link, which is not followed",
		"/root/etc/passwd": "/root/etc/passwd is or contains a symbolic link, which is not followed",
		"/boot":            "/boot is not a regular file",
		"/vmlinuz":         "/vmlinuz does not exist",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			p := newPod(t, bootable(), "KERNEL="+dir)
			require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: kernelOf(path)}))
			p.ends(protocol.CannotStart, "kernelBoot: image example/kernel:1: "+says)
		})
	}
}

// withUEFI has UEFI firmware and a TPM, both persistent or not.
func withUEFI(secure, persistent bool) *vmi.VirtualMachineInstance {
	v := instance()
	v.Spec.Domain.Firmware = &vmi.Firmware{Bootloader: &vmi.Bootloader{EFI: &vmi.EFI{SecureBoot: &secure, Persistent: &persistent}}}
	v.Spec.Domain.Devices.TPM = &vmi.TPM{Persistent: &persistent}
	v.Spec.Domain.Features = &vmi.Features{SMM: &vmi.FeatureState{}}
	v.Spec.Domain.Memory = nil
	v.Spec.Domain.Resources.Requests = memoryOf("128Mi")
	return v
}

// putUEFI runs the VMI.
func putUEFI(t *testing.T, v *vmi.VirtualMachineInstance, env ...string) *pod {
	t.Helper()
	testenv.File(t, "/usr/share/OVMF/OVMF_CODE_4M.fd")
	testenv.Program(t, "swtpm")
	p := newPod(t, map[string][]byte{"empty.img": make([]byte, 1<<20)}, env...)
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: v}))
	return p
}

// startUEFI runs the VMI until its firmware looks for something to boot.
func startUEFI(t *testing.T, v *vmi.VirtualMachineInstance, env ...string) *pod {
	t.Helper()
	p := putUEFI(t, v, env...)
	// The firmware is slow under emulation.
	require.Eventually(t, func() bool { return strings.Contains(p.console.String(), "BdsDxe: ") }, 10*time.Minute, 50*time.Millisecond)
	return p
}

func TestTheStateOfFirmwareAndTPMOutlastsThePodIfItIsPersistent(t *testing.T) {
	t.Parallel()
	state := folder(t, 107, "nvram", "swtpm")
	var variables os.FileInfo
	for range 2 {
		p := startUEFI(t, withUEFI(false, true), "STATE="+state)
		qemu := p.process("qemu-system-x86_64")
		require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: withUEFI(false, true), Stop: &protocol.Stop{}}))
		p.ends(protocol.Shutdown, "")
		require.NotZero(t, qemu)

		content, err := os.ReadFile(filepath.Join(state, "nvram", "uefi.fd"))
		require.NoError(t, err)
		template, err := os.ReadFile("/usr/share/OVMF/OVMF_VARS_4M.fd")
		require.NoError(t, err)
		require.NotEqual(t, template, content, "the firmware wrote its variables")
		info, err := os.Stat(filepath.Join(state, "nvram", "uefi.fd"))
		require.NoError(t, err)
		require.True(t, variables == nil || os.SameFile(variables, info), "the variables are not made anew")
		variables = info
		require.FileExists(t, filepath.Join(state, "swtpm", "state", "tpm2", "tpm2-00.permall"))
		require.FileExists(t, filepath.Join(state, "swtpm", "state", complete))
		require.NoError(t, os.WriteFile(filepath.Join(state, "swtpm", "state", "seen"), nil, 0o644)) // removed with a TPM that is made anew
	}
	require.FileExists(t, filepath.Join(state, "swtpm", "state", "seen"))
}

func TestSecureBootHasVariablesWithKeys(t *testing.T) {
	t.Parallel()
	p := startUEFI(t, withUEFI(true, false))
	content, err := os.ReadFile(p.path("kubevirt-private/nvram/secure-boot.fd"))
	require.NoError(t, err)
	require.Contains(t, string(content), "Microsoft Corporation UEFI CA")
	p.uses(overhead.Guest{Memory: resource.MustParse("128Mi"), VCPUs: 1, Emulated: true, PartBytes: partBytes("devices.autoattachGraphicsDevice", "firmware.bootloader.efi", "devices.tpm")})
}

func TestAttackVariablesThatAreALinkAreNotUsed(t *testing.T) {
	t.Parallel()
	state := folder(t, 107, "nvram", "swtpm")
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(state, "nvram", "uefi.fd")))
	p := newPod(t, bootable(), "STATE="+state)
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: withUEFI(false, true)}))
	p.ends(protocol.CannotStart, "nvram/uefi.fd is not a regular file of 540672 bytes: delete it to have one made")
}

func TestATPMWhoseMakingWasInterruptedIsMadeAnew(t *testing.T) {
	t.Parallel()
	state := folder(t, 107, "nvram", "swtpm")
	half := filepath.Join(state, "swtpm", "state", "tpm2")
	require.NoError(t, os.MkdirAll(half, 0o755))
	for _, dir := range []string{half, filepath.Dir(half)} {
		require.NoError(t, os.Chown(dir, 107, 107))
	}
	putUEFI(t, withUEFI(false, true), "STATE="+state).phase(protocol.Running)
	info, err := os.Stat(filepath.Join(half, "tpm2-00.permall"))
	require.NoError(t, err)
	require.Greater(t, info.Size(), int64(5000), "one without keys and certificates is smaller")
	require.WithinDuration(t, time.Now(), info.ModTime(), time.Hour)
}

func memoryOf(size string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(size)}
}
