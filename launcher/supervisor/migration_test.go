package supervisor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/internal/carry"
	"github.com/podvisor/podvisor/launcher/control"
	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// migration is a migration between two launchers. The test is the handlers of both.
type migration struct {
	*testing.T
	uid      types.UID
	from, to *pod
	settings protocol.MigrationSettings
	// until ends the handlers. Nil: the end of the test does.
	until context.Context
}

// newTarget is a launcher that waits for the guest.
func newTarget(t *testing.T, disk map[string][]byte, env ...string) *pod {
	t.Helper()
	p := newPod(t, disk, env...)
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: instance(), Role: vmi.RoleTarget}))
	return p
}

// pump carries the connections of the stream until the test ends.
func (m migration) pump(name protocol.Stream) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(m.Context()))
	var all sync.WaitGroup
	m.Cleanup(func() { cancel(); all.Wait() })
	if m.until != nil {
		context.AfterFunc(m.until, cancel)
	}
	all.Go(func() {
		for ctx.Err() == nil {
			near, err := m.from.client.Stream(ctx, name)
			if err != nil {
				time.Sleep(20 * time.Millisecond)
				continue
			}
			far, err := m.to.client.Stream(ctx, name)
			if err != nil {
				_ = near.Close()
				continue
			}
			all.Go(func() { carry.Both(ctx, near, far) })
		}
	})
}

func (m migration) begin() (b protocol.MigrationBegun) {
	m.Helper()
	require.NoError(m, m.from.client.Call(m.Context(), protocol.CallMigrationBegin, protocol.MigrationBegin{UID: m.uid, Settings: m.settings}, &b))
	return b
}

// prepare makes both ready.
func (m migration) prepare() (step protocol.MigrationStep) {
	m.Helper()
	o := protocol.MigrationPrepare{MigrationBegin: protocol.MigrationBegin{UID: m.uid, Settings: m.settings}, MigrationBegun: m.begin()}
	require.NoError(m, m.to.client.Call(m.Context(), protocol.CallMigrationPrepare, o, &step))
	require.NoError(m, m.to.client.Call(m.Context(), protocol.CallMigrationPrepare, o, &step), "as before")
	m.to.stage(m.uid, protocol.MigrationReceives)
	m.pump(protocol.StreamMigrationMemory)
	m.pump(protocol.StreamMigrationDisks)
	return step
}

func (m migration) perform() (step protocol.MigrationStep) {
	m.Helper()
	require.NoError(m, m.from.client.Call(m.Context(), protocol.CallMigrationPerform, m.prepare(), &step))
	var same protocol.MigrationStep
	require.NoError(m, m.from.client.Call(m.Context(), protocol.CallMigrationPerform, step, &same))
	require.Equal(m, step, same)
	m.from.stage(m.uid, protocol.MigrationSent)
	return step
}

func (m migration) finish(step protocol.MigrationStep, moved bool) (next protocol.MigrationStep, err error) {
	err = m.to.client.Call(m.Context(), protocol.CallMigrationFinish, protocol.MigrationEnd{MigrationStep: step, Moved: moved}, &next)
	return next, err
}

func (m migration) confirm(step protocol.MigrationStep, moved bool) {
	m.Helper()
	step.UID = m.uid
	require.NoError(m, m.from.client.Call(m.Context(), protocol.CallMigrationConfirm, protocol.MigrationEnd{MigrationStep: step, Moved: moved}, nil))
}

// moves moves the guest. before is called when it runs at the target and is still known at the
// source.
func (m migration) moves(before func()) {
	m.Helper()
	began := time.Now()
	step := m.perform()
	sent := time.Now()
	next, err := m.finish(step, true)
	require.NoError(m, err)
	m.Logf("sent after %s, finished after %s", sent.Sub(began), time.Since(sent))
	again, err := m.finish(step, true)
	require.NoError(m, err)
	require.Equal(m, next, again)
	m.to.stage(m.uid, protocol.MigrationArrived)
	before()
	m.confirm(next, true)
	m.from.ends(protocol.MovedAway, "the guest runs in another pod")
}

// stage waits until the migration stands there.
func (p *pod) stage(uid types.UID, want protocol.MigrationStage) (m protocol.Migration) {
	p.Helper()
	p.until("the stage is "+string(want), func() bool {
		s, err := p.client.State(p.Context())
		require.NoError(p, err)
		require.True(p, s.Movable)
		if s.Migration != nil {
			m = *s.Migration
		}
		return m.UID == uid && m.Stage == want
	})
	return m
}

// lives checks that the guest answers, and has not booted here unless booted says so.
func (p *pod) lives(booted bool) {
	p.Helper()
	n := strings.Count(p.console.String(), "power button ignored")
	p.write("d")
	p.says("power button ignored", n+1)
	require.Equal(p, booted, strings.Contains(p.console.String(), "test guest is up"))
}

// answers checks that the guest answers on its serial port. The console of a launcher that was
// started again is another pipe than QEMU's.
func (p *pod) answers() {
	p.Helper()
	c, err := net.Dial("unix", p.path("kubevirt-private/"+string(instance().UID)+"/virt-serial0"))
	require.NoError(p, err)
	defer c.Close()
	require.NoError(p, c.SetDeadline(time.Now().Add(time.Minute)))
	_, err = c.Write([]byte("d"))
	require.NoError(p, err)
	for all := ""; !strings.Contains(all, "power button ignored"); {
		b := make([]byte, 1<<10)
		n, err := c.Read(b)
		require.NoError(p, err, all)
		all += string(b[:n])
	}
}

func reason(t *testing.T, err error) string {
	t.Helper()
	var refused *control.Error
	require.True(t, errors.As(err, &refused), "%v", err)
	return refused.Reason
}

func TestAGuestMovesToAnotherLauncherAndOn(t *testing.T) {
	t.Parallel()
	first, second, third := newPod(t, bootable()), newTarget(t, bootable()), newTarget(t, bootable())
	first.run()
	m := migration{T: t, uid: "one", from: first, to: second, settings: protocol.MigrationSettings{Connections: 2, AutoConverge: true}}
	const seed = "kubevirt-ephemeral-disks/cloud-init-data/default/vm/noCloud.iso"
	require.FileExists(t, second.path("kubevirt-private/waits"))
	var before protocol.State
	m.moves(func() {
		want, err := os.ReadFile(first.path(seed))
		require.NoError(t, err)
		got, err := os.ReadFile(second.path(seed))
		require.NoError(t, err)
		require.Equal(t, want, got, "it is copied")
		info, err := os.Stat(second.path(seed))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		before, err = first.client.State(t.Context())
		require.NoError(t, err)
		require.Equal(t, &protocol.Pause{Cause: protocol.PausedByMigration}, before.Pause)
	})
	second.lives(false)
	require.NoFileExists(t, second.path("kubevirt-private/waits"))
	v := instance()
	v.Labels = map[string]string{vmi.MigrationTargetNodeLabel: "node2"}
	require.NoError(t, second.client.Put(t.Context(), protocol.Desired{Instance: v, Role: vmi.RoleActive}))
	require.NoFileExists(t, second.path("kubevirt-private/arrived"), "a Service may lead to the pod that it has left")
	require.NoError(t, second.client.Put(t.Context(), protocol.Desired{Instance: instance(), Role: vmi.RoleActive}))
	require.FileExists(t, second.path("kubevirt-private/arrived"))
	require.NoFileExists(t, third.path("kubevirt-private/arrived"), "no guest has come there")
	after, err := second.client.State(t.Context())
	require.NoError(t, err)
	require.Equal(t, protocol.Running, after.Phase)
	require.Equal(t, before.Machine, after.Machine)
	require.Equal(t, before.Disks, after.Disks)
	require.True(t, after.Emulated)

	// Paused by its user it moves on, and stays so.
	require.NoError(t, second.client.Call(t.Context(), protocol.CallPause, nil, nil))
	migration{T: t, uid: "two", from: second, to: third}.moves(func() {})
	require.Equal(t, protocol.Pause{Cause: protocol.PausedByUser}, third.paused())
	require.NoError(t, third.client.Call(t.Context(), protocol.CallUnpause, nil, nil))
	third.phase(protocol.Running)
	third.lives(false)
	third.write("o")
	third.ends(protocol.Shutdown, "the guest powered off")
}

func TestAMigrationThatIsAbortedLeavesTheGuestWhereItIs(t *testing.T) {
	t.Parallel()
	from, to := newPod(t, bootable()), newTarget(t, bootable())
	from.run()
	m := migration{T: t, uid: "one", from: from, to: to}
	performed := m.sending()
	require.Equal(t, vmi.MigrationPreCopy, from.stage(m.uid, protocol.MigrationSends).Mode)
	from.lives(true)
	for _, call := range []protocol.Call{protocol.CallReset, protocol.CallSoftReboot, protocol.CallFreeze, protocol.CallUnpause} {
		require.Equal(t, protocol.ReasonBusy, reason(t, from.client.Call(t.Context(), call, nil, nil)), call)
	}
	require.Equal(t, protocol.ReasonBusy, reason(t, from.client.Call(t.Context(), protocol.CallMigrationBegin, protocol.MigrationBegin{UID: "other"}, nil)))
	require.Equal(t, protocol.ReasonNotFound, reason(t, from.client.Call(t.Context(), protocol.CallMigrationAbort, protocol.MigrationStep{UID: "other"}, nil)))

	require.NoError(t, from.client.Call(t.Context(), protocol.CallMigrationAbort, protocol.MigrationStep{UID: m.uid}, nil))
	require.Equal(t, protocol.ReasonMigrationAborted, reason(t, <-performed))
	require.Equal(t, &vmi.Finding{Reason: protocol.ReasonMigrationAborted, Message: "the live migration has been aborted"}, from.stage(m.uid, protocol.MigrationStays).Finding)
	from.phase(protocol.Running)
	from.lives(true)
	_, err := m.finish(protocol.MigrationStep{UID: m.uid}, false)
	require.NoError(t, err)
	to.stage(m.uid, protocol.MigrationDiscarded)
	_, err = m.finish(protocol.MigrationStep{UID: m.uid}, true)
	require.Equal(t, protocol.ReasonNotMoved, reason(t, err))
	require.Zero(t, to.process("qemu-system-x86_64"))

	// The next one succeeds, of the same launchers.
	m.uid = "two"
	m.moves(func() {})
	to.lives(false)
}

func TestATargetThatIsNotAskedToFinishNeverRunsTheGuest(t *testing.T) {
	t.Parallel()
	from, to := newPod(t, bootable()), newTarget(t, bootable(), "FINISH=20s")
	from.run()
	m := migration{T: t, uid: "one", from: from, to: to}
	step := m.perform()
	for _, call := range []protocol.Call{protocol.CallPause, protocol.CallUnpause, protocol.CallReset, protocol.CallFreeze, protocol.CallGuestOSInfo} {
		require.Equal(t, protocol.ReasonBusy, reason(t, from.client.Call(t.Context(), call, nil, nil)), call)
	}
	require.Error(t, from.client.Call(t.Context(), protocol.CallMigrationAbort, protocol.MigrationStep{UID: m.uid}, nil), "it is too late")
	// A daemon that is started anew knows nothing of the migration.
	sessions := strings.Count(from.log.String(), "the libvirt daemon answers")
	from.kill(from.process("libvirtd"), unix.SIGKILL)
	from.until("there is another daemon", func() bool { return strings.Count(from.log.String(), "the libvirt daemon answers") > sessions })
	require.Equal(t, protocol.ReasonNotMoved, to.stage(m.uid, protocol.MigrationDiscarded).Finding.Reason)
	require.Zero(t, to.process("qemu-system-x86_64"))
	b, err := os.ReadFile(to.path(filepath.Join("kubevirt-private", string(instance().UID), "migration.json")))
	require.NoError(t, err)
	require.JSONEq(t, `{"uid":"one","stage":"Discarded"}`, string(b))
	_, err = m.finish(step, true)
	require.Equal(t, protocol.ReasonNotMoved, reason(t, err))
	require.Equal(t, protocol.Pause{Cause: protocol.PausedByMigration}, from.paused())

	m.confirm(protocol.MigrationStep{}, false)
	require.Equal(t, protocol.ReasonNotMoved, from.stage(m.uid, protocol.MigrationStays).Finding.Reason)
	from.phase(protocol.Running)
	from.lives(true)

	// A guest that has moved ends at its source by a new daemon, too.
	m.uid = "two"
	step = m.perform()
	from.kill(from.process("libvirtd"), unix.SIGKILL)
	next, err := m.finish(step, true)
	require.NoError(t, err)
	to.lives(false)
	m.confirm(next, true)
	from.ends(protocol.MovedAway, "the guest runs in another pod")
	to.lives(false)
}

func TestAnImageThatWasChangedKeepsTheGuestWhereItIs(t *testing.T) {
	t.Parallel()
	changed := bootable()["guest.img"]
	changed = append([]byte(nil), changed...)
	changed[len(changed)-1]++
	from, to := newPod(t, bootable()), newTarget(t, map[string][]byte{"guest.img": changed})
	from.run()
	m := migration{T: t, uid: "one", from: from, to: to}
	o := protocol.MigrationPrepare{MigrationBegin: protocol.MigrationBegin{UID: m.uid}, MigrationBegun: m.begin()}
	err := to.client.Call(t.Context(), protocol.CallMigrationPrepare, o, nil)
	require.Equal(t, protocol.ReasonContainerDiskChanged, reason(t, err))
	require.ErrorContains(t, err, "volume root")
	to.stage(m.uid, protocol.MigrationDiscarded)
	from.lives(true)
}

func TestACDROMHasAtTheTargetWhatTheGuestHasReadSoFar(t *testing.T) {
	t.Parallel()
	const seed = "kubevirt-ephemeral-disks/cloud-init-data/default/vm/noCloud.iso"
	with := func(userData, networkData string) *vmi.VirtualMachineInstance {
		v := instance()
		v.Spec.Domain.Devices.Disks[1] = vmi.Disk{Name: "seed", CDRom: &vmi.CDRomTarget{Bus: vmi.DiskBusSATA}}
		v.Spec.Volumes[1].CloudInitNoCloud.UserData, v.Spec.Volumes[1].CloudInitNoCloud.NetworkData = userData, networkData
		return v
	}
	first := newPod(t, bootable())
	require.NoError(t, first.client.Put(t.Context(), protocol.Desired{Instance: with("#!/bin/sh", "")}))
	first.phase(protocol.Running)
	first.says("test guest is up", 1)
	want, err := os.ReadFile(first.path(seed))
	require.NoError(t, err)
	from := first
	for size, networkData := range map[string]string{"same": "", "another": "version: 2"} {
		to := newPod(t, bootable())
		require.NoError(t, to.client.Put(t.Context(), protocol.Desired{Instance: with("#!/bin/su", networkData), Role: vmi.RoleTarget}))
		migration{T: t, uid: types.UID(size), from: from, to: to}.moves(func() {
			got, err := os.ReadFile(to.path(seed))
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
		to.lives(false)
		from = to
	}
}

func TestAGuestThatIsToEndIsNotSent(t *testing.T) {
	t.Parallel()
	from, to := newPod(t, bootable()), newTarget(t, bootable())
	from.run()
	m := migration{T: t, uid: "one", from: from, to: to}
	performed := m.sending()
	require.NoError(t, from.client.Put(t.Context(), protocol.Desired{Instance: instance(), Stop: &protocol.Stop{GracePeriodSeconds: 60}}))
	require.Error(t, <-performed)
	from.says("power button pressed", 1)
	from.ends(protocol.Shutdown, "the guest powered off")
	require.NoError(t, to.client.Put(t.Context(), protocol.Desired{Instance: instance(), Role: vmi.RoleTarget, Stop: &protocol.Stop{}}))
	to.ends(protocol.Cancelled, "before the guest ran")
}

// sending begins a migration that does not end: what QEMU sends of the memory is not read.
func (m migration) sending() (performed <-chan error) {
	m.Helper()
	o := protocol.MigrationPrepare{MigrationBegin: protocol.MigrationBegin{UID: m.uid, Settings: m.settings}, MigrationBegun: m.begin()}
	var step protocol.MigrationStep
	require.NoError(m, m.to.client.Call(m.Context(), protocol.CallMigrationPrepare, o, &step))
	m.pump(protocol.StreamMigrationDisks)
	ctx := context.WithoutCancel(m.Context())
	conns := make(chan net.Conn, 1)
	go func() {
		conn, _ := m.from.client.Stream(ctx, protocol.StreamMigrationMemory)
		conns <- conn
	}()
	done := make(chan error, 1)
	go func() { done <- m.from.client.Call(ctx, protocol.CallMigrationPerform, step, nil) }()
	conn := <-conns
	require.NotNil(m, conn)
	m.Cleanup(func() { _ = conn.Close() })
	m.from.stage(m.uid, protocol.MigrationSends)
	return done
}

func TestASendingThatIsLateIsPausedAndThenAborted(t *testing.T) {
	t.Parallel()
	from, to := newPod(t, bootable()), newTarget(t, bootable())
	from.run()
	m := migration{T: t, uid: "one", from: from, to: to, settings: protocol.MigrationSettings{SecondsPerGB: 10, Disruption: true}}
	performed := m.sending()
	require.Equal(t, protocol.Pause{Cause: protocol.PausedByMigration}, from.paused())
	require.Equal(t, vmi.MigrationPaused, from.stage(m.uid, protocol.MigrationSends).Mode)
	err := <-performed
	require.Equal(t, protocol.ReasonMigrationAborted, reason(t, err))
	require.ErrorContains(t, err, "the live migration has been aborted: it was not complete after 20s")
	from.phase(protocol.Running)
	from.lives(true)
}

func TestAMigrationWhoseProcessesDieLeavesOneGuest(t *testing.T) {
	t.Parallel()
	from := newPod(t, bootable())
	from.run()
	for i, kill := range []func(to *pod){
		func(*pod) { from.kill(from.process("libvirtd"), unix.SIGKILL) },
		func(to *pod) { to.kill(to.process("libvirtd"), unix.SIGKILL) },
		func(to *pod) { to.kill(to.process("qemu-system-x86_64"), unix.SIGKILL) },
	} {
		to := newTarget(t, bootable())
		until, end := context.WithCancel(t.Context())
		m := migration{T: t, uid: types.UID(fmt.Sprint(i)), from: from, to: to, until: until}
		performed := m.sending()
		kill(to)
		if i > 0 {
			to.stage(m.uid, protocol.MigrationDiscarded)
			require.NoError(t, from.client.Call(t.Context(), protocol.CallMigrationAbort, protocol.MigrationStep{UID: m.uid}, nil))
		}
		require.Error(t, <-performed)
		from.stage(m.uid, protocol.MigrationStays)
		from.phase(protocol.Running)
		from.lives(true)
		_, err := m.finish(protocol.MigrationStep{UID: m.uid}, true)
		require.Equal(t, protocol.ReasonNotMoved, reason(t, err))
		require.Zero(t, to.process("qemu-system-x86_64"))
		to.kill(to.launcher, unix.SIGKILL)
		end()
	}

	// What is left at the source does not matter when everything is sent.
	to := newTarget(t, bootable())
	m := migration{T: t, uid: "last", from: from, to: to}
	step := m.perform()
	from.kill(from.process("qemu-system-x86_64"), unix.SIGKILL)
	next, err := m.finish(step, true)
	require.NoError(t, err)
	require.Equal(t, protocol.Pause{Cause: protocol.PausedByMigration}, from.paused(), "it does not end before the outcome is known")
	m.confirm(next, true)
	from.ends(protocol.MovedAway, "the guest runs in another pod")
	to.lives(false)
}

func TestALauncherThatIsStartedAgainKnowsItsMigration(t *testing.T) {
	t.Parallel()
	from, to := newPod(t, bootable(), "RESTART=yes"), newTarget(t, bootable(), "RESTART=yes")
	from.run()
	restart := func(p *pod) {
		before := p.process("launcher")
		p.kill(before, unix.SIGKILL)
		p.until("there is another launcher", func() bool {
			now := p.process("launcher")
			_, err := p.client.State(t.Context())
			return now != 0 && now != before && err == nil
		})
	}
	m := migration{T: t, uid: "one", from: from, to: to}
	step := m.perform()
	restart(from)
	require.NoError(t, from.client.Put(t.Context(), protocol.Desired{Instance: instance()}))
	from.stage(m.uid, protocol.MigrationSent)
	require.Equal(t, protocol.Pause{Cause: protocol.PausedByMigration}, from.paused())
	var same protocol.MigrationStep
	require.NoError(t, from.client.Call(t.Context(), protocol.CallMigrationPerform, step, &same))
	require.Equal(t, step, same)

	restart(to)
	require.Equal(t, protocol.ReasonNotMoved, to.stage(m.uid, protocol.MigrationDiscarded).Finding.Reason)
	_, err := m.finish(step, true)
	require.Equal(t, protocol.ReasonNotMoved, reason(t, err))
	m.confirm(protocol.MigrationStep{}, false)
	from.stage(m.uid, protocol.MigrationStays)
	from.phase(protocol.Running)
	from.answers()
	require.Equal(t, 1, strings.Count(from.console.String(), "test guest is up"), "it did not boot again")

	// It does not know what of the disks would have to be copied.
	err = from.client.Call(t.Context(), protocol.CallMigrationBegin, protocol.MigrationBegin{UID: "none"}, nil)
	require.Equal(t, protocol.ReasonUnavailable, reason(t, err))
	require.ErrorContains(t, err, "volume root")

	// At the target, too, when the guest runs there.
	other := newPod(t, bootable())
	other.run()
	m.from, m.uid = other, "two"
	require.NoError(t, to.client.Put(t.Context(), protocol.Desired{Instance: instance(), Role: vmi.RoleTarget}))
	next, err := m.finish(m.perform(), true)
	require.NoError(t, err)
	restart(to)
	again, err := m.finish(step, true)
	require.Equal(t, protocol.ReasonUnavailable, reason(t, err), "of another migration")
	require.Empty(t, again)
	end := protocol.MigrationStep{UID: m.uid}
	again, err = m.finish(end, true)
	require.NoError(t, err)
	require.Equal(t, next, again)
	to.phase(protocol.Running)
	to.answers()
}
