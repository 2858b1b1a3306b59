package supervisor

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// The boot loaders of Debian: shim is signed by Microsoft, whose keys the firmware has,
// and GRUB by Debian, whose key shim has.
const (
	shim     = "/usr/lib/shim/shimx64.efi.signed"
	fallback = "/usr/lib/shim/fbx64.efi.signed"
	grub     = "/usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed"
)

// started is what GRUB writes to the serial port.
const started = "the boot loader was started"

// system is a disk with one FAT file system, from which UEFI firmware starts
// EFI/BOOT/BOOTX64.EFI. Its files are paths of the host by their places.
func system(t *testing.T, files map[string]string) []byte {
	t.Helper()
	testenv.File(t, "/usr/share/OVMF/OVMF_CODE_4M.secboot.fd")
	dir := t.TempDir()
	disk, config, entry := filepath.Join(dir, "disk"), filepath.Join(dir, "grub.cfg"), filepath.Join(dir, "entry")
	require.NoError(t, os.WriteFile(disk, nil, 0o600))
	require.NoError(t, os.Truncate(disk, 12<<20))
	require.NoError(t, os.WriteFile(config, []byte("serial --unit=0\nterminal_output serial\necho "+started+"\nsleep 600\n"), 0o600))
	// What fallback makes a boot entry of: UCS-2, with a byte order mark.
	text := []byte{0xff, 0xfe}
	for _, r := range "shimx64.efi,kept,,\n" {
		text = append(text, byte(r), 0)
	}
	require.NoError(t, os.WriteFile(entry, text, 0o600))
	steps := [][]string{
		{testenv.Program(t, "mkfs.vfat"), "-F", "12", disk},
		{testenv.Program(t, "mmd"), "-i", disk, "::EFI", "::EFI/BOOT", "::EFI/debian"},
		{testenv.Program(t, "mcopy"), "-i", disk, config, "::EFI/debian/grub.cfg"},
		{"mcopy", "-i", disk, entry, "::EFI/debian/BOOTX64.CSV"},
	}
	for place, file := range files {
		testenv.File(t, file)
		steps = append(steps, []string{"mcopy", "-i", disk, file, "::EFI/" + place})
	}
	for _, step := range steps {
		out, err := exec.Command(step[0], step[1:]...).CombinedOutput()
		require.NoError(t, err, "%v: %s", step, out)
	}
	b, err := os.ReadFile(disk)
	require.NoError(t, err)
	return b
}

// securely is a VMI that starts what is signed.
func securely() *vmi.VirtualMachineInstance {
	v := withUEFI(true, true)
	v.Spec.Domain.Devices.TPM = nil // fallback resets a guest that has one
	return v
}

// prints waits until the guest has written words. The firmware is slow under emulation.
func (p *pod) prints(words string) {
	p.Helper()
	require.Eventually(p, func() bool { return strings.Contains(p.console.String(), words) }, 10*time.Minute, 50*time.Millisecond)
}

// fallback writes a boot entry to the variables of the firmware, as the installers of
// distributions do, which comes first from then on.
func TestSecureBootStartsASignedSystemWhoseVariableOutlastsThePod(t *testing.T) {
	t.Parallel()
	state := folder(t, 107, "nvram", "swtpm")
	disk := map[string][]byte{"disk.img": system(t, map[string]string{
		"BOOT/BOOTX64.EFI": shim, "BOOT/fbx64.efi": fallback, "debian/shimx64.efi": shim, "debian/grubx64.efi": grub,
	})}
	first := regexp.MustCompile(`BdsDxe: starting Boot\d+ "([^"]*)"`)
	var entries []string
	for range 2 {
		p := newPod(t, disk, "STATE="+state)
		require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: securely()}))
		p.prints(started)
		found := first.FindStringSubmatch(p.console.String())
		require.NotNil(t, found)
		entries = append(entries, found[1])
		require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: securely(), Stop: &protocol.Stop{}}))
		p.ends(protocol.Shutdown, "")
	}
	require.NotEqual(t, "kept", entries[0])
	require.Equal(t, "kept", entries[1])
}

func TestAttackSecureBootStartsNothingThatIsNotSigned(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(testenv.File(t, shim))
	require.NoError(t, err)
	changed := filepath.Join(t.TempDir(), "changed.efi")
	at := bytes.Index(b, []byte("UEFI SHIM"))
	require.Positive(t, at)
	b[at] = 'u'
	require.NoError(t, os.WriteFile(changed, b, 0o600))
	for name, loader := range map[string]string{"changed after it was signed": changed, "signed with a key that the firmware does not have": grub} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPod(t, map[string][]byte{"disk.img": system(t, map[string]string{"BOOT/BOOTX64.EFI": loader, "BOOT/grubx64.efi": grub})})
			require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: securely()}))
			p.prints("BdsDxe: No bootable option or device was found.")
			require.Regexp(t, `failed to load Boot\d+ "[^"]*" from [^\n]*: Access Denied`, p.console.String())
			require.NotContains(t, p.console.String(), started)
			p.phase(protocol.Running)
		})
	}
}
