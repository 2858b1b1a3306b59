//go:build release

package runvmi

import (
	"runtime"
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
	g := guest{
		T: t, manifest: ofARM, architecture: "arm64",
		host: []string{"unshare", "--mount", "--net", "sh", "-ec", testenv.LauncherMounts + `exec "$@"`, "sh"},
		args: []string{"-network", "none"}, env: []string{"LAUNCHER_ROOT=" + root}, toBoot: 10 * time.Minute, toEnd: 4 * time.Minute,
	}
	g.start()
	began := time.Now()
	g.says("this is aarch64, started by UEFI: yes")
	t.Logf("the guest booted in %.0f s", time.Since(began).Seconds())
	g.powersOff()
}
