package libvirt_test

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/launcher/libvirt"
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
