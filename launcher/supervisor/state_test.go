package supervisor

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"github.com/podvisor/podvisor/launcher/protocol"
	"github.com/podvisor/podvisor/vmi"
)

// claim is one for the state of a guest.
func claim(t *testing.T) string {
	t.Helper()
	return folder(t, 107, "nvram", "swtpm")
}

// stateful is a launcher that waits for a guest with firmware and TPM, and has the claim.
func stateful(t *testing.T, claim string) *pod {
	t.Helper()
	p := newPod(t, map[string][]byte{"empty.img": make([]byte, 1<<20)}, "STATE="+claim)
	require.NoError(t, p.client.Put(t.Context(), protocol.Desired{Instance: withUEFI(false, true), Role: vmi.RoleTarget}))
	return p
}

// variablesIn and tpmIn are the files of the state in a claim.
func variablesIn(claim string) string { return filepath.Join(claim, "nvram", "uefi.fd") }
func tpmIn(claim string) string {
	return filepath.Join(claim, "swtpm", "state", "tpm2", "tpm2-00.permall")
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return b
}

// hasCome says whether the claim says that its state came with the guest.
func hasCome(t *testing.T, claim string) bool {
	t.Helper()
	_, a := os.Lstat(filepath.Join(claim, "nvram", came))
	_, b := os.Lstat(filepath.Join(claim, "swtpm", came))
	require.Equal(t, a == nil, b == nil)
	return a == nil
}

// restarts starts a guest with the claim as a start does to which it must have come.
func restarts(t *testing.T, claim string) *pod {
	t.Helper()
	return putUEFI(t, withUEFI(false, true), "STATE="+claim, "REQUIRE=yes")
}

func TestTheStateOfFirmwareAndTPMMovesWithTheGuest(t *testing.T) {
	t.Parallel()
	a, b, c := claim(t), claim(t), claim(t)
	from := startUEFI(t, withUEFI(false, true), "STATE="+a)

	// A guest that stays takes nothing along, however far it was.
	for i, end := range []func(migration){
		func(m migration) {
			m.prepare()
			_, err := m.finish(protocol.MigrationStep{UID: m.uid}, false)
			require.NoError(t, err)
		},
		func(m migration) {
			step := m.perform()
			require.FileExists(t, tpmIn(b), "swtpm writes the state before the guest runs")
			require.False(t, hasCome(t, b))
			_, err := m.finish(step, false)
			require.NoError(t, err)
			m.confirm(protocol.MigrationStep{}, false)
			from.stage(m.uid, protocol.MigrationStays)
		},
		func(m migration) {
			step := m.perform()
			require.NoError(t, os.Truncate(variablesIn(b), 1<<10)) // so that they cannot be written
			_, err := m.finish(step, true)
			require.Equal(t, protocol.ReasonNotMoved, reason(t, err))
			m.confirm(protocol.MigrationStep{}, false)
			from.stage(m.uid, protocol.MigrationStays)
		},
	} {
		to, uid := stateful(t, b), types.UID(fmt.Sprint(i))
		until, stop := context.WithCancel(t.Context())
		end(migration{T: t, uid: uid, from: from, to: to, until: until})
		stop()
		to.stage(uid, protocol.MigrationDiscarded)
		require.False(t, hasCome(t, b))
		to.kill(to.launcher, unix.SIGKILL)
		if i == 0 {
			require.NoError(t, from.client.Call(t.Context(), protocol.CallMigrationAbort, protocol.MigrationStep{UID: uid}, nil))
		}
		restarts(t, b).ends(protocol.StateMissing, "the claim for the state of firmware and TPM was made for a migration, and the guest did not come with it")
		b = claim(t)
	}

	// One that moves has all of it before it runs there.
	to := stateful(t, c)
	m := migration{T: t, uid: "last", from: from, to: to}
	step := m.perform()
	template := read(t, "/usr/share/OVMF/OVMF_VARS_4M.fd")
	require.Equal(t, template, read(t, variablesIn(c)), "QEMU does not write the variables before the guest runs")
	require.NotEqual(t, template, read(t, variablesIn(a)))
	began := time.Now()
	_, err := m.finish(step, true)
	require.NoError(t, err)
	t.Logf("finished after %s, with %d bytes", time.Since(began), len(step.Cookie))
	require.True(t, hasCome(t, c))
	require.True(t, bytes.Equal(read(t, variablesIn(a)), read(t, variablesIn(c))))
	require.Greater(t, len(read(t, tpmIn(c))), 5000, "one without keys and certificates is smaller")

	// Both launchers are killed before anyone knows. The next start has the state.
	from.kill(from.launcher, unix.SIGKILL)
	to.kill(to.launcher, unix.SIGKILL)
	require.NoError(t, os.WriteFile(filepath.Join(c, "swtpm", "state", "seen"), nil, 0o644)) // removed with a TPM that is made anew
	again := restarts(t, c)
	again.phase(protocol.Running)
	require.FileExists(t, filepath.Join(c, "swtpm", "state", "seen"))
	require.Equal(t, read(t, variablesIn(a)), read(t, variablesIn(c)))
}

func TestVariablesThatHaveNotComeAreNotWritten(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "uefi.fd")
	require.NoError(t, os.WriteFile(file, []byte("0123"), 0o600))
	for name, packed := range map[string][]byte{
		"nothing":     nil,
		"no archive":  []byte("0123"),
		"too little":  packedOf(t, "012"),
		"too much":    packedOf(t, "01234"),
		"half of one": packedOf(t, "abcd")[:12],
	} {
		require.Error(t, writeVariables(file, packed), name)
	}
	require.NoError(t, writeVariables(file, packedOf(t, "abcd")))
	require.Equal(t, "abcd", string(read(t, file)))
	link := file + ".link"
	require.NoError(t, os.Symlink(file, link))
	require.ErrorIs(t, writeVariables(link, packedOf(t, "abcd")), unix.ELOOP)
}

func packedOf(t *testing.T, content string) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "content")
	require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	b, err := pack(file, len(content)+100)
	require.NoError(t, err)
	return b
}
