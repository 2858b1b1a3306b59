package supervisor

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/podvisor/podvisor/internal/launcher/process"
	"github.com/podvisor/podvisor/internal/testenv"
	"github.com/podvisor/podvisor/launcher/protocol"
)

// inspect is set in the environment of a test binary that is to print what processors
// guests can have, to the folder of its daemon.
const inspect = "PODVISOR_TEST_PROCESSORS"

func printProcessors(dir string) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	p, err := processors(ctx, dir, slog.New(slog.NewJSONHandler(os.Stderr, nil)))
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(p)
	}
	if err != nil {
		panic(err)
	}
}

// The libvirt daemon and QEMU are those of this host.
func TestTheProcessorsOfGuestsAreFoundOutWithoutKVMAndPrivileges(t *testing.T) {
	testenv.Root(t)
	setpriv := testenv.Program(t, "setpriv")
	testenv.Program(t, process.DaemonPath)
	testenv.Program(t, process.QEMUPath(process.Arch()))
	require.NoError(t, prepared())
	dir, err := os.MkdirTemp("", "proc")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o777))
	// The user 65534 is there on every system.
	c := exec.CommandContext(t.Context(), setpriv, "--reuid", "65534", "--regid", "65534", "--clear-groups", "--no-new-privs",
		"--bounding-set=-all", "--inh-caps=-all", filepath.Join(shared(), "launcher"))
	c.Env = append(os.Environ(), inspect+"="+filepath.Join(dir, "l"))
	c.Stderr = os.Stderr
	out, err := c.Output()
	require.NoError(t, err)
	var p protocol.Processors
	require.NoError(t, json.Unmarshal(out, &p))
	require.Contains(t, p.Emulated.Models, "Westmere")
	require.NotContains(t, p.Emulated.Models, "Skylake-Server", "QEMU does not emulate it in full")
	require.Subset(t, p.Emulated.Features, []string{"aes", "sse4.2", "pku"})
	require.NotContains(t, p.Emulated.Features, "avx512f")
	require.Contains(t, p.Native.Models, "Penryn")
	require.Contains(t, p.Native.Features, "sse2")
	require.NotEmpty(t, p.Native.HostModel)
}
