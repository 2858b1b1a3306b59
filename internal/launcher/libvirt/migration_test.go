package libvirt_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/launcher/libvirt"
	"github.com/podvisor/podvisor/internal/testenv"
)

func TestAGuestMovesWithItsDiskToAnotherDaemon(t *testing.T) {
	from, to := newDaemon(t), newDaemon(t)
	g := from.start("")
	to.file("root.img", make([]byte, 1<<20))
	m := libvirt.Migration{URI: "unix://" + to.dir + "/memory", Disks: []string{"vda"}, DisksURI: "unix://" + to.dir + "/disks"}

	begin := func() []byte {
		xml, cookie, err := from.MigrateBegin(t.Context(), name, m)
		require.NoError(t, err)
		cookie, err = to.MigratePrepare(t.Context(), name, m, strings.ReplaceAll(xml, from.dir, to.dir), cookie)
		require.NoError(t, err)
		return cookie
	}
	_, err := to.MigrateFinish(t.Context(), name, m, begin(), libvirt.NotMoved)
	require.ErrorContains(t, err, "finish the migration of domain default_vm: ")
	status, err := from.Status(t.Context(), name)
	require.NoError(t, err)
	require.Equal(t, libvirt.Running, status.State)
	_ = from.MigrateConfirm(t.Context(), name, m, nil, libvirt.NotMoved) // it was not performed
	require.Error(t, from.AbortJob(t.Context(), name), "there is none")

	require.NoError(t, from.SetMaxDowntime(t.Context(), name, 2*time.Second))
	cookie, err := from.MigratePerform(t.Context(), name, m, begin())
	require.NoError(t, err)
	job, err := from.Job(t.Context(), name)
	require.NoError(t, err)
	require.Positive(t, job.ProcessedBytes)
	cookie, err = to.MigrateFinish(t.Context(), name, m, cookie, libvirt.Moved)
	require.NoError(t, err)
	require.NoError(t, from.MigrateConfirm(t.Context(), name, m, cookie, libvirt.Moved))

	_, err = from.Status(t.Context(), name)
	require.ErrorIs(t, err, libvirt.ErrNotFound)
	moved := guest{daemon: to}
	moved.types("d")
	moved.says("power button ignored", 1)
	require.NotContains(t, read(t, to.dir+"/serial.log"), "test guest is up", "it did not boot")
	out, err := exec.Command("cmp", g.dir+"/root.img", to.dir+"/root.img").CombinedOutput()
	require.NoError(t, err, "%s", out)
	job, err = to.CompletedJob(t.Context(), name)
	require.NoError(t, err)
	require.Positive(t, job.Elapsed)
	require.Positive(t, job.Downtime)
}

// moving is a guest that is to move from one daemon to another.
type moving struct {
	*guest
	to daemon
	m  libvirt.Migration
}

// begin makes the destination wait for the guest.
func (g moving) begin() (cookie []byte, err error) {
	g.Helper()
	xml, cookie, err := g.MigrateBegin(g.Context(), name, g.m)
	require.NoError(g, err)
	return g.to.MigratePrepare(g.Context(), name, g.m, strings.ReplaceAll(xml, g.dir, g.to.dir), cookie)
}

// perform moves the guest, on a connection of its own. The function that it returns waits
// until that is over.
func (g moving) perform(cookie []byte) (wait func() ([]byte, error)) {
	g.Helper()
	own := g.dial(g.dir + "/run/libvirt/libvirt-sock")
	var done sync.WaitGroup
	var next []byte
	var err error
	ctx, cancel := context.WithTimeoutCause(g.Context(), 5*time.Minute, errors.New("it takes more than five minutes"))
	done.Go(func() {
		defer cancel()
		if next, err = own.MigratePerform(ctx, name, g.m, cookie); err != nil && ctx.Err() != nil {
			job, jobErr := g.Job(g.Context(), name)
			err = fmt.Errorf("%w: its job is %+v", errors.Join(err, jobErr), job)
		}
	})
	return func() ([]byte, error) { done.Wait(); return next, err }
}

// abort aborts the migration until it is over, and returns its error.
func (g moving) abort(over func() ([]byte, error)) error {
	g.Helper()
	require.NoError(g, g.AbortJob(g.Context(), name))
	var err error
	ended := make(chan struct{})
	go func() { defer close(ended); _, err = over() }()
	for {
		select {
		case <-ended:
			return err
		case <-time.After(5 * time.Second):
			g.Log("abort again:", g.AbortJob(g.Context(), name))
		}
	}
}

// finish lets the guest run at the destination, where it must not have booted.
func (g moving) finish(cookie []byte) {
	g.Helper()
	cookie, err := g.to.MigrateFinish(g.Context(), name, g.m, cookie, libvirt.Moved)
	require.NoError(g, err)
	require.NoError(g, g.MigrateConfirm(g.Context(), name, g.m, cookie, libvirt.Moved))
	moved := guest{daemon: g.to}
	moved.types("d")
	moved.says("power button ignored", 1)
	require.NotContains(g, read(g.T, g.to.dir+"/serial.log"), "test guest is up")
}

func TestAMigrationIsLimitedAbortedAndRepeated(t *testing.T) {
	const size = 64 << 20 // QEMU sends 16 MiB of a disk before it waits
	from, to := newDaemon(t), newDaemon(t)
	data := from.file("data.img", full(size))
	g := moving{from.start(`<disk type="file" device="disk"><driver name="qemu" type="raw"/><source file="` + data + `"/><target dev="vdb" bus="virtio"/></disk>`), to, libvirt.Migration{
		URI: "unix://" + to.dir + "/memory", Disks: []string{"vda", "vdb"}, DisksURI: "unix://" + to.dir + "/disks",
		MiBPerSecond: 1, AutoConverge: true,
	}}
	to.file("root.img", make([]byte, 1<<20))
	to.file("data.img", make([]byte, size))

	cookie, err := g.begin()
	require.NoError(t, err)
	over := g.perform(cookie)
	g.until("the migration is under way", func() error {
		job, err := g.Job(t.Context(), name)
		if err == nil && (job.ProcessedBytes == 0 || job.Elapsed < time.Second) {
			err = fmt.Errorf("it is %+v", job)
		}
		require.Less(t, job.ProcessedBytes, int64(size), "it is limited")
		return err
	})
	require.ErrorContains(t, g.abort(over), "migrate domain default_vm: operation aborted")
	_, err = to.MigrateFinish(t.Context(), name, g.m, nil, libvirt.NotMoved)
	require.ErrorContains(t, err, "finish the migration of domain default_vm: ")
	require.ErrorContains(t, g.MigrateConfirm(t.Context(), name, g.m, nil, libvirt.NotMoved), "is not being migrated")
	status, err := g.Status(t.Context(), name)
	require.NoError(t, err)
	require.Equal(t, libvirt.Running, status.State)

	g.m.MiBPerSecond = 0
	cookie, err = g.begin()
	require.NoError(t, err)
	cookie, err = g.perform(cookie)()
	require.NoError(t, err)
	g.finish(cookie)
	out, err := exec.Command("cmp", data, to.dir+"/data.img").CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func TestPostCopyNeedsTheDeviceForPageFaultsAtTheDestination(t *testing.T) {
	const device = "/dev/userfaultfd"
	testenv.File(t, device)
	from, to := newDaemon(t), newDaemon(t)
	g := moving{from.start(""), to, libvirt.Migration{
		URI: "unix://" + to.dir + "/memory", Disks: []string{"vda"}, DisksURI: "unix://" + to.dir + "/disks", MiBPerSecond: 1, PostCopy: true,
	}}
	to.file("root.img", make([]byte, 1<<20))
	if strings.TrimSpace(read(t, "/proc/sys/vm/unprivileged_userfaultfd")) == "0" {
		_, err := g.begin()
		require.ErrorContains(t, err, "prepare the migration of domain default_vm: ")
		require.ErrorContains(t, err, "Postcopy is not supported")
		_ = g.MigrateConfirm(t.Context(), name, g.m, nil, libvirt.NotMoved) // it was not performed
	}

	to.mount("mknod -m 666 " + to.dir + "/faults c 10 $(stat -c %T " + device + " | { read n; echo $((0x$n)); }) && mount --bind " + to.dir + "/faults " + device)
	cookie, err := g.begin()
	require.NoError(t, err)
	over := g.perform(cookie)
	g.until("post-copy starts", func() error { return g.StartPostCopy(t.Context(), name) })
	cookie, err = over()
	require.NoError(t, err)
	g.finish(cookie)
}
