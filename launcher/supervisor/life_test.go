package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// times are the times in libvirt's record of what QEMU can do.
var times = regexp.MustCompile("<(qemuctime|selfctime)>[0-9]+<")

// It also gives the launchers of the tests that follow such a record.
func TestALauncherNeedsNoRecordOfWhatQEMUCanDo(t *testing.T) {
	p := newPod(t, bootable())
	p.run()
	found, err := filepath.Glob(p.path("kubevirt-private/libvirt/cache/libvirt/qemu/cache/capabilities/*.xml"))
	require.NoError(t, err)
	require.NotEmpty(t, found)
	for _, f := range found {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		// As if it were from another image.
		b = times.ReplaceAll(b, []byte("<${1}>1<"))
		require.NoError(t, os.WriteFile(filepath.Join(shared(), "share/podvisor/qemu-capabilities", filepath.Base(f)), b, 0o644))
	}
	p.write("o")
	p.ends(protocol.Shutdown, "the guest powered off")
}

func TestAGuestIsAskedToPowerOff(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable())
	state, err := p.client.State(t.Context())
	require.NoError(t, err)
	state.Movable = true // it may not be published yet
	require.Equal(t, protocol.State{Phase: protocol.Waiting, Movable: true}, state)
	p.run()
	state, err = p.client.State(t.Context())
	require.NoError(t, err)
	require.True(t, state.Emulated)
	require.Regexp(t, `^pc-q35-\d`, state.Machine, "an alias is reported as what it stands for")
	require.Equal(t, protocol.Disk{Name: "root", Target: "vda", SizeBytes: 1 << 20}, state.Disks[0])
	require.Equal(t, protocol.Disk{Name: "empty", Target: "vdc", SizeBytes: 1 << 30}, state.Disks[2])

	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: instance(), Stop: &protocol.Stop{GracePeriodSeconds: 60}}))
	p.says("power button pressed", 1)
	p.ends(protocol.Shutdown, "the guest powered off")
	require.Contains(t, p.console.String(), "powering off")
}

func TestTheEndOfAPodIsTheEndOfItsGuest(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable())
	p.run()
	p.kill(p.launcher, unix.SIGTERM)
	p.says("power button pressed", 1)
	p.ends(protocol.Shutdown, "the guest powered off")
}

func TestAGuestWhoseVMIIsElsewhereIsSwitchedOffAtOnce(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable())
	p.run()
	require.NoError(t, p.client.Call(t.Context(), protocol.CallDestroy, nil, nil))
	p.ends(protocol.Shutdown, "the guest was switched off, with no time left to power off in")
	require.NotContains(t, p.console.String(), "power button pressed")
}

func TestAGuestThatRebootsRunsOn(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable())
	p.run()
	qemu := p.process("qemu-system-x86_64")
	p.write("r")
	p.says("test guest is up", 2)
	p.phase(protocol.Running)
	require.Equal(t, qemu, p.process("qemu-system-x86_64"))
	p.reports("one reboot", func(s protocol.State) bool { return s.Reboots == 1 })
	time.Sleep(slowReboot) // this guest reads less than others when it boots
	p.write("r")
	p.says("test guest is up", 3)
	p.reports("two reboots", func(s protocol.State) bool { return s.Reboots == 2 && s.Panics == 0 })
}

func TestAGuestWhoseKernelPanicsHasCrashed(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable())
	v := instance()
	v.Spec.Domain.Devices.PanicDevices = []vmi.PanicDevice{{Model: new(vmi.PanicDeviceISA)}}
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: v}))
	p.says("test guest is up", 1)
	p.write("p")
	last := p.ends(protocol.Crashed, "the kernel of the guest panicked")
	require.Equal(t, int64(1), last.Panics)
	require.Zero(t, last.Reboots)
}

func TestWithoutAPanicDeviceAPanicEndsNothing(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable())
	p.run()
	console, err := p.client.Stream(t.Context(), protocol.StreamConsole)
	require.NoError(t, err)
	defer console.Close() // QEMU drops what the guest has not read when a console ends
	_, err = console.Write([]byte("pr"))
	require.NoError(t, err)
	p.says("test guest is up", 2)
	p.reports("no panic", func(s protocol.State) bool { return s.Phase == protocol.Running && s.Panics == 0 && s.Reboots == 1 })
}

func TestAGuestThatDoesNotReactIsSwitchedOff(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable())
	p.run()
	p.write("d")
	p.says("power button ignored", 1)
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: instance(), Stop: &protocol.Stop{GracePeriodSeconds: 1}}))
	p.ends(protocol.Killed, "grace period")
	require.NotContains(t, p.console.String(), "power button pressed")
}

func TestAShorterGracePeriodCounts(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable(), "GRACE=1h")
	p.run()
	p.write("d")
	p.says("power button ignored", 1)
	p.kill(p.launcher, unix.SIGTERM)
	p.phase(protocol.Stopping)
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: instance(), Stop: &protocol.Stop{}}))
	p.ends(protocol.Killed, "grace period")
}

func TestAQEMUThatIsKilledHasCrashed(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable())
	p.run()
	p.kill(p.process("qemu-system-x86_64"), unix.SIGKILL)
	p.ends(protocol.Crashed, "QEMU was killed by signal 9 (killed)")
}

func TestAQEMUThatGotASignalToEndWasNotPoweredOff(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable())
	p.run()
	p.kill(p.process("qemu-system-x86_64"), unix.SIGTERM)
	p.ends(protocol.Crashed, "from outside")
}

func TestAGuestRunsOnWithoutTheDaemon(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable())
	p.run()
	qemu, libvirt := p.process("qemu-system-x86_64"), p.process("libvirtd")
	p.kill(libvirt, unix.SIGKILL)
	p.until("there is another daemon", func() bool { now := p.process("libvirtd"); return now != 0 && now != libvirt })
	require.Equal(t, qemu, p.process("qemu-system-x86_64"))
	p.phase(protocol.Running)
	p.until("the agent is looked for, which may have come or gone", func() bool { return strings.Contains(p.log.String(), "looked for the agent") })

	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: instance(), Stop: &protocol.Stop{GracePeriodSeconds: 60}}))
	p.says("power button pressed", 1)
	p.ends(protocol.Shutdown, "the guest powered off")
	require.Equal(t, 1, strings.Count(p.console.String(), "test guest is up"))
}

func TestAGuestMayPowerOffWhileTheDaemonIsAway(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable())
	p.run()
	p.kill(p.process("libvirtd"), unix.SIGKILL)
	p.write("o")
	p.ends(protocol.Shutdown, "the guest powered off")
}

func TestADaemonThatHangsDelaysNoEnd(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable())
	p.run()
	p.kill(p.process("libvirtd"), unix.SIGSTOP)
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: instance(), Stop: &protocol.Stop{GracePeriodSeconds: 1}}))
	p.ends(protocol.Killed, "grace period")
}

func TestADaemonThatHangsIsReplacedWhileTheGuestGoesOn(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable(), "ANSWERS=20s")
	first := 0
	p.until("the daemon runs", func() bool { first = p.process("libvirtd"); return first != 0 })
	p.kill(first, unix.SIGSTOP) // at its start, before it can have answered
	p.run()
	second, qemu := p.process("libvirtd"), p.process("qemu-system-x86_64")
	require.NotEqual(t, first, second)

	p.kill(second, unix.SIGSTOP)
	p.until("there is another daemon", func() bool { now := p.process("libvirtd"); return now != 0 && now != second })
	require.Equal(t, qemu, p.process("qemu-system-x86_64"))
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: instance(), Stop: &protocol.Stop{GracePeriodSeconds: 60}}))
	p.says("power button pressed", 1)
	p.ends(protocol.Shutdown, "the guest powered off")
	require.Equal(t, 1, strings.Count(p.console.String(), "test guest is up"))
}

func TestAQEMUThatASignalStopsStandsStillUntilAnotherOrItsEnd(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable())
	p.run()
	qemu := p.process("qemu-system-x86_64")
	p.kill(qemu, unix.SIGSTOP)
	p.phase(protocol.Paused)
	state, err := p.client.State(t.Context())
	require.NoError(t, err)
	require.Equal(t, &protocol.Pause{Cause: protocol.PausedBySignal}, state.Pause)
	p.kill(qemu, unix.SIGCONT)
	p.phase(protocol.Running)
	p.kill(qemu, unix.SIGSTOP)
	p.phase(protocol.Paused)
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: instance(), Stop: &protocol.Stop{GracePeriodSeconds: 1}}))
	p.ends(protocol.Killed, "grace period")
}

func TestAQEMUMayEndWhileTheDaemonIsAway(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable())
	p.run()
	qemu := p.process("qemu-system-x86_64")
	p.kill(p.process("libvirtd"), unix.SIGKILL)
	p.kill(qemu, unix.SIGABRT)
	p.ends(protocol.Crashed, "QEMU was killed by signal 6")
}

func TestALauncherWithoutADesiredIsCancelled(t *testing.T) {
	t.Parallel()
	p := newPod(t, nil)
	p.kill(p.launcher, unix.SIGTERM)
	p.ends(protocol.Cancelled, "before the guest ran")
}

func TestATargetWaitsForAGuestAndStartsNone(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable())
	for i, role := range []vmi.Role{vmi.RoleTarget, vmi.RoleActive} {
		d := protocol.Desired{Generation: int64(i + 1), Instance: instance(), Role: role}
		require.NoError(t, p.client.Put(t.Context(), d))
		require.Eventually(t, func() bool {
			s, err := p.client.State(t.Context())
			return err == nil && s.Generation == d.Generation && s.Phase == protocol.Waiting
		}, time.Minute, 10*time.Millisecond, "role %q", role)
	}
	p.kill(p.launcher, unix.SIGTERM)
	p.ends(protocol.Cancelled, "before the guest ran")
}

func TestAStopThatComesFirstCancels(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable())
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: instance(), Stop: &protocol.Stop{GracePeriodSeconds: 60}}))
	p.ends(protocol.Cancelled, "before the guest ran")
}

func TestAContainerDiskWithoutAnImageIsTheEnd(t *testing.T) {
	t.Parallel()
	p := newPod(t, nil)
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: instance()}))
	p.ends(protocol.CannotStart, "volume root, container disk example/guest:1: the folder /disk is empty")
}

func TestADomainHasTheMachineTypeOfItsSpec(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable())
	v := instance()
	v.Spec.Domain.Machine = &vmi.Machine{Type: "pc-q35-6.2"}
	v.Spec.Domain.CPU = &vmi.CPU{Model: vmi.CPUModelPassthrough}
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: v}))
	p.phase(protocol.Running)
	p.says("test guest is up", 1)
	state, err := p.client.State(t.Context())
	require.NoError(t, err)
	require.Equal(t, "pc-q35-6.2", state.Machine)
}

func TestADomainHasDisksOnEveryBusAndBootsFromTheOneWithABootOrder(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable())
	v := instance()
	v.Spec.Domain.Devices.Disks, v.Spec.Volumes = nil, v.Spec.Volumes[:1]
	// More SATA disks than a controller has ports.
	for i, b := range slices.Concat(slices.Repeat([]vmi.DiskBus{vmi.DiskBusSATA}, 7), slices.Repeat([]vmi.DiskBus{vmi.DiskBusSCSI, vmi.DiskBusVirtio}, 2)) {
		name := fmt.Sprintf("empty%d", i)
		v.Spec.Volumes = append(v.Spec.Volumes, vmi.Volume{Name: name, VolumeSource: vmi.VolumeSource{EmptyDisk: &vmi.EmptyDisk{Capacity: resource.MustParse("1Mi")}}})
		v.Spec.Domain.Devices.Disks = append(v.Spec.Domain.Devices.Disks, vmi.Disk{Name: name, Disk: &vmi.DiskTarget{Bus: b}, Serial: "SN-" + name})
	}
	v.Spec.Domain.Devices.Disks = append(v.Spec.Domain.Devices.Disks, vmi.Disk{Name: "root", Disk: &vmi.DiskTarget{Bus: vmi.DiskBusSCSI}, BootOrder: new(uint(2))})
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: v}))
	p.phase(protocol.Running)
	p.says("test guest is up", 1)
}

func TestAMachineTypeThatQEMUDoesNotHaveIsTheEnd(t *testing.T) {
	t.Parallel()
	// libvirt says of the first that QEMU does not have it, and complains about
	// the devices of the second.
	for _, machineType := range []string{"pc-q35-99.9", "q35-next"} {
		t.Run(machineType, func(t *testing.T) {
			t.Parallel()
			p := newPod(t, bootable())
			v := instance()
			v.Spec.Domain.Machine = &vmi.Machine{Type: machineType}
			require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: v}))
			p.ends(protocol.CannotStart, "QEMU has no machine type "+machineType+": set machine.type to one of q35, pc-q35-")
		})
	}
}

func TestWithoutKVMADomainIsNotStartedUnlessEmulationIsAllowed(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable(), "EMULATION=")
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: instance()}))
	p.ends(protocol.CannotStart, "/dev/kvm")
}

func TestEveryProcessIsReaped(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable())
	p.run()
	p.until("every child lives", func() bool {
		for _, pid := range children(p.launcher) {
			if b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat")); err != nil || strings.Count(string(b), ") Z ") > 0 {
				return false
			}
		}
		return true
	})
}

func TestADaemonThatEndsDuringAStartLeavesNothingThatPreventsTheNext(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable())
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: instance()}))
	daemon := 0
	p.until("there is a daemon", func() bool { daemon = p.process("libvirtd"); return daemon != 0 })
	status := p.path("kubevirt-private/libvirt/run/libvirt/qemu/run/default_vm.xml")
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		// The guest runs, and the launcher does not know it.
		if b, _ := os.ReadFile(status); strings.Contains(string(b), "<domstatus state='running'") {
			p.kill(daemon, unix.SIGKILL)
			break
		}
	}
	// The next daemon answers when the call of the launcher has ended.
	for end := time.Now().Add(2 * callTimeout); time.Now().Before(end); time.Sleep(time.Millisecond) {
		pid := p.process("libvirtd")
		if pid == 0 {
			continue
		}
		if err := unix.Kill(pid, unix.SIGKILL); !errors.Is(err, unix.ESRCH) { // it was ended and is reaped
			require.NoError(t, err)
		}
	}
	p.phase(protocol.Running)
	p.says("test guest is up", 1)
	qemu := p.process("qemu-system-x86_64")
	time.Sleep(2 * forStatus) // a late report of the first is not about the second
	p.phase(protocol.Running)
	require.Equal(t, qemu, p.process("qemu-system-x86_64"))
	p.write("o")
	p.ends(protocol.Shutdown, "the guest powered off")
}

func TestAFindingThatStaysIsPublishedOnce(t *testing.T) {
	t.Parallel()
	p := newPod(t, bootable())
	v := instance()
	v.Spec.Domain.Memory.Guest = new(resource.MustParse("8Ti"))
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: v}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	found := make(chan string, 1000)
	go func() {
		defer close(found)
		for state := range p.client.Watch(ctx) {
			// Of a busy host it may be found that its daemon is late.
			if f := state.Finding; f != nil && strings.HasPrefix(f.Message, "create domain ") {
				found <- f.Message
			}
		}
	}()
	p.until("a fourth start has failed, after what was found at three was published", func() bool {
		return len(found) > 0 && strings.Count(p.log.String(), `"start the domain"`) > 3
	})
	cancel()
	messages := map[string]int{}
	for message := range found {
		messages[message]++
	}
	require.Len(t, messages, 1)
	for message := range messages {
		require.Contains(t, message, "qemu-system-x86_64: cannot set up guest memory")
	}
	p.kill(p.launcher, unix.SIGTERM)
	p.ends(protocol.Cancelled, "before the guest ran")
}
