package images

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/podvisor/podvisor/internal/testenv"
)

func TestAnImageHasProgramsOfItsArchitectureWithAllThatTheyLoad(t *testing.T) {
	t.Parallel()
	file := testenv.Program(t, "dpkg-deb")
	program, err := os.ReadFile(file)
	require.NoError(t, err)
	loader, libraries, err := linked(program, amd64)
	require.NoError(t, err)
	require.NotEmpty(t, loader)
	require.Contains(t, libraries, "libc.so.6")

	l := List{Entrypoint: []string{"/usr/bin/program"}, arch: amd64}
	image := tree{}
	require.EqualError(t, l.check(image), "the entry point /usr/bin/program is no program in the image")
	image.add("/usr/bin/program", node{Mode: 0o644, Content: program})
	require.ErrorContains(t, l.check(image), "the entry point /usr/bin/program is no program in the image", "it cannot be executed")
	image.add("/usr/bin/program", node{Mode: 0o755, Content: program})
	image.add(loader, node{Mode: 0o755})
	for _, library := range libraries[1:] {
		image.add("/usr/lib/x86_64-linux-gnu/"+library, node{Mode: 0o644})
	}
	require.EqualError(t, l.check(image), "/usr/bin/program: its library "+libraries[0]+" is not in the image")
	image.add("/usr/lib/x86_64-linux-gnu/"+libraries[0], node{Mode: 0o777, Link: "gone"})
	require.EqualError(t, l.check(image), "/usr/bin/program: its library "+libraries[0]+" is not in the image", "it is a link to nothing")
	image.add("/usr/lib/x86_64-linux-gnu/"+libraries[0], node{Mode: 0o644})
	require.NoError(t, l.check(image))
	delete(image, loader)
	require.EqualError(t, l.check(image), "/usr/bin/program: its loader "+loader+" is not in the image")

	l.arch = arm64
	require.ErrorContains(t, l.check(image), "/usr/bin/program: is for EM_X86_64, and the image for arm64")
}

func TestTheImagesOfBothArchitecturesAreOfOneRecipe(t *testing.T) {
	t.Parallel()
	for arch, own := range map[string][]string{
		amd64: {"/usr/bin/qemu-system-x86_64", "/usr/lib/x86_64-linux-gnu/libvirt/connection-driver/libvirt_driver_qemu.so", "/usr/share/OVMF/OVMF_CODE_4M.fd"},
		arm64: {"/usr/bin/qemu-system-aarch64", "/usr/lib/aarch64-linux-gnu/libvirt/connection-driver/libvirt_driver_qemu.so", "/usr/share/AAVMF/AAVMF_CODE.fd"},
	} {
		var all []string
		for _, name := range []string{"virt-launcher", "virt-launcher-full"} {
			l, err := ReadList(root, name, arch)
			require.NoError(t, err)
			all = append(all, l.Keep...)
			at, err := readLock(root)
			require.NoError(t, err)
			packages, err := at.of(name, *l.Debian)
			require.NoError(t, err)
			require.NotEmpty(t, packages)
		}
		require.Subset(t, all, own)
		require.Contains(t, all, "/usr/sbin/libvirtd")
		require.NotContains(t, strings.Join(all, " "), "$")
	}
	_, err := ReadList(root, "tools", arm64)
	require.EqualError(t, err, `image tools is not for "arm64"; it is for ["amd64"]`)
}

// spaceOf is what a file takes of its file system, in bytes.
func spaceOf(t *testing.T, file string) int64 {
	t.Helper()
	var s unix.Stat_t
	require.NoError(t, unix.Stat(file, &s))
	return s.Blocks * 512
}

func TestAFileOfZerosTakesNoSpace(t *testing.T) {
	t.Parallel()
	dir, content := t.TempDir(), make([]byte, 16<<20)
	copy(content[5<<20:], "firmware")
	flash := tree{"/flash": node{Mode: 0o644, Content: content}}
	require.NoError(t, flash.writeDir(dir))
	back, err := os.ReadFile(dir + "/flash")
	require.NoError(t, err)
	require.Equal(t, content, back)
	require.LessOrEqual(t, spaceOf(t, dir+"/flash"), int64(1<<20))
}
