package testenv

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// LauncherRoot is the folder with the files of the image virt-launcher-full, whose libvirt
// daemon and QEMU a test runs: the environment variable LAUNCHER_ROOT. Empty: it runs
// those of the host.
func LauncherRoot(t testing.TB) string {
	t.Helper()
	return imageRoot(t, "LAUNCHER_ROOT", "virt-launcher-full")
}

// SmallLauncherRoot is the same of the image virt-launcher: LAUNCHER_SMALL_ROOT.
func SmallLauncherRoot(t testing.TB) string {
	t.Helper()
	return imageRoot(t, "LAUNCHER_SMALL_ROOT", "virt-launcher")
}

func imageRoot(t testing.TB, variable, image string) string {
	t.Helper()
	root := os.Getenv(variable)
	if root == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("needs " + variable + ", the folder with the files of the image: podvisor-images root " + image)
		}
		return ""
	}
	return File(t, root)
}

// LauncherMounts is a script of the shell that puts the files of the folder LAUNCHER_ROOT
// over those of the host, in a mount namespace of its own, if that variable is not empty.
// Programs that the image does not have stay those of the host; of libvirt, QEMU, their
// firmware and their modules there is nothing but what the image has.
const LauncherMounts = `
if [ -n "$LAUNCHER_ROOT" ]; then
	mount -t overlay -o lowerdir="$LAUNCHER_ROOT/usr:/usr" overlay /usr
	for whole in /usr/share/qemu /usr/share/seabios /usr/share/OVMF /usr/share/libvirt/cpu_map /usr/lib/ipxe \
		/usr/lib/x86_64-linux-gnu/qemu /usr/lib/x86_64-linux-gnu/libvirt /usr/lib/qemu; do
		if [ -d "$LAUNCHER_ROOT$whole" ]; then mount --bind "$LAUNCHER_ROOT$whole" "$whole"; elif [ -d "$whole" ]; then mount -t tmpfs -o ro tmpfs "$whole"; fi
	done
fi
`

// inLauncher is set in the environment of a test binary that InLauncher has started anew.
const inLauncher = "PODVISOR_TEST_IN_LAUNCHER"

// InLauncher starts the test binary anew with the files of the folder LAUNCHER_ROOT, as
// [LauncherMounts] has it, and returns if that is done. It is for the TestMain of a package
// that runs programs of the image itself. It returns too where that variable is empty, and
// where the test does not run as root: the programs are then those of the host.
func InLauncher() {
	if os.Getenv("LAUNCHER_ROOT") == "" || os.Geteuid() != 0 || os.Getenv(inLauncher) != "" {
		return
	}
	self, err := os.Executable()
	unshare, missing := exec.LookPath("unshare")
	if err = errors.Join(err, missing); err == nil {
		args := append([]string{"unshare", "--mount", "sh", "-ec", LauncherMounts + `exec "$0" "$@"`, self}, os.Args[1:]...)
		err = syscall.Exec(unshare, args, append(os.Environ(), inLauncher+"=1"))
	}
	fmt.Fprintln(os.Stderr, "run the tests with the files of the image: "+err.Error())
	os.Exit(1)
}
