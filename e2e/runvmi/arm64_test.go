//go:build release

package runvmi

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/e2e/images"
	"github.com/podvisor/podvisor/internal/testenv"
)

// ofARM is a guest with what guests of arm64 have by default, and a disk on each bus that
// they have.
const ofARM = `
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstance
metadata: {name: arm}
spec:
  architecture: arm64
  terminationGracePeriodSeconds: 240
  domain:
    memory: {guest: 256Mi}
    devices:
      autoattachPodInterface: false
      rng: {}
      panicDevices: [{}]
      disks: [{name: root}, {name: seed, disk: {bus: scsi}}]
  volumes:
  - {name: root, containerDisk: {image: "example/guest:1"}}
  - name: seed
    cloudInitNoCloud:
      userData: |
        #!/bin/sh
        echo "this is $(uname -m), started by UEFI: $(test -d /sys/firmware/efi && echo yes)" > /dev/console
`

// The host has another architecture: QEMU's emulator, the firmware and libvirt are those of
// an image that only this test uses.
func TestAGuestOfARMBootsAndPowersOffOnAHostOfX86(t *testing.T) {
	testenv.Root(t)
	require.Equal(t, "amd64", runtime.GOARCH, "on arm64 it would be no foreign guest")
	for _, name := range []string{"unshare", "setpriv"} {
		testenv.Program(t, name)
	}
	root, err := images.Root(t.Context(), images.Config{Names: []string{"arm64-emulator"}, Out: t.Output()})
	require.NoError(t, err)
	built, err := images.Build(t.Context(), images.Config{Names: []string{"demo-guest"}, Architecture: "arm64", Out: t.Output()})
	require.NoError(t, err)
	dir, err := os.MkdirTemp("", "arm") // the path is short
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	command(t, "go", "-C", "../..", "build", "-o", dir+"/run-vmi", "./examples/run-vmi")
	command(t, "install", "-m", "0644", built[0].Tar, dir+"/guest.tar")
	require.NoError(t, os.WriteFile(dir+"/vmi.yaml", []byte(ofARM), 0o644))
	command(t, "chown", "-R", user, dir)

	var console, notes testenv.Output
	cmd := exec.Command("unshare", "--mount", "--net", "sh", "-ec", testenv.LauncherMounts+`exec "$@"`, "sh",
		"setpriv", "--reuid", user, "--clear-groups", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all",
		dir+"/run-vmi", "-network", "none", "-image", "example/guest:1="+dir+"/guest.tar", dir+"/vmi.yaml")
	cmd.Env = []string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin", "TMPDIR=" + os.TempDir(), "LAUNCHER_ROOT=" + root}
	cmd.Stdout, cmd.Stderr = &console, &notes
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if t.Failed() {
			t.Logf("console:\n%s\nlog:\n%s", &console, &notes)
		}
	})
	says := func(words string) {
		t.Helper()
		require.Eventually(t, func() bool { return strings.Contains(console.String(), words) || len(ended) > 0 }, 10*time.Minute, 100*time.Millisecond)
		require.Contains(t, console.String(), words)
	}
	began := time.Now()
	says("this is aarch64, started by UEFI: yes")
	t.Logf("the guest booted in %.0f s", time.Since(began).Seconds())

	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	says("podvisor-guest: powering off")
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(4 * time.Minute):
		require.FailNow(t, "timeout: run-vmi ends with the guest")
	}
}
